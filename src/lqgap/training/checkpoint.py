"""Training that survives: its state in one file, replaced at once, and taken up again exactly.

A fingerprint of everything that determines the run (policy, class, options, seed) is the owner of the file.
"""

import pathlib
from dataclasses import dataclass
from typing import Any

from lqgap.states import read_state, write_state

KIND = "checkpoint"
REMEDY = "remove it, and training starts again"
REFUSAL = (
    "the checkpoint of another training (policy, class, options or key differ): remove it, or give another "
    "folder"
)


@dataclass(frozen=True)
class Checkpoint:
    """The file of one training.

    Args:
        path: of the file.
        owner: the fingerprint of the training it belongs to.
    """

    path: pathlib.Path
    owner: str

    def save(self, state: Any, history: list[dict[str, float]]) -> None:
        """Write the arrays of a state; a reader sees the old file or the new one, never half of one."""
        write_state(self.path, state, kind=KIND, owner=self.owner, note=history)

    def load(self, like: Any) -> tuple[Any, list[dict[str, float]]] | None:
        """The state and history in the file, in the shape of another state; None if there is no file."""
        if not self.path.exists():
            return None
        return read_state(self.path, like, kind=KIND, owner=self.owner, refusal=REFUSAL, remedy=REMEDY)
