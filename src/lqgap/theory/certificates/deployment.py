"""What a deployment has cost more than it had to, from its log alone.

The real plant is unknown, but the log refutes most models of it. With l and G of `replay`,

    U = { theta : l_theta >= log sum_j prior_j exp(l_j) - log(1 / delta) } ,   upper = max over U of G_theta .

The prior is fixed before the data are seen. Under the true plant the ratio of the mixture to its likelihood
is a martingale that starts at one: it ever exceeds 1 / delta with probability at most delta, so that

    P( upper >= G of the true plant, at every step ) >= 1 - delta

whatever policy chose the inputs, and the certificate may be renewed after every step. The true plant need not
be one of the prior's members. For a finite class the maximum is over its members. For a continuous family it
is over the whole box: from the best of a grid of some hundred members `ascent` climbs; as far as it finds the
maximum the statement is exact. A class that does not contain the plant certifies nothing.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float, Int

from lqgap.arguments import IntLike, MatrixLike, read_probability
from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.building import Branch
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Finite
from lqgap.simulators.likelihood import NUM_PRIOR, default_prior, require_class
from lqgap.theory.certificates.ascent import Local, climb
from lqgap.theory.certificates.replay import Logs, Replay, read_logs, replay_all

NUM_LARGEST = 3  # unrefuted members with the largest gaps, from which climbs start


class DeploymentCertificate(eqx.Module):
    """With confidence 1 - `delta` the sum G of the excesses of a log is at most `upper` for the real plant.

    G is what its inputs cost above optimal ones in expectation, given what was known at each step, not the
    realised cost less an optimal one. For a family `upper` is as large as a local search finds it.
    `parameters` are those of the unrefuted plant for which it is that much. `upper` is infinite where the log
    refutes every plant: the class is wrong then.
    """

    upper: Float[np.ndarray, "*log"]
    parameters: Float[np.ndarray, "*log parameter"]
    num_unrefuted: Int[np.ndarray, "*log"]  # members of the prior
    delta: float = eqx.field(static=True)


def certify_deployment(
    members: Finite | AbstractFamily,
    y: MatrixLike,
    u: MatrixLike,
    *,
    horizon: IntLike | None = None,
    delta: float = 0.05,
    prior: Finite | None = None,
) -> DeploymentCertificate:
    """An upper bound on the realised gap of a log, without knowing the plant.

    Args:
        members: a class or family that contains the real plant.
        y, u: the log, rows (time, output) and (time, input); lost observations are NaN.
        horizon: the last step of the task, which the optimum would plan for; the end of the log if left out.
        prior: the members that share the prior mass equally, chosen before the data were seen; by default the
            class itself, or a grid of the family. A finer grid gives a smaller bound on long logs.
    """
    answer = certify_deployments(members, [y], [u], horizon=horizon, delta=delta, prior=prior)
    return take(answer, 0)


def certify_deployments(
    members: Finite | AbstractFamily,
    y: Any,
    u: Any,
    *,
    horizon: IntLike | None = None,
    delta: float = 0.05,
    prior: Finite | None = None,
) -> DeploymentCertificate:
    """The certificates of many logs of one length: the same type, with a leading axis."""
    require_class(members)
    delta = read_probability("delta", delta)
    if isinstance(members, AbstractFamily) and not members.is_traceable:
        raise InvalidArgumentError(
            "the family's build cannot be traced by JAX, so that the largest gap over its parameters cannot "
            "be searched for: write it with jax.numpy, or certify a finite class"
        )
    prior = default_prior(members) if prior is None else prior
    logs = read_logs(y, u, prior.systems, horizon=horizon)
    replayed = replay_all(logs, prior.systems)
    least = scipy.special.logsumexp(replayed[0], axis=0) - np.log(len(prior)) + np.log(delta)
    unrefuted = np.sum(replayed[0] >= least, axis=0)
    if isinstance(members, Finite):
        likelihood, gaps = replayed if members is prior else replay_all(logs, members.systems)
        upper, parameters = _largest(likelihood >= least, gaps, np.asarray(members.parameters))
    else:
        upper, parameters = _largest_of_family(members, prior, logs, replayed, least)
    upper = np.where(np.isneginf(upper), np.inf, upper)
    return DeploymentCertificate(upper, parameters, unrefuted, delta)


def _largest(
    unrefuted: np.ndarray, gaps: np.ndarray, parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The largest unrefuted gap of every log, -inf if there is none, and whose it is."""
    allowed = np.where(unrefuted, gaps, -np.inf)
    rows = np.argmax(allowed, axis=0)
    return np.max(allowed, axis=0), parameters[rows]


