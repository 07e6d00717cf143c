"""The theory with numbers: constants, complexity and bounds of a class."""

from lqgap.theory.bounds import Bound, Bounds, bounds
from lqgap.theory.complexity import complexity
from lqgap.theory.constants import constants
from lqgap.theory.features import fea1, fea2, num_features
from lqgap.theory.sheet import Sheet

__all__ = ["Bound", "Bounds", "Sheet", "bounds", "complexity", "constants", "fea1", "fea2", "num_features"]
