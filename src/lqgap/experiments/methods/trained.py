"""What trained methods share: the policy that training begins with, and the loop."""

import abc
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from lqgap.experiments.methods.base import AbstractMethod, Made, Setting

VALIDATE_EVERY = 20
RECEIPT_ROLLOUTS = 64  # the study judges policies itself, all on the same noise


class AbstractTrained(AbstractMethod):
    """A method whose policy is trained."""

    kind = "trained"

    policy: Literal["bank", "dual", "recurrent"] = Field(default="bank", description="what is trained")
    steps: int = Field(default=60, ge=1, le=1_000_000, description="of training")

    @abc.abstractmethod
    def train_fn(self) -> Callable[..., Any]:
        """What trains it: a function of `lqgap.training`."""

    def make(self, setting: Setting) -> Made:
        """The policy after training, taken up where checkpoints left it."""
        from lqgap.errors import warn
        from lqgap.training import Monitor, TrainingOptions
        from lqgap.training.task import GIVEN, TRAINED

        result = self.train_fn()(
            self._start(setting),
            setting.members,
            horizon=setting.horizon,
            key=setting.key,
            options=TrainingOptions(
                steps=self.steps,
                validate_every=min(VALIDATE_EVERY, self.steps),
                receipt_rollouts=RECEIPT_ROLLOUTS,
                probe=setting.probe,
            ),
            monitor=Monitor(folder=setting.checkpoints),
            limits=setting.limits,
            ends=setting.ends,
        )
        if result.returned not in (GIVEN, TRAINED):
            gaps = ", ".join(f"{name} {gap:.3g}" for name, gap in result.compared)
            warn(f"a {result.returned} is returned: of all tried it loses least ({gaps})")
        return Made(result.policy, result.history, result.has_improved)

    def _start(self, setting: Setting) -> Any:
        """The policy that training begins with."""
        from lqgap.policies import DualBank, ModelBank, Recurrent

        systems = setting.members.systems
        if self.policy == "recurrent":
            return Recurrent(num_inputs=systems.num_inputs, num_outputs=systems.num_outputs, key=setting.key)
        return (DualBank if self.policy == "dual" else ModelBank)(systems, horizon=setting.planned)
