"""Theory with numbers: what no policy can beat, and what a policy or a log certifies."""

from lqgap.theory.lower_bound import LowerBound, minimax_lower_bound
from lqgap.theory.overactuated import overactuated_class

__all__ = ["LowerBound", "minimax_lower_bound", "overactuated_class"]
