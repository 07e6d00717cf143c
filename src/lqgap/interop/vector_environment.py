"""Many environments at once, in one NumPy step for all.

    envs = gymnasium.make_vec("lqgap.interop.environment:lqgap/LQG-v0", num_envs=64, family=family)

Environment i is the `LQGEnv` of seed + i, number by number. What happens when an episode ends is declared in
`metadata["autoreset_mode"]`, as Gymnasium defines it: the next step resets and takes no action (NEXT_STEP),
the same step resets and keeps the last observation in `info["final_obs"]` (SAME_STEP), or nothing happens
(DISABLED).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from lqgap.arguments import IntLike, read_count, read_list
from lqgap.errors import InvalidArgumentError
from lqgap.interop.environment import make_ensemble, read_action, require_finite
from lqgap.interop.members import DrawnMembers, read_family, read_fixed, read_seed
from lqgap.policies.limits import LimitsLike

MAX_ENVIRONMENTS = 1_000_000


class LQGVectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Independent environments with plants of one class, each drawn anew at each of its episodes.

    `reset(options={"member": ...})` or `{"parameters": ...}` fixes members for one episode, one for all or a
    list with one for each; `options={"reset_mask": mask}` resets only some.

    Args:
        family, horizon, limits: as for `LQGEnv`.
        autoreset_mode: "NextStep", "SameStep" or "Disabled".
    """

    def __init__(
        self,
        family: Any = "mass_spring_damper",
        *,
        num_envs: IntLike = 1,
        horizon: IntLike = 200,
        limits: LimitsLike = None,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
    ):
        self.num_envs = read_count("num_envs", num_envs, least=1, most=MAX_ENVIRONMENTS)
        self._mode = _read_mode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self._mode}
        self._members = read_family(family)
        self._ensemble, self.single_observation_space, self.single_action_space = make_ensemble(
            self._members, count=self.num_envs, horizon=horizon, limits=limits
        )
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[Any] = [None] * self.num_envs
        self._over = np.ones(self.num_envs, dtype=bool)
        self._has_begun = False

    @property
    def np_random(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The generators of all environments."""
        return tuple(self._generators)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The first observations of new episodes; with an integer seed, environment i has seed + i."""
        seeds = _read_seeds(seed, self.num_envs)
        which, options = self._read_mask(options)
        fixed = self._read_fixed(options, which)
        for index in which:
            if seeds[index] is not None or self._generators[index] is None:
                self._generators[index], _ = seeding.np_random(seeds[index])
            self._ensemble.seed(int(index), self._generators[index])
        self._ensemble.start(which, fixed)
        self._over[which] = False
        self._has_begun = True
        mask = np.zeros(self.num_envs, dtype=bool)
        mask[which] = True
        return self._ensemble.y.copy(), self._describe(mask)

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of all environments; where an episode has ended, as the autoreset mode says."""
        starting = self._require_ready()
        running = ~starting
        actions = read_action(actions, self.action_space)
        require_finite(actions[running])  # where an episode starts, an action may be anything
        step = self._ensemble.step(actions, running)
        terminated, truncated = step.terminated, step.truncated
        self._over = terminated | truncated
        details = {"cost": step.cost, "input": step.u}
        if self._mode is AutoresetMode.SAME_STEP and self._over.any():
            over = self._over
            infos = self._report_finals(over, details)
            self._restart(over)
            infos.update(_masked(details, ~over), **self._describe(np.ones_like(over)))
            self._over = np.zeros_like(over)
        else:
            self._restart(starting)
            infos = {**_masked(details, running), **self._describe(np.ones_like(running))}
        rewards = np.where(running, -step.cost, 0.0)
        return self._ensemble.y.copy(), rewards, terminated, truncated, infos

    def _require_ready(self) -> np.ndarray:
        """Which environments start at this step instead of moving."""
        if not self._has_begun:
            raise InvalidArgumentError("no episode has begun: call reset first")
        if self._mode is AutoresetMode.DISABLED and self._over.any():
            raise InvalidArgumentError(
                f"the episodes of environments {np.flatnonzero(self._over).tolist()} are over: reset them "
                f"by options={{'reset_mask': mask}}"
            )
        return self._over.copy()

    def _restart(self, which: np.ndarray) -> None:
        if which.any():
            self._ensemble.start(np.flatnonzero(which))

    def _describe(self, mask: np.ndarray) -> dict[str, Any]:
        table = self._ensemble.parameters
        parameters = {name: table[:, column] for column, name in enumerate(self._members.names)}
        about = {"member": self._ensemble.member}
        return {**_masked(about, mask), "parameters": _masked(parameters, mask), "_parameters": mask.copy()}

    def _report_finals(self, over: np.ndarray, details: dict[str, np.ndarray]) -> dict[str, Any]:
        """The last observation and information of episodes that end, before others begin in their place."""
        final = np.full(self.num_envs, None, dtype=object)
        for index in np.flatnonzero(over):
            final[index] = self._ensemble.y[index].copy()
        info = {**_masked(details, over), **self._describe(over)}
        return {"final_obs": final, "_final_obs": over.copy(), "final_info": info, "_final_info": over.copy()}

    def _read_mask(self, options: Any) -> tuple[np.ndarray, Any]:
        if not isinstance(options, Mapping) or "reset_mask" not in options:
            return np.arange(self.num_envs), options
        mask = options["reset_mask"]
        if np.shape(mask) != (self.num_envs,) or np.asarray(mask).dtype != bool or not np.any(mask):
            raise InvalidArgumentError(
                f"options has reset_mask = {mask!r}, expected {self.num_envs} truth values, at least one true"
            )
        others = {name: value for name, value in options.items() if name != "reset_mask"}
        if not self._has_begun and not np.all(mask):
            raise InvalidArgumentError("no episode has begun: reset all environments first")
        return np.flatnonzero(mask), others

    def _read_fixed(self, options: Any, which: np.ndarray) -> list[DrawnMembers] | None:
        """A member for each environment that is reset."""
        if options is None:
            return None
        if isinstance(options, Mapping) and len(options) == 1:
            ((name, value),) = options.items()
            if isinstance(value, list | tuple | np.ndarray):
                if len(value) != self.num_envs:
                    raise InvalidArgumentError(
                        f"options has {len(value)} of {name}, expected one for each of {self.num_envs}"
                    )
                fixed = [read_fixed(self._members, {name: value[index]}) for index in which]
                return [member for member in fixed if member is not None]
        member = read_fixed(self._members, options)
        return None if member is None else [member] * len(which)


def _masked(arrays: Mapping[str, np.ndarray], mask: np.ndarray) -> dict[str, Any]:
    """Arrays as Gymnasium reports them: zero where an environment has nothing to report, and a mask."""
    report: dict[str, Any] = {}
    if not mask.any():
        return report
    for name, array in arrays.items():
        shape = (-1,) + (1,) * (array.ndim - 1)
        report[name] = np.where(mask.reshape(shape), array, np.zeros_like(array))
        report[f"_{name}"] = mask.copy()
    return report


def _read_mode(mode: Any) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        names = ", ".join(repr(each.value) for each in AutoresetMode)
        raise InvalidArgumentError(f"autoreset_mode is {mode!r}, expected one of {names}") from None


def _read_seeds(seed: Any, count: int) -> list[Any]:
    if seed is None:
        return [None] * count
    if isinstance(seed, int | np.integer):
        return [read_seed(seed + index) for index in range(count)]
    seeds = [read_seed(each) for each in read_list("seed", seed)]
    if len(seeds) != count:
        raise InvalidArgumentError(f"seed has {len(seeds)} entries, expected one for each of {count}")
    return seeds
