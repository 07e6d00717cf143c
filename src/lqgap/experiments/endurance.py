"""Whether a policy holds in the long run, many horizons after those over which its gap is measured.

A linear policy does if its closed loop is stable. Others are run for ten horizons, where the search found
them worst and on plants spread over all that were tried; they do not if a run, or the last horizon on
average, costs more than 100 times the optimum; limits that are too tight for any controller are no fault of
theirs (`fitness`). A policy that ends with its task has no long run. What
a horizon costs later on is the mean of all after the first.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from lqgap.batches import join, take
from lqgap.evaluation import closed_loop_radius
from lqgap.evaluation.estimate import DIVERGED
from lqgap.evaluation.gap import references_of
from lqgap.evaluation.long_run import excess_in_the_long_run
from lqgap.evaluation.monte_carlo import block_size
from lqgap.evaluation.worst import BATCH
from lqgap.experiments.fitness import find_guilty
from lqgap.experiments.plants import key_for, pad_to
from lqgap.experiments.study import Study
from lqgap.experiments.units import Workspace, fill_batches
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.simulators import Finite
from lqgap.systems import LQG

LONG = 10  # horizons
NUM_PLANTS = 2 * BATCH


@dataclass(frozen=True)
class LongRun:
    """What speaks against a policy in the long run; single runs of a later horizon where they cost most."""

    trouble: str | None = None
    totals: np.ndarray | None = None  # None where the policy or its task ends


def run_on(
    workspace: Workspace, policy: AbstractPolicy, worst: Finite | None, *, num_rollouts: int
) -> LongRun:
    """A policy over many horizons.

    Args:
        worst: plants that a search found.
        num_rollouts: of the gaps, of which the long run has the first block.
    """
    if policy.horizon is not None:
        return LongRun()
    trouble = find_instability(workspace, policy, worst) if isinstance(policy, AbstractLinearPolicy) else None
    if trouble is not None:
        return LongRun(trouble)
    systems, names = _plants(workspace, worst, only_some=True)
    lost, later = _run(workspace.study, policy, systems, num_rollouts)

    def lost_anyway(row: int) -> np.ndarray:
        informed = workspace.informed(take(systems, row))
        return _run(workspace.study, informed, take(systems, np.array([row])), num_rollouts)[0][0]

    share = np.mean(lost, axis=1)
    where = find_guilty(share, lost, names.__getitem__, lost_anyway if workspace.plants.has_limits else None)
    if where is not None:
        trouble = f"it diverges within {LONG * workspace.study.horizon} steps {where}"
    return LongRun(trouble, None if workspace.study.ends else later[np.argmax(np.mean(later, axis=1))])


def find_instability(workspace: Workspace, policy: AbstractLinearPolicy, worst: Finite | None) -> str | None:
    """Where closed loops of a linear policy are unstable; None if nowhere."""
    systems, names = _plants(workspace, worst, only_some=False)
    radius = np.asarray(_radii(policy, systems))
    if np.all(radius < 1):
        return None
    index = int(np.argmax(radius))
    what = f"its closed loop is unstable (spectral radius {radius[index]:.4g})"
    return f"{what} on {np.sum(radius >= 1)} of {len(names)} plants, such as {names[index]}"


def share_lost(study: Study, policy: AbstractPolicy, systems: LQG) -> np.ndarray:
    """The part of the runs of each plant that diverge, by the program that gaps are measured with."""
    return np.mean(_run(study, policy, systems, study.evaluation.rollouts)[0], axis=1)


def _run(
    study: Study, policy: AbstractPolicy, systems: LQG, num_rollouts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which runs of each plant diverge, and last whether all do on average; what later horizons cost."""
    count, lost, later = len(systems.A), [], []
    num_runs = block_size(BATCH, study.horizon + 1, systems.num_outputs, num_rollouts)
    for batch in fill_batches(np.arange(count)):
        plants = take(systems, batch)
        key = key_for(study.seed, "endurance")
        found = excess_in_the_long_run(
            policy, plants, horizon=study.horizon, num_horizons=LONG, key=key, num_rollouts=num_runs
        )
        most = DIVERGED * np.asarray(references_of(plants, horizon=study.horizon, ends=False).value)[:, None]
        in_the_end = np.mean(found[-1], axis=1, keepdims=True) > most
        lost.append(np.concatenate([np.mean(found, axis=0) > most, in_the_end], axis=1))
        later.append(np.mean(found[1:], axis=0))
    return np.concatenate(lost)[:count], np.concatenate(later)[:count]


@eqx.filter_jit
def _radii(policy: AbstractLinearPolicy, systems: LQG) -> Array:
    return jax.vmap(lambda plant: closed_loop_radius(policy, plant))(systems)


def _plants(workspace: Workspace, worst: Finite | None, *, only_some: bool) -> tuple[LQG, list[str]]:
    """Those that the search found, and all others or as many as there is room for, evenly spread."""
    judged, found = workspace.judged, 0 if worst is None else len(worst)
    count = NUM_PLANTS - found if only_some else len(judged.A)
    rows = np.linspace(0, len(judged.A) - 1, count).round().astype(int)
    systems, names = take(judged, rows), [workspace.describe(int(row)) for row in rows]
    if worst is None:
        return systems, names
    wide = pad_to(worst.systems, systems.num_states)
    return join([wide, systems]), [*map(worst.describe, range(found)), *names]
