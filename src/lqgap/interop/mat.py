"""Plants in MAT files, for MATLAB and Octave: variables A, B, C, Q, R, W, V, S0, Qx, N and sampling_time.

A sampling time of zero, as in MATLAB, is continuous time: A, B and W are then what `discretize` takes.
A class of plants is stored with the member last, as MATLAB does: A(:,:,i) is the matrix of member i. A
matrix without that third axis is shared by all members. Files are of version 5, compressed, and end with
what they cannot do without, so that damage and loss are noticed.
"""

import functools
import io
import math
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy.io
import scipy.sparse

from lqgap.arguments import FloatLike, is_symmetric, read_positive, require_double_precision
from lqgap.errors import CorruptFileError, InvalidArgumentError, InvalidSystemError
from lqgap.files import read_bytes, read_path, write_bytes
from lqgap.interop.state_space import read_sampling_time, require_no_feedthrough
from lqgap.simulators import Finite
from lqgap.systems import LQG, discretize
from lqgap.systems.lqg import EXTENSIONS, MATRICES

NEEDED, SYMMETRIC = MATRICES[:3], MATRICES[3:]
MAX_SIZE = 2**28  # bytes of a file, and of what is inflated from it
PIECE = 2**20  # bytes that are inflated at a time
VERSION_5_HEADER, COMPRESSED = 128, 15  # bytes before the first element; the type of a compressed element


def save_mat(path: str | os.PathLike[str], plant: Any, *, sampling_time: FloatLike) -> None:
    """Write one LQG, a batch of them or a finite class; a file in that place is replaced at once."""
    systems = plant.systems if isinstance(plant, Finite) else plant
    if not isinstance(systems, LQG):
        raise InvalidArgumentError(
            f"plant is a {type(plant).__name__}, expected an LQG or a finite class: a family has members by "
            f".grid(points), .sample(count, key=key) or .cover(radius)"
        )
    variables: dict[str, Any] = {"sampling_time": read_sampling_time(sampling_time)}
    given = systems.matrices()
    for name in [name for name in (*EXTENSIONS, *SYMMETRIC, *NEEDED) if name in given]:
        matrix = np.asarray(given[name])
        variables[name] = np.moveaxis(matrix, 0, -1) if matrix.ndim == 3 else matrix
    content = io.BytesIO()
    scipy.io.savemat(content, variables, do_compression=True)
    write_bytes(path, content.getvalue())


def load_mat(
    path: str | os.PathLike[str], *, sampling_time: FloatLike | None = None, dt: FloatLike | None = None
) -> tuple[LQG, float]:
    """The plant, or the batch of plants, of a MAT file, and its sampling time.

    Q, R, W, V and S0 may be missing and are then the identity, as in `LQG`; Qx and N are zero.

    Args:
        sampling_time: for a file that has none.
        dt: how often to sample a file in continuous time, whose sampling_time is zero or missing.
    """
    path = read_path(path)
    variables = _read_variables(path)
    for name in NEEDED:
        if name not in variables:
            raise InvalidSystemError(f"{path} has no variable {name}: A, B and C are needed")
    try:
        require_no_feedthrough(variables.pop("D", 0.0))
        stored = variables.pop("sampling_time", None)
        if dt is None and not _is_zero(stored):
            return _make(variables), _read_sampling_time(stored, sampling_time)
        return _sample(_make(variables), _read_dt(stored, sampling_time, dt))
    except InvalidArgumentError as error:
        raise type(error)(f"{path}: {error}") from None


def _read_variables(path: Path) -> dict[str, np.ndarray]:
    wanted = [*NEEDED, *SYMMETRIC, *EXTENSIONS, "D", "sampling_time"]
    content = read_bytes(path, limit=MAX_SIZE)
    try:
        _verify_checksums(content)
        found = scipy.io.loadmat(io.BytesIO(content), variable_names=wanted)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{path} {error}") from None
    except NotImplementedError:
        raise InvalidArgumentError(
            f"{path} is a MAT file of version 7.3: save it in MATLAB by save(file, '-v7')"
        ) from None
    except Exception:  # a damaged file fails in as many ways as it has fields
        raise CorruptFileError(f"{path} is damaged, or no MAT file") from None
    return {name: _dense(path, name, found[name]) for name in wanted if name in found}


