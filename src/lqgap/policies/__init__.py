"""Observation in, input out: controllers of one plant, banks of models, networks and their combinations."""

from lqgap.arguments import check_calls
from lqgap.policies.bank import ModelBank
from lqgap.policies.committed import Committed, explore_then_commit
from lqgap.policies.controller import Controller
from lqgap.policies.dual import DualBank
from lqgap.policies.finite_memory import ClippedHistory
from lqgap.policies.integrated import BoundedChanges, Integrated
from lqgap.policies.linear import LinearDynamic, Zero
from lqgap.policies.optimal import FiniteHorizonLQG, StationaryLQG
from lqgap.policies.policy import AbstractLinearPolicy, AbstractPolicy, AbstractWrapper, LinearStep
from lqgap.policies.probing import RandomProbe
from lqgap.policies.probing_bank import ProbingBank
from lqgap.policies.recurrent import Recurrent
from lqgap.policies.saturated import Saturated

__all__ = [
    "AbstractLinearPolicy",
    "AbstractPolicy",
    "AbstractWrapper",
    "BoundedChanges",
    "ClippedHistory",
    "Committed",
    "Controller",
    "DualBank",
    "FiniteHorizonLQG",
    "Integrated",
    "LinearDynamic",
    "LinearStep",
    "ModelBank",
    "ProbingBank",
    "RandomProbe",
    "Recurrent",
    "Saturated",
    "StationaryLQG",
    "Zero",
    "explore_then_commit",
]
check_calls(globals())
