"""A log replayed through the filter of a model: its likelihood, and the excess cost if the model is true.

    l = sum_t log N(y_t; C xhat_{t|t-1}, S_t) ,      G = sum_t ||u_t + K_t xhat_{t|t}||^2_{M_t} ,

xhat the model's filter along the log, K and M its gains for steps 0..horizon. The expectation of G under the
model that is true is the gap (see `evaluation.reference`); along one log G is what it has cost so far.

Gains do not depend on what was observed. Away from the ends of a long horizon they do not depend on time
either: the filter has settled after a while, and so has the control as long before the end. `settling_time`
finds how many steps that takes, to the last digits, and no more are computed. Where an observation is lost
(NaN) the filter's gains are computed anew along the log.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lqgap.arguments import read_count, read_list, read_record
from lqgap.batches import chunk_size, chunks, in_turn, take
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import MAX_HORIZON
from lqgap.linalg import quadratic
from lqgap.systems import LQG, filter_record, solve_finite, steady_predict
from lqgap.systems.innovation import correct_by_gain

SETTLED = 1e-11  # relative change of Sigma and P in a step, at which gains count as constant
FIRST_WINDOW = 64
NUMBERS_AT_A_TIME = 100_000  # observations of all logs that are followed together


Totals = tuple[Array, Array, Array]  # the prediction, and log-likelihood and gap so far


class Replay(eqx.Module):
    """A log replayed through the filter of a model."""

    log_likelihood: Float[Array, ""]
    gap: Float[Array, ""]
    misfit: Float[Array, "time output"]  # innovations in units of their standard deviations


def replay(
    plant: LQG, y: Float[Array, "time output"], u: Float[Array, "time input"], *, horizon: int, window: int
) -> Replay:
    """One log and one model, with derivatives in the model.

    Args:
        window: steps after which gains are constant (`settling_time`), or horizon + 1.
    """
    finite = solve_finite(plant, horizon=window - 1)
    roots = jnp.linalg.inv(jnp.linalg.cholesky(finite.S))
    times = jnp.arange(len(y))
    from_start = jnp.minimum(times, window - 1)
    to_end = jnp.maximum(window - 1 - horizon + times, 0)

    def step(carry: Totals, now: tuple[Array, ...]) -> tuple[Totals, Array]:
        predicted, log_likelihood, gap = carry
        start, end, observed, applied = now
        filtered = correct_by_gain(plant.C, finite.L[start], finite.S[start], predicted, observed)
        paid = quadratic(applied + finite.K[end] @ filtered.xhat, finite.M[end])
        predicted = steady_predict(plant, filtered.xhat, applied)
        return (predicted, log_likelihood + filtered.log_density, gap + paid), roots[
            start
        ] @ filtered.innovation

    zero = jnp.zeros(())
    start = (jnp.zeros_like(plant.A[0]), zero, zero)
    (_, log_likelihood, gap), misfit = jax.lax.scan(step, start, (from_start, to_end, y, u))
    return Replay(log_likelihood, gap, misfit)


def replay_with_losses(
    plant: LQG, y: Float[Array, "time output"], u: Float[Array, "time input"], *, horizon: int
) -> Replay:
    """The same for a log with lost observations: a filter of its own for what was lost."""
    finite = solve_finite(plant, horizon=horizon)
    record = filter_record(in_turn(finite.value, plant), y, u)
    wanted = jnp.einsum("tij,tj->ti", finite.K[: len(y)], record.belief.mean)
    paid = jax.vmap(quadratic)(u + wanted, finite.M[: len(y)])
    roots = jnp.linalg.inv(jnp.linalg.cholesky(record.S))
    misfit = jnp.einsum("tij,tj->ti", roots, record.innovation)
    return Replay(jnp.sum(record.log_likelihood), jnp.sum(paid), misfit)


def settling_time(systems: LQG, *, horizon: int) -> int:
    """Steps after which filter and control of all members are constant; horizon + 1 if they never are."""
    window = FIRST_WINDOW
    while window <= horizon:
        if float(jnp.max(_last_change(systems, window))) <= SETTLED:
            return window
        window *= 2
    return horizon + 1


class Logs(eqx.Module):
    """Logs of one length, and how long the gains of a class vary."""

    y: Float[Array, "log time output"]
    u: Float[Array, "log time input"]
    horizon: int = eqx.field(static=True)
    window: int = eqx.field(static=True)
    has_losses: bool = eqx.field(static=True)

    def replayed(self, plant: LQG, y: Float[Array, "time output"], u: Float[Array, "time input"]) -> Replay:
        """One of the logs replayed through the filter of a plant of the class."""
        if self.has_losses:
            return replay_with_losses(plant, y, u, horizon=self.horizon)
        return replay(plant, y, u, horizon=self.horizon, window=self.window)

    def map(self, function: Callable[..., Any], owners: Int[np.ndarray, " point"], *rows: Any) -> list[Any]:
        """A function of some logs at a time, those of these numbers, and of as many rows."""
        total = len(owners)
        most = max(1, NUMBERS_AT_A_TIME // self.y[0].size)
        size = next((size for size in (1, 8) if total <= size < most), most)  # few sizes to compile for
        answers = []
        for chosen in chunks(total, size):
            logs = owners[chosen]
            part = eqx.tree_at(lambda logs: (logs.y, logs.u), self, (self.y[logs], self.u[logs]))
            answers.append([np.asarray(a) for a in function(part, *(row[chosen] for row in rows))])
        return [np.concatenate(parts)[:total] for parts in zip(*answers, strict=True)]


def read_logs(y: Any, u: Any, systems: LQG, *, horizon: Any) -> Logs:
    """Records of (y, u), all of one length, for plants like these."""
    y, u = read_list("y", y), read_list("u", u)
    if len(y) != len(u):
        raise InvalidArgumentError(
            f"there are {len(y)} records of y and {len(u)} of u, expected as many of both"
        )
    sizes = {"num_outputs": systems.num_outputs, "num_inputs": systems.num_inputs}
    records = [read_record(*pair, **sizes) for pair in zip(y, u, strict=True)]
    lengths = sorted({len(observed) for observed, _ in records})
    if len(lengths) > 1:
        raise InvalidArgumentError(f"the logs have {lengths[0]} to {lengths[-1]} steps, expected one length")
    last = lengths[0] - 1
    horizon = read_count("horizon", last if horizon is None else horizon, least=last, most=MAX_HORIZON)
    observed, applied = (jnp.stack(parts) for parts in zip(*records, strict=True))
    has_losses = bool(jnp.any(jnp.isnan(observed)))
    window = horizon + 1 if has_losses else settling_time(systems, horizon=horizon)
    return Logs(observed, applied, horizon, window, has_losses)


def replay_all(
    logs: Logs, systems: LQG
) -> tuple[Float[np.ndarray, "member log"], Float[np.ndarray, "member log"]]:
    """Log-likelihood and gap of every member and log."""
    total = len(systems.A)
    answers = [
        logs.map(partial(_replay_members, systems=take(systems, rows)), np.arange(len(logs.y)))
        for rows in chunks(total, chunk_size(min(total, 512)))
    ]
    likelihood, gaps = (np.concatenate(parts, axis=1)[:, :total].T for parts in zip(*answers, strict=True))
    if not np.all(np.isfinite(likelihood)):
        raise NotConvergedError("a likelihood of the log is beyond double precision: check the units of y")
    return likelihood, gaps


@eqx.filter_jit
def _replay_members(logs: Logs, systems: LQG) -> tuple[Array, Array]:
    def of(plant: LQG, y: Array, u: Array) -> tuple[Array, Array]:
        replayed = logs.replayed(plant, y, u)
        return replayed.log_likelihood, replayed.gap

    of_plants = jax.vmap(of, in_axes=(0, None, None))
    return jax.vmap(of_plants, in_axes=(None, 0, 0))(systems, logs.y, logs.u)


@partial(jax.jit, static_argnums=1)
@partial(jax.vmap, in_axes=(0, None))
def _last_change(plant: LQG, window: int) -> Array:
    finite = solve_finite(plant, horizon=window - 1)
    changes = [
        jnp.max(jnp.abs(after - before)) / jnp.max(jnp.abs(after))
        for before, after in ((finite.P[1], finite.P[0]), (finite.Sigma[-2], finite.Sigma[-1]))
    ]
    return jnp.maximum(*changes)
