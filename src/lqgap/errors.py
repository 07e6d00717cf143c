"""Everything lqgap raises on purpose; the command line shows each as one line and an exit code."""

import difflib
import warnings
from collections.abc import Iterable


class LqgapError(Exception):
    """Base of all errors that a user can cause or repair."""


class InvalidArgumentError(LqgapError):
    """An argument has the wrong type, shape or range."""


class RefutedClassError(InvalidArgumentError):
    """No member of a class of simulators agrees with what was observed."""


class InvalidSystemError(InvalidArgumentError):
    """A matrix of a system is malformed, or the matrices do not fit together."""


class InvalidStudyError(InvalidArgumentError):
    """A study file cannot be read, or says something that makes no sense."""


class PrecisionError(LqgapError):
    """JAX is in 32-bit mode, in which Riccati equations cannot be trusted."""


class NotStabilizableError(LqgapError):
    """An unstable or marginal mode is not controllable through B, or a marginal one not excited by noise."""


class NotDetectableError(LqgapError):
    """An unstable or marginal mode is not observable through C, or a marginal one not through the cost."""


class NotConvergedError(LqgapError):
    """An iteration ended without an answer that satisfies its equation."""


class CorruptFileError(LqgapError):
    """A file is damaged, or not of the kind it should be."""


class StorageError(LqgapError):
    """A disk is full or fails; what was stored before is still there."""


class LqgapWarning(UserWarning):
    """Something went on that a user should know about."""


def warn(text: str) -> None:
    """Tell a user something, as a warning."""
    warnings.warn(text, LqgapWarning, stacklevel=2)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message on a name that there is not: the nearest that there is, or nothing."""
    nearest = difflib.get_close_matches(str(name), list(map(str, known)), n=1, cutoff=0.5)
    return f"; did you mean {nearest[0]}?" if nearest else ""
