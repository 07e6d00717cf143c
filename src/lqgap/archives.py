"""Named arrays in one file, which is read whole or not at all.

A safetensors file with a kind, a text for whoever wrote it and a checksum of everything; nothing is
unpickled.
"""

import hashlib
import json
import os
from collections.abc import Mapping

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
        metadata = _metadata(content)
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
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True).encode()
    header += b" " * (-len(header) % 8)  # so that the arrays begin at a multiple of eight
    return len(header).to_bytes(8, "little") + header + content[8 + size :]


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
