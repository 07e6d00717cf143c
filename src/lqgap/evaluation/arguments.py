"""Arguments of evaluations as users hand them over: read, checked, and named in the error."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lqgap.arguments import is_concrete, read_count
from lqgap.errors import InvalidArgumentError
from lqgap.policies import AbstractPolicy
from lqgap.simulators import Finite
from lqgap.simulators.finite import Members
from lqgap.systems import LQG

PRECISIONS = {"float64": jnp.float64, "float32": jnp.float32}
MAX_HORIZON = 10_000_000


def read_horizon(policy: Any, horizon: Any) -> int:
    """The last step of an evaluation, if the policy was made for it."""
    horizon = read_count("horizon", horizon, least=0, most=MAX_HORIZON)
    if policy.horizon is not None and horizon > policy.horizon:
        raise InvalidArgumentError(
            f"horizon is {horizon}, but the policy was made for steps 0..{policy.horizon}: make it for the "
            f"longer horizon, or without one"
        )
    return horizon


def read_systems(policy: AbstractPolicy, members: Members) -> LQG:
    """The plants of a finite class, a batched LQG or one LQG as one batch, of the policy's size."""
    systems = Finite.of(members).systems
    require_fit(policy, systems)
    return systems


def require_fit(policy: AbstractPolicy, plant: LQG) -> None:
    """Raise unless the policy has as many inputs and outputs as the plant."""
    sizes = [(item.num_inputs, item.num_outputs) for item in (policy, plant)]
    if sizes[0] != sizes[1]:
        raise InvalidArgumentError(
            f"the policy has (inputs, outputs) = {sizes[0]} and the plant {sizes[1]}: they do not fit"
        )


def read_precision(precision: Any) -> Any:
    """The type of number to compute with."""
    if precision not in tuple(PRECISIONS):
        raise InvalidArgumentError(f"precision is {precision!r}, expected 'float64' or 'float32'")
    return PRECISIONS[precision]


def cast(tree: Any, dtype: Any) -> Any:
    """A tree with its real arrays in another precision."""

    def change(leaf: Any) -> Any:
        is_weak = getattr(leaf, "weak_type", False)  # arrays of NumPy have no such thing
        if not eqx.is_inexact_array(leaf) or (leaf.dtype == dtype and not is_weak):
            return leaf
        # On the host there is nothing to compile for each shape.
        return jax.device_put(np.asarray(leaf).astype(dtype)) if is_concrete(leaf) else leaf.astype(dtype)

    return jax.tree.map(change, tree)
