"""The steady Kalman filter: constant gain, exact once the transient from x_0 has died out.

    xhat_{t|t} = xhat_{t|t-1} + L (y_t - C xhat_{t|t-1}) ,   xhat_{t+1|t} = A xhat_{t|t} + B u_t

from xhat_{0|-1} = 0 on.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import MatrixLike, read_record
from lqgap.systems.innovation import correct_by_gain
from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import Optimum


def steady_correct(
    optimum: Optimum, plant: LQG, predicted: Float[Array, " state"], y: Float[Array, " output"]
) -> Float[Array, " state"]:
    """xhat_{t|t} from xhat_{t|t-1}; a lost component of y (NaN) is taken as expected from those seen."""
    return correct_by_gain(plant.C, optimum.L, optimum.S, predicted, y).xhat


def steady_predict(
    plant: LQG, xhat: Float[Array, " state"], u: Float[Array, " input"]
) -> Float[Array, " state"]:
    """xhat_{t+1|t} from xhat_{t|t}."""
    return plant.A @ xhat + plant.B @ u


def steady_step(
    optimum: Optimum,
    plant: LQG,
    xhat: Float[Array, " state"],
    u_last: Float[Array, " input"],
    y: Float[Array, " output"],
) -> Float[Array, " state"]:
    """xhat_{t|t} from xhat_{t-1|t-1}, u_{t-1} and y_t."""
    return steady_correct(optimum, plant, steady_predict(plant, xhat, u_last), y)


def steady_beliefs(optimum: Optimum, plant: LQG, y: MatrixLike, u: MatrixLike) -> Float[Array, "time state"]:
    """xhat_{t|t} along a record, rows (time, output) and (time, input)."""
    y, u = read_record(y, u, num_outputs=plant.num_outputs, num_inputs=plant.num_inputs)
    return _steady_beliefs(optimum, plant, y, u)


@jax.jit
def _steady_beliefs(optimum: Optimum, plant: LQG, y: Array, u: Array) -> Array:
    def step(predicted: Array, record: tuple[Array, Array]) -> tuple[Array, Array]:
        observed, applied = record
        xhat = steady_correct(optimum, plant, predicted, observed)
        return steady_predict(plant, xhat, applied), xhat

    return jax.lax.scan(step, jnp.zeros_like(plant.A[0]), (y, u))[1]
