"""One LQG problem: a linear plant with Gaussian noise and a quadratic cost.

    x_{t+1} = A x_t + B u_t + w_t ,    w ~ N(0, W) ,    x_0 ~ N(0, S0)
    y_t = C x_t + z_t ,                z ~ N(0, V)

at a cost of y_t'Q y_t + u_t'R u_t a step, or more generally of

    y_t'Q y_t + x_t'Qx x_t + 2 x_t'N u_t + u_t'R u_t .
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    SEMIDEFINITE_TOLERANCE,
    MatrixLike,
    is_concrete,
    is_definite,
    read_array,
    read_covariance,
    read_list,
    read_symmetric,
    require_double_precision,
    require_shape,
)
from lqgap.errors import InvalidSystemError

MATRICES = ("A", "B", "C", "Q", "R", "W", "V", "S0")  # the fields of `LQG`; the first three have no default
EXTENSIONS = ("Qx", "N")  # the fields that are None unless given: they are zero then


class LQG(eqx.Module):
    """A plant, its noise and its cost; `stack` or `jax.vmap` gives a batch of them.

    Args:
        A, B, C: dynamics, input and output matrix: anything that reads as a matrix of numbers.
        Q: weighs outputs y, R inputs u; R must be positive definite.
        W, V, S0: covariance of process noise, measurement noise, first state. V is positive definite, or at
            least C W C' + V and C S0 C' + V are: noise that reaches an output at once is noise enough.
            Whatever is left out of these is the identity.
        Qx, N: weigh states, x'Qx x + 2 x'N u, on top of the outputs' weight; zero if left out. Cost matrices
            of a performance output z = C1 x + D12 u are made by `performance_output`.
    """

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "output state"]
    Q: Float[Array, "output output"]
    R: Float[Array, "input input"]
    W: Float[Array, "state state"]
    V: Float[Array, "output output"]
    S0: Float[Array, "state state"]
    Qx: Float[Array, "state state"] | None
    N: Float[Array, "state input"] | None

    def __init__(  # noqa: PLR0913
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
        Qx: MatrixLike | None = None,
        N: MatrixLike | None = None,
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
        self.V = read_covariance("V", V, size=outputs, definite=False, why=why)
        self.S0 = read_covariance("S0", S0, size=states, definite=False, why=why)
        self.Qx = None if Qx is None else read_symmetric("Qx", Qx, size=states, why=why)
        self.N = None if N is None else read_array("N", N, num_axes=2)
        if self.N is not None:
            require_shape("N", self.N, (states, inputs), why=why)
        if is_concrete(self.matrices()):
            require_density(self)
            require_convex(self)

    def matrices(self) -> dict[str, Any]:
        """The matrices by name: what `LQG(**matrices)` makes the same plant of."""
        given = {name: getattr(self, name) for name in (*MATRICES, *EXTENSIONS)}
        return {name: matrix for name, matrix in given.items() if matrix is not None}

    @property
    def state_weight(self) -> Float[Any, "*batch state state"]:
        """What a state costs, as a matrix: C'QC, and Qx where there is one."""
        of_outputs = self.C.mT @ self.Q @ self.C
        weight = of_outputs if self.Qx is None else of_outputs + self.Qx
        return 0.5 * (weight + weight.mT)

    def cost(
        self, x: Float[Array, " state"], y: Float[Array, " output"], u: Float[Array, " input"]
    ) -> Float[Array, ""]:
        """What a step costs."""
        return y @ self.Q @ y + u @ self.R @ u + self.cost_of_state(x, u)

    def cost_of_state(self, x: Float[Array, " state"], u: Float[Array, " input"]) -> Any:
        """x'Qx x + 2 x'N u: what outputs do not show of the cost of a step."""
        of_state = 0.0 if self.Qx is None else x @ self.Qx @ x
        return of_state if self.N is None else of_state + 2 * x @ self.N @ u

    def state_cost_of_more(self, count: int) -> dict[str, Array]:
        """Qx and N, as far as there are such, of this plant with `count` further states after its own."""
        wide = {} if self.Qx is None else {"Qx": jnp.pad(self.Qx, (0, count))}
        return wide if self.N is None else wide | {"N": jnp.pad(self.N, ((0, count), (0, 0)))}

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
    plants = read_list("plants", plants)
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


