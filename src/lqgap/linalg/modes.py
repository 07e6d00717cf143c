"""Unstabilisable and undetectable modes, by the test of Popov, Belevitch and Hautus.

A mode lambda of A is not controllable through B if [A - lambda I, B] loses rank. Only modes with
|lambda| >= 1 matter here. The test is made in balanced coordinates, since a rank in floating point depends on
units. These functions explain failures to people; they run on concrete numbers, outside `jit`.
"""

import numpy as np
import scipy.linalg

from lqgap.arguments import MatrixLike

STABILITY_MARGIN = 1e-9  # a mode this close to the unit circle counts as marginal
RANK_TOLERANCE = 1e-14  # smallest singular value, relative to the largest; rounding leaves 1e-16


def unstabilizable_modes(A: MatrixLike, B: MatrixLike) -> list[complex]:
    """The eigenvalues of A on or outside the unit circle that no column of B can move."""
    A, B = np.asarray(A), np.asarray(B)
    eigenvalues = np.linalg.eigvals(A)
    unstable = eigenvalues[np.abs(eigenvalues) >= 1 - STABILITY_MARGIN]
    if len(unstable) == 0:
        return []
    A, scaling = scipy.linalg.matrix_balance(A, permute=False)
    B = np.linalg.solve(scaling, B)
    size = np.linalg.norm(B, 2)
    reach = B * (np.linalg.norm(A, 2) / size) if size > 0 else B
    return [mode for mode in map(complex, unstable) if not _is_full_rank(A, reach, mode)]


def undetectable_modes(A: MatrixLike, C: MatrixLike) -> list[complex]:
    """The eigenvalues of A on or outside the unit circle that are not observable through C."""
    return unstabilizable_modes(np.asarray(A).T, np.asarray(C).T)


def describe_modes(modes: list[complex]) -> str:
    """The beginning of a sentence: 'mode 1.02 of A is', or 'modes 1 (marginal), 0.8+0.9j of A are'."""
    noun, verb = ("mode", "is") if len(modes) == 1 else ("modes", "are")
    return f"{noun} {', '.join(map(_describe, modes))} of A {verb}"


def _is_full_rank(A: np.ndarray, B: np.ndarray, mode: complex) -> bool:
    singular = np.linalg.svd(np.hstack([A - mode * np.eye(len(A)), B]), compute_uv=False)
    return bool(singular[len(A) - 1] > RANK_TOLERANCE * len(A) * singular[0])


def _describe(mode: complex) -> str:
    text = f"{mode.real:.6g}" if abs(mode.imag) < 1e-12 else f"{mode.real:.6g}{mode.imag:+.6g}j"
    return text + (" (marginal)" if abs(abs(mode) - 1) <= STABILITY_MARGIN else "")
