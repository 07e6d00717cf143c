"""One LQG problem: a linear plant with Gaussian noise and a quadratic cost.

    x_{t+1} = A x_t + B u_t + w_t ,    w ~ N(0, W) ,    x_0 ~ N(0, S0)
    y_t = C x_t + z_t ,                z ~ N(0, V)

at a cost of y_t'Q y_t + u_t'R u_t a step.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import (
    MatrixLike,
    read_array,
    read_covariance,
    require_double_precision,
    require_shape,
)
from lqgap.errors import InvalidSystemError

MATRICES = ("A", "B", "C", "Q", "R", "W", "V", "S0")  # the fields of `LQG`; the first three have no default


class LQG(eqx.Module):
    """A plant, its noise and its cost; `stack` or `jax.vmap` gives a batch of them.

    Args:
        A, B, C: dynamics, input and output matrix: anything that reads as a matrix of numbers.
        Q: weighs outputs y, R inputs u; R must be positive definite.
        W, V, S0: covariance of process noise, measurement noise (positive definite), first state.
            Whatever is left out is the identity.
    """

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    Q: Float[Array, "output output"]
    R: Float[Array, "input input"]
    W: Float[Array, "state state"]
    V: Float[Array, "output output"]
    S0: Float[Array, "state state"]

    def __init__(
        self,
        A: MatrixLike,
        B: MatrixLike,
        C: MatrixLike,
        *,
        Q: MatrixLike | None = None,
        R: MatrixLike | None = None,
        W: MatrixLike | None = None,
        V: MatrixLike | None = None,
        S0: MatrixLike | None = None,
    ):
        self.A, self.B, self.C = (
            read_array(name, value, num_axes=2) for name, value in (("A", A), ("B", B), ("C", C))
        )
        states, inputs, outputs = len(self.A), self.B.shape[1], len(self.C)
        why = (
            f"there are {states} states (rows of A), {inputs} inputs (columns of B) and "
            f"{outputs} outputs (rows of C)"
        )
        require_shape("A", self.A, (states, states), why=why)
        require_shape("B", self.B, (states, inputs), why=why)
        require_shape("C", self.C, (outputs, states), why=why)
        self.Q = read_covariance("Q", Q, size=outputs, definite=False, why=why)
        self.R = read_covariance("R", R, size=inputs, definite=True, why=why)
        self.W = read_covariance("W", W, size=states, definite=False, why=why)
        self.V = read_covariance("V", V, size=outputs, definite=True, why=why)
        self.S0 = read_covariance("S0", S0, size=states, definite=False, why=why)

    def matrices(self) -> dict[str, Any]:
        """The matrices by name: what `LQG(**matrices)` makes the same plant of."""
        return {name: getattr(self, name) for name in MATRICES}

    @property
    def num_states(self) -> int:
        """Length of x."""
        return self.A.shape[-1]

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.B.shape[-1]

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.C.shape[-2]


def stack(plants: Sequence[LQG]) -> LQG:
    """One LQG with a leading axis, for `jax.vmap`; all plants must be of one size."""
    try:
        plants = list(plants)
    except TypeError:
        raise InvalidSystemError(f"plants is a {type(plants).__name__}, expected a list of LQGs") from None
    if not plants:
        raise InvalidSystemError("plants is empty, expected at least one LQG")
    for index, plant in enumerate(plants):
        require_single(plant, name=f"plants[{index}]")
        if (sizes := _sizes(plant)) != (expected := _sizes(plants[0])):
            raise InvalidSystemError(
                f"plants[{index}] has (states, inputs, outputs) = {sizes}, expected {expected} as "
                f"in plants[0]: pad the smaller ones, for example with delay states"
            )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *plants)


def require_single(plant: Any, *, name: str = "plant") -> None:
    """Raise unless the argument is one LQG, not a batch and not something else, in double precision."""
    require_double_precision()
    if not isinstance(plant, LQG):
        raise InvalidSystemError(f"{name} is a {type(plant).__name__}, expected an lqgap.LQG")
    if plant.A.ndim != 2:
        raise InvalidSystemError(
            f"{name} is a batch of LQGs (A has shape {plant.A.shape}), expected one: "
            f"map the function over it with jax.vmap"
        )


def _sizes(plant: LQG) -> tuple[int, int, int]:
    return plant.num_states, plant.num_inputs, plant.num_outputs
