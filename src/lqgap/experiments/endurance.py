"""Whether a policy holds in the long run, many horizons after those over which its gap is measured.

A linear policy does if its closed loop is stable. Others are run for ten horizons, where the search found
them worst and on plants spread over all that were tried; they do not if a run, or the last horizon on
average, costs more than 100 times the optimum. A policy that ends with its task has no long run.
"""

import jax
import numpy as np

from lqgap.batches import join, take
from lqgap.evaluation import closed_loop_radius, gap
from lqgap.evaluation.estimate import DIVERGED
from lqgap.evaluation.gap import MAX_TERMS
from lqgap.evaluation.worst import BATCH
from lqgap.experiments.plants import key_for, pad_to
from lqgap.experiments.units import Workspace
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy
from lqgap.simulators import Finite
from lqgap.systems import LQG

LONG = 10  # horizons
NUM_PLANTS = 2 * BATCH
NUM_RUNS = 8


def find_collapse(workspace: Workspace, policy: AbstractPolicy, worst: Finite | None) -> str | None:
    """What speaks against a policy in the long run; None if nothing does.

    Args:
        worst: plants that a search found.
    """
    if policy.horizon is not None:
        return None
    systems, names = _plants(workspace, worst, only_some=not isinstance(policy, AbstractLinearPolicy))
    if isinstance(policy, AbstractLinearPolicy):
        radius = np.asarray(jax.jit(jax.vmap(lambda plant: closed_loop_radius(policy, plant)))(systems))
        index = int(np.argmax(radius))
        is_bad, what = radius >= 1, f"its closed loop is unstable (spectral radius {radius[index]:.4g})"
    else:
        horizon = workspace.study.horizon
        most = MAX_TERMS // (len(names) * systems.num_states**2) - 1
        num_steps = min(LONG * horizon, most)
        if num_steps <= horizon:
            return None
        found = gap(
            policy,
            systems,
            horizon=num_steps,
            key=key_for(workspace.study.seed, "endurance"),
            num_rollouts=NUM_RUNS,
            ends=False,
        )
        late = np.mean(found.per_step[:, -horizon:], axis=1) / found.value * (num_steps + 1)
        share = np.maximum(found.share_diverged, late > DIVERGED)
        index, is_bad, what = int(np.argmax(share)), share > 0, f"it diverges within {num_steps} steps"
    if not np.any(is_bad):
        return None
    return f"{what} on {np.sum(is_bad)} of {len(names)} plants, such as {names[index]}"


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