def _largest_of_family(
    family: AbstractFamily,
    prior: Finite,
    logs: Logs,
    replayed: tuple[np.ndarray, np.ndarray],
    least: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    theta = np.asarray(prior.parameters)
    if len(prior) < NUM_PRIOR // 2:  # too few to start from
        more = default_prior(family)
        theta = np.concatenate([theta, np.asarray(more.parameters)])
        extra = replay_all(logs, more.systems)
        replayed = (np.concatenate([replayed[0], extra[0]]), np.concatenate([replayed[1], extra[1]]))
    likelihood, gaps = replayed
    upper, parameters = _largest(likelihood >= least, gaps, theta)
    for branch in family.branches:
        rows = branch.rows_of(theta)
        found, where = _climb_branch(branch, theta[rows], logs, (likelihood[rows], gaps[rows]), least)
        found = np.where(family.is_inside(where), found, -np.inf)
        parameters = np.where((found > upper)[:, None], where, parameters)
        upper = np.maximum(found, upper)
    return upper, parameters


def _climb_branch(
    branch: Branch, theta: np.ndarray, logs: Logs, replayed: tuple[np.ndarray, np.ndarray], least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Climb from unrefuted members with the largest gaps, and from the likeliest one towards all sides."""
    likelihood, gaps = replayed
    low, high = branch.ends
    width = high - low
    sides = np.eye(len(low))[width > 0]
    if len(sides) == 0:
        return np.full(len(least), -np.inf), theta[np.argmax(likelihood, axis=0)]
    likeliest = np.argmax(likelihood, axis=0)
    allowed = np.where(likelihood >= least, gaps, -np.inf)
    largest = np.argsort(-allowed, axis=0)[:NUM_LARGEST]
    largest = np.where(np.isfinite(np.take_along_axis(allowed, largest, axis=0)), largest, likeliest)
    pushes = np.concatenate([np.zeros((len(largest), len(low))), sides, -sides])
    rows = np.concatenate([largest, np.tile(likeliest, (2 * len(sides), 1))]).T
    starts = theta[rows]  # log, start, parameter
    z = (starts[:, :, branch.columns] - low) / np.where(width > 0, width, 1)

    owners = np.repeat(np.arange(len(z)), z.shape[1])

    def local(points: np.ndarray, which: np.ndarray) -> Local:
        figures = logs.map(
            lambda part, rows: _figures(branch, part, low + width * rows), owners[which], points
        )
        log_likelihood, gap, slope, gap_slope, information = figures
        information = information * width[:, None] * width
        return Local(log_likelihood, gap, slope * width, gap_slope * width, information)

    best, where = climb(
        local, z.reshape(-1, len(low)), np.tile(pushes, (len(z), 1)), least=np.repeat(least, len(pushes))
    )
    best, where = best.reshape(z.shape[:2]), where.reshape(z.shape)
    chosen = np.argmax(best, axis=1)
    rows = np.arange(len(z))
    found = starts[rows, chosen]
    found[:, branch.columns] = low + width * where[rows, chosen]
    return best[rows, chosen], found


@eqx.filter_jit
def _figures(branch: Branch, logs: Logs, values: Float[Array, "log parameter"]) -> tuple[Array, ...]:
    """Log-likelihood, gap, their slopes and the information, at a point of every log."""

    def of_point(value: Array, y: Array, u: Array) -> tuple[Array, ...]:
        def replay_at(value: Array) -> tuple[Replay, Replay]:
            replayed = logs.replayed(branch.plant(value), y, u)
            return replayed, replayed

        slopes, replayed = jax.jacfwd(replay_at, has_aux=True)(value)
        information = jnp.einsum("tpi,tpj->ij", slopes.misfit, slopes.misfit)
        return replayed.log_likelihood, replayed.gap, slopes.log_likelihood, slopes.gap, information

    return jax.vmap(of_point)(values, logs.y, logs.u)
