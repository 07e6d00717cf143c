"""Training that survives: its state in one file, replaced at once, and taken up again exactly.

The arrays of the state lie in the file in the order of the tree; a fingerprint of everything that determines
the run (policy, class, options, seed) says whether a file belongs to it.
"""

import hashlib
import json
import pathlib
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lqgap.archives import read_arrays, write_arrays
from lqgap.errors import CorruptFileError, InvalidArgumentError

KIND = "checkpoint"
REMEDY = "remove it, and training starts again"


def fingerprint(*parts: Any) -> str:
    """A hash of arrays, keys and plain values."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(parts):
        if eqx.is_array(leaf):
            array = np.asarray(_plain(leaf))
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        else:
            digest.update(repr(leaf).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """The file of one training.

    Args:
        path: of the file.
        owner: the fingerprint of the training it belongs to.
    """

    path: pathlib.Path
    owner: str

    def save(self, state: Any, history: list[dict[str, float]]) -> None:
        """Write the arrays of a state; a reader sees the old file or the new one, never half of one."""
        leaves = jax.tree.leaves(state)
        arrays = {str(i): np.asarray(_plain(leaf)) for i, leaf in enumerate(leaves)}
        write_arrays(self.path, arrays, kind=KIND, text=json.dumps({"owner": self.owner, "history": history}))

    def load(self, like: Any) -> tuple[Any, list[dict[str, float]]] | None:
        """The state and history in the file, in the shape of another state; None if there is no file."""
        if not self.path.exists():
            return None
        arrays, text = read_arrays(self.path, kind=KIND, remedy=REMEDY)
        metadata = json.loads(text)
        if metadata["owner"] != self.owner:
            raise InvalidArgumentError(
                f"{self.path} is the checkpoint of another training (policy, class, options or key differ): "
                f"remove it, or give another folder"
            )
        leaves, structure = jax.tree.flatten(like)
        restored = []
        for i, leaf in enumerate(leaves):
            array = arrays.get(str(i))
            if array is None or array.shape != _plain(leaf).shape:
                raise CorruptFileError(f"{self.path} lacks array {i} of the training's state; {REMEDY}")
            restored.append(jnp.asarray(array, dtype=_plain(leaf).dtype))
        return jax.tree.unflatten(structure, restored), metadata["history"]


def _plain(leaf: Any) -> Any:
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf
