"""From a record of inputs and outputs to plants: estimates, confidence sets, diagnosis, and how to probe."""

from lqgap.identification.markov import (
    MarkovEstimate,
    MarkovParameters,
    MarkovRegression,
    estimate_markov,
    exact_markov,
)
from lqgap.identification.realization import Realization, align, innovation_form
from lqgap.identification.subspace import realize

__all__ = [
    "MarkovEstimate",
    "MarkovParameters",
    "MarkovRegression",
    "Realization",
    "align",
    "estimate_markov",
    "exact_markov",
    "innovation_form",
    "realize",
]
