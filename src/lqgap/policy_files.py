"""Policies in files: the arrays as they are, and a header that says how they fit together.

The header is a tree in JSON. A node is a class of a fixed list with its fields, a tuple, a plain value, or
the name of an array; a file can name nothing else, and nothing is unpickled. What is read must be able to
make a step.
"""

import dataclasses
import functools
import inspect
import json
import os
from collections.abc import Callable
from math import isfinite
from typing import Any, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lqgap import policies
from lqgap.archives import read_arrays, write_arrays
from lqgap.arguments import require_double_precision
from lqgap.errors import CorruptFileError, InvalidArgumentError
from lqgap.policies.bank import MODES
from lqgap.policies.policy import AbstractPolicy, require_policy

FORMAT = 3  # in 2 the shaping of a bank did not fade with doubt
KIND = "policy"
MAY_BE = {"log_prior": -np.inf, "log_weights": -np.inf, "excess": np.inf}
MAY_BE |= {"low": -np.inf, "high": np.inf, "rate": np.inf, "largest": np.inf}  # of limits and probes
NETWORKS = (eqx.nn.GRUCell, eqx.nn.Linear)
MAX_STEPS, MAX_LENGTH = 1_000_000, 100_000  # of plans and of vectors: what a constructor would refuse
SOUND: dict[str, Callable[[dict[str, Any]], bool]] = {  # plain values that no array gives away as forged
    "mode": lambda fields: fields["mode"] in MODES,
    "last_step": lambda fields: "mode" not in fields or (fields["last_step"] or 0) == len(fields["K"]) - 1,
    "steps": lambda fields: _is_count(fields["steps"], most=MAX_STEPS),
    "length": lambda fields: _is_count(fields["length"], most=MAX_LENGTH),
    "sizes": lambda fields: all(_is_count(size, most=MAX_LENGTH) for size in fields["sizes"]),
}


def save_policy(path: str | os.PathLike[str], policy: AbstractPolicy) -> None:
    """Write a policy of lqgap; a file in that place is replaced at once."""
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(require_policy("policy", policy), "policy", arrays)
    for name, array in arrays.items():
        if not _is_sound(name, array):
            raise InvalidArgumentError(f"{name} has entries that are NaN or infinite: it is not saved")
    write_arrays(path, arrays, kind=KIND, text=json.dumps({"format": FORMAT, "policy": tree}))


def can_save(policy: Any) -> TypeGuard[AbstractPolicy]:
    """Whether a file can hold a policy: one of lqgap's that is made of no other functions."""
    try:
        _encode(policy, "policy", {})
    except InvalidArgumentError:
        return False
    return isinstance(policy, AbstractPolicy)


def load_policy(path: str | os.PathLike[str]) -> AbstractPolicy:
    """The policy of a file, bit for bit as it was saved."""
    require_double_precision()
    arrays, text = read_arrays(path, kind=KIND)
    try:
        header = json.loads(text)
        if header["format"] != FORMAT:
            raise CorruptFileError(
                f"{os.fspath(path)} has the format {header['format']!r} of another version of lqgap, this "
                f"one reads {FORMAT}: make or train the policy anew, and save it"
            )
        for name, array in arrays.items():
            if not _is_sound(name, array):
                raise CorruptFileError(f"{os.fspath(path)}: {name} has entries that are NaN or infinite")
        policy = require_policy("it", _decode(header["policy"], arrays))
        _require_step(policy)
    except CorruptFileError:
        raise
    except Exception as error:  # a header that was forged fails in as many ways as it has fields
        raise CorruptFileError(f"{os.fspath(path)} does not make a policy: {error}") from None
    return policy


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    if eqx.is_array(value) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        arrays[name] = np.asarray(value)
        return {"array": name}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]}
    if _find_class(type(value).__name__) is type(value):
        names = [field.name for field in dataclasses.fields(value)]
        fields = {field: _encode(getattr(value, field), f"{name}.{field}", arrays) for field in names}
        return {"class": type(value).__name__, "fields": fields}
    if _is_plain(value):
        return {"value": value}
    raise InvalidArgumentError(
        f"{name} is a {type(value).__name__}, which a policy file cannot hold: it is for lqgap's policies"
    )


def _decode(node: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    ((kind, content),) = ((key, value) for key, value in node.items() if key != "fields")
    if kind == "array":
        return jax.device_put(arrays[content])  # no program for every shape
    if kind == "tuple":
        return tuple(_decode(item, arrays) for item in content)
    if kind == "value":
        if not _is_plain(content):
            raise ValueError(f"{content!r} is not a plain value")
        return content
    cls = _find_class(node["class"])
    if cls is None:
        raise ValueError(f"there is no policy {node['class']!r}")
    return _make(cls, {name: _decode(part, arrays) for name, part in node["fields"].items()})


def _make(cls: type, fields: dict[str, Any]) -> Any:
    """An object with these fields; its constructor would make them anew."""
    expected = {field.name for field in dataclasses.fields(cls)}
    if fields.keys() != expected:
        raise ValueError(f"{cls.__name__} has the fields {sorted(expected)}, the file {sorted(fields)}")
    for name, is_sound in SOUND.items():
        if name in fields and not is_sound(fields):
            raise ValueError(f"{cls.__name__} has {name} = {fields[name]!r}")
    made = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | str) or (type(value) is float and isfinite(value))


def _is_count(value: Any, *, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


@functools.cache
def _find_class(name: str) -> type | None:
    """The class that a file may mean by this name; learners are imported only where it is no other policy."""
    if found := _classes(policies).get(name):
        return found
    from lqgap import adaptive  # noqa: PLC0415

    return _classes(adaptive).get(name)


def _classes(package: Any) -> dict[str, type]:
    """What a file may name: the policies that a package of lqgap exports, and what is inside of them."""
    exported = [getattr(package, name) for name in package.__all__]
    ours = [cls for cls in exported if isinstance(cls, type) and issubclass(cls, AbstractPolicy)]
    inside = [part for cls in ours for part in cls.parts]
    return {cls.__name__: cls for cls in (*ours, *inside, *NETWORKS) if not inspect.isabstract(cls)}


def _is_sound(name: str, array: np.ndarray) -> bool:
    """Finite, but for logarithms of the probability zero, and what a controller costs that is unstable."""
    allowed = MAY_BE.get(name.rsplit(".", maxsplit=1)[-1], 0.0)
    return array.dtype.kind != "f" or bool(np.all(np.isfinite(array) | (array == allowed)))


def _require_step(policy: AbstractPolicy) -> None:
    """Raise unless the policy can make a step, which arrays that do not fit together cannot."""
    y, u = (jax.ShapeDtypeStruct((size,), float) for size in (policy.num_outputs, policy.num_inputs))
    step = jax.eval_shape(lambda y, u: policy.step(policy.init(jax.random.key(0)), y, u)[1], y, u)
    if step.shape != u.shape:
        raise ValueError(f"its inputs have the shape {step.shape}, expected {u.shape}")
