"""The time-varying Kalman filter, exact from the first observation on.

    correct:  e = y - C xhat_{t|t-1} ~ N(0, S) ,   S = C Sigma C' + V ,   L = Sigma C' S^-1
              xhat_{t|t} = xhat_{t|t-1} + L e ,    Sigma_{t|t} = (I - LC) Sigma (I - LC)' + L V L'
    predict:  xhat_{t+1|t} = A xhat_{t|t} + B u ,    Sigma_{t+1|t} = A Sigma_{t|t} A' + W

A lost observation is NaN. A lost component carries no information: its row of C becomes zero and its
noise is set to one apart from all others, so that shapes stay as they are under `jit`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from lqgap.arguments import MatrixLike, is_concrete, read_record
from lqgap.errors import NotConvergedError
from lqgap.linalg.psd import symmetrize
from lqgap.systems.lqg import LQG


class Belief(eqx.Module):
    """What the filter knows of the state: x ~ N(mean, cov)."""

    mean: Float[Array, " state"]
    cov: Float[Array, "state state"]


class Correction(eqx.Module):
    """What one observation tells: the belief after it, its innovation and their gain."""

    belief: Belief
    innovation: Float[Array, " output"]
    S: Float[Array, "output output"]
    gain: Float[Array, "state output"]
    log_likelihood: Float[Array, ""]


class FilterPlan(eqx.Module):
    """Covariances before and after every observation, gains, and covariances of innovations."""

    Sigma: Float[Array, "time state state"]
    Sigma_filtered: Float[Array, "time state state"]
    L: Float[Array, "time state output"]
    S: Float[Array, "time output output"]


def prior(plant: LQG) -> Belief:
    """The belief before the first observation."""
    return Belief(mean=jnp.zeros_like(plant.A[0]), cov=plant.S0)


def correct(plant: LQG, belief: Belief, y: Float[Array, " output"]) -> Correction:
    """Condition the belief on an observation; its lost components (NaN) tell nothing."""
    seen = ~jnp.isnan(y)
    C = jnp.where(seen[:, None], plant.C, 0)
    V = jnp.where(seen[:, None] & seen[None, :], plant.V, jnp.eye(len(y), dtype=plant.V.dtype))
    innovation = jnp.where(seen, y - plant.C @ belief.mean, 0)
    S = symmetrize(C @ belief.cov @ C.T + V)
    factor = jnp.linalg.cholesky(S)
    gain = jsl.cho_solve((factor, True), C @ belief.cov).T
    whitened = jsl.solve_triangular(factor, innovation, lower=True)
    keep = jnp.eye(len(belief.mean), dtype=C.dtype) - gain @ C
    cov = symmetrize(keep @ belief.cov @ keep.T + gain @ V @ gain.T)
    log_likelihood = -0.5 * (
        whitened @ whitened + 2 * jnp.sum(jnp.log(jnp.diagonal(factor))) + jnp.sum(seen) * jnp.log(2 * jnp.pi)
    )
    after = Belief(mean=belief.mean + gain @ innovation, cov=cov)
    return Correction(after, innovation, S, gain, log_likelihood)


def predict(plant: LQG, belief: Belief, u: Float[Array, " input"]) -> Belief:
    """Carry the belief over one step with input u."""
    return Belief(
        mean=plant.A @ belief.mean + plant.B @ u,
        cov=symmetrize(plant.A @ belief.cov @ plant.A.T + plant.W),
    )


def plan_filter(plant: LQG, *, num_steps: int) -> FilterPlan:
    """The gains of the first steps of a record without losses, which do not depend on what is observed."""
    zero_output, zero_input = jnp.zeros_like(plant.C[:, 0]), jnp.zeros_like(plant.B[0])

    def step(belief: Belief, _: None) -> tuple[Belief, tuple[Array, ...]]:
        correction = correct(plant, belief, zero_output)
        after = correction.belief
        return predict(plant, after, zero_input), (belief.cov, after.cov, correction.gain, correction.S)

    return FilterPlan(*jax.lax.scan(step, prior(plant), length=num_steps)[1])


def filter_record(plant: LQG, y: MatrixLike, u: MatrixLike) -> Correction:
    """Run the filter over a record, rows (time, output) and (time, input): a correction a step."""
    y, u = read_record(y, u, num_outputs=plant.num_outputs, num_inputs=plant.num_inputs)
    record = _filter_record(plant, y, u)
    if is_concrete(record) and not jnp.all(jnp.isfinite(record.log_likelihood)):
        raise NotConvergedError(
            "the filter left double precision: an innovation covariance is singular up to rounding (outputs "
            "that repeat each other with too little noise V), or an unstable mode is not detectable"
        )
    return record


def log_likelihood(plant: LQG, y: MatrixLike, u: MatrixLike) -> Float[Array, " time"]:
    """log p(y_0..y_t | u_0..u_{t-1}) for every t of a record; the last entry is the whole record's."""
    return jnp.cumsum(filter_record(plant, y, u).log_likelihood)


def expected_costs(plant: LQG, y: MatrixLike, u: MatrixLike) -> Float[Array, " time"]:
    """What every step of a record without losses costs; a cost of states as the filter expects it."""
    y, u = read_record(y, u, num_outputs=plant.num_outputs, num_inputs=plant.num_inputs)
    costs = jnp.sum(y @ plant.Q * y, axis=1) + jnp.sum(u @ plant.R * u, axis=1)
    if plant.Qx is None and plant.N is None:
        return costs
    belief = filter_record(plant, y, u).belief
    unseen = 0.0 if plant.Qx is None else jnp.einsum("ij,tij->t", plant.Qx, belief.cov)
    return costs + jax.vmap(plant.cost_of_state)(belief.mean, u) + unseen


@jax.jit
def _filter_record(plant: LQG, y: Array, u: Array) -> Correction:
    def step(belief: Belief, record: tuple[Array, Array]) -> tuple[Belief, Correction]:
        observed, applied = record
        correction = correct(plant, belief, observed)
        return predict(plant, correction.belief, applied), correction

    return jax.lax.scan(step, prior(plant), (y, u))[1]
