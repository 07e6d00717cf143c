"""Stable-baselines3 judges the environment and evaluates a policy: `python -m benchmarks.peers.check_env`.

Its checker's remarks are printed; a violation of its rules is an error. The mean reward of the optimal
controller in its `evaluate_policy` is compared with the exact cost.
"""

import warnings

import gymnasium
import numpy as np
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import lqgap
from lqgap.interop import LQGEnv, Predictor
from lqgap.policies import StationaryLQG

HORIZON = 50
NUM_ENVIRONMENTS = 8
NUM_EPISODES = 800


def main() -> None:
    """Check environments of several kinds, then evaluate."""
    lqgap.enable_x64()
    for name, env in environments().items():
        with warnings.catch_warnings(record=True) as remarks:
            warnings.simplefilter("always")
            check_env(env)
        print(f"{name}: passes, {len(remarks)} remarks")
        for remark in remarks:
            print(f"    {remark.message}")
    evaluate()


def environments() -> dict[str, gymnasium.Env]:
    family = lqgap.plants.mass_spring_damper()
    limited = gymnasium.make("lqgap/LQG-v0", family=family, limits=(-10.0, 10.0))
    return {
        "a family": LQGEnv(family),
        "a family with limits, made by Gymnasium": limited,
        "the same, actions rescaled to [-1, 1]": gymnasium.wrappers.RescaleAction(limited, -1.0, 1.0),
        "a finite class": LQGEnv(family.grid(2)),
        "one plant": LQGEnv(family.nominal()),
    }


def evaluate() -> None:
    """The optimal controller of a plant, in stable-baselines3's own evaluation."""
    plant = lqgap.plants.mass_spring_damper().nominal()
    policy = StationaryLQG(plant)
    makers = [lambda: Monitor(LQGEnv(plant, horizon=HORIZON)) for _ in range(NUM_ENVIRONMENTS)]
    envs = DummyVecEnv(makers)
    envs.seed(0)
    rewards, lengths = evaluate_policy(
        Predictor(policy), envs, n_eval_episodes=NUM_EPISODES, return_episode_rewards=True
    )
    assert set(lengths) == {HORIZON + 1}
    mean, error = -np.mean(rewards), np.std(rewards) / np.sqrt(len(rewards))
    exact = float(lqgap.exact_cost(policy, plant, horizon=HORIZON))
    print(f"evaluate_policy: mean cost {mean:.2f} +- {error:.2f}, exact cost {exact:.2f}")
    assert abs(mean - exact) <= 4 * error


if __name__ == "__main__":
    main()
