"""The cost of zero input and of white-noise input of unit covariance, over steps 0..H.

With a stable A, and what stands in brackets under noise,

    X = A X A' + W [+ B B'] ,   Y = A'Y A + C'QC ,   j = tr(C'QC X) + tr(QV) [+ tr R]
    V(H) = (H+1) j + tr(Y (S0 - X)) - tr(Y A^{H+1} (S0 - X) A'^{H+1}) ,

for any H, also one far beyond what can be run. A bound that is larger than the gap of zero input is
vacuous."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lqgap.batches import in_turn
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.systems import LQG


@dataclass(frozen=True)
class OpenLoopCost:
    """The expected cost of every member as a function of the horizon; infinite where A is not stable."""

    A: np.ndarray
    average: np.ndarray
    value: np.ndarray  # Y
    offset: np.ndarray  # S0 - X

    def __call__(self, horizon: float) -> np.ndarray:
        """The cost of steps 0..horizon."""
        stable = np.isfinite(self.average)
        power = np.linalg.matrix_power(np.where(stable[:, None, None], self.A, 0), int(horizon) + 1)
        rest = power @ self.offset @ np.swapaxes(power, 1, 2)
        total = (horizon + 1) * self.average + np.sum(self.value * (self.offset - rest), axis=(1, 2))
        return np.where(stable, total, np.inf)


def open_loop_cost(systems: LQG, *, is_random: bool) -> OpenLoopCost:
    """The cost of zero input, or of white noise as input, on every member of a batch."""
    average, value, offset = (np.asarray(part) for part in _open_loop(systems, is_random))
    return OpenLoopCost(np.asarray(systems.A), np.where(np.isfinite(average), average, np.inf), value, offset)


@eqx.filter_jit
def _open_loop(systems: LQG, is_random: bool) -> tuple[Array, Array, Array]:
    def of_member(plant: LQG) -> tuple[Array, Array, Array]:
        noise = plant.W + plant.B @ plant.B.T if is_random else plant.W
        output_cost = plant.C.T @ plant.Q @ plant.C
        X = lyapunov_sum(plant.A, noise)
        Y = lyapunov_sum(in_turn(X, plant.A.T), output_cost)
        average = jnp.sum(output_cost * X) + jnp.sum(plant.Q * plant.V)
        return average + (jnp.trace(plant.R) if is_random else 0.0), Y, plant.S0 - X

    return jax.lax.map(of_member, systems)
