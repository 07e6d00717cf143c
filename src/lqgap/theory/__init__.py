"""The theory with numbers: constants and bounds of a class, what no policy can beat, what a log certifies."""

from lqgap.arguments import check_calls
from lqgap.theory.certificates.bracket import Certificate, certify
from lqgap.theory.certificates.deployment import (
    DeploymentCertificate,
    certify_deployment,
    certify_deployments,
)
from lqgap.theory.constants.bounds import Bound, Bounds, bounds
from lqgap.theory.constants.comparison import constants
from lqgap.theory.constants.complexity import complexity
from lqgap.theory.constants.features import model_features, num_features, sample_features
from lqgap.theory.constants.sheet import Sheet
from lqgap.theory.constants.warm_up import selection_constant
from lqgap.theory.lower_bounds.bound import LowerBound
from lqgap.theory.lower_bounds.minimax import minimax_lower_bound
from lqgap.theory.lower_bounds.overactuated import overactuated_class
from lqgap.theory.lower_bounds.ranges import RangesBound

__all__ = [
    "Bound",
    "Bounds",
    "Certificate",
    "DeploymentCertificate",
    "LowerBound",
    "RangesBound",
    "Sheet",
    "bounds",
    "certify",
    "certify_deployment",
    "certify_deployments",
    "complexity",
    "constants",
    "minimax_lower_bound",
    "model_features",
    "num_features",
    "overactuated_class",
    "sample_features",
    "selection_constant",
]
check_calls(globals())
