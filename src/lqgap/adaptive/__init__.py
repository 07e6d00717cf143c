"""Online control of an unknown plant."""

from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.over_class.certainty_equivalence import CertaintyEquivalence
from lqgap.adaptive.over_class.filter_bank import FilterBank
from lqgap.adaptive.over_class.thompson import ThompsonSampling
from lqgap.adaptive.run import run, run_many
from lqgap.adaptive.trace import Event, Switch, Trace
from lqgap.adaptive.trained import TrainedPolicy
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.calibration import VTRConstants, calibrate, theoretical
from lqgap.adaptive.vtr.options import VTROptions

__all__ = [
    "LQGVTR",
    "AbstractLearner",
    "CertaintyEquivalence",
    "Event",
    "FilterBank",
    "Snapshot",
    "Switch",
    "ThompsonSampling",
    "Trace",
    "TrainedPolicy",
    "VTRConstants",
    "VTROptions",
    "calibrate",
    "run",
    "run_many",
    "theoretical",
]
