"""How tight the lower bounds are, and how often a deployment certificate holds."""

import time

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.evaluation.gap import references_of
from lqgap.policies import FiniteHorizonLQG, ModelBank
from lqgap.theory.certificates.deployment import certify_deployments
from lqgap.theory.certificates.replay import read_logs, replay, settling_time
from lqgap.theory.lower_bounds.belief import belief_bound
from lqgap.theory.lower_bounds.input_pair import input_pair_bound
from lqgap.theory.lower_bounds.minimax import minimax_lower_bound
from lqgap.theory.lower_bounds.overactuated import nominal_plant, overactuated_class

HORIZONS = (100, 400, 1600)
PAIR = np.array([[0, 1]])
NUM_DEPLOYMENTS = 500
LENGTHS = (200, 1000, 4000)
DELTA = 0.05


def run() -> str:
    """Three sections."""
    return "\n".join([exact(), overactuated(), deployments()])


def exact() -> str:
    systems = lg.stack([lg.LQG([[0.9]], [[1.0]], [[1.0]]), lg.LQG([[0.9]], [[-0.7]], [[1.0]])])
    rows = []
    for horizon in (1, 2):
        start = time.perf_counter()
        bound = belief_bound(references_of(systems, horizon=horizon), num_steps=horizon)
        seconds = time.perf_counter() - start
        all_kinds = minimax_lower_bound(systems, horizon=horizon)
        rows.append(
            [
                str(horizon),
                f"{bound.value:.6f} .. {bound.upper:.6f}",
                f"{bound.prior[0]:.3f}",
                f"{all_kinds.by_kind['two-point'] / bound.value:.2f}",
                f"{all_kinds.by_kind['input-only'] / bound.value:.2f}",
                f"{seconds:.1f} s",
            ]
        )
    note = "Two plants with gains 1 and -0.7: exact by dynamic programming, the other bounds in parts of it."
    header = ["H", "exact minimax gap", "worst prior", "two-point", "input-only", "time with compilation"]
    return table("Theory: exact minimax", note, header, rows)


def overactuated() -> str:
    rows, best = [], {}
    for c in (0.3, 0.5):
        for horizon in HORIZONS:
            members = overactuated_class(horizon=horizon, c=c)
            bound = float(input_pair_bound(references_of(members.systems, horizon=horizon), PAIR).value[0])
            nominal = FiniteHorizonLQG(nominal_plant(), horizon)
            gaps = {"nominal": max(float(lg.exact_gap(nominal, plant, horizon=horizon)) for plant in members)}
            if c == 0.5:
                for mode in ("mixture", "map", "thompson"):
                    bank = ModelBank(members.systems, horizon=horizon, mode=mode)
                    gaps[mode] = lg.gap(
                        bank, members, horizon=horizon, key=jax.random.key(0), num_rollouts=512
                    ).worst
            name = min(gaps, key=lambda policy: gaps[policy])
            best[c, horizon] = gaps[name]
            rows.append(
                [
                    f"{c}",
                    str(horizon),
                    f"{bound:.3f}",
                    f"{bound / np.sqrt(horizon):.4f}",
                    f"{gaps[name]:.3f} ({name})",
                    f"{gaps[name] / bound:.2f}",
                    "factor 1.9" if c == 0.3 else "bound / sqrt(H) 0.07",
                ]
            )
    slope = np.polyfit(np.log(HORIZONS), np.log([best[0.5, horizon] for horizon in HORIZONS]), 1)[0]
    printed = [
        max(
            float(lg.exact_gap(FiniteHorizonLQG(nominal_plant(), horizon), plant, horizon=horizon))
            for plant in overactuated_class(horizon=horizon, radius="printed")
        )
        for horizon in (HORIZONS[0], HORIZONS[-1])
    ]
    note = (
        f"The over-actuated class with radius c H^-1/4. At c = 0.5 the best gap grows like H^{slope:.3f} "
        f"(wanted 0.45 to 0.55). With the printed radius 0.5 H^-1/2 the nominal controller's worst gap is "
        f"{printed[0]:.3f} at H = {HORIZONS[0]} and {printed[1]:.3f} at H = {HORIZONS[-1]}."
    )
    header = ["c", "H", "lower bound", "bound / sqrt(H)", "best policy's worst gap", "factor", "wanted"]
    return table("Theory: the class behind the lower bound", note, header, rows)


def deployments() -> str:
    rows = [coverage(steps, where) for steps in LENGTHS for where in ("grid", "box")]
    note = (
        f"Share of {NUM_DEPLOYMENTS} deployments of a bank of 25 models of a mass on a spring whose realised "
        f"gap is below the certificate (delta = {DELTA}), for real plants on the bank's grid and anywhere in "
        f"the box. The finite class knows the 25 members only."
    )
    header = [
        "steps",
        "real plants",
        "over the box",
        "wanted",
        "finite class",
        "median of certificate / realised",
        "time a log",
    ]
    return table("Theory: deployment certificates", note, header, rows)


def coverage(steps: int, where: str) -> list[str]:
    """A row of the table."""
    family = lg.plants.mass_spring_damper()
    grid = family.grid(5)
    bank = ModelBank(grid.systems)
    key_truth, key_noise = jax.random.split(jax.random.key(steps))
    keys = jax.random.split(key_noise, NUM_DEPLOYMENTS)
    deploy = jax.jit(jax.vmap(lambda plant, key: lg.rollout(bank, plant, horizon=steps - 1, key=key)))
    truths = {"grid": grid, "box": family}[where].sample(NUM_DEPLOYMENTS, key=key_truth, replace=True)
    logs = deploy(truths.systems, keys)
    y, u = np.asarray(logs.y), np.asarray(logs.u)
    paid = realised(truths.systems, y, u)
    start = time.perf_counter()
    certificate = certify_deployments(family, y, u, delta=DELTA)
    seconds = time.perf_counter() - start
    finite = certify_deployments(grid, y, u, delta=DELTA)
    return [
        str(steps),
        where,
        f"{np.mean(certificate.upper >= paid):.3f}",
        f"{1 - DELTA}",
        f"{np.mean(finite.upper >= paid):.3f}",
        f"{np.median(certificate.upper / paid):.2f}",
        f"{seconds / NUM_DEPLOYMENTS:.3f} s",
    ]


def realised(systems: lg.LQG, y: np.ndarray, u: np.ndarray) -> np.ndarray:
    """What was really paid: the identity's terms along each log, with the plant that made it."""
    horizon = y.shape[1] - 1
    window = settling_time(systems, horizon=horizon)
    logs = read_logs(y, u, systems, horizon=None)
    replayed = jax.jit(jax.vmap(lambda plant, y, u: replay(plant, y, u, horizon=horizon, window=window).gap))
    return np.asarray(replayed(systems, logs.y, logs.u))


if __name__ == "__main__":
    lg.enable_x64()
    print(run())
