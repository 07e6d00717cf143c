"""Arrays as users hand them over: read, checked, and named in the error.

Values are checked when they are concrete; under tracing only shapes are, so that functions
that build systems can be jitted and differentiated.
"""

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, get_args, get_origin

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.core import Tracer
from jaxtyping import AbstractArray, Array, Bool, Float, PRNGKeyArray, Shaped, jaxtyped

from lqgap.errors import InvalidArgumentError, InvalidSystemError, PrecisionError

# What users may pass, for type checkers. At run time values are checked when they are read, so that the error
# names the argument and says what was expected.
if TYPE_CHECKING:
    IntLike = SupportsIndex
    FloatLike = float | np.floating | np.integer | Array
    ArrayLike = npt.ArrayLike | Array  # nested lists, NumPy or JAX arrays, also traced ones
    MatrixLike = ArrayLike
    KeysLike = PRNGKeyArray | Sequence[PRNGKeyArray]
else:
    IntLike = FloatLike = ArrayLike = MatrixLike = KeysLike = Any

METHODS = ("contains", "cover", "for_horizon", "invariants", "sample")  # for users more than for programs
SIZED = ("lqgap.systems.", "lqgap.identification.")  # packages of values that have the sizes of one plant
SYMMETRY_TOLERANCE = 1e-9  # relative to an entry
ROUNDING_TOLERANCE = 1e-13  # relative to the largest entry
SEMIDEFINITE_TOLERANCE = 1e-12  # times the size: negative eigenvalues that rounding may leave
DEFINITE_TOLERANCE = 4 * np.finfo(float).eps  # times the size: smaller eigenvalues are zero


