"""lqgap's vectorised environment for stable-baselines3, actions in [-1, 1] and u_{t-1} beside y_t."""

from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from lqgap.interop import LQGVectorEnv
from lqgap.simulators import Finite


class SideBySide(VecEnv):
    """All episodes begin and end together; there are no single environments to ask anything of."""

    def __init__(self, members: Finite, count: int, horizon: int):
        self.plants = LQGVectorEnv(members, num_envs=count, horizon=horizon, autoreset_mode="SameStep")
        self.scale = self.plants.single_action_space.high
        size = self.plants.single_observation_space.shape[0] + len(self.scale)
        super().__init__(
            count,
            gymnasium.spaces.Box(-np.inf, np.inf, (size,)),
            gymnasium.spaces.Box(-1.0, 1.0, self.scale.shape),
        )
        self.begin = np.zeros((count, len(self.scale)))

    def reset(self) -> np.ndarray:
        return np.concatenate([self.plants.reset(seed=self._seeds[0])[0], self.begin], axis=1)

    def step_async(self, actions: np.ndarray) -> None:
        self.chosen = np.asarray(actions, dtype=np.float64)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        y, reward, terminated, truncated, info = self.plants.step(self.chosen * self.scale)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in done]
        for index in np.flatnonzero(done):
            last = np.concatenate([info["final_obs"][index], self.chosen[index]])
            infos[index] = {"terminal_observation": last, "TimeLimit.truncated": bool(truncated[index])}
        last_input = np.where(done[:, None], 0.0, self.chosen)
        return np.concatenate([y, last_input], axis=1), reward, done, infos

    def close(self) -> None:
        self.plants.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:  # noqa: ARG002
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **options: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:  # noqa: ARG002
        return [False] * self.num_envs
