"""Named arrays in one file, which is read whole or not at all.

A safetensors file with a kind, a text for whoever wrote it and a checksum of everything; nothing is
unpickled. It is written beside its place and moved there, so that a reader sees the old file or the new one.
"""

import contextlib
import hashlib
import json
import math
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from lqgap.errors import CorruptFileError, InvalidArgumentError


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *, kind: str, text: str
) -> None:
    """Write arrays and a text; a file in that place is replaced at once."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"lqgap": kind, "text": text, "checksum": _checksum(arrays, kind, text)}
    write_bytes(path, safetensors.numpy.save(arrays, metadata))


def read_arrays(path: str | os.PathLike[str], *, kind: str) -> tuple[dict[str, np.ndarray], str]:
    """The arrays and the text of a file of this kind."""
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be read: {error.strerror}") from None
    try:
        metadata = _metadata(content)
        arrays = {name: np.array(array) for name, array in safetensors.numpy.load(content).items()}
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise CorruptFileError(f"{path} is damaged, or no {kind} file of lqgap: {error}") from None
    if metadata.get("lqgap") != kind:
        found = metadata.get("lqgap", "something else")
        raise CorruptFileError(f"{path} is no {kind} file of lqgap, but {found}")
    text = metadata.get("text", "")
    if metadata.get("checksum") != _checksum(arrays, kind, text):
        raise CorruptFileError(f"{path} is damaged: its checksum does not fit what it holds")
    return arrays, text


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place and move it there; folders that are missing are made."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise InvalidArgumentError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def finite_or_text(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {key: finite_or_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite_or_text(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _metadata(content: bytes) -> dict[str, str]:
    """The texts in the header, which the reader of arrays does not hand out."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    return header.get("__metadata__", {})


def _checksum(arrays: Mapping[str, np.ndarray], kind: str, text: str) -> str:
    digest = hashlib.sha256(f"{len(kind)} {kind} {len(text)} {text}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{len(name)} {name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
