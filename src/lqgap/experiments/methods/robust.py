"""Robust training."""

from collections.abc import Callable
from typing import Any

from lqgap.experiments.methods.trained import AbstractTrained


class Robust(AbstractTrained):
    """Options of robust training."""

    label = "Robust training"
    about = "Trained for the smallest worst gap over the class."

    def train_fn(self) -> Callable[..., Any]:
        """Against the worst members."""
        from lqgap.training import train_robust

        return train_robust
