"""Named arrays in one file, which is read whole or not at all.

A safetensors file with a kind, a text for whoever wrote it and a checksum of everything; nothing is
unpickled.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from lqgap.errors import CorruptFileError
from lqgap.files import read_bytes, write_bytes


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], *, kind: str, text: str
) -> None:
    """Write arrays and a text; a file in that place is replaced at once."""
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    metadata = {"lqgap": kind, "text": text, "checksum": _checksum(arrays, kind, text)}
    write_bytes(path, _in_order(safetensors.numpy.save(arrays, metadata)))


def read_arrays(
    path: str | os.PathLike[str], *, kind: str, remedy: str = ""
) -> tuple[dict[str, np.ndarray], str]:
    """The arrays and the text of a file of this kind.

    Args:
        remedy: what to do about a damaged file, for the error.
    """
    content, path, remedy = read_bytes(path), os.fspath(path), remedy and f"; {remedy}"
    try:
        metadata = _split(content)[0].get("__metadata__", {})  # which the reader of arrays does not hand out
        arrays = {name: np.array(array) for name, array in safetensors.numpy.load(content).items()}
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise CorruptFileError(f"{path} is damaged, or no {kind} file of lqgap: {error}{remedy}") from None
    if metadata.get("lqgap") != kind:
        found = metadata.get("lqgap", "something else")
        raise CorruptFileError(f"{path} is no {kind} file of lqgap, but {found}{remedy}")
    text = metadata.get("text", "")
    if metadata.get("checksum") != _checksum(arrays, kind, text):
        raise CorruptFileError(f"{path} is damaged: its checksum does not fit what it holds{remedy}")
    return arrays, text


def _in_order(content: bytes) -> bytes:
    """The same file with its header sorted: equal arrays and texts are equal files, byte for byte."""
    header, arrays = _split(content)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + arrays


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a file, and what follows it."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def _checksum(arrays: Mapping[str, np.ndarray], kind: str, text: str) -> str:
    digest = hashlib.sha256(f"{len(kind)} {kind} {len(text)} {text}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{len(name)} {name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
