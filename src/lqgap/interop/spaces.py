"""The spaces of observations and actions that a learning algorithm is given.

Observations are unbounded: Gaussian noise has no bound. Actions are as large as the actuators allow. Without
limits the plant takes any input, and the space of actions is bounded nevertheless, because many
algorithms need it: five standard deviations of the optimal controller's input,

    u = -K xhat ,   cov(xhat) = X + S0 ,   X = (A - BK) X (A - BK)' + L S L'

which is that of the long run, X, and a bound on that of the first step, S0; the largest among some members.
"""

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float

from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.policies.limits import LimitsLike, read_limits
from lqgap.systems import LQG, solve
from lqgap.systems.optimum import belief_covariance

NUM_DEVIATIONS = 5.0


def make_spaces(examples: LQG, limits: LimitsLike) -> tuple[spaces.Box, spaces.Box]:
    """The spaces of observations and of actions."""
    observations = spaces.Box(-np.inf, np.inf, shape=(examples.num_outputs,), dtype=np.float64)
    if limits is None:
        high = NUM_DEVIATIONS * input_scale(examples)
        return observations, spaces.Box(-high, high, dtype=np.float64)
    low, high = read_bounds(limits, num_inputs=examples.num_inputs)
    return observations, spaces.Box(low, high, dtype=np.float64)


def read_bounds(limits: LimitsLike, *, num_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest inputs that reach the plant; infinite without limits."""
    allowed = read_limits(limits, num_inputs=num_inputs)
    if np.any(np.isfinite(allowed.rate)):
        raise InvalidArgumentError(f"limits is {limits!r}: environments limit inputs, not their rates")
    return np.array(allowed.low), np.array(allowed.high)


def input_scale(examples: LQG) -> np.ndarray:
    """The largest standard deviation of each input under the optimal controllers of these plants."""
    deviations = np.asarray(_deviations(examples))
    solved = deviations[np.all(np.isfinite(deviations), axis=1)]
    if len(solved) == 0:
        raise NotConvergedError(
            "no member has an optimal controller, so that nothing is known of the size of inputs: give "
            "limits=(low, high); lqgap.solve says what is wrong with a plant"
        )
    largest = np.max(solved, axis=0)
    return np.where(largest > 0, largest, 1.0)


@jax.jit
@jax.vmap
def _deviations(plant: LQG) -> Float[Array, " input"]:
    optimum = solve(plant)
    covariance = belief_covariance(optimum, plant) + plant.S0
    variances = jnp.diagonal(optimum.K @ covariance @ optimum.K.T)
    return jnp.where(optimum.converged, jnp.sqrt(variances), jnp.nan)
