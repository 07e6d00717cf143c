"""Online control of an unknown plant."""

from lqgap.adaptive.learner import AbstractLearner, Snapshot
from lqgap.adaptive.run import run, run_many
from lqgap.adaptive.trace import Event, Switch, Trace
from lqgap.adaptive.vtr.algorithm import LQGVTR
from lqgap.adaptive.vtr.calibration import VTRConstants, calibrate, theoretical
from lqgap.adaptive.vtr.options import VTROptions

__all__ = [
    "LQGVTR",
    "AbstractLearner",
    "Event",
    "Snapshot",
    "Switch",
    "Trace",
    "VTRConstants",
    "VTROptions",
    "calibrate",
    "run",
    "run_many",
    "theoretical",
]
