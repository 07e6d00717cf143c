"""Stable-baselines3's PPO under domain randomisation against robust training, on the demo's 25 springs.

Equal information: every policy sees y and the inputs it has applied, and trains on the same class with as
many simulations as it likes; PPO draws a new member each episode from lqgap's vectorised environment, which
steps in NumPy. It remembers by a stack of frames, or by an LSTM (sb3-contrib). Every setting has the same
budget, and all are shown. Every policy is then judged on the same plants and noise by the exact identity

    gap = E sum_t (u_t + K_t xhat_t)' M_t (u_t + K_t xhat_t) ,

with the filter and gains of each member's own optimal controller. Costs are CPU seconds of all threads.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.peers import peer
from lqgap.policies import AbstractPolicy, ModelBank
from lqgap.simulators import Finite

NUM_ENVIRONMENTS = 64
LOG_STD = -1.5  # first exploration, about one standard deviation of an optimal input: actions reach to five

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]  # from (run, output) and the last (run, input)


class Setting(NamedTuple):
    """How PPO is set; no frames: it is recurrent."""

    frames: int
    learning_rate: float
    gamma: float
    hidden: tuple[int, ...] = (64, 64)

    def __str__(self) -> str:
        memory = f"{self.frames} frames" if self.frames else "LSTM"
        layers = " x ".join(map(str, self.hidden)) or "linear"
        return f"{memory}, {layers}, rate {self.learning_rate:g}, gamma {self.gamma:g}"


SETTINGS = (
    Setting(8, 3e-4, 0.9),
    Setting(8, 1e-3, 0.9, hidden=()),
    Setting(0, 1e-3, 0.9),
)
METHODS = {"domain randomisation": lg.train_randomized, "robust training": lg.train_robust}


def run(
    *,
    seconds: float = 180.0,
    num_rollouts: int = 512,
    points: int = 5,
    horizon: int = 200,
    methods: Mapping[str, Callable[..., Any]] = METHODS,
) -> str:
    """Train all, judge all."""
    members = lg.plants.mass_spring_damper().grid(points)
    judge = Judge(members, horizon, num_rollouts)
    gaps, costs = {}, {}
    bank = ModelBank(members.systems, horizon=horizon)
    gaps["untrained bank"], costs["untrained bank"] = judge(of_policy(bank, judge.num_runs)), 0.0
    for name, train in methods.items():
        start = time.process_time()
        policy = train(bank, members, horizon=horizon, key=jax.random.key(0)).policy
        costs[name] = time.process_time() - start
        gaps[name] = judge(of_policy(policy, judge.num_runs))
    best = min(each.max() for each in gaps.values())
    rows = [["lqgap", name, f"{costs[name]:.0f} s", "", *_cells(gaps[name], best)] for name in gaps]
    rows += [_row(setting, members, judge, seconds, best) for setting in SETTINGS]
    return peer.section(
        "training",
        "training for a mass on a spring",
        f"Mass on a spring, {len(members)} plants, {horizon + 1} steps. PPO of stable-baselines3 and "
        f"recurrent PPO of sb3-contrib with a budget of {seconds:.0f} CPU seconds for each setting (rewards "
        f"and observations normalised, {NUM_ENVIRONMENTS} environments side by side, one thread); ours take "
        f"the time they take, with compilation. Gaps are judged on {num_rollouts} runs of every plant, "
        "whose noise all share.",
        ["by", "method", "CPU time", "steps", "worst gap", "mean gap", "worst gap, of our best"],
        rows,
    )


class Judge:
    """Mean gaps on every member, on noise that is the same for all who are judged."""

    def __init__(self, members: Finite, horizon: int, num_rollouts: int):
        plants = members.systems
        finite = jax.vmap(lambda plant: lg.solve_finite(plant, horizon=horizon))(plants)
        self.horizon, self.num_rollouts, self.num_runs = horizon, num_rollouts, len(members) * num_rollouts
        self.A, self.B, self.C, self.K, self.M, self.L = (
            np.asarray(X) for X in (plants.A, plants.B, plants.C, finite.K, finite.M, finite.L)
        )
        self.roots = [np.linalg.cholesky(np.asarray(X)) for X in (plants.S0, plants.W, plants.V)]

    def __call__(self, act: Act) -> np.ndarray:
        rng = np.random.default_rng(1)

        def noise(root: np.ndarray) -> np.ndarray:
            return rng.normal(size=(self.num_rollouts, root.shape[-1])) @ root.mT

        members, _, m = self.B.shape
        x, predicted = noise(self.roots[0]), 0.0
        u, excess = np.zeros((members, self.num_rollouts, m)), 0.0
        for t in range(self.horizon + 1):
            y = x @ self.C.mT + noise(self.roots[2])
            xhat = predicted + (y - predicted @ self.C.mT if t else y) @ self.L[:, t].mT
            u = act(y.reshape(self.num_runs, -1), u.reshape(self.num_runs, -1)).reshape(u.shape)
            error = u + xhat @ self.K[:, t].mT
            excess = excess + np.sum(error @ self.M[:, t] * error, axis=-1)
            predicted = xhat @ self.A.mT + u @ self.B.mT
            x = x @ self.A.mT + u @ self.B.mT + noise(self.roots[1])
        return np.mean(excess, axis=1)


def of_policy(policy: AbstractPolicy, num_runs: int) -> Act:
    """A policy of lqgap as an actor."""
    memory = jax.vmap(policy.init)(jax.random.split(jax.random.key(0), num_runs))
    step = jax.jit(jax.vmap(policy.step))

    def act(y: np.ndarray, u: np.ndarray) -> np.ndarray:
        nonlocal memory
        memory, chosen = step(memory, jnp.asarray(y), jnp.asarray(u))
        return np.asarray(chosen)

    return act


def _row(setting: Setting, members: Finite, judge: Judge, seconds: float, best: float) -> list[str]:
    library = "stable_baselines3" if setting.frames else "sb3_contrib"
    name = peer.name(library)
    if reason := peer.absence(library):
        return [name, str(setting), reason]
    model, spent = _train(setting, members, judge.horizon, seconds)
    gaps = judge(_of_model(model, setting, judge.num_runs))
    return [name, str(setting), f"{spent:.0f} s", f"{model.num_timesteps / 1e6:.2g} M", *_cells(gaps, best)]


def _cells(gaps: np.ndarray, best: float) -> list[str]:
    return [f"{gaps.max():.1f}", f"{gaps.mean():.1f}", peer.ratio(gaps.max(), best)]


def _train(setting: Setting, members: Finite, horizon: int, seconds: float) -> tuple[Any, float]:
    """The trained model, and the CPU seconds it took."""
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

    from benchmarks.peers.side_by_side import SideBySide

    torch.set_num_threads(1)
    plants = VecNormalize(SideBySide(members, NUM_ENVIRONMENTS, horizon), gamma=setting.gamma)
    options: dict[str, Any] = dict(
        learning_rate=setting.learning_rate,
        gamma=setting.gamma,
        n_steps=horizon + 1,
        batch_size=NUM_ENVIRONMENTS * (horizon + 1) // 12,
        seed=0,
        device="cpu",
    )
    policy = dict(net_arch=dict(pi=list(setting.hidden), vf=[64, 64]), log_std_init=LOG_STD)
    if setting.frames:
        model: Any = PPO("MlpPolicy", VecFrameStack(plants, setting.frames), policy_kwargs=policy, **options)
    else:
        model = RecurrentPPO(
            "MlpLstmPolicy", plants, policy_kwargs=policy | dict(lstm_hidden_size=64), **options
        )
    start = time.process_time()
    while time.process_time() - start < seconds:
        model.learn(NUM_ENVIRONMENTS * (horizon + 1), reset_num_timesteps=False)
    return model, time.process_time() - start


def _of_model(model: Any, setting: Setting, num_runs: int) -> Act:
    """A model of stable-baselines3 as an actor, with its own frames or state."""
    normalize = model.get_vec_normalize_env()
    scale = normalize.venv.scale
    seen = np.zeros((num_runs, setting.frames, normalize.observation_space.shape[0]))
    state, is_first = None, np.ones(num_runs, dtype=bool)

    def act(y: np.ndarray, u: np.ndarray) -> np.ndarray:
        nonlocal seen, state, is_first
        now = normalize.normalize_obs(np.concatenate([y, u / scale], axis=1))
        if setting.frames:
            seen = np.concatenate([seen[:, 1:], now[:, None]], axis=1)
            now = seen.reshape(num_runs, -1)
        chosen, state = model.predict(now, state=state, episode_start=is_first, deterministic=True)
        is_first = np.zeros(num_runs, dtype=bool)
        return chosen * scale

    return act
