"""Observation in, input out: controllers of one plant, banks of models, networks and their combinations."""

from lqgap.policies.bank import ModelBank
from lqgap.policies.clipped import ClippedHistory
from lqgap.policies.committed import Committed
from lqgap.policies.controller import Controller
from lqgap.policies.files import load_policy, save_policy
from lqgap.policies.linear import LinearDynamic, Zero
from lqgap.policies.mixture import Mixture
from lqgap.policies.optimal import FiniteHorizon, Stationary
from lqgap.policies.policy import AbstractLinearPolicy, AbstractPolicy, LinearStep
from lqgap.policies.probing import ProbingBank, RandomProbe
from lqgap.policies.recurrent import Recurrent
from lqgap.policies.stabilized import Stabilized

__all__ = [
    "AbstractLinearPolicy",
    "AbstractPolicy",
    "ClippedHistory",
    "Committed",
    "Controller",
    "FiniteHorizon",
    "LinearDynamic",
    "LinearStep",
    "Mixture",
    "ModelBank",
    "ProbingBank",
    "RandomProbe",
    "Recurrent",
    "Stabilized",
    "Stationary",
    "Zero",
    "load_policy",
    "save_policy",
]
