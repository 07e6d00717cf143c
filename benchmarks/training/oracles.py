"""Robust training against domain randomisation and against no training."""

import time

import jax
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.policies import DualBank, ModelBank

HORIZON = 200
FRESH = jax.random.key(99)
HEADER = ["policy", "worst gap", "mean gap", "of the untrained worst", "wanted", "time with compilation"]


def run() -> str:
    """Two sections."""
    return spring() + "\n" + sign()


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
