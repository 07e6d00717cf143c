"""Norms that hold for every member of a class, from which all constants of the theory are made.

    ||A||, ||B||, ||C|| <= N_S ,   ||K|| <= N_K ,   ||Q||, ||R|| <= N_U ,   ||A - BK|| <= gamma_1 < 1 ,
    ||Abar^k|| <= kappa_2 (1 - gamma_2)^k ,   ||F|| <= kappa_2 ,   ||A^k|| <= Phi rho^k

and then, uniformly over every class with these constants,

    ||P|| <= N_P = N_U (N_S^2 + N_K^2) / (1 - gamma_1^2)          [printed: over 2 gamma_1 - gamma_1^2]
    ||Sigma|| <= N_Sigma = kappa_2^2 (N_W + kappa_2^2 N_V) / (2 gamma_2 - gamma_2^2)
    ||L|| <= N_L = N_Sigma N_S / V_min

or, for the class at hand, the largest of these norms themselves. The paper has unit noise; N_W bounds the
covariances W and S0, N_V the covariance V, so that general noise is carried along.

Powers of the filter matrix (I - LC) A decay with constants of their own, not with those of the predictor
Abar = A (I - LC), whose norm is another: `certificate` says which pair stands for kappa_2, gamma_2.
"""

from dataclasses import dataclass, replace

import numpy as np

from lqgap.policies.policy import require_one_of
from lqgap.simulators import Audit, check_assumptions
from lqgap.systems.lqg import require_noise, require_output_cost

CERTIFICATES = ("filter", "predictor")


@dataclass(frozen=True)
class Norms:
    """Bounds that hold for every member; what does not exist is infinite."""

    num_members: int
    num_states: int
    num_inputs: int
    num_outputs: int
    N_S: float
    N_U: float
    N_K: float
    N_P: float
    N_Sigma: float
    N_L: float
    N_W: float  # of W and S0
    N_V: float
    gamma_1: float
    kappa_2: float
    gamma_2: float
    rho: float
    Phi: float
    growth: float  # of a bounded input through the open loop: the sum of ||A^k||
    V_inverse: float  # largest ||V^-1||
    kappa_predictor: float  # of A - FC, whichever certificate kappa_2 and gamma_2 are; bounds ||F|| too
    gamma_predictor: float

    @property
    def are_usable(self) -> bool:
        """Whether closed loops contract, filter errors decay and open loops are stable."""
        return self.gamma_1 < 1 and self.gamma_2 > 0 and bool(np.isfinite(self.growth))


def contracting(audit: Audit) -> Audit:
    """The audit in coordinates in which the closed loops contract, if there are such."""
    audit.members.optima()  # raises where a member has none, and says why
    require_output_cost(audit.members.systems, what="the theory of constants")
    require_noise(audit.members.systems, what="the theory of constants")
    found = audit.contraction
    needs_repair = audit.constants["gamma_1"] >= 1 and found is not None and found.holds
    return check_assumptions(audit.repair()) if needs_repair else audit


def uniform_norms(audit: Audit, *, certificate: str = "filter") -> Norms:
    """N_P, N_Sigma and N_L as the theory bounds them from the other constants, corrected."""
    require_one_of("certificate", certificate, CERTIFICATES)
    found, systems = audit.constants, audit.members.systems
    suffix = "_filter" if certificate == "filter" else ""

    def largest(*covariances: object) -> float:
        return float(max(np.max(np.linalg.norm(np.asarray(X), ord=2, axis=(1, 2))) for X in covariances))

    return Norms(
        num_members=len(audit.members),
        num_states=systems.num_states,
        num_inputs=systems.num_inputs,
        num_outputs=systems.num_outputs,
        kappa_2=found[f"kappa_2{suffix}"],
        gamma_2=found[f"gamma_2{suffix}"],
        N_W=largest(systems.W, systems.S0),
        N_V=largest(systems.V),
        growth=_growth(audit),
        V_inverse=float(np.max(audit.measures.norm_V_inverse)),
        kappa_predictor=found["kappa_2"],
        gamma_predictor=found["gamma_2"],
        **{
            name: found[name]
            for name in ("N_S", "N_U", "N_K", "N_P", "N_Sigma", "N_L", "gamma_1", "rho", "Phi")
        },
    )


def actual_norms(norms: Norms, audit: Audit) -> Norms:
    """The same with the largest norms of P, Sigma and L that members of this class have."""
    found = audit.constants
    return replace(norms, N_P=found["norm_P"], N_Sigma=found["norm_Sigma"], N_L=found["norm_L"])


def printed_norms(norms: Norms) -> Norms:
    """The same with N_P as printed, where gamma_1 is taken for its own distance to 1."""
    decay = 2 * norms.gamma_1 - norms.gamma_1**2
    N_P = _quotient(norms.N_U * (norms.N_S**2 + norms.N_K**2), decay) if norms.gamma_1 < 1 else float("inf")
    return replace(norms, N_P=N_P, growth=_quotient(norms.Phi, 1 - norms.rho))


def _growth(audit: Audit) -> float:
    """Phi / (1 - rho); where Phi is infinite (a defective or nilpotent A), by the Lyapunov certificate."""
    found, open_loop = audit.constants, audit.measures.open_loop
    by_radius = _quotient(found["Phi"], 1 - found["rho"])
    by_lyapunov = max(map(_quotient, np.asarray(open_loop.kappa), np.asarray(open_loop.gamma)))
    return by_radius if np.isfinite(by_radius) else by_lyapunov


def _quotient(size: float, decay: float) -> float:
    return float(size / decay) if decay > 0 else float("inf")
