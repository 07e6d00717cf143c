"""Domain randomisation."""

from collections.abc import Callable
from typing import Any

from lqgap.experiments.methods.trained import AbstractTrained


class Randomized(AbstractTrained):
    """Options of domain randomisation."""

    label = "Domain randomisation"
    about = "Trained for the smallest mean gap over the class."

    def train_fn(self) -> Callable[..., Any]:
        """Against all members alike."""
        from lqgap.training import train_randomized

        return train_randomized
