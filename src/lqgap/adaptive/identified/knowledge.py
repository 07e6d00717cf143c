"""What a learner without a class is told of a plant: sizes, the cost, and perhaps a stabiliser; no noise.

The window of the regression is the one number that matters: what it leaves out is C Abar^window, and
too short a window is the commonest cause of divergence. Of a class it is

    window = max(2n, ceil(log 100 / log(1 / rho(Abar))))

Random inputs in units of the cost: with the covariance (excitation^2 c / m) R^-1, c the mean of y'Qy without
input, they cost excitation^2 c a step, and more by as much as M exceeds R.
"""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import (
    FloatLike,
    IntLike,
    MatrixLike,
    read_count,
    read_covariance,
    read_positive,
    read_square,
)
from lqgap.errors import InvalidArgumentError
from lqgap.identification.realization import Realization
from lqgap.identification.streaming import MarkovRegression
from lqgap.policies import Zero
from lqgap.policies.policy import AbstractLinearPolicy
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems.lqg import require_output_cost
from lqgap.training.stabilizer import find_stabilizer

NUM_KEPT = 60  # samples from which beliefs are rebuilt
MAX_WINDOW = 60
FORGOTTEN = 100  # by how much a window's bias is smaller than what it explains
STABLE = 1.0


class UnknownPlant(eqx.Module):
    """A plant to be identified, and what is told of it, as `UnknownPlant.like(plant)` reads it off one.

    Args:
        order: an upper bound of the number of states.
        Q: weighs outputs, whose number it tells.
        R: weighs inputs.
        window: lags of the regression, by default 2 order + 4.
        excitation: size of random inputs, relative to the cost without input.
        chooses_order: whether fewer states are taken where singular values are those of noise.
        stabilizer: a linear controller that plants which are not stable need, as long as nothing is known.
    """

    Q: Float[Array, "output output"]
    R: Float[Array, "input input"]
    order: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    chooses_order: bool = eqx.field(static=True)
    probe: Float[Array, "input input"]  # a root of the covariance of random inputs, for c = 1
    stabilizer: AbstractLinearPolicy  # zero input, if it is left out

    def __init__(
        self,
        *,
        order: IntLike,
        Q: MatrixLike,
        R: MatrixLike,
        window: IntLike | None = None,
        excitation: FloatLike = 0.3,
        chooses_order: bool = False,
        stabilizer: AbstractLinearPolicy | None = None,
    ):
        Q, R = read_square("Q", Q), read_square("R", R)
        self.Q = read_covariance("Q", Q, size=len(Q), definite=False, why="it weighs outputs")
        self.R = read_covariance("R", R, size=len(R), definite=True, why="it weighs inputs")
        self.order = read_count("order", order, least=1, most=MAX_WINDOW // 2)
        self.window = read_count(
            "window",
            min(2 * self.order + 4, MAX_WINDOW) if window is None else window,
            least=2 * self.order,
            most=MAX_WINDOW,
        )
        root = np.linalg.inv(np.linalg.cholesky(np.asarray(self.R))).T
        self.probe = jnp.asarray(read_positive("excitation", excitation) * root / math.sqrt(len(root)))
        self.chooses_order = chooses_order
        self.stabilizer = read_stabilizer(stabilizer, self.num_inputs, self.num_outputs)

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return len(self.Q)

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return len(self.R)

    @property
    def regression(self) -> MarkovRegression:
        """On the window."""
        return MarkovRegression(self.window, self.num_outputs, self.num_inputs, num_kept=NUM_KEPT)

    @property
    def num_features(self) -> int:
        """d, unknowns of the regression for each output."""
        return self.regression.num_features

    def nothing_known(self) -> Realization:
        """A model whose outputs and inputs have nothing to do with anything."""
        n, m, p = self.order, self.num_inputs, self.num_outputs
        zeros = jnp.zeros
        return Realization(zeros((n, n)), zeros((n, m)), zeros((p, n)), zeros((n, p)), jnp.eye(p))

    @staticmethod
    def like(members: Members, **how: Any) -> "UnknownPlant":
        """As much as may be told of a plant that is like those of a class: no more than sizes and the cost.

        Plants that are not stable come with one controller that stabilises the class.

        Args:
            how: in place of what the class says.
        """
        members = Finite.of(members)
        systems = members.systems
        require_output_cost(systems, what="a learner that is told of the cost alone")
        told: dict[str, Any] = {
            "order": systems.num_states,
            "Q": systems.Q[0],
            "R": systems.R[0],
            "window": window_for(members),
        }
        if "stabilizer" not in how and _radius(np.asarray(systems.A)) >= STABLE:
            told["stabilizer"] = find_stabilizer(members)
        return UnknownPlant(**(told | how))


def window_for(members: Finite) -> int:
    """The lags after which what the slowest predictor of a class leaves out is a hundredth."""
    systems, optima = members.systems, members.optima()
    radius = _radius(np.asarray(systems.A - optima.F @ systems.C))
    needed = math.ceil(math.log(FORGOTTEN) / -math.log(radius)) if 0 < radius < 1 else 1
    return min(max(2 * systems.num_states, needed), MAX_WINDOW)


def read_stabilizer(stabilizer: Any, inputs: int, outputs: int) -> AbstractLinearPolicy:
    """The argument, if it is a linear policy that fits; zero input, if it is left out."""
    if stabilizer is None:
        return Zero(num_inputs=inputs, num_outputs=outputs)
    if (stabilizer.num_inputs, stabilizer.num_outputs) != (inputs, outputs):
        raise InvalidArgumentError(
            f"stabilizer has {stabilizer.num_inputs} inputs and {stabilizer.num_outputs} outputs, expected "
            f"{inputs} (R) and {outputs} (Q)"
        )
    return stabilizer


def _radius(matrices: np.ndarray) -> float:
    return float(np.max(np.abs(np.linalg.eigvals(matrices))))
