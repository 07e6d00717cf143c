"""A policy with its memory, for a real loop: observation in, input out, one call a step.

    controller = Controller(policy, limits=(-10, 10))
    while True:
        plant.write(controller(plant.read()))

All that a loop may ask for is compiled when the controller is made, so that the first call, the first
reference and the first `reset` are as fast as the others. `save` and `restore` carry over what it knows
where a process has to start again: it goes on as before, to the bit.
"""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from lqgap.arguments import (
    ArrayLike,
    read_indices,
    read_key,
    read_numbers,
    require_double_precision,
)
from lqgap.errors import InvalidArgumentError, LqgapWarning, NotConvergedError
from lqgap.policies.limits import Limits, LimitsLike, read_limits
from lqgap.policies.policy import AbstractPolicy, Memory
from lqgap.policies.target import aim
from lqgap.states import fingerprint, read_state, strongly_typed, write_state

KIND = "controller"

WILD = 1e100  # no sensor shows more: what is beyond counts as lost


class Controller:
    """The stateful wrapper of a policy.

    Args:
        limits: (low, high) or (low, high, rate), numbers or vectors: inputs are clipped to them before they
            leave, and change by at most `rate` in a step.
        nan_is_lost: whether NaN in an observation is a lost component; by default it is an error, and a
            lost observation is None.
        follow: numbers of the outputs that references are given for: none, if left out. The policy then
            steers to where the plant, or each member of a bank, rests at the reference.
        key: for policies that draw random numbers.
        ends: whether the task ends where the policy does; without it, a policy with a horizon, which would
            stop a loop that goes on, is warned of.
        operating_point: (u0, y0), about which the plant is linear: the policy sees y - y0 and u - u0, and
            everything else, limits too, is in the real signals.
    """

    def __init__(
        self,
        policy: AbstractPolicy,
        *,
        limits: LimitsLike = None,
        nan_is_lost: bool = False,
        follow: Sequence[int] = (),
        key: PRNGKeyArray | None = None,
        ends: bool = False,
        operating_point: tuple[ArrayLike, ArrayLike] = (0.0, 0.0),
    ):
        self.policy = policy
        require_double_precision()
        key = jax.random.key(0) if key is None else read_key(key)
        self.nan_is_lost = nan_is_lost
        self._lost = np.full(policy.num_outputs, np.nan)
        self._last_step = np.inf if policy.horizon is None else policy.horizon
        if not ends and policy.horizon is not None:
            warnings.warn(
                f"the policy was made for steps 0..{policy.horizon}, and will raise an error at step "
                f"{policy.horizon + 1}: use one without a horizon (ModelBank(systems), or a study with "
                f"ends = false), or say ends=True if the task ends there",
                LqgapWarning,
                stacklevel=3,
            )
        sizes = (policy.num_inputs, policy.num_outputs)
        self._u0, self._y0 = _read_point(operating_point, sizes)
        self.follow = read_indices("follow", follow, below=policy.num_outputs, least=0)
        allowed = read_limits(limits, num_inputs=policy.num_inputs).about(self._u0)
        self._begin, self._step, self._aim = _compile(policy, key, allowed, self.follow)
        self._start(jax.random.key_data(key))
        self._step(self._leaves, self._lost, self._applied)
        if self.follow:
            self._aim_at(self._y0[list(self.follow)])

    @property
    def u_last(self) -> np.ndarray:
        """The input that counts as applied last; zeros at first."""
        return self._u_last + self._u0

    def reset(self, *, key: PRNGKeyArray | None = None) -> None:
        """Forget everything, as before the first observation; without a key, with new chance."""
        self._start(self._begin(self._key)[1] if key is None else jax.random.key_data(read_key(key)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that it has learned and remembers; a file in that place is replaced at once."""
        write_state(path, self._state, kind=KIND, owner=fingerprint(self.policy))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Go on from what `save` wrote, of a controller with the same policy."""
        state, _ = read_state(
            path,
            self._state,
            kind=KIND,
            owner=fingerprint(self.policy),
            refusal="of a controller with another policy",
        )
        self._leaves, self._applied, time, self._key = state
        self._u_last, self._time = np.array(self._applied), int(time)

    @property
    def _state(self) -> tuple[Any, ...]:
        return self._leaves, self._applied, np.asarray(self._time), self._key

    def _start(self, key: Array) -> None:
        self._key, self._leaves = key, self._begin(key)[0]
        self._u_last = np.zeros(self.policy.num_inputs)
        self._applied = jnp.asarray(self._u_last)
        self._time = 0

    def __call__(self, y: Any, *, reference: Any = None, applied: Any = None) -> np.ndarray:
        """The input for observation y (None if it was lost).

        Args:
            reference: where the outputs that are followed ought to be; left out, as before, the
                operating point at first.
            applied: what the plant received one step ago, where that is measured; by default, the input
                returned by the last call.
        """
        require_double_precision()
        if self._time > self._last_step:
            raise InvalidArgumentError(
                f"the policy was made for steps 0..{self._last_step}, and this is step {self._time}: reset "
                f"the controller, or use a policy without a horizon"
            )
        y = self._lost if y is None else self._read("y", y, len(self._lost), self.nan_is_lost) - self._y0
        u_last = self._applied  # what is given in its place counts for this step alone, if the step succeeds
        if applied is not None:
            u_last = jnp.asarray(self._read("applied", applied, len(self._u_last), False) - self._u0)
        leaves = self._leaves if reference is None else self._aim_at(reference)
        leaves, chosen = self._step(leaves, y, u_last)
        u = np.array(chosen)
        if not np.isfinite(u).all():
            raise NotConvergedError(
                f"the input at step {self._time} is not finite: {u.tolist()}; the loop has diverged"
            )
        self._leaves, self._applied, self._u_last, self._time = leaves, chosen, u, self._time + 1
        return u + self._u0

    def _aim_at(self, reference: Any) -> list[Array]:
        if not self.follow:
            raise InvalidArgumentError(
                "reference is given to a controller that follows no output: Controller(policy, follow=[0]) "
                "follows the first"
            )
        wanted = self._read("reference", reference, len(self.follow), False)
        return self._aim(self._leaves, wanted - self._y0[list(self.follow)])

    def __reduce__(self) -> Any:
        """Compiled code cannot be copied or pickled."""
        raise TypeError(
            "a Controller cannot be pickled or copied: keep its policy, and make a new one of it; save and "
            "restore carry over what it remembers"
        )

    def _read(self, name: str, value: Any, size: int, nan_allowed: bool) -> np.ndarray:
        vector = read_numbers(name, value)
        if vector.ndim == 0 and size == 1:
            vector = vector[None]
        if vector.shape != (size,):
            raise InvalidArgumentError(f"{name} has shape {vector.shape}, expected ({size},)")
        bad = np.isinf(vector) if nan_allowed else ~np.isfinite(vector)
        if bad.any():
            hint = (
                "; a lost observation is None, a lost component NaN with nan_is_lost=True"
                if name == "y"
                else ""
            )
            raise InvalidArgumentError(f"{name} at step {self._time} is not finite: {vector.tolist()}{hint}")
        if not (is_wild := np.abs(vector) > WILD).any():
            return vector
        if name == "y":
            return np.where(is_wild, np.nan, vector)
        raise InvalidArgumentError(
            f"{name} at step {self._time} is {vector.tolist()}: no plant receives that"
        )


def _read_point(point: Any, sizes: tuple[int, int]) -> list[np.ndarray]:
    try:
        values = [
            np.broadcast_to(np.asarray(x, dtype=float), (n,)) for x, n in zip(point, sizes, strict=True)
        ]
    except (TypeError, ValueError):
        values = []
    if not values or not all(np.isfinite(value).all() for value in values):
        raise InvalidArgumentError(f"operating_point is {point!r}, expected (u0, y0) with {sizes} numbers")
    return values


def _compile(policy: AbstractPolicy, key: PRNGKeyArray, limits: Limits, follow: Sequence[int]) -> Any:
    """The beginning, the step and the change of a reference, with the policy's own arrays as constants.

    The memory goes in and out as a list of plain arrays, keys too, and the input is handed on as it comes
    out: rebuilding types and moving arrays would take most of the time.
    """
    impl, rest = jax.random.key_impl(key), policy.rest(follow) if follow else None

    def start(key: PRNGKeyArray) -> Memory:
        memory = policy.init(key)
        return memory if rest is None else aim(memory, rest, jnp.zeros(len(follow)))

    def begin(key: Array) -> tuple[list[Array], Array]:
        typed = jax.random.wrap_key_data(key, impl=impl)
        return _flatten(start(typed)), jax.random.key_data(jax.random.split(typed)[0])

    def step(leaves: list[Array], y: Array, u_last: Array) -> tuple[list[Array], Array]:
        new_memory, u = policy.step(_unflatten(memory, leaves, impl), y, u_last)
        return _flatten(new_memory), limits.clip(u, u_last)

    def change(leaves: list[Array], reference: Array) -> list[Array]:
        return _flatten(aim(_unflatten(memory, leaves, impl), rest, reference)) if rest else leaves

    memory = jax.eval_shape(start, key)
    return jax.jit(begin), jax.jit(step), jax.jit(change)


def _flatten(memory: Memory) -> list[Array]:
    leaves = [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in jax.tree.leaves(memory)]
    return strongly_typed(leaves)


def _unflatten(template: Memory, leaves: list[Array], impl: Any) -> Memory:
    shapes, structure = jax.tree.flatten(template)
    typed = [
        jax.random.wrap_key_data(leaf, impl=impl) if _is_key(shape) else leaf
        for leaf, shape in zip(leaves, shapes, strict=True)
    ]
    return jax.tree.unflatten(structure, typed)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
