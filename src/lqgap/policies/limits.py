"""What an actuator can do: every input is clipped to an interval."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import ArrayLike
from lqgap.errors import InvalidArgumentError

if TYPE_CHECKING:
    LimitsLike = tuple[ArrayLike, ArrayLike] | None  # (low, high), numbers or one number for each input
else:
    LimitsLike = Any


class Limits(eqx.Module):
    """The lowest and the highest value of each input."""

    low: Float[Array, " input"]
    high: Float[Array, " input"]

    def clip(self, u: Float[Array, " input"]) -> Float[Array, " input"]:
        """The input that the actuator makes of u."""
        return jnp.clip(u, self.low.astype(u.dtype), self.high.astype(u.dtype))


def read_limits(limits: LimitsLike, *, num_inputs: int) -> Limits:
    """(low, high), each a number or one number for each input; None for no limits."""
    if limits is None:
        limits = (-np.inf, np.inf)
    try:
        low, high = (np.broadcast_to(_numbers(limit), (num_inputs,)) for limit in limits)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"limits is {limits!r}, expected (low, high), each a number or {num_inputs} numbers"
        ) from None
    if not np.all(low <= high):
        raise InvalidArgumentError(f"limits is {limits!r}: a lower limit is not below the upper one")
    return Limits(low=jnp.asarray(low), high=jnp.asarray(high))


def _numbers(limit: Any) -> np.ndarray:
    array = np.asarray(limit)
    if array.dtype.kind not in "iuf":
        raise TypeError
    return array.astype(float)
