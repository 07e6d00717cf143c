"""The methods of a study as policies: from the class and the horizon to a controller that can be judged.

In a task that goes on all of them go on; in one that ends, banks have gains planned for its horizon.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Array

from lqgap.errors import InvalidArgumentError
from lqgap.experiments.family import Family
from lqgap.experiments.plants import control_optimally, key_for
from lqgap.experiments.record import Kind
from lqgap.experiments.study import Identify, Table, Trained
from lqgap.policies import (
    AbstractPolicy,
    ModelBank,
    ProbingBank,
    Recurrent,
    explore_then_commit,
)
from lqgap.simulators import Finite
from lqgap.training import (
    Monitor,
    TrainingOptions,
    TrainingResult,
    find_stabilizer,
    train_randomized,
    train_robust,
)

VALIDATE_EVERY = 20
RECEIPT_ROLLOUTS = 64  # the study judges policies itself, all on the same noise


@dataclass(frozen=True)
class About:
    """What people read of a method."""

    label: str
    kind: Kind
    description: str


ABOUT: Mapping[str, About] = {
    "nominal": About(
        "Nominal LQG", "fixed", "The optimal controller of the plant in the middle of the ranges."
    ),
    "linear": About(
        "Robust linear controller",
        "fixed",
        "One linear controller that stabilises all members, with a small worst average cost; it does not "
        "adapt.",
    ),
    "bank": About(
        "Untrained bank", "fixed", "The controllers of all members, mixed by their posterior weights."
    ),
    "randomized": About(
        "Domain randomisation", "trained", "Trained for the smallest mean gap over the class."
    ),
    "robust": About("Robust training", "trained", "Trained for the smallest worst gap over the class."),
    "identify": About(
        "Identify, then control",
        "fixed",
        "Random inputs at first, then the controller of the member that explains the record best.",
    ),
    "vtr": About(
        "LQG-VTR",
        "adaptive",
        "Learns on the plant: acts by the most optimistic member that its samples leave.",
    ),
    "oracle": About("LQG that knows the truth", "reference", "The optimal controller of the real plant."),
}


@dataclass(frozen=True)
class Made:
    """A policy, and how its training went."""

    policy: AbstractPolicy
    history: tuple[Mapping[str, float], ...] = ()
    has_improved: bool = True


def make_policy(
    name: str,
    options: Table,
    *,
    family: Family,
    members: Finite,
    horizon: int,
    ends: bool,
    seed: int,
    checkpoints: Path,
) -> Made:
    """The policy of a method; training is taken up where checkpoints left it."""
    key = key_for(seed, f"train {name}")
    monitor = Monitor(folder=checkpoints)
    planned = horizon if ends else None
    match name, options:
        case "nominal", _:
            middle = members[len(members) // 2] if isinstance(family, Finite) else family.nominal()
            return Made(control_optimally(middle))
        case "linear", _:
            return Made(find_stabilizer(members))
        case "bank", _:
            return Made(ModelBank(members.systems, horizon=planned))
        case "identify", Identify():
            bank = ModelBank(members.systems, horizon=planned)
            return Made(explore_then_commit(bank, options.probe, scale=options.scale))
        case "robust" | "randomized", Trained():
            start = _start(options, members, planned, key)
            train = train_robust if name == "robust" else train_randomized
        case _:
            raise InvalidArgumentError(f"there is no policy for the method {name!r}")
    steps = options.steps
    training = TrainingOptions(
        steps=steps, validate_every=min(VALIDATE_EVERY, steps), receipt_rollouts=RECEIPT_ROLLOUTS
    )
    result: TrainingResult = train(
        start, members, horizon=horizon, key=key, options=training, monitor=monitor, ends=ends
    )
    return Made(result.policy, result.history, result.has_improved)


def plan_for(policy: AbstractPolicy, members: Finite, *, horizon: int) -> AbstractPolicy:
    """The policy with its banks planned for another horizon; what was trained stays."""
    return policy.for_horizon(horizon, systems=members.systems)


def _start(options: Trained, members: Finite, horizon: int | None, key: Array) -> AbstractPolicy:
    """The policy that training begins with."""
    systems = members.systems
    if options.policy == "recurrent":
        return Recurrent(num_inputs=systems.num_inputs, num_outputs=systems.num_outputs, key=key)
    bank = ModelBank(systems, horizon=horizon)
    return bank if options.policy == "bank" else ProbingBank(bank, key=key)
