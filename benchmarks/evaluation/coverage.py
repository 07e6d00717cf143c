"""How often intervals of gaps hold: on the demo's methods, on families, and on laws whose mean is known."""

import math
from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.adaptive import LQGVTR
from lqgap.evaluation import GapEstimate
from lqgap.evaluation.estimate import DELTA, confidence_limits, have_light_tails, skewness
from lqgap.evaluation.monte_carlo import MOST_KEPT
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy, ModelBank, StationaryLQG, explore_then_commit
from lqgap.simulators import Finite
from lqgap.training import TrainingOptions, find_stabilizer, train_randomized, train_robust

HORIZON = 100
REPETITIONS = 200
ROLLOUTS = 256  # of a repetition
FEW = (8, 64)
FAMILIES = (
    "unknown_sign",
    "overactuated",
    "double_integrator",
    "web_server",
    "two_mass_spring",
    "boeing_747",
)
WANTED = 0.93
LAWS: dict[str, tuple[Callable[[np.random.Generator, tuple[int, int]], np.ndarray], float]] = {
    "normal": (lambda dice, size: dice.normal(3, 1, size), 3.0),
    "exponential": (lambda dice, size: dice.exponential(size=size), 1.0),
    "chi-square, 1 degree": (lambda dice, size: dice.chisquare(1, size), 1.0),
    "lognormal, sigma 1": (lambda dice, size: dice.lognormal(sigma=1, size=size), math.exp(0.5)),
    "lognormal, sigma 2": (lambda dice, size: dice.lognormal(sigma=2, size=size), math.exp(2)),
    "Pareto, index 2.5": (lambda dice, size: dice.pareto(2.5, size), 1 / 1.5),
    "Pareto, index 1.5": (lambda dice, size: dice.pareto(1.5, size), 2.0),
    "Pareto, index 1.1": (lambda dice, size: dice.pareto(1.1, size), 10.0),
}


def run() -> str:
    """Three sections."""
    claimed, few = [], []
    for name, policy, members in cases():
        estimate, truth = draw(policy, members)
        claimed.append([name, *coverage(estimate, truth)])
        few.append([name, *coverage_of_few(estimate.totals, truth)])
    note = (
        f"{REPETITIONS} repetitions of {ROLLOUTS} rollouts, {HORIZON + 1} steps; the truth is exact for "
        "linear policies, the mean of all rollouts otherwise. `claims` is the share of repetitions in which "
        "intervals are given at all; the others are shares of repetitions in which the interval holds or "
        "none is given (- if none ever is). Members: on average, and of the worst of them. Wanted: "
        f"{WANTED}, of which chance may take 0.05 in so many repetitions."
    )
    header = ["class, policy", "claims", "members", "worst gap", "certify's upper end", "mean +- 2 stderr"]
    note_few = (
        "Coverage of the worst member if intervals were claimed from so few rollouts: by two standard "
        "errors, by Student's t, and by Hall's transformation, the wider side on both. Tails cannot be "
        "judged then, and none is claimed."
    )
    header_few = ["class, policy"] + [
        f"{count} runs, {how}" for count in FEW for how in ("2 stderr", "Student", "Hall")
    ]
    return "\n".join(
        [
            table("Coverage of intervals", note, header, claimed),
            table("Coverage from few runs", note_few, header_few, few),
            laws(),
        ]
    )


def cases() -> Iterator[tuple[str, AbstractPolicy, Finite]]:
    """The methods of the demo, and four kinds of policies on every family."""
    family = lg.plants.mass_spring_damper(stiffness=(0.5, 4.0), gain=(1.0, 5.0))
    members, key = family.grid(4), jax.random.key(0)
    bank = ModelBank(members.systems, horizon=HORIZON)
    training = dict(horizon=HORIZON, key=key, options=TrainingOptions(steps=60))
    yield "demo, nominal", StationaryLQG(family.nominal()), members
    yield "demo, linear", find_stabilizer(members), members
    yield "demo, bank", bank, members
    yield "demo, randomised", train_randomized(bank, members, **training).policy, members
    yield "demo, robust", train_robust(bank, members, **training).policy, members
    yield "demo, identify", explore_then_commit(bank, 50, scale=2.0), members
    yield (
        "demo, LQG-VTR",
        LQGVTR(members),
        members,
    )
    for name in FAMILIES:
        members = members_of(name)
        bank = ModelBank(members.systems, horizon=HORIZON)
        yield f"{name}, first member's", StationaryLQG(members[0]), members
        yield f"{name}, bank", bank, members
        yield f"{name}, likeliest", ModelBank(members.systems, horizon=HORIZON, mode="map"), members
        yield f"{name}, identify", explore_then_commit(bank, 50, scale=2.0), members


def members_of(name: str) -> Finite:
    """The corners of a family, or as many members drawn."""
    family = getattr(lg.plants, name)()
    grid = family.grid(2)
    return grid if len(grid) <= 6 else family.sample(6, key=jax.random.key(3))