def performance_output(C1: MatrixLike, D12: MatrixLike) -> dict[str, Array]:
    """The cost z'z of a performance output z = C1 x + D12 u: R, Qx and N, as `LQG` takes them.

    `LQG(A, B, C, Q=zero, **performance_output(C1, D12))` weighs nothing else. D12 must have as many
    independent columns as there are inputs, so that every input costs something.
    """
    C1, D12 = read_array("C1", C1, num_axes=2), read_array("D12", D12, num_axes=2)
    require_shape("D12", D12, (len(C1), D12.shape[1]), why="it must have as many rows as C1")
    return {"Qx": C1.T @ C1, "N": C1.T @ D12, "R": D12.T @ D12}


def require_output_cost(systems: LQG, *, what: str) -> None:
    """Raise where the cost has a part that outputs do not show, for what was proved or made without one."""
    if systems.Qx is not None or systems.N is not None:
        raise InvalidSystemError(f"{what} is made for a cost of outputs and inputs alone: leave out Qx and N")


def require_noise(systems: LQG, *, what: str) -> None:
    """Raise unless there is measurement noise in every direction; under tracing values are not known."""
    if is_concrete(systems.V) and not np.all(is_definite(np.asarray(systems.V), strictly=True)):
        raise InvalidSystemError(f"{what} needs noise in every output: V must be positive definite")


def require_density(systems: LQG, where: Callable[[int], str] = lambda _: "") -> None:
    """Raise if an output, or a combination of outputs, may be exact: its innovation would have no density."""
    C, V = np.asarray(systems.C), np.asarray(systems.V)
    if np.all(is_definite(V, strictly=True)):
        return
    for name in ("W", "S0"):
        bad = ~is_definite(C @ np.asarray(getattr(systems, name)) @ C.mT + V, strictly=True)
        if np.any(bad):
            raise InvalidSystemError(
                f"V{where(int(np.argmax(bad)))} is not positive definite, and nor is C {name} C' + V: an "
                f"output, or a combination of outputs, has no noise at all; give V a small value there"
            )


def require_convex(systems: LQG, where: Callable[[int], str] = lambda _: "") -> None:
    """Raise if some state and input together cost less than nothing, or more than a number can be."""
    C, Q = np.asarray(systems.C), np.asarray(systems.Q)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = C.mT @ Q @ C + (0.0 if systems.Qx is None else np.asarray(systems.Qx))
    is_finite = np.isfinite(weight).all(axis=(-2, -1))
    if not np.all(is_finite):
        raise InvalidSystemError(
            f"C'QC{where(int(np.argmin(is_finite)))} is beyond double precision: write states or outputs in "
            f"other units"
        )
    if systems.Qx is None and systems.N is None:
        return
    rest = weight
    if systems.N is not None:
        N = np.asarray(systems.N)
        rest = weight - N @ np.linalg.solve(np.asarray(systems.R), N.mT)
    smallest = np.linalg.eigvalsh(rest)[..., 0]
    # Both terms may be as large as the weight, and their difference nothing.
    bad = smallest < -100 * SEMIDEFINITE_TOLERANCE * rest.shape[-1] * np.max(np.abs(weight), axis=(-2, -1))
    if np.any(bad):
        index = int(np.argmax(bad))
        raise InvalidSystemError(
            f"the cost{where(index)} is not positive semidefinite: some state and input together cost less "
            f"than nothing (C'QC + Qx - N R^-1 N' has the eigenvalue {np.ravel(smallest)[index]:.3g})"
        )


def _sizes(plant: LQG) -> tuple[int, int, int]:
    return plant.num_states, plant.num_inputs, plant.num_outputs
