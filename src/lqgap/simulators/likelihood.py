"""The members of a class that a record of (y, u) does not refute, valid at all times and under every policy.

With l_theta(t) = log p(y_0..y_t | u_0..u_{t-1}) of a member, and any prior over the class that was chosen
before the data were seen,

    U = { theta : l_theta(t) >= log sum_j prior_j exp(l_j(t)) - log(1 / delta)  for all t of the record } .

Under the true member the ratio of the mixture to its own likelihood is a martingale that starts at one, so by
Ville's inequality it ever exceeds 1 / delta with probability at most delta: the truth stays in U with
probability 1 - delta, whatever adaptive policy chose the inputs. The truth need not be one of the prior's
members, so a family with continuous parameters is covered also between the points that carry the prior.
"""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import MatrixLike, read_probability, read_record
from lqgap.batches import chunk_size, chunks, take
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.simulators.building import build_members
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Finite
from lqgap.simulators.parameters import Parameter
from lqgap.systems import LQG, log_likelihood

NUM_PRIOR = 512  # members that carry the prior of a continuous family, about
MAX_ATTEMPTS = 200
LONG_RECORD = 4096


class Unrefuted(AbstractFamily):
    """The part of a family that a record does not refute: again a family."""

    parameters: tuple[Parameter, ...] = eqx.field(static=True)
    family: AbstractFamily
    y: Float[Array, "time output"]
    u: Float[Array, "time input"]
    evidence: Float[Array, " time"]  # log-likelihood of the prior mixture
    delta: float

    def build(self, **values: Any) -> LQG:
        """The plant of these parameter values."""
        return self.family.build(**values)

    def is_inside(self, theta: np.ndarray) -> np.ndarray:
        """Which rows of parameter values the record does not refute."""
        inside = self.family.is_inside(theta)
        if np.any(inside):
            systems = build_members(self.family.branches, theta[inside])
            inside[inside] = _margins(systems, self.y, self.u, self.evidence) >= np.log(self.delta)
        return inside

    def sample_parameters(self, key: Array, count: int) -> np.ndarray:
        """From the whole family, those refuted drawn anew."""
        rows: list[np.ndarray] = []
        for attempt in range(MAX_ATTEMPTS):
            theta = self.family.sample_parameters(jax.random.fold_in(key, attempt), max(count, 1024))
            rows.append(theta[self.is_inside(theta)])
            if sum(map(len, rows)) >= count:
                return np.concatenate(rows)[:count]
        raise InvalidArgumentError(
            f"fewer than {count} of {MAX_ATTEMPTS * max(count, 1024)} sampled members are not refuted: the "
            f"set is too small a part of its family to be sampled; use a smaller family around it"
        )


def likelihood_set(
    members: Finite | AbstractFamily,
    y: MatrixLike,
    u: MatrixLike,
    *,
    delta: float = 0.05,
    prior: Finite | None = None,
) -> Finite | Unrefuted:
    """The members that a record does not refute, with probability 1 - delta of keeping the truth.

    Args:
        y, u: the record, rows (time, output) and (time, input); lost observations are NaN.
        prior: the members that share the prior mass equally, chosen before the data were seen; by default the
            class itself, or a grid of the family.
    """
    require_class(members)
    delta = read_probability("delta", delta)
    prior = default_prior(members) if prior is None else prior
    systems = prior.systems
    y, u = read_record(y, u, num_outputs=systems.num_outputs, num_inputs=systems.num_inputs)
    total = jnp.full(len(y), -jnp.inf)
    for likelihoods in batch_likelihoods(systems, y, u):
        total = jnp.logaddexp(total, jax.nn.logsumexp(likelihoods, axis=0))
    evidence = total - jnp.log(len(prior))
    if isinstance(members, Finite):
        return members.subset(_margins(members.systems, y, u, evidence) >= np.log(delta))
    return Unrefuted(members.parameters, members, y, u, evidence, delta)


def default_prior(members: Finite | AbstractFamily) -> Finite:
    """The class itself, a grid of about NUM_PRIOR members, or as many random ones, whatever the data."""
    while isinstance(members, Unrefuted):
        members = members.family
    if isinstance(members, Finite):
        return members
    num_choices = int(np.prod([len(p.choices) or 1 for p in members.parameters]))
    num_intervals = sum(not p.choices and p.high > p.low for p in members.parameters)
    points = max(2, round((NUM_PRIOR / num_choices) ** (1 / max(num_intervals, 1))))
    if num_choices * points**num_intervals > 4 * NUM_PRIOR:
        return members.sample(NUM_PRIOR, key=jax.random.key(0))
    return members.grid(points)


def batch_likelihoods(systems: LQG, y: Array, u: Array) -> Iterator[np.ndarray]:
    """l(t) of all plants, a chunk of plants at a time, so that memory does not grow with the class."""
    total = len(systems.A)
    size = min(chunk_size(total), 1024 if len(y) <= LONG_RECORD else 64)
    for rows in chunks(total, size):
        yield np.asarray(_mapped_likelihood(take(systems, rows), y, u))[: total - rows[0]]


def require_class(members: Any) -> None:
    """Raise unless they make a likelihood set."""
    if isinstance(members, Finite) and members.radius > 0:
        raise InvalidArgumentError(
            "members is a cover, whose family has plants between its members: pass the family itself, and "
            "the cover as prior, or the truth may be lost"
        )


def _margins(systems: LQG, y: Array, u: Array, evidence: Array) -> np.ndarray:
    """The least of l(t) - evidence(t) over the record, for every plant of a batch."""
    with np.errstate(invalid="ignore"):  # infinite likelihoods leave NaN, which is refused below
        margins = [np.min(chunk - np.asarray(evidence), axis=1) for chunk in batch_likelihoods(systems, y, u)]
    answer = np.concatenate(margins)
    if np.any(np.isnan(answer)):
        raise NotConvergedError("a likelihood of the record is beyond double precision: check the units of y")
    return answer


_mapped_likelihood = jax.jit(jax.vmap(log_likelihood, in_axes=(0, None, None)))
