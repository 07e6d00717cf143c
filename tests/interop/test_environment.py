import copy
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from random_systems import random_plant
from springs import FAMILY, grid

import lqgap
from lqgap.interop import LQGEnv
from lqgap.policies import Controller, StationaryLQG

# Gymnasium would like bounded observations; with Gaussian noise there are none.
UNBOUNDED = "ignore:.*A Box observation space m:UserWarning"


def play(env, *, steps=6, **reset):
    """Observations, rewards and members of an episode with fixed actions."""
    y, info = env.reset(**reset)
    seen, rewards = [y], []
    for time in range(steps):
        y, reward, _, _, _ = env.step(np.full(env.action_space.shape, 0.1 * time))
        seen.append(y)
        rewards.append(reward)
    return np.array(seen), np.array(rewards), (info["member"], info["parameters"])


@pytest.mark.filterwarnings(UNBOUNDED)
@pytest.mark.parametrize("name", ["family", "class", "plant"])
def test_gymnasium_finds_nothing_to_object_to(name):
    family = {"family": FAMILY, "class": grid(2), "plant": random_plant(0)}[name]
    check_env(gymnasium.make("lqgap/LQG-v0", family=family, limits=(-1.0, 1.0)).unwrapped)


@pytest.mark.filterwarnings(UNBOUNDED)
def test_without_limits_gymnasium_only_recommends_another_scale_of_actions():
    with pytest.warns(UserWarning, match="symmetric and normalized"):
        check_env(gymnasium.make("lqgap/LQG-v0", family=grid(2)).unwrapped)


def test_the_reward_is_that_of_the_observation_seen_and_the_action_taken(seed):
    plant = random_plant(seed)
    env = LQGEnv(plant, horizon=8)
    y, _ = env.reset(seed=seed)
    total, rng = 0.0, np.random.default_rng(seed)
    for time in range(9):
        u = rng.normal(size=2)
        cost = y @ plant.Q @ y + u @ plant.R @ u
        y, reward, terminated, truncated, info = env.step(u)
        np.testing.assert_allclose(reward, -cost, rtol=1e-12)
        assert info["cost"] == -reward
        np.testing.assert_array_equal(info["input"], u)
        assert (terminated, truncated) == (False, time == 8)
        total += cost
    assert np.isfinite(total)


def test_the_mean_cost_of_an_optimal_controller_is_the_exact_cost():
    # 150 independent episodes; a correct mean is further than 4 of its standard errors off once in 16 000 seeds.
    plant = grid(2)[3]
    policy = StationaryLQG(plant)
    controller, env = Controller(policy), LQGEnv(grid(2), horizon=10)
    totals = []
    for episode in range(150):
        y, _ = env.reset(seed=0 if episode == 0 else None, options={"member": 3})
        controller.reset()
        total, over = 0.0, False
        while not over:
            y, reward, _, over, _ = env.step(controller(y))
            total -= reward
        totals.append(total)
    exact = lqgap.exact_cost(policy, plant, horizon=10)
    assert abs(np.mean(totals) - exact) <= 4 * np.std(totals) / np.sqrt(150)


@pytest.mark.parametrize("name", ["family", "class"])
def test_a_seed_fixes_this_episode_and_those_that_follow(name):
    family = {"family": FAMILY, "class": grid(2)}[name]
    env, other = LQGEnv(family, limits=(-9, 9)), LQGEnv(family, limits=(-9, 9))
    first, second = play(env, seed=3), play(env)
    assert not np.array_equal(first[0], second[0])
    for expected, again in ((first, play(other, seed=3)), (second, play(other))):
        np.testing.assert_array_equal(again[0], expected[0])
        np.testing.assert_array_equal(again[1], expected[1])
        assert again[2] == expected[2]
    np.testing.assert_array_equal(play(env, seed=3)[0], first[0])
    assert not np.array_equal(play(env, seed=4)[0], first[0])


def test_without_a_seed_environments_differ():
    assert not np.array_equal(*(play(LQGEnv(grid(2)[0]))[0] for _ in range(2)))


def test_a_new_member_is_drawn_for_each_episode():
    env = LQGEnv(FAMILY, limits=(-9, 9))
    env.reset(seed=0)
    members = [env.reset()[1]["parameters"] for _ in range(20)]
    stiffness = [each["stiffness"] for each in members]
    assert len(set(stiffness)) == 20
    assert 0.5 <= min(stiffness) <= max(stiffness) <= 4.0
    env = LQGEnv(grid(2), limits=(-9, 9))
    env.reset(seed=0)
    assert {env.reset()[1]["member"] for _ in range(40)} == {0, 1, 2, 3}


