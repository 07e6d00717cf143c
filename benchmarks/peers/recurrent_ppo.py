"""Recurrent PPO under domain randomisation against robust training.

    python -m benchmarks.peers.recurrent_ppo        # needs the `peers` extra

Both see the same class of 25 springs; the peer through the Gymnasium environment, with the thread setting
that steps fastest here. Its gap is the mean cost of its episodes less the optimal one, on every member.
"""

import argparse
import time

import jax
import numpy as np
import torch
from sb3_contrib import RecurrentPPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import lqgap as lg
from lqgap.interop import LQGEnv
from lqgap.policies import ModelBank
from lqgap.simulators import Finite

HORIZON = 200
NUM_ENVIRONMENTS = 16
NUM_EPISODES = 64  # of every member, for the peer's gap
THREADS = (1, 2)


def main() -> None:
    """Train both, judge both, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=434.0, help="of the peer's training")
    seconds = parser.parse_args().seconds
    lg.enable_x64()
    members = lg.plants.mass_spring_damper().grid(5)

    start = time.perf_counter()
    bank = ModelBank(members.systems, horizon=HORIZON)
    ours = lg.train_robust(bank, members, horizon=HORIZON, key=jax.random.key(0)).policy
    our_seconds = time.perf_counter() - start
    estimate = lg.gap(ours, members, horizon=HORIZON, key=jax.random.key(99), num_rollouts=4096)
    print(
        f"robust training: worst gap {estimate.worst:.1f}, mean {estimate.average:.1f}, {our_seconds:.0f} s"
    )

    rates = {count: _steps_per_second(members, count) for count in THREADS}
    threads = max(rates, key=lambda count: rates[count])
    print(f"peer, steps per second by threads: {rates}; using {threads}")
    gaps, peer_seconds = peer(members, threads=threads, seconds=seconds, optimal=estimate.value)
    print(
        f"recurrent PPO: worst gap {gaps.max():.0f}, mean {gaps.mean():.0f}, {peer_seconds:.0f} s; "
        f"worst gap {gaps.max() / estimate.worst:.1f}x ours, time {peer_seconds / our_seconds:.1f}x ours"
    )


def peer(members: Finite, *, threads: int, seconds: float, optimal: np.ndarray) -> tuple[np.ndarray, float]:
    """Gaps of the peer on every member, and how long it trained."""
    torch.set_num_threads(threads)
    model = _model(members)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        model.learn(NUM_ENVIRONMENTS * (HORIZON + 1) * 4, reset_num_timesteps=False)
    spent = time.perf_counter() - start
    return _costs(model, members) - optimal, spent


def _model(members: Finite) -> RecurrentPPO:
    environments = DummyVecEnv([lambda: LQGEnv(members, horizon=HORIZON) for _ in range(NUM_ENVIRONMENTS)])
    normalized = VecNormalize(environments, norm_obs=True, norm_reward=True, gamma=0.99)
    return RecurrentPPO("MlpLstmPolicy", normalized, n_steps=HORIZON + 1, batch_size=512, seed=0)


def _steps_per_second(members: Finite, threads: int) -> float:
    torch.set_num_threads(threads)
    model = _model(members)
    start = time.perf_counter()
    model.learn(NUM_ENVIRONMENTS * (HORIZON + 1) * 2)
    return round(model.num_timesteps / (time.perf_counter() - start))


def _costs(model: RecurrentPPO, members: Finite) -> np.ndarray:
    """Mean cost of an episode on every member, all of whose environments run side by side."""
    costs = []
    normalize = model.get_vec_normalize_env()
    for member in range(len(members)):
        only = members.subset([member])
        raw = DummyVecEnv([lambda only=only: LQGEnv(only, horizon=HORIZON) for _ in range(NUM_EPISODES)])
        raw.seed(1)
        y, total = raw.reset(), np.zeros(NUM_EPISODES)
        state, is_first = None, np.ones(NUM_EPISODES, dtype=bool)
        for _ in range(HORIZON + 1):
            seen = normalize.normalize_obs(y)
            u, state = model.predict(seen, state=state, episode_start=is_first, deterministic=True)
            y, reward, _, _ = raw.step(u)
            total -= reward
            is_first = np.zeros(NUM_EPISODES, dtype=bool)
        costs.append(total.mean())
    return np.asarray(costs)


if __name__ == "__main__":
    main()
