"""Online control of an unknown plant."""

from lqgap.adaptive.adapt_on import AdaptOn
from lqgap.adaptive.certainty_equivalence import IdentifiedCertaintyEquivalence
from lqgap.adaptive.disturbance_response import DisturbanceResponse, IdentifiedDisturbanceResponse
from lqgap.adaptive.explore_then_commit import ExploreThenCommit
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.lqg_opt import LqgOpt
from lqgap.adaptive.over_class.certainty_equivalence import CertaintyEquivalence
from lqgap.adaptive.over_class.filter_bank import FilterBank
from lqgap.adaptive.over_class.thompson import ThompsonSampling
from lqgap.adaptive.run import run, run_many
from lqgap.adaptive.trace import Event, Switch, Trace
from lqgap.adaptive.trained import TrainedPolicy
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.calibration import VTRConstants, calibrate, theoretical
from lqgap.adaptive.vtr.options import VTROptions
from lqgap.arguments import check_calls

__all__ = [
    "LQGVTR",
    "AbstractLearner",
    "AdaptOn",
    "CertaintyEquivalence",
    "DisturbanceResponse",
    "Event",
    "ExploreThenCommit",
    "FilterBank",
    "IdentifiedCertaintyEquivalence",
    "IdentifiedDisturbanceResponse",
    "LqgOpt",
    "Snapshot",
    "Switch",
    "ThompsonSampling",
    "Trace",
    "TrainedPolicy",
    "UnknownPlant",
    "VTRConstants",
    "VTROptions",
    "calibrate",
    "run",
    "run_many",
    "theoretical",
]
check_calls(globals())
