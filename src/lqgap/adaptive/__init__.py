"""Online control of an unknown plant."""

from lqgap.adaptive.adapt_on import AdaptOn
from lqgap.adaptive.certainty_equivalence import IdentifiedCertaintyEquivalence
from lqgap.adaptive.disturbance_response import DisturbanceResponse, IdentifiedDisturbanceResponse
from lqgap.adaptive.explore_then_commit import ExploreThenCommit
from lqgap.adaptive.identified.knowledge import UnknownPlant
from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.lqg_opt import LqgOpt
from lqgap.adaptive.run import run, run_many
from lqgap.adaptive.trace import Event, Switch, Trace
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.calibration import VTRConstants, calibrate, theoretical
from lqgap.adaptive.vtr.options import VTROptions

__all__ = [
    "LQGVTR",
    "AbstractLearner",
    "AdaptOn",
    "DisturbanceResponse",
    "Event",
    "ExploreThenCommit",
    "IdentifiedCertaintyEquivalence",
    "IdentifiedDisturbanceResponse",
    "LqgOpt",
    "Snapshot",
    "Switch",
    "Trace",
    "UnknownPlant",
    "VTRConstants",
    "VTROptions",
    "calibrate",
    "run",
    "run_many",
    "theoretical",
]
