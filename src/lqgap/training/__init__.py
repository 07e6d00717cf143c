"""The two oracles: robust adversarial training and domain randomisation."""

from lqgap.training.options import TrainingOptions
from lqgap.training.result import TrainingResult
from lqgap.training.robust import train_randomized, train_robust
from lqgap.training.stabilizer import find_stabilizer
from lqgap.training.task import Monitor
from lqgap.training.width import WidthCurve, gap_versus_width

__all__ = [
    "Monitor",
    "TrainingOptions",
    "TrainingResult",
    "WidthCurve",
    "find_stabilizer",
    "gap_versus_width",
    "train_randomized",
    "train_robust",
]
