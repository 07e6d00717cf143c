"""Sets of simulators: finite classes, families with parameters, their audit and their covers."""

from lqgap.arguments import check_calls
from lqgap.simulators import plants
from lqgap.simulators.audit.checks import check_assumptions
from lqgap.simulators.audit.findings import Audit, Check
from lqgap.simulators.ball import Ball
from lqgap.simulators.box import ParameterBox
from lqgap.simulators.family import AbstractFamily
from lqgap.simulators.finite import Finite
from lqgap.simulators.likelihood import Unrefuted, likelihood_set
from lqgap.simulators.offset_free import offset_free
from lqgap.simulators.parameters import Parameter
from lqgap.simulators.span import LinearSpan

__all__ = [
    "AbstractFamily",
    "Audit",
    "Ball",
    "Check",
    "Finite",
    "LinearSpan",
    "Parameter",
    "ParameterBox",
    "Unrefuted",
    "check_assumptions",
    "likelihood_set",
    "offset_free",
    "plants",
]
check_calls(globals())
