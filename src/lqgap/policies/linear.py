"""Linear dynamic controllers: u = Cc xi + Dc y ,  xi_+ = Ac xi + Bc y ,  xi_0 = 0."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.arguments import IntLike, MatrixLike, read_array, read_count, read_square, require_shape
from lqgap.errors import InvalidArgumentError
from lqgap.policies.policy import AbstractLinearPolicy, LinearStep


class LinearMemory(eqx.Module):
    """The controller's state, and the last observation seen."""

    xi: Float[Array, " order"]
    y: Float[Array, " output"]


class LinearDynamic(AbstractLinearPolicy):
    """A linear controller given by its matrices; Ac, Bc and Cc left out, a static gain.

    It has no model of the plant: a lost observation (NaN) is taken to be as the last one seen.
    """

    Ac: Float[Array, "order order"]
    Bc: Float[Array, "order output"]
    Cc: Float[Array, "input order"]
    Dc: Float[Array, "input output"]

    def __init__(
        self,
        Ac: MatrixLike | None = None,
        Bc: MatrixLike | None = None,
        Cc: MatrixLike | None = None,
        Dc: MatrixLike | None = None,
    ):
        if Dc is None:
            raise InvalidArgumentError("Dc is missing: it says how many inputs and outputs there are")
        self.Dc = read_array("Dc", Dc, num_axes=2)
        inputs, outputs = self.Dc.shape
        given = [matrix is not None for matrix in (Ac, Bc, Cc)]
        if any(given) and not all(given):
            raise InvalidArgumentError("Ac, Bc and Cc belong together: give all three, or none")
        if not any(given):
            self.Ac, self.Bc, self.Cc = jnp.zeros((0, 0)), jnp.zeros((0, outputs)), jnp.zeros((inputs, 0))
            return
        self.Ac = read_square("Ac", Ac)
        self.Bc, self.Cc = read_array("Bc", Bc, num_axes=2), read_array("Cc", Cc, num_axes=2)
        order = len(self.Ac)
        why = f"there are {order} controller states (Ac), {inputs} inputs and {outputs} outputs (Dc)"
        require_shape("Bc", self.Bc, (order, outputs), why=why)
        require_shape("Cc", self.Cc, (inputs, order), why=why)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.Dc.shape[-2]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.Dc.shape[-1]

    def at(self, time: Any) -> LinearStep:  # noqa: ARG002
        """The matrices, the same at every step."""
        return LinearStep(self.Ac, self.Bc, self.Cc, self.Dc)

    def init(self, key: PRNGKeyArray) -> LinearMemory:  # noqa: ARG002
        """At rest."""
        return LinearMemory(xi=jnp.zeros_like(self.Bc[:, 0]), y=jnp.zeros_like(self.Dc[0]))

    def step(
        self,
        memory: LinearMemory,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],  # noqa: ARG002
    ) -> tuple[LinearMemory, Float[Array, " input"]]:
        """One step of the recursion; what became of the last input does not matter to it."""
        y = jnp.where(jnp.isnan(y), memory.y, y)
        u = self.Cc @ memory.xi + self.Dc @ y
        return LinearMemory(xi=self.Ac @ memory.xi + self.Bc @ y, y=y), u


class Zero(AbstractLinearPolicy):
    """Zero input."""

    sizes: tuple[int, int] = eqx.field(static=True)

    def __init__(self, *, num_inputs: IntLike, num_outputs: IntLike):
        self.sizes = (
            read_count("num_inputs", num_inputs, least=1),
            read_count("num_outputs", num_outputs, least=1),
        )

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.sizes[0]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.sizes[1]

    def at(self, time: Any) -> LinearStep:  # noqa: ARG002
        """A static gain of zero."""
        inputs, outputs = self.num_inputs, self.num_outputs
        return LinearStep(
            jnp.zeros((0, 0)), jnp.zeros((0, outputs)), jnp.zeros((inputs, 0)), jnp.zeros((inputs, outputs))
        )

    def init(self, key: PRNGKeyArray) -> tuple[()]:  # noqa: ARG002
        """Nothing to remember."""
        return ()

    def step(
        self, memory: tuple[()], y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[tuple[()], Float[Array, " input"]]:
        """u = 0, in the precision of the observation."""
        return memory, jnp.zeros_like(u_last, dtype=y.dtype)
