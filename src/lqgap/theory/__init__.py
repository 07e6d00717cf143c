"""The theory with numbers: constants and bounds of a class, what no policy can beat, what a log certifies."""

from lqgap.theory.bounds import Bound, Bounds, bounds
from lqgap.theory.certificate import Certificate, certify
from lqgap.theory.complexity import complexity
from lqgap.theory.constants import constants
from lqgap.theory.deployment import DeploymentCertificate, certify_deployment, certify_deployments
from lqgap.theory.features import fea1, fea2, num_features
from lqgap.theory.lower_bound import LowerBound, minimax_lower_bound
from lqgap.theory.overactuated import overactuated_class
from lqgap.theory.sheet import Sheet

__all__ = [
    "Bound",
    "Bounds",
    "Certificate",
    "DeploymentCertificate",
    "LowerBound",
    "Sheet",
    "bounds",
    "certify",
    "certify_deployment",
    "certify_deployments",
    "complexity",
    "constants",
    "fea1",
    "fea2",
    "minimax_lower_bound",
    "num_features",
    "overactuated_class",
]
