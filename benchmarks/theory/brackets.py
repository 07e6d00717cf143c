"""The bracket of the best possible worst gap over ranges: lower bounds against a trained policy."""

import time

import jax
import numpy as np

import lqgap as lg
from benchmarks.theory.validity import mean_under_prior
from benchmarks.timing import table
from lqgap.policies import AbstractPolicy, DualBank, ModelBank
from lqgap.simulators.family import AbstractFamily
from lqgap.theory.lower_bounds.minimax import KINDS, minimax_lower_bound
from lqgap.theory.lower_bounds.van_trees.bound import VanTrees, van_trees_bound
from lqgap.training import train_robust

HORIZON = 100
OTHERS = (
    "dc_motor",
    "web_server",
    "two_mass_spring",
    "thermal_zones",
    "hanging_pendulum_cart",
    "overactuated",
    "unknown_sign",
)
POINTS = {1: 13, 2: 5, 3: 3, 4: 2}  # of the bank that is trained, along each parameter
FEW = 4  # members of a dual bank, which weighs all pairs of them at every step
PATIENCE = 90  # seconds of CPU after which no second run is timed


def families() -> dict[str, AbstractFamily]:
    """Of the example study first; then with one of its parameters known; then others."""
    spring = lg.plants.mass_spring_damper()
    one = {
        "stiffness only": lg.ParameterBox(lambda k: spring.build(stiffness=k, gain=3.0), {"k": (0.5, 4.0)}),
        "gain only": lg.ParameterBox(lambda b: spring.build(stiffness=2.25, gain=b), {"b": (1.0, 5.0)}),
    }
    return {"mass_spring_damper": spring, **one, **{name: lg.plants.FAMILIES[name]() for name in OTHERS}}


def run(names: tuple[str, ...] | None = None) -> str:
    """One table; of some families only, if names are given."""
    chosen = {name: family for name, family in families().items() if names is None or name in names}
    note = (
        f"H = {HORIZON}, tasks that go on. Old: the largest bound of members inside of the ranges. New: that"
        " of the ranges, with its kind (docs/lower_bound.md). The policy is a bank that is trained for the"
        f" ranges or, of at most {FEW} members, a dual bank as it is, if that is better. Its worst gap is the"
        " largest that a search found, on fresh noise; its mean gap under the new bound's prior may not be"
        " below it."
    )
    header = [
        "family",
        "old bound",
        "new bound",
        "policy, mean under the prior",
        "policy, worst found",
        "factor before",
        "factor now",
        "seconds of CPU, first and again",
        "why it is no larger",
    ]
    return table("Theory: brackets over ranges", note, header, [_row(*item) for item in chosen.items()])


def _row(name: str, family: AbstractFamily) -> list[str]:
    old = minimax_lower_bound(family, horizon=HORIZON, kinds=KINDS, ends=False)
    new, seconds = _new_bound(family)
    label, policy, worst = _best(family)
    value, kind = max((old.value, old.kind), (new.value, new.kind) if new else (0.0, ""))
    mean, error = mean_under_prior(policy, family, new, horizon=HORIZON) if new else (np.nan, np.nan)
    return [
        name,
        f"{old.value:.3g}",
        f"{value:.3g} ({kind})",
        f"{mean:.3g} +- {error:.1g}" if new else "",
        f"{worst:.3g} ({label})",
        f"{worst / old.value:.0f}",
        f"**{worst / value:.2f}**",
        ", ".join(f"{each:.0f}" for each in seconds),
        "; ".join(new.reasons if new else old.reasons[-1:]),
    ]


def _new_bound(family: AbstractFamily) -> tuple[VanTrees | None, list[float]]:
    """And the seconds of CPU that it takes, first and again; none for families without intervals."""
    seconds, bound = [], None
    if all(parameter.choices or parameter.low == parameter.high for parameter in family.parameters):
        return None, seconds
    while len(seconds) < 2 and sum(seconds) < PATIENCE:
        start = time.process_time()
        bound = van_trees_bound(family, horizon=HORIZON, ends=False)
        seconds.append(time.process_time() - start)
    return bound, seconds


def _best(family: AbstractFamily) -> tuple[str, AbstractPolicy, float]:
    """A bank trained for the ranges, or one that probes, if it is small: the better of them."""
    systems = family.grid(POINTS[len(family.names)]).systems
    trained = train_robust(
        ModelBank(systems), family, horizon=HORIZON, key=jax.random.key(0), ends=False
    ).policy
    policies: dict[str, AbstractPolicy] = {"trained bank": trained}
    if len(systems.A) <= FEW:
        policies["dual bank"] = DualBank(systems)
    judged = [(name, policy, _worst(policy, family)) for name, policy in policies.items()]
    return min(judged, key=lambda each: each[-1])


def _worst(policy: AbstractPolicy, family: AbstractFamily) -> float:
    return lg.find_worst(
        policy, family, horizon=HORIZON, key=jax.random.key(1), num_rollouts=256, ends=False
    ).worst