def _verify_checksums(content: bytes) -> None:
    """Raise if a compressed variable is damaged, also one that was skipped because its name is, or too large.

    What is inflated is dropped piece by piece: a small file may hold more than memory does.
    """
    position, order, left = VERSION_5_HEADER, "<" if content[126:128] == b"IM" else ">", MAX_SIZE
    while content[126:128] in (b"IM", b"MI") and position < len(content):
        kind, size = struct.unpack(f"{order}II", content[position : position + 8])
        packed, position = content[position + 8 : position + 8 + size], position + 8 + size
        inflater = zlib.decompressobj()
        while kind == COMPRESSED and not inflater.eof:
            piece = inflater.decompress(packed, PIECE)
            packed, left = inflater.unconsumed_tail, left - len(piece)
            if left < 0:
                raise InvalidArgumentError(
                    f"holds more than {MAX_SIZE / 2**20:g} MB once it is inflated, and is not read"
                )
            if not piece and not packed and not inflater.eof:
                raise ValueError("a compressed variable is cut off")


def _dense(path: Path, name: str, value: Any) -> np.ndarray:
    if not scipy.sparse.issparse(value):
        return np.asarray(value)
    if math.prod(value.shape) * 8 > MAX_SIZE:
        raise InvalidSystemError(f"{path}: {name} is sparse of shape {value.shape}, too large to be filled")
    return value.toarray()


def _read_sampling_time(stored: np.ndarray | None, given: Any) -> float:
    if stored is None and given is None:
        raise InvalidArgumentError(
            "there is no variable sampling_time: store it, or say load_mat(path, sampling_time=0.1)"
        )
    if stored is None:
        return read_sampling_time(given)
    read = read_sampling_time(stored.item() if stored.size == 1 else stored)
    if given is not None and read_sampling_time(given) != read:
        raise InvalidArgumentError(
            f"the file has sampling_time {read:g}, and {given} was given: leave the argument out"
        )
    return read


def _is_zero(stored: np.ndarray | None) -> bool:
    return stored is not None and stored.size == 1 and stored.dtype.kind in "iuf" and stored.item() == 0


def _read_dt(stored: np.ndarray | None, sampling_time: Any, dt: Any) -> float:
    """How often to sample a plant in continuous time."""
    if dt is None:
        raise InvalidArgumentError(
            "it is in continuous time (sampling_time is 0): say how often to sample it, as load_mat(dt=0.1)"
        )
    if sampling_time is not None or not (stored is None or _is_zero(stored)):
        raise InvalidArgumentError(f"dt is {dt}, and the plants are in steps already: leave it out")
    return float(read_positive("dt", dt))


def _sample(systems: LQG, dt: float) -> tuple[LQG, float]:
    sample = functools.partial(discretize, dt=dt)
    return (jax.vmap(sample) if systems.A.ndim == 3 else sample)(systems), dt


def _make(variables: Mapping[str, np.ndarray]) -> LQG:
    counts = {name: matrix.shape[2] for name, matrix in variables.items() if matrix.ndim == 3}
    if not counts:
        return LQG(**variables)
    if len(set(counts.values())) > 1:
        raise InvalidSystemError(f"the numbers of members differ: {counts}; the third axis counts them")
    require_double_precision()
    (count,) = set(counts.values())
    stacked = {name: _stack(name, matrix, count) for name, matrix in variables.items()}
    for name in {*SYMMETRIC, "Qx"} & set(stacked):
        _require_symmetric(name, stacked[name])
    return Finite(jax.vmap(lambda matrices: LQG(**matrices))(stacked)).systems


def _stack(name: str, matrix: np.ndarray, count: int) -> np.ndarray:
    """The matrix with the member first."""
    if matrix.dtype.kind not in "iuf":
        raise InvalidSystemError(f"{name} holds {matrix.dtype} entries, expected real numbers")
    if matrix.ndim not in (2, 3):
        raise InvalidSystemError(f"{name} has shape {matrix.shape}, expected (row, column, member)")
    matrix = matrix.astype(float)
    return np.moveaxis(matrix, -1, 0) if matrix.ndim == 3 else np.tile(matrix, (count, 1, 1))


def _require_symmetric(name: str, matrices: np.ndarray) -> None:
    if matrices.shape[1] != matrices.shape[2]:
        return  # the shape is judged where all sizes are known
    if not np.all(good := is_symmetric(matrices)):
        member = int(np.argmin(good))
        asymmetry = np.max(np.abs(matrices[member] - matrices[member].T))
        raise InvalidSystemError(
            f"{name} of member {member} is not symmetric: entries differ from their mirror image by up to "
            f"{asymmetry:.3g}"
        )