def test_options_fix_the_member_of_one_episode():
    env = LQGEnv(grid(2), limits=(-9, 9))
    _, info = env.reset(seed=0, options={"member": 2})
    assert info == {"member": 2, "parameters": {"stiffness": 4.0, "gain": 1.0}}
    family = LQGEnv(FAMILY, limits=(-9, 9))
    values = {"stiffness": 4.0, "gain": 1.0}
    _, info = family.reset(seed=0, options={"parameters": values})
    assert info == {"member": -1, "parameters": values}
    assert family.reset()[1]["parameters"] != values
    with pytest.raises(lqgap.InvalidArgumentError, match="no numbered members"):
        family.reset(options={"member": 2})


def test_a_fixed_member_in_a_family_and_in_a_class_is_the_same_plant():
    values = {"stiffness": 4.0, "gain": 1.0}
    envs = [LQGEnv(family, limits=(-9, 9)) for family in (FAMILY, grid(2))]
    played = [play(env, seed=1, options={"parameters": values})[0] for env in envs]
    np.testing.assert_allclose(*played, rtol=1e-10)


def test_limits_clip_what_the_plant_receives_and_info_tells():
    env = LQGEnv(grid(2), limits=(-0.5, 0.5))
    env.reset(seed=0)
    _, _, _, _, info = env.step(np.array([3.0]))
    np.testing.assert_array_equal(info["input"], [0.5])
    free = LQGEnv(grid(2))
    assert np.all(np.isfinite(free.action_space.high))
    free.reset(seed=0)
    far = 3 * free.action_space.high
    np.testing.assert_array_equal(free.step(far)[4]["input"], far)


def test_returned_arrays_belong_to_the_caller():
    env, other = LQGEnv(grid(2)), LQGEnv(grid(2))
    y, _ = env.reset(seed=0)
    other.reset(seed=0)
    y[:] = 1e9
    stepped, undisturbed = env.step(np.zeros(1)), other.step(np.zeros(1))
    np.testing.assert_array_equal(stepped[0], undisturbed[0])
    assert stepped[1] == undisturbed[1]


def test_a_copy_plays_on_by_itself():
    env = LQGEnv(grid(2))
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    np.testing.assert_array_equal(env.step(np.ones(1))[0], twin.step(np.ones(1))[0])
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])


def test_divergence_terminates():
    env = LQGEnv(lqgap.LQG([[1e100]], [[1.0]], [[1.0]]), horizon=100, limits=(-1, 1))
    env.reset(seed=0)
    for _ in range(100):
        y, reward, terminated, truncated, _ = env.step(np.ones(1))
        assert np.isfinite(y).all()
        assert np.isfinite(reward)
        if terminated:
            break
    assert terminated
    assert not truncated


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([np.nan], "finite"),
        ([1.0, 2.0], r"shape \(2,\), expected \(1,\)"),
        (["left"], "expected numbers"),
        (0.5, r"shape \(\)"),
    ],
)
def test_a_wrong_action_is_refused(action, message):
    env = LQGEnv(grid(2))
    env.reset(seed=0)
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        env.step(action)


def test_a_step_needs_an_episode():
    env = LQGEnv(grid(2), horizon=0)
    with pytest.raises(lqgap.InvalidArgumentError, match="call reset first"):
        env.step(np.zeros(1))
    env.reset(seed=0)
    assert env.step(np.zeros(1))[3]
    with pytest.raises(lqgap.InvalidArgumentError, match="call reset first"):
        env.step(np.zeros(1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"horizon": -1}, "horizon"), ({"limits": (1, -1)}, "limits"), ({"family": 3}, "family is a int")],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        LQGEnv(**({"family": grid(2)} | arguments))


def test_gymnasium_makes_it_by_its_id():
    env = gymnasium.make("lqgap/LQG-v0", family=grid(2), horizon=1, limits=(-1, 1))
    assert isinstance(env.unwrapped, LQGEnv)
    env.reset(seed=0)
    assert [env.step(np.zeros(1))[3] for _ in range(2)] == [False, True]


@pytest.mark.slow
def test_gymnasium_can_import_it_by_itself_and_take_a_family_by_name():
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('lqgap.interop.environment:lqgap/LQG-v0', family='double_integrator', limits=(-1, 1))\n"
        "print(env.reset(seed=0)[0].shape)"
    )
    environment = os.environ | {"JAX_ENABLE_X64": "1"}
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert finished.stdout == "(1,)\n"
