"""From a record of inputs and outputs to plants: estimates, confidence sets, diagnosis, and how to probe."""

from lqgap.arguments import check_calls
from lqgap.identification.diagnostics import Diagnosis, diagnose
from lqgap.identification.fit import Fit, fit_parameters
from lqgap.identification.markov import MarkovEstimate, MarkovParameters, estimate_markov, exact_markov
from lqgap.identification.pinning import pin_gain
from lqgap.identification.realization import Realization, innovation_form
from lqgap.identification.selection import select_models, truncation_length
from lqgap.identification.streaming import MarkovRegression
from lqgap.identification.subspace import realize

__all__ = [
    "Diagnosis",
    "Fit",
    "MarkovEstimate",
    "MarkovParameters",
    "MarkovRegression",
    "Realization",
    "diagnose",
    "estimate_markov",
    "exact_markov",
    "fit_parameters",
    "innovation_form",
    "pin_gain",
    "realize",
    "select_models",
    "truncation_length",
]
check_calls(globals())