def check_calls(package: dict[str, Any], *, besides: Sequence[str] = ()) -> None:
    """Have what a package lists check what users hand to it (`checked`): functions, constructors and METHODS.

    Modules import functions from each other's modules, where they are as they are written.
    """
    for name in set(package["__all__"]).difference(besides):
        thing = package[name]
        if inspect.isclass(thing):
            is_generated = getattr(vars(thing).get("__dataclass_params__"), "init", False)
            for method in {*METHODS, *(() if is_generated else ["__init__"])} & vars(thing).keys():
                setattr(thing, method, checked(vars(thing)[method]))
        elif callable(thing):
            package[name] = checked(thing)
            package[name].__module__ = package["__name__"]  # where `pickle` finds it


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which raises for arguments that are not of the types it declares.

    Flags, numbers, functions, arrays and what lqgap makes are told apart; axes of one name have one length.
    """
    signature = inspect.signature(function)
    kinds = {name: _kinds(parameter.annotation) for name, parameter in signature.parameters.items()}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # which says what is missing or unknown
        with jaxtyped("context"):  # which remembers the lengths of axes
            for name, value in given.arguments.items():
                given.arguments[name] = _read_as(kinds[name], name, value) if kinds[name] else value
        return function(*given.args, **given.kwargs)

    return call


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


def read_array(name: str, value: Any, *, num_axes: int) -> Float[Array, "..."]:
    """The value as a double-precision array with `num_axes` axes and, if known, finite entries."""
    return jnp.asarray(_read_finite(name, value, num_axes=num_axes), dtype=jnp.float64)


def read_numbers(name: str, value: Any) -> Any:
    """A NumPy array of doubles if the value is known, a traced JAX array of reals if not."""
    require_double_precision()
    library = np if is_concrete(value) else jnp
    try:
        # A masked entry is a lost one; nested lists may have traced entries.
        is_masked = isinstance(value, np.ma.MaskedArray)
        filled = np.ma.filled(value.astype(np.float64), np.nan) if is_masked else value
        array = library.asarray(filled)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidSystemError(f"{name} is not an array of numbers: {error}") from None
    if array.dtype.kind not in "iuf":
        raise InvalidSystemError(f"{name} holds {array.dtype} entries, expected real numbers: {_show(value)}")
    return array.astype(np.float64)


def read_vector(name: str, value: Any, *, size: int, why: str) -> Float[Array, " n"]:
    """A vector of the given length."""
    vector = read_array(name, value, num_axes=1)
    require_shape(name, vector, (size,), why=why)
    return vector


def read_square(name: str, value: Any) -> Float[Array, "n n"]:
    """A matrix with as many rows as columns."""
    matrix = read_array(name, value, num_axes=2)
    require_shape(name, matrix, (len(matrix), len(matrix)), why="it must be square")
    return matrix


def read_pair(A: Any, B: Any) -> tuple[Float[Array, "n n"], Float[Array, "n m"]]:
    """A square matrix A, and a matrix B with as many rows."""
    A, B = read_square("A", A), read_array("B", B, num_axes=2)
    require_shape("B", B, (len(A), B.shape[1]), why="it must have as many rows as A")
    return A, B


def read_symmetric(name: str, value: Any, *, size: int, why: str) -> Float[Array, "n n"]:
    """A symmetric matrix, made exactly so; one that is traced and turns out not to be symmetric is NaN."""
    matrix = _read_finite(name, value, num_axes=2)
    require_shape(name, matrix, (size, size), why=why)
    symmetric = jnp.asarray(0.5 * matrix + 0.5 * matrix.T, dtype=jnp.float64)
    if not is_concrete(matrix):
        return jnp.where(is_symmetric(matrix), symmetric, jnp.nan)
    if not is_symmetric(matrix):
        asymmetry = abs(matrix - matrix.T)
        raise InvalidSystemError(
            f"{name} is not symmetric: entries differ from their mirror image by up to {asymmetry.max():.3g}"
        )
    return symmetric


def read_covariance(name: str, value: Any, *, size: int, definite: bool, why: str) -> Float[Array, "n n"]:
    """A symmetric positive (semi)definite matrix; `None` means the identity."""
    value = np.eye(size) if value is None else value
    matrix = read_symmetric(name, value, size=size, why=why)
    if is_concrete(value):
        _require_definiteness(name, _read_finite(name, value, num_axes=2), definite=definite)
    return matrix


def is_symmetric(matrix: Any) -> Any:
    """True where a matrix, or each of a batch, known or traced, is symmetric but for rounding."""
    entries = abs(matrix)
    allowed = SYMMETRY_TOLERANCE * entries + ROUNDING_TOLERANCE * entries.max(axis=(-2, -1), keepdims=True)
    return (abs(matrix - matrix.mT) <= allowed).all(axis=(-2, -1))


def smallest_eigenvalue(matrix: Float[np.ndarray, "*batch n n"]) -> Float[np.ndarray, "*batch"]:
    """Relative to the largest entry, or in units in which the diagonal is one, where that is larger.

    Coordinates that nothing links, directly or through others, are matrices of their own.
    """
    matrix = np.asarray(matrix)
    linked = (matrix != 0) | np.eye(matrix.shape[-1], dtype=bool)
    for _ in range(matrix.shape[-1].bit_length()):
        linked = linked @ linked
    largest = np.max(linked * np.max(np.abs(matrix), axis=-1)[..., None, :], axis=-1)
    whole = _in_units(matrix, largest)  # first, so that extreme units do not overflow
    scaled = _in_units(whole, np.diagonal(whole, axis1=-2, axis2=-1))
    return np.asarray(np.maximum(np.linalg.eigvalsh(whole)[..., 0], np.linalg.eigvalsh(scaled)[..., 0]))


def is_definite(matrix: Float[np.ndarray, "*batch n n"], *, strictly: bool) -> Bool[np.ndarray, "*batch"]:
    """Whether symmetric matrices are positive definite, or semidefinite, but for rounding."""
    least = DEFINITE_TOLERANCE if strictly else -SEMIDEFINITE_TOLERANCE
    return np.asarray(smallest_eigenvalue(matrix) >= least * matrix.shape[-1])


def require_shape(name: str, value: Any, expected: tuple[int, ...], *, why: str) -> None:
    """Raise unless the array has the expected shape."""
    if value.shape != expected:
        raise InvalidSystemError(f"{name} has shape {value.shape}, expected {expected}: {why}")


def read_count(name: str, value: Any, *, least: int, most: int = 10_000) -> int:
    """A whole number from `least` to `most`; what is larger would not fit into memory."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidArgumentError(
            f"{name} is {_show(value)}, expected a whole number of at least {least}"
        ) from None
    if isinstance(value, bool) or not least <= count <= most:
        raise InvalidArgumentError(f"{name} is {value}, expected a whole number from {least} to {most}")
    return count


def read_list(name: str, value: Any) -> tuple[Any, ...]:
    """The entries of a list, of which there is at least one."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if not is_list or getattr(value, "shape", None) == () or not (items := tuple(value)):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected a list with at least one entry")
    return items


def read_indices(name: str, value: Any, *, below: int, least: int = 1) -> tuple[int, ...]:
    """Different whole numbers below a limit, such as those of inputs."""
    try:
        numbers = tuple(map(operator.index, value))
    except TypeError:
        numbers = (below,)
    if not set(numbers) <= set(range(below)) or len(set(numbers)) < max(len(numbers), least):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected different numbers below {below}")
    return numbers


def read_flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as such."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected True or False")
    return bool(value)


def read_positive(name: str, value: Any) -> Any:
    """A positive number, unchanged if traced."""
    if not is_concrete(value):
        return value
    number = read_numbers(name, value)
    if number.ndim != 0 or not (np.isfinite(number) and number > 0):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected a positive number")
    return float(number)


def read_not_negative(name: str, value: Any) -> float:
    """A finite number that is zero or positive."""
    number = read_numbers(name, value)
    if number.ndim != 0 or not (np.isfinite(number) and number >= 0):
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected a number that is not negative")
    return float(number)


def read_probability(name: str, value: Any) -> float:
    """A number between zero and one, both excluded."""
    number = read_numbers(name, value)
    if number.ndim != 0 or not 0 < number < 1:
        raise InvalidArgumentError(f"{name} is {_show(value)}, expected a probability between 0 and 1")
    return float(number)


def read_key(key: Any) -> Array:
    """A key of JAX's random numbers."""
    is_key = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not is_key or key.shape != ():
        shown = f"an array of shape {key.shape}" if isinstance(key, jax.Array) else _show(key)
        raise InvalidArgumentError(f"key is {shown}, expected one key, as jax.random.key(0) makes")
    return key


