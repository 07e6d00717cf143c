"""A plant as a Gymnasium environment: a new member of a family each episode.

    env = LQGEnv(family, horizon=200)                        # or by its id, see below
    y, info = env.reset(seed=0)                              # y_0
    y, reward, terminated, truncated, info = env.step(u)     # y_1, -(y_0'Q y_0 + u_0'R u_0)

An episode has the steps 0..horizon; its rewards sum to minus the cost of that rollout. From version 1 on
Gymnasium has no plug-ins and knows an environment once its module is imported, which an id may ask for:
`gymnasium.make("lqgap.interop.environment:lqgap/LQG-v0", family=family)`.
"""

from typing import Any

import gymnasium
import numpy as np

from lqgap.arguments import IntLike, read_count
from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import MAX_HORIZON
from lqgap.interop.ensemble import Ensemble
from lqgap.interop.members import as_plants, read_family, read_fixed, read_seed
from lqgap.interop.spaces import make_spaces, read_bounds
from lqgap.policies.limits import LimitsLike

ENVIRONMENT_ID = "lqgap/LQG-v0"


class LQGEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """One plant at a time, drawn at each reset; `info` says which, what it cost and what input it received.

    `reset(options={"member": 3})` or `reset(options={"parameters": {"stiffness": 2.0}})` fixes the member of
    one episode. The episode is truncated after step `horizon`; it terminates only if numbers leave double
    precision.

    Args:
        family: a family or a finite class of simulators, one LQG, or the name of a built-in family.
        horizon: the last step of an episode, which has horizon + 1 steps.
        limits: (low, high), numbers or vectors: inputs are clipped to them, and they bound the space of
            actions. Without limits the plant takes any input, and the space of actions is five standard
            deviations of an optimal controller's input each way (see `lqgap.interop.spaces`). Where
            [-1, 1] is wanted, wrap: `gymnasium.wrappers.RescaleAction(env, -1.0, 1.0)`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self, family: Any = "mass_spring_damper", *, horizon: IntLike = 200, limits: LimitsLike = None
    ):
        self._members = read_family(family)
        self._ensemble, self.observation_space, self.action_space = make_ensemble(
            self._members, count=1, horizon=horizon, limits=limits
        )
        self._running = np.zeros(1, dtype=bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The first observation of a new episode; a seed fixes this episode and all that follow."""
        fixed = read_fixed(self._members, options)
        super().reset(seed=read_seed(seed))
        self._ensemble.seed(0, self.np_random)
        self._ensemble.start(np.array([0]), None if fixed is None else [fixed])
        self._running[:] = True
        return self._ensemble.y[0].copy(), self._describe()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """The next observation, and the reward of the last observation with this action."""
        if not self._running[0]:
            raise InvalidArgumentError("the episode is over or has not begun: call reset first")
        action = read_action(action, self.action_space)
        require_finite(action)
        step = self._ensemble.step(action[None], self._running)
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        self._running[0] = not (terminated or truncated)
        cost = float(step.cost[0])
        info = {"cost": cost, "input": step.u[0].copy(), **self._describe()}
        return self._ensemble.y[0].copy(), -cost, terminated, truncated, info

    def _describe(self) -> dict[str, Any]:
        ensemble = self._ensemble
        parameters = zip(self._members.names, ensemble.parameters[0].tolist(), strict=True)
        return {"member": int(ensemble.member[0]), "parameters": dict(parameters)}


def make_ensemble(
    members: Any, *, count: int, horizon: IntLike, limits: LimitsLike
) -> tuple[Ensemble, Any, Any]:
    """The plants of an environment, its space of observations and its space of actions."""
    horizon = read_count("horizon", horizon, least=0, most=MAX_HORIZON)
    examples = members.examples()
    bounds = read_bounds(limits, num_inputs=examples.num_inputs)
    observations, actions = make_spaces(examples, limits)
    ensemble = Ensemble(members, as_plants(examples), count=count, horizon=horizon, limits=bounds)
    return ensemble, observations, actions


def read_action(action: Any, space: Any) -> np.ndarray:
    """An action, or a row for each environment, as numbers."""
    try:
        numbers = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"action is {action!r}, expected numbers of shape {space.shape}") from None
    if numbers.shape != space.shape:
        raise InvalidArgumentError(f"action has shape {numbers.shape}, expected {space.shape}")
    return numbers


def require_finite(action: np.ndarray) -> None:
    """Raise for NaN and infinity."""
    if not np.isfinite(action).all():
        raise InvalidArgumentError(f"action is {action.tolist()}, expected finite numbers")


gymnasium.register(
    id=ENVIRONMENT_ID,
    entry_point="lqgap.interop.environment:LQGEnv",
    vector_entry_point="lqgap.interop.vector_environment:LQGVectorEnv",
)
