"""Whether the policy that a study recommends holds on plants of the ranges, and costs what the page says."""

import pathlib
import tempfile
import time
from collections.abc import Iterator

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.batches import take
from lqgap.evaluation.estimate import DIVERGED
from lqgap.evaluation.worst import BATCH
from lqgap.experiments.assembly import candidate
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.pipeline import judge_methods, judge_plants, run_audit
from lqgap.experiments.plants import Plants
from lqgap.experiments.recommendation import recommend, worst_of
from lqgap.experiments.work import Work
from lqgap.policies import AbstractPolicy
from lqgap.simulators import AbstractFamily
from lqgap.systems import LQG

PRACTICE = ("dc_servo", "cart_pole", "thermal_process")
NUM_PLANTS, NUM_WORST = 500, BATCH
ROLLOUTS, MORE_ROLLOUTS, LONG_RUNS, LONG = 64, 1024, 4, 10
STUDY = """
[plant]
{plant}
[methods]
nominal = {{}}
linear = {{}}
bank = {{}}
randomized = {{}}
robust = {{}}
"""


def run() -> str:
    """One table, a row for each family."""
    rows = list(measure())
    columns = [
        "family",
        "members",
        "recommended",
        "page's worst",
        "worst of 500",
        "ratio",
        "later",
        "diverge",
    ]
    note = (
        "A study with default settings and the methods that have a policy file recommends a policy. It is "
        f"put on {NUM_PLANTS} plants drawn from the ranges: their worst gap over 100 steps (candidates by "
        f"{ROLLOUTS} rollouts, the worst {NUM_WORST} of them by {MORE_ROLLOUTS} others) against the worst "
        "that the page states; what the page states of 100 later steps; and the share of these plants on "
        "which one of four runs of ten horizons "
        f"costs more than {DIVERGED} times the optimum."
    )
    return table("Recommendations", note, columns, rows)


def measure(names: tuple[str, ...] = (*lg.plants.FAMILIES, *PRACTICE)) -> Iterator[list[str]]:
    """The rows of these families, as they are ready."""
    for name in names:
        start = time.process_time()
        row = measure_family(name)
        print(f"{row} {time.process_time() - start:.0f} s", flush=True)
        yield row


def measure_family(name: str) -> list[str]:
    """The row of one family."""
    plant = f'python = "practice:{name}"' if name in PRACTICE else f'family = "{name}"'
    study = parse_study(STUDY.format(plant=plant), name=name, folder=pathlib.Path(__file__).parent)
    work = Work(Plants(*study, trust=True))
    with tempfile.TemporaryDirectory() as folder:
        workspace, _ = run_audit(work, pathlib.Path(folder))
        contenders = {
            each.name: each for each in judge_methods(work, workspace, judge_plants(work, workspace))
        }
        found = recommend({name: candidate(each.trained, each.judged) for name, each in contenders.items()})
        size = str(len(workspace.members))
        if found.method is None:
            reasons = "; ".join(f"{n}: {each.judged.unfit}" for n, each in contenders.items())
            print(name, reasons)
            return [name, size, "none", "-", "-", "-", "-", "-"]
        chosen = contenders[found.method]
        policy, gaps = chosen.policy_fn(), chosen.judged.gaps
        stated, later = worst_of(gaps.model_copy(update={"later_worst": None})).mean, gaps.later_worst
    family, horizon = work.plants.family, work.study.horizon
    assert isinstance(family, AbstractFamily)
    systems = family.sample(NUM_PLANTS, key=jax.random.key(2026), replace=True).systems
    worst = _worst(policy, systems, horizon)
    diverged = _gaps(policy, systems, LONG * horizon, key=3, num_rollouts=LONG_RUNS)[1]
    label = " = ".join((found.method, *found.equals))
    return [
        name,
        size,
        label,
        f"{stated:.3g}",
        f"{worst:.3g}",
        f"{worst / stated:.2f}",
        "-" if later is None else f"{later.mean:.3g}",
        f"{100 * np.mean(diverged > 0):.1f} %",
    ]


def _worst(policy: AbstractPolicy, systems: LQG, horizon: int) -> float:
    """The largest gap, with the worst plants judged again: the largest of many estimates is too large."""
    first, _ = _gaps(policy, systems, horizon, key=1, num_rollouts=ROLLOUTS)
    worst = take(systems, np.argsort(-first)[:NUM_WORST])
    return float(np.max(_gaps(policy, worst, horizon, key=2, num_rollouts=MORE_ROLLOUTS)[0]))


def _gaps(
    policy: AbstractPolicy, systems: LQG, horizon: int, *, key: int, num_rollouts: int
) -> tuple[np.ndarray, np.ndarray]:
    """Means and shares of runs that diverge, in batches of one size."""
    rows = np.minimum(np.arange(-(-len(systems.A) // BATCH) * BATCH), len(systems.A) - 1).reshape(-1, BATCH)
    parts = [
        lg.gap(
            policy,
            take(systems, batch),
            horizon=horizon,
            key=jax.random.key(key),
            num_rollouts=num_rollouts,
            ends=False,
        )
        for batch in rows
    ]
    mean, share = (
        np.concatenate([getattr(part, field) for part in parts])[: len(systems.A)]
        for field in ("mean", "share_diverged")
    )
    return mean, share
