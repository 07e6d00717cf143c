"""Theory with numbers: what no policy can beat, and what a policy or a log certifies."""

from lqgap.theory.certificate import Certificate, certify
from lqgap.theory.deployment import DeploymentCertificate, certify_deployment, certify_deployments
from lqgap.theory.lower_bound import LowerBound, minimax_lower_bound
from lqgap.theory.overactuated import overactuated_class

__all__ = [
    "Certificate",
    "DeploymentCertificate",
    "LowerBound",
    "certify",
    "certify_deployment",
    "certify_deployments",
    "minimax_lower_bound",
    "overactuated_class",
]
