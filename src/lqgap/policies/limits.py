"""What an actuator can do: every input is clipped to an interval, and moves only so far in a step.

u_t  in  [low, high]  and  [u_{t-1} - rate, u_{t-1} + rate] ;   where they do not meet, the interval decides
"""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lqgap.arguments import ArrayLike
from lqgap.errors import InvalidArgumentError

if TYPE_CHECKING:
    # (low, high) or (low, high, rate), each a number or one number for each input
    LimitsLike = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike] | None
else:
    LimitsLike = Any


class Limits(eqx.Module):
    """The lowest and the highest value of each input, and its largest change in a step."""

    low: Float[Array, " input"]
    high: Float[Array, " input"]
    rate: Float[Array, " input"]

    def clip(self, u: Float[Array, " input"], u_last: Float[Array, " input"]) -> Float[Array, " input"]:
        """The input that the actuator makes of u, one step after it made u_last."""
        low, high, rate = (limit.astype(u.dtype) for limit in self.as_given)
        return jnp.clip(jnp.clip(u, u_last - rate, u_last + rate), low, high)

    def about(self, u0: Any) -> "Limits":
        """The limits of deviations from u0."""
        return Limits(self.low - u0, self.high - u0, self.rate)

    @property
    def as_given(self) -> tuple[Array, Array, Array]:
        """As functions take them: (low, high, rate)."""
        return self.low, self.high, self.rate

    @property
    def is_free(self) -> bool:
        """Whether nothing is limited."""
        return bool(np.all(np.isinf(np.stack(self.as_given))))


def read_limits(limits: LimitsLike, *, num_inputs: int) -> Limits:
    """(low, high) or (low, high, rate), each a number or one number for each input; None for no limits."""
    given = (-np.inf, np.inf) if limits is None else limits
    try:
        low, high, rate = (
            np.broadcast_to(_numbers(limit), (num_inputs,))
            for limit in (*given, *([np.inf] if len(given) == 2 else []))
        )
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"limits is {limits!r}, expected (low, high) or (low, high, rate), each a number or {num_inputs} "
            f"numbers"
        ) from None
    if not np.all(low <= high):
        raise InvalidArgumentError(f"limits is {limits!r}: a lower limit is not below the upper one")
    if not np.all(rate > 0):
        raise InvalidArgumentError(f"limits is {limits!r}: a rate, the change in a step, is not positive")
    return Limits(*map(jnp.asarray, (low, high, rate)))


def _numbers(limit: Any) -> np.ndarray:
    array = np.asarray(limit)
    if array.dtype.kind not in "iuf":
        raise TypeError
    return array.astype(float)
