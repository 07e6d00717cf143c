"""The two oracles: robust adversarial training and domain randomisation."""

from lqgap.arguments import check_calls
from lqgap.training.options import TrainingOptions
from lqgap.training.result import TrainingResult
from lqgap.training.robust import train_randomized, train_robust
from lqgap.training.stabilizer import find_stabilizer
from lqgap.training.task import Monitor

__all__ = [
    "Monitor",
    "TrainingOptions",
    "TrainingResult",
    "find_stabilizer",
    "train_randomized",
    "train_robust",
]
check_calls(globals())