def read_keys(keys: Any) -> Array:
    """One or several keys of JAX's random numbers: an array of them, or a list."""
    is_array = isinstance(keys, jax.Array) and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    if is_array and keys.ndim == 1 and len(keys):
        return keys
    if is_array or not isinstance(keys, list | tuple) or not keys:
        raise InvalidArgumentError(f"keys is {_show(keys)}, expected keys, as jax.random.split makes")
    return jnp.stack([read_key(key) for key in keys])


def read_record(
    y: Any, u: Any, *, num_outputs: int, num_inputs: int
) -> tuple[Float[Array, "time output"], Float[Array, "time input"]]:
    """A record of observations and inputs of one length, as arrays; lost observations are NaN."""
    y, u = (read_numbers(name, value) for name, value in (("y", y), ("u", u)))
    for name, value, width, source in (
        ("y", y, num_outputs, "rows of C"),
        ("u", u, num_inputs, "columns of B"),
    ):
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
    return jnp.asarray(y, dtype=jnp.float64), jnp.asarray(u, dtype=jnp.float64)


def _in_units(matrix: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The matrix with its coordinates divided by the roots of these numbers, where they are positive."""
    root = np.sqrt(np.where(squares > 0, squares, 1))
    return matrix / root[..., :, None] / root[..., None, :]


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The types that a union consists of, or one alone; none where an argument cannot be checked by them."""
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    kinds = tuple(get_origin(kind) or kind for kind in kinds)
    return kinds if all(kind in KNOWN or _is_array(kind) or "lqgap." in str(kind) for kind in kinds) else ()


def _is_array(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, AbstractArray) and kind.dtype is Float


def _read_as(kinds: tuple[Any, ...], name: str, value: Any) -> Any:
    """The value, if it is of one of these kinds."""
    if value is None and NoneType in kinds:
        return value
    if kinds[0] in SCALARS:
        return SCALARS[kinds[0]](name, value)
    if _is_array(kinds[0]):
        is_array = isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating)
        array = value if is_array else jnp.asarray(read_numbers(name, value))
        _require_axes(name, array, kinds)
        return array
    if not isinstance(value, kinds):
        package, about = ".".join(kinds[0].__module__.split(".")[:2]), inspect.getdoc(kinds[0]) or ""
        wanted = f"an {package}.{kinds[0].__name__}: {about.splitlines()[0]}" if about else "a function"
        raise InvalidSystemError(f"{name} is a {type(value).__name__}, expected {wanted}")
    if name != "systems" and type(value).__module__.startswith(SIZED) and dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _require_axes(f"{name}.{field.name}", getattr(value, field.name), _kinds(field.type))
    return value


def _require_axes(name: str, value: Any, kinds: tuple[Any, ...]) -> None:
    """Raise unless the shape of an array is the declared one, with axes as long as those seen before."""
    for kind in filter(_is_array, kinds):
        if value is not None and not isinstance(value, cast(type, Shaped[Any, kind.dim_str])):
            raise InvalidSystemError(
                f"{name} has shape {value.shape}, expected ({', '.join(kind.dim_str.split())}), as the other "
                f"arguments have it: map the function over a batch with jax.vmap"
            )


def _read_finite(name: str, value: Any, *, num_axes: int) -> Any:
    array = read_numbers(name, value)
    if is_concrete(array) and not np.all(np.isfinite(array)):
        raise InvalidSystemError(f"{name} has entries that are NaN or infinite: {_show(array)}")
    if array.ndim != num_axes or 0 in array.shape:
        kind = {0: "a number", 1: "a vector", 2: "a matrix", 3: "a stack of matrices"}[num_axes]
        raise InvalidSystemError(f"{name} has shape {array.shape}, expected {kind} with at least one entry")
    return array


def _require_definiteness(name: str, matrix: np.ndarray, *, definite: bool) -> None:
    if not is_definite(matrix, strictly=definite):
        wanted = "positive definite" if definite else "positive semidefinite"
        size = np.max(np.abs(matrix)) or 1.0
        smallest = np.linalg.eigvalsh(matrix / size)[0] * size
        raise InvalidSystemError(f"{name} is not {wanted}: its smallest eigenvalue is {smallest:.3g}")


def _read_number(name: str, value: Any) -> Any:
    read_array(name, value, num_axes=0)
    return value


WHOLE = functools.partial(read_count, least=-(2**63), most=2**63)
SCALARS = {bool: read_flag, int: WHOLE, float: _read_number}
KNOWN = (*SCALARS, NoneType, Callable)


def _show(value: Any) -> str:
    is_array = isinstance(value, np.ndarray)
    text = np.array2string(value, threshold=16, precision=4) if is_array else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:117] + "..."
