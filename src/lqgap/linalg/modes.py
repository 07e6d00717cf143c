"""Unstabilisable and undetectable modes: the eigenvalues of what no input reaches.

Reachable directions are the span of B, AB, A^2 B, ..., built up by orthonormal blocks (the staircase). With
N an orthonormal basis of what is left, the modes that no input moves are the eigenvalues of N'AN: not those
that only share an eigenvalue with them. Only modes with |lambda| >= 1 matter here.

A rank in floating point depends on units. A mode counts as out of reach if it is so both in the units given
and in balanced ones, so that neither bad units nor a bad balance (which may scale by 1e13) invents one.
These functions explain failures to people; they run on concrete numbers, outside `jit`.
"""

from typing import Any

import numpy as np
import scipy.linalg
from jaxtyping import Float

STABILITY_MARGIN = 1e-9  # a mode this close to the unit circle counts as marginal
RANK_TOLERANCE = 1e-13  # of a direction, relative to A, for each state; rounding leaves up to 1e-14


def unstabilizable_modes(A: Float[Any, "n n"], B: Float[Any, "n m"]) -> list[complex]:
    """The eigenvalues of A on or outside the unit circle that no column of B can move."""
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if not np.all(np.isfinite(A)) or np.max(np.abs(np.linalg.eigvals(A))) < 1 - STABILITY_MARGIN:
        return []
    balanced, scaling = scipy.linalg.matrix_balance(A, permute=False)
    found = [_out_of_reach(A, B), _out_of_reach(balanced, np.linalg.solve(scaling, B))]
    return min(found, key=len)


def undetectable_modes(A: Float[Any, "n n"], C: Float[Any, "p n"]) -> list[complex]:
    """The eigenvalues of A on or outside the unit circle that are not observable through C."""
    return unstabilizable_modes(np.asarray(A).T, np.asarray(C).T)


def near_circle(modes: list[complex], distance: float) -> list[complex]:
    """Those that neither grow nor decay, up to a distance of the unit circle."""
    return [mode for mode in modes if abs(abs(mode) - 1) <= distance]


def describe_modes(modes: list[complex]) -> str:
    """The beginning of a sentence: 'mode 1.02 of A is', or 'modes 1 (marginal), 0.8+0.9j of A are'."""
    noun, verb = ("mode", "is") if len(modes) == 1 else ("modes", "are")
    return f"{noun} {', '.join(map(_describe, modes))} of A {verb}"


def _out_of_reach(A: np.ndarray, B: np.ndarray) -> list[complex]:
    size, strength = np.linalg.norm(A, 2), np.linalg.norm(B, 2)
    reached, block = np.zeros((len(A), 0)), B / (strength or 1.0) * size
    while block.shape[1]:
        for _ in range(2):  # once more, since rounding of the first time is as large as what is left
            block = block - reached @ (reached.T @ block)
        directions, sizes, _ = np.linalg.svd(block, full_matrices=False)
        new = directions[:, sizes > RANK_TOLERANCE * len(A) * size]
        reached, block = np.hstack([reached, new]), A @ new
    rest = scipy.linalg.null_space(reached.T) if reached.shape[1] else np.eye(len(A))
    modes = np.linalg.eigvals(rest.T @ A @ rest)
    return [complex(mode) for mode in modes if abs(mode) >= 1 - STABILITY_MARGIN]


def _describe(mode: complex) -> str:
    text = f"{mode.real:.6g}" if abs(mode.imag) < 1e-12 else f"{mode.real:.6g}{mode.imag:+.6g}j"
    return text + (" (marginal)" if abs(abs(mode) - 1) <= STABILITY_MARGIN else "")
