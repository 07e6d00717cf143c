"""Riccati and Lyapunov equations, spectra and positive semidefinite matrices: arrays in, arrays out.

Every function is written for one matrix and is safe under `jit`, `vmap` and `grad`, but for those that
name modes to people.
Inside `jit` failure is a field of the answer; outside, it is an exception.
"""

from lqgap.arguments import check_calls
from lqgap.linalg.modes import undetectable_modes, unstabilizable_modes
from lqgap.linalg.psd import (
    inverse_sqrt_psd,
    log_det_psd,
    quadratic,
    solve_psd,
    sqrt_psd,
    symmetrize,
)
from lqgap.linalg.riccati import (
    RiccatiSolution,
    RiccatiStep,
    riccati_recursion,
    riccati_step,
    solve_riccati,
)
from lqgap.linalg.stability import (
    StrongStability,
    certify_by_lyapunov,
    certify_by_weight,
    spectral_norm,
    spectral_radius,
)

__all__ = [
    "RiccatiSolution",
    "RiccatiStep",
    "StrongStability",
    "certify_by_lyapunov",
    "certify_by_weight",
    "inverse_sqrt_psd",
    "log_det_psd",
    "quadratic",
    "riccati_recursion",
    "riccati_step",
    "solve_psd",
    "solve_riccati",
    "spectral_norm",
    "spectral_radius",
    "sqrt_psd",
    "symmetrize",
    "undetectable_modes",
    "unstabilizable_modes",
]
check_calls(globals())
