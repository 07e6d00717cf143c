"""Arrays as users hand them over: read, checked, and named in the error.

Values are checked when they are concrete; under tracing only shapes are, so that functions
that build systems can be jitted and differentiated.
"""

import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from lqgap.errors import InvalidArgumentError, InvalidSystemError, PrecisionError

# What users may pass: lists, NumPy or JAX arrays, also traced ones. Checked when read, not by type.
ArrayLike = Any
MatrixLike = Any

SYMMETRY_TOLERANCE = 1e-9  # relative to the largest entry
DEFINITENESS_TOLERANCE = 1e-12  # relative to the largest eigenvalue


def is_concrete(tree: Any) -> bool:
    """Whether no leaf of the tree is being traced by `jit`, `vmap` or `grad`."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def require_double_precision() -> None:
    """Raise unless JAX computes in 64 bits."""
    if not jax.config.read("jax_enable_x64"):
        raise PrecisionError(
            "JAX is in 32-bit mode, in which Riccati equations lose all their digits: call "
            "lqgap.enable_x64() before any JAX computation, or set JAX_ENABLE_X64=1"
        )


def read_array(name: str, value: ArrayLike, *, num_axes: int) -> Float[Array, "..."]:
    """The value as a double-precision array with `num_axes` axes and, if known, finite entries."""
    require_double_precision()
    if is_concrete(value):
        value = _read_concrete(name, value)
        if not np.all(np.isfinite(value)):
            raise InvalidSystemError(f"{name} has entries that are NaN or infinite: {_show(value)}")
    elif not isinstance(value, jax.Array):
        value = _stack_traced(name, value)
    if value.ndim != num_axes or 0 in value.shape:
        kind = {1: "a vector", 2: "a matrix"}[num_axes]
        raise InvalidSystemError(f"{name} has shape {value.shape}, expected {kind} with at least one entry")
    return jnp.asarray(value, dtype=jnp.float64)


def require_shape(name: str, value: Any, expected: tuple[int, ...], *, why: str) -> None:
    """Raise unless the array has the expected shape."""
    if value.shape != expected:
        raise InvalidSystemError(f"{name} has shape {value.shape}, expected {expected}: {why}")


def read_covariance(
    name: str, value: MatrixLike, *, size: int, definite: bool, why: str
) -> Float[Array, "n n"]:
    """A symmetric positive (semi)definite matrix; `None` means the identity."""
    if value is None:
        value = np.eye(size)
    matrix = read_array(name, value, num_axes=2)
    require_shape(name, matrix, (size, size), why=why)
    if not is_concrete(value):
        return 0.5 * (matrix + matrix.T)
    known = _read_concrete(name, value)
    _require_definiteness(name, known, definite=definite)
    return jnp.asarray(0.5 * (known + known.T))


def read_count(name: str, value: Any, *, least: int) -> int:
    """A whole number that is at least `least`."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(
            f"{name} is {value!r}, expected a whole number of at least {least}"
        ) from None
    if isinstance(value, bool) or count < least:
        raise InvalidArgumentError(f"{name} is {value}, expected at least {least}")
    return count


def read_positive(name: str, value: Any) -> Any:
    """A positive number, left as it is if traced."""
    if not is_concrete(value):
        return value
    number = _read_concrete(name, value)
    if number.ndim != 0 or not (np.isfinite(number) and number > 0):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected a positive number")
    return float(number)


def read_record(
    y: MatrixLike, u: MatrixLike, *, num_outputs: int, num_inputs: int
) -> tuple[Float[Array, "time output"], Float[Array, "time input"]]:
    """A record of observations and inputs of one length, as arrays; lost observations are NaN."""
    require_double_precision()
    y, u = (_read_signal(name, value) for name, value in (("y", y), ("u", u)))
    shapes: Sequence[tuple[str, Any, int, str]] = (
        ("y", y, num_outputs, "rows of C"),
        ("u", u, num_inputs, "columns of B"),
    )
    for name, value, width, source in shapes:
        if value.ndim != 2 or value.shape[1] != width:
            raise InvalidArgumentError(
                f"{name} has shape {value.shape}, expected (time, {width}): one row a step, "
                f"as many columns as {source}"
            )
    if len(y) == 0:
        raise InvalidArgumentError("the record is empty, expected at least one observation")
    if len(y) != len(u):
        raise InvalidArgumentError(
            f"y has {len(y)} rows and u has {len(u)}: a record holds the input u_t that followed "
            f"each observation y_t"
        )
    if is_concrete(u) and not np.all(np.isfinite(u)):
        raise InvalidArgumentError("u has entries that are NaN or infinite; only y may be lost (NaN)")
    if is_concrete(y) and np.any(np.isinf(y)):
        raise InvalidArgumentError("y has infinite entries; a lost observation is NaN")
    return y, u


def _read_concrete(name: str, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidSystemError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "iuf":
        raise InvalidSystemError(f"{name} holds {array.dtype} entries, expected real numbers: {_show(value)}")
    return array.astype(np.float64)


def _stack_traced(name: str, value: Any) -> Array:
    """Nested lists some of whose entries are traced: the natural way to write a `build` function."""
    try:
        return jnp.asarray(value, dtype=jnp.float64)
    except (ValueError, TypeError) as error:
        raise InvalidSystemError(f"{name} is not an array of numbers: {error}") from None


def _require_definiteness(name: str, matrix: np.ndarray, *, definite: bool) -> None:
    scale = np.max(np.abs(matrix))
    asymmetry = np.max(np.abs(matrix - matrix.T))
    if asymmetry > SYMMETRY_TOLERANCE * scale:
        raise InvalidSystemError(
            f"{name} is not symmetric: entries differ from their mirror image by up to {asymmetry:.3g}"
        )
    # Scaled to unit size first, so that very large and very small units do not overflow.
    smallest = np.linalg.eigvalsh(matrix / scale)[0] if scale > 0 else 0.0
    if smallest < -DEFINITENESS_TOLERANCE * len(matrix) or (definite and smallest <= 0):
        wanted = "positive definite" if definite else "positive semidefinite"
        raise InvalidSystemError(f"{name} is not {wanted}: its smallest eigenvalue is {smallest * scale:.3g}")


def _show(value: Any) -> str:
    text = np.array2string(value, threshold=16, precision=4) if isinstance(value, np.ndarray) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:117] + "..."


def _read_signal(name: str, value: Any) -> Array:
    if is_concrete(value):
        value = _read_concrete(name, value)
    return jnp.asarray(value, dtype=jnp.float64)
