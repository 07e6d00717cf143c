"""Robust training against domain randomisation and against no training."""

import time

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.adaptive import LQGVTR, CertaintyEquivalence, ThompsonSampling
from lqgap.policies import DualBank, ModelBank
from lqgap.training import TrainingOptions

HORIZON = 200
FRESH = jax.random.key(99)
HEADER = ["policy", "worst gap", "mean gap", "of the untrained worst", "wanted", "time with compilation"]


def run() -> str:
    """Three sections."""
    return "\n".join([spring(), sign(), spare()])


def spring() -> str:
    family = lg.plants.mass_spring_damper()
    members = family.grid(5)
    bank = ModelBank(members.systems, horizon=HORIZON)
    policies, times = {"bank, untrained": bank}, {"bank, untrained": 0.0}
    for name, train, plants in (
        ("domain randomisation", lg.train_randomized, members),
        ("robust training", lg.train_robust, members),
        ("robust training over the box", lg.train_robust, family),
    ):
        start = time.perf_counter()
        policies[name] = train(bank, plants, horizon=HORIZON, key=jax.random.key(0)).policy
        times[name] = time.perf_counter() - start
    unseen = family.sample(200, key=jax.random.key(7))
    rows = []
    for where, plants, rollouts in (("grid", members, 4096), ("200 unseen", unseen, 512)):
        worst = {}
        for name, policy in policies.items():
            estimate = lg.gap(policy, plants, horizon=HORIZON, key=FRESH, num_rollouts=rollouts)
            worst[name] = estimate.worst
            rows.append(
                [
                    f"{name} ({where})",
                    f"{estimate.worst:.2f} +- {estimate.worst_stderr:.2f}",
                    f"{estimate.average:.2f} +- {estimate.average_stderr:.2f}",
                    f"{estimate.worst / worst['bank, untrained']:.2f}",
                    "0.88" if name == "robust training" and where == "grid" else "",
                    f"{times[name]:.0f} s" if where == "grid" else "",
                ]
            )
    note = "A bank of 25 models of a mass on a spring (stiffness and gain 5 x 5), 201 steps, common noise."
    return table("Training: mass on a spring", note, HEADER, rows)


def spare() -> str:
    """Where no controller teaches what another would need: what is trained against learners."""
    members = lg.plants.spare_actuator().grid(3)
    learners = {
        "LQG-VTR": LQGVTR(members),
        "certainty equivalence, probing 0.3": CertaintyEquivalence(members, probing=0.3),
        "Thompson sampling": ThompsonSampling(members),
    }
    rows: dict[str, list[str]] = {}
    for horizon, wanted in ((200, "31"), (800, "51")):
        how = {"horizon": horizon, "key": jax.random.key(0), "ends": False}
        bank = ModelBank(members.systems)
        result = lg.train_robust(bank, members, **how)
        alone = lg.train_robust(bank, members, options=TrainingOptions(probe="off"), **how).policy
        tried = {"bank, untrained": bank, "bank, trained": alone, **learners}
        tried[f"robust training: {result.returned}"] = result.policy
        for name, policy in tried.items():
            found = lg.gap(policy, members, horizon=horizon, key=FRESH, num_rollouts=4096, ends=False)
            rows.setdefault(name, [name]).append(f"{found.worst:.1f} +- {found.worst_stderr:.1f}")
        rows.setdefault("wanted", ["wanted"]).append(wanted)
    note = (
        "The largest gap over three members, of which one has a second actuator that is dead, tasks that go "
        "on, fresh noise. A learner's gap is its regret and what the first steps cost; what training returns "
        "must not lose more than the best of them."
    )
    return table(
        "Training: a spare actuator", note, ["policy", "200 steps", "800 steps"], list(rows.values())
    )


def sign() -> str:
    members = lg.plants.unknown_sign().grid(2)
    bank = ModelBank(members.systems, horizon=HORIZON)
    policies = {
        "bank, untrained": (bank, 0.0),
        "bank, likeliest member": (ModelBank(members.systems, horizon=HORIZON, mode="map"), 0.0),
    }
    for seed in range(5):
        start = time.perf_counter()
        dual = DualBank(members.systems, horizon=HORIZON)
        result = lg.train_robust(dual, members, horizon=HORIZON, key=jax.random.key(seed))
        policies[f"dual bank, trained (seed {seed})"] = (result.policy, time.perf_counter() - start)
    rows, first = [], 0.0
    for name, (policy, seconds) in policies.items():
        estimate = lg.gap(policy, members, horizon=HORIZON, key=FRESH, num_rollouts=20_000)
        first = first or estimate.worst
        rows.append(
            [
                name,
                f"{estimate.worst:.2f} +- {estimate.worst_stderr:.2f}",
                f"{np.mean(estimate.mean):.2f} +- {estimate.average_stderr:.2f}",
                f"{estimate.worst / first:.3f}",
                "worst 13.5" if "dual" in name else "",
                f"{seconds:.0f} s",
            ]
        )
    note = (
        "A gain of unknown sign, 201 steps: the mean of two opposite inputs is none: the bank never learns."
    )
    return table("Training: unknown sign", note, HEADER, rows)
