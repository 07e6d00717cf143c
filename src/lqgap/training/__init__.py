"""The two oracles: robust adversarial training and domain randomisation."""

from lqgap.training.options import TrainingOptions
from lqgap.training.oracle import Monitor, train_randomized, train_robust
from lqgap.training.result import TrainingResult
from lqgap.training.search import find_worst

__all__ = ["Monitor", "TrainingOptions", "TrainingResult", "find_worst", "train_randomized", "train_robust"]
