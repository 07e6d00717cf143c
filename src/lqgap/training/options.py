"""What a user may choose about training; the defaults need no tuning on the built-in families."""

from dataclasses import dataclass
from typing import Any

from lqgap.arguments import read_count, read_positive
from lqgap.evaluation.arguments import read_precision
from lqgap.policies import AbstractPolicy
from lqgap.policies.stake import read_probe


@dataclass(frozen=True)
class TrainingOptions:
    """How long, how precisely, how fast.

    Args:
        steps: most updates of each stage (of each round, if the class grows): a bank of the members first
            answers the adversary without derivatives (`training.answer`), then all policies follow theirs.
        num_rollouts: of every member in each update; if left out, 512 of all together, and 16 at least.
        learning_rate: of Adam, relative to the size of what is trained.
        adversary_rate: of the exponentiated gradient: how fast weight moves to members with large gaps.
        validate_every: updates between two validations, on noise that stays the same.
        validation_rollouts: of every member in each validation; if left out, 4096 of all together, and 128
            at least.
        receipt_rollouts: of every member at the end, on fresh noise.
        patience: validations without improvement after which training stops by itself.
        tolerance: relative improvement that counts as one.
        polish: most updates that follow, with smoothed derivatives (see `training.derivative`); if left out,
            as many as `steps` for a `DualBank`, whose choices between inputs have no derivative, and none
            for other policies.
        smoothing: the spread of the cloud of parameters then, relative to the size of what is trained.
        backprop_decay: the share of a derivative that passes from a step of a rollout to the one before it,
            at first (truncated back-propagation, softly); it grows as steps become smaller.
        precision: "float32" or "float64", of the updates; what is reported is in double precision.
        rounds: most rounds of search and training, for a continuous family.
        probe: whether to try policies that probe (`policies.stake`): "auto", "off", or the most they may add.
    """

    steps: int = 200
    num_rollouts: int | None = None
    learning_rate: float = 0.1
    adversary_rate: float = 0.2
    validate_every: int = 20
    validation_rollouts: int | None = None
    receipt_rollouts: int = 1024
    patience: int = 10
    tolerance: float = 0.01
    polish: int | None = None
    smoothing: float = 0.3
    backprop_decay: float = 0.7
    precision: str = "float32"
    rounds: int = 4
    probe: Any = "auto"

    def __post_init__(self) -> None:
        for name, least in (
            ("steps", 1),
            ("validate_every", 1),
            ("receipt_rollouts", 2),
            ("patience", 1),
            ("rounds", 1),
        ):
            read_count(name, getattr(self, name), least=least, most=10_000_000)
        for name, least in (("num_rollouts", 1), ("validation_rollouts", 2), ("polish", 0)):
            if getattr(self, name) is not None:
                read_count(name, getattr(self, name), least=least, most=1_000_000)
        for name in ("learning_rate", "adversary_rate", "tolerance", "smoothing", "backprop_decay"):
            read_positive(name, getattr(self, name))
        read_precision(self.precision)
        read_probe(self.probe)

    def rollouts_for(self, num_members: int) -> int:
        """Rollouts of every member in each update of a class of this size."""
        return self.num_rollouts or max(16, 512 // num_members)

    def updates_of(self, stage: str, policy: AbstractPolicy) -> int:
        """Most updates of a stage of training."""
        if stage != "polish":
            return self.steps
        if self.polish is not None:
            return self.polish
        return self.steps if policy.needs_smoothing else 0

    def validation_rollouts_for(self, num_members: int) -> int:
        """Rollouts of every member in each validation of a class of this size."""
        return self.validation_rollouts or max(128, 4096 // num_members)