def draw(policy: AbstractPolicy, members: Finite) -> tuple[GapEstimate, np.ndarray]:
    """All rollouts of all repetitions, and the true gaps."""
    keys = jax.random.split(jax.random.key(1), math.ceil(REPETITIONS * ROLLOUTS / MOST_KEPT))
    parts = [lg.gap(policy, members, horizon=HORIZON, key=key, num_rollouts=MOST_KEPT) for key in keys]
    totals = np.concatenate([part.totals for part in parts], axis=1)
    truth = totals.mean(axis=1)
    if isinstance(policy, AbstractLinearPolicy):
        truth = np.asarray([float(lg.exact_gap(policy, plant, horizon=HORIZON)) for plant in members])
    return eqx.tree_at(lambda estimate: estimate.totals, parts[0], totals), truth


def coverage(estimate: GapEstimate, truth: np.ndarray) -> list[str]:
    """Of the intervals of members, of the worst gap, and of the upper end; and of two standard errors."""
    found = [repetition(estimate, number) for number in range(REPETITIONS)]
    claims = np.mean([each.has_light_tail for each in found])
    old = np.mean([np.abs(each.mean - truth) <= 2 * each.stderr for each in found], axis=0)
    if claims == 0:
        return ["0", "-", "-", "-", f"{old.mean():.2f} ({old.min():.2f})"]
    members = np.mean(
        [np.abs(each.mean - truth) <= half_of(each.interval, each.mean) for each in found], axis=0
    )
    worst = [
        abs(each.worst - truth.max()) <= half_of(np.asarray(each.worst_interval), each.worst)
        for each in found
    ]
    upper = [each.upper_limit(DELTA) >= truth.max() for each in found]
    return [
        f"{claims:.2f}",
        f"{members.mean():.3f} ({members.min():.3f})",
        f"{np.mean(worst):.3f}",
        f"{np.mean(upper):.3f}",
        f"{old.mean():.2f} ({old.min():.2f})",
    ]


def half_of(interval: np.ndarray, mean: np.ndarray | float) -> np.ndarray:
    """What is shown as +-: the wider side."""
    return np.maximum(interval[..., 1] - mean, mean - interval[..., 0])


def repetition(estimate: GapEstimate, number: int) -> GapEstimate:
    """What `gap` would have made of one batch of the rollouts."""
    totals = estimate.totals[:, number * ROLLOUTS : (number + 1) * ROLLOUTS]
    return GapEstimate(
        mean=totals.mean(axis=1),
        stderr=totals.std(axis=1, ddof=1) / math.sqrt(ROLLOUTS),
        totals=totals,
        per_step=estimate.per_step,
        value=estimate.value,
        num_rollouts=ROLLOUTS,
        has_light_tail=have_light_tails(totals),
    )


def coverage_of_few(totals: np.ndarray, truth: np.ndarray) -> list[str]:
    """Of the worst member, by three kinds of intervals."""
    shares = []
    for count in FEW:
        batches = totals[:, : REPETITIONS * count].reshape(len(totals), REPETITIONS, count)
        held = [covers(batch, mean).mean(axis=1) for batch, mean in zip(batches, truth, strict=True)]
        shares += [f"{share:.2f}" for share in np.min(held, axis=0)]
    return shares


def covers(batches: np.ndarray, true_mean: float) -> np.ndarray:
    """Which batches hold the truth within two standard errors, Student's and Hall's limits: kind, batch."""
    count = batches.shape[1]
    mean, stderr = batches.mean(axis=1), batches.std(axis=1, ddof=1) / math.sqrt(count)
    halves = [2 * stderr]
    for skew in (np.zeros_like(mean), skewness(batches)):
        low, high = (
            confidence_limits(mean, stderr, skew, count, delta=DELTA / 2, upper=upper)
            for upper in (False, True)
        )
        halves.append(half_of(np.stack([low, high], axis=1), mean))
    return np.abs(mean - true_mean) <= np.stack(halves)


def laws() -> str:
    dice, rows = np.random.default_rng(0), []
    for name, (draw_law, true_mean) in LAWS.items():
        row = [name]
        for count in (256, 1024):
            totals = draw_law(dice, (1000, count))
            is_light = np.asarray([have_light_tails(each[None]) for each in totals])
            holds = covers(totals, true_mean)[-1] | ~is_light
            row += [f"{is_light.mean():.2f}", f"{holds.mean():.3f}"]
        row += [f"{share:.2f}" for share in covers(draw_law(dice, (1000, 8)), true_mean).mean(axis=1)]
        rows.append(row)
    note = (
        "1000 samples of a law: how often an interval is claimed, and how often it holds or none is claimed; "
        "and from 8 values, where none is claimed, how often it would hold."
    )
    header = ["law", "256: claims", "256: holds", "1024: claims", "1024: holds"]
    return table("Coverage on known laws", note, [*header, "8: 2 stderr", "8: Student", "8: Hall"], rows)
