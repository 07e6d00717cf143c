"""The state of something that goes on: of lasting types, and in a file, taken up by what it belongs to alone.

The arrays of a pytree lie in the file in the order of its leaves; the fingerprint of the owner, which is all
that determines what the state means, says whether a file belongs to it.
"""

import hashlib
import json
import os
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lqgap.archives import read_arrays, write_arrays
from lqgap.errors import CorruptFileError, InvalidArgumentError


def strongly_typed(state: Any) -> Any:
    """The same arrays. A weakly typed one, as of a Python number, takes another type in some step, for which
    a program would be compiled again.
    """
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype), state)


def fingerprint(*parts: Any) -> str:
    """A hash of pytrees: of their structure, arrays, keys and plain values; the same in every process."""
    leaves, structure = jax.tree.flatten(parts)
    digest = hashlib.sha256(_lasting(structure))
    for leaf in leaves:
        if eqx.is_array(leaf):
            array = np.asarray(_plain(leaf))
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        else:
            digest.update(_lasting(leaf))
    return digest.hexdigest()


def write_state(path: str | os.PathLike[str], state: Any, *, kind: str, owner: str, note: Any = None) -> None:
    """Write the arrays of a state; a reader sees the old file or the new one, never half of one.

    Args:
        kind: of file.
        owner: the fingerprint of what the state belongs to.
        note: plain values that go with it.
    """
    arrays = {str(i): np.asarray(_plain(leaf)) for i, leaf in enumerate(jax.tree.leaves(state))}
    write_arrays(path, arrays, kind=kind, text=json.dumps({"owner": owner, "note": note}))


def read_state(
    path: str | os.PathLike[str], like: Any, *, kind: str, owner: str, refusal: str, remedy: str = ""
) -> tuple[Any, Any]:
    """The state of a file, in the shape of another one, and the note.

    Args:
        refusal: what a file of another owner is.
        remedy: what to do about a damaged file.
    """
    arrays, text = read_arrays(path, kind=kind, remedy=remedy)
    try:
        told = json.loads(text)
        written_by, note = told["owner"], told["note"]
    except (ValueError, TypeError, KeyError):
        raise CorruptFileError(f"{os.fspath(path)} does not say whose state it is") from None
    if written_by != owner:
        raise InvalidArgumentError(f"{os.fspath(path)} is {refusal}")
    leaves, structure = jax.tree.flatten(like)
    restored = []
    for i, leaf in enumerate(leaves):
        array, expected = arrays.get(str(i)), _plain(leaf)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            raise CorruptFileError(
                f"{os.fspath(path)} lacks array {i} of the state{remedy and f'; {remedy}'}"
            )
        restored.append(jnp.asarray(array, dtype=expected.dtype))
    return jax.tree.unflatten(structure, restored), note


def _lasting(value: Any) -> bytes:
    """What is printed of a value, without its address in memory, which is another one in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value)).encode()


def _plain(leaf: Any) -> Any:
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
