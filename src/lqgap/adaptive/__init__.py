"""Online control of an unknown plant."""

from lqgap.adaptive.constants import VTRConstants, calibrate, theoretical
from lqgap.adaptive.options import VTROptions
from lqgap.adaptive.run import run, run_many
from lqgap.adaptive.trace import Event, Switch, Trace
from lqgap.adaptive.vtr import LQGVTR

__all__ = [
    "LQGVTR",
    "Event",
    "Switch",
    "Trace",
    "VTRConstants",
    "VTROptions",
    "calibrate",
    "run",
    "run_many",
    "theoretical",
]
