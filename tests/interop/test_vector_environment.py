import functools

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from springs import FAMILY, grid

import lqgap
from lqgap.interop import LQGEnv, LQGVectorEnv, Predictor
from lqgap.policies import StationaryLQG


@functools.cache
def unstable():
    return lqgap.stack([lqgap.LQG([[a]], [[1.0]], [[1.0]]) for a in (0.5, 1e60)])


SETTING = {"horizon": 4, "limits": (-3.0, 3.0)}


def assert_same(ours, theirs):
    """Nested reports of the same keys and, up to rounding, the same numbers."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key, value in theirs.items():
            assert_same(ours[key], value)
    elif isinstance(theirs, tuple) or (theirs is not None and theirs.dtype == object):
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif theirs is not None:
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=["next", "same"])
@pytest.mark.parametrize("name", ["family", "class", "diverging"])
def test_it_is_gymnasiums_vector_of_single_environments(name, mode):
    family = {"family": FAMILY, "class": grid(2), "diverging": unstable()}[name]
    ours = LQGVectorEnv(family, num_envs=3, autoreset_mode=mode, **SETTING)
    theirs = SyncVectorEnv([lambda: LQGEnv(family, **SETTING)] * 3, autoreset_mode=mode)
    assert ours.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is mode
    assert ours.action_space == theirs.action_space
    assert ours.observation_space == theirs.observation_space
    assert ours.single_action_space == theirs.single_action_space
    assert_same(ours.reset(seed=5), theirs.reset(seed=5))
    rng = np.random.default_rng(0)
    for _ in range(40):  # more episodes than are drawn ahead would be slow; see the next test
        actions = rng.normal(size=(3, 1))
        assert_same(ours.step(actions), theirs.step(actions))
    assert_same(ours.reset(), theirs.reset())


def test_it_stays_the_same_over_more_episodes_than_are_drawn_ahead():
    setting = {"horizon": 0, "limits": (-3.0, 3.0)}
    ours = LQGVectorEnv(grid(2), num_envs=2, **setting)
    theirs = SyncVectorEnv([lambda: LQGEnv(grid(2), **setting)] * 2)
    for vector in (ours, theirs):
        vector.reset(seed=0)
    for _ in range(80):
        assert_same(*(vector.step(np.ones((2, 1))) for vector in (ours, theirs)))


def test_without_autoreset_a_mask_resets_what_is_over():
    ours = LQGVectorEnv(unstable(), num_envs=4, autoreset_mode="Disabled", **SETTING)
    theirs = SyncVectorEnv([lambda: LQGEnv(unstable(), **SETTING)] * 4, autoreset_mode="Disabled")
    assert_same(ours.reset(seed=1), theirs.reset(seed=1))
    num_resets = 0
    for _ in range(25):
        result = ours.step(np.ones((4, 1)))
        assert_same(result, theirs.step(np.ones((4, 1))))
        over = result[2] | result[3]
        if over.any():
            num_resets += 1
            with pytest.raises(lqgap.InvalidArgumentError, match="are over: reset them"):
                ours.step(np.ones((4, 1)))
            assert_same(*(vector.reset(options={"reset_mask": over.copy()}) for vector in (ours, theirs)))
    assert num_resets > 5


def test_seeds_can_be_listed_and_continue():
    first, second = (LQGVectorEnv(grid(2), num_envs=2, **SETTING) for _ in range(2))
    assert_same(first.reset(seed=[8, 9]), second.reset(seed=8))
    assert_same(first.reset(), second.reset())
    assert len(first.np_random) == 2
    with pytest.raises(lqgap.InvalidArgumentError, match="seed has 3 entries"):
        first.reset(seed=[1, 2, 3])


def test_members_are_fixed_for_all_or_one_by_one():
    envs = LQGVectorEnv(grid(2), num_envs=3, **SETTING)
    _, info = envs.reset(seed=0, options={"member": 2})
    np.testing.assert_array_equal(info["member"], [2, 2, 2])
    observations, info = envs.reset(seed=0, options={"member": [3, 0, 1]})
    np.testing.assert_array_equal(info["member"], [3, 0, 1])
    np.testing.assert_array_equal(info["parameters"]["gain"], [5.0, 1.0, 5.0])
    single = LQGEnv(grid(2), **SETTING)
    np.testing.assert_allclose(single.reset(seed=2, options={"member": 1})[0], observations[2], rtol=1e-12)
    with pytest.raises(lqgap.InvalidArgumentError, match="2 of member, expected one for each of 3"):
        envs.reset(options={"member": [0, 1]})
    with pytest.raises(lqgap.InvalidArgumentError, match="expected one from 0 to 3"):
        envs.reset(options={"member": [0, 1, 4]})


def test_the_mean_cost_of_an_optimal_controller_is_the_exact_cost():
    # 2000 independent episodes; a correct mean is further than 4 of its standard errors off once in 16 000 seeds.
    plant = FAMILY.nominal()
    policy = StationaryLQG(plant)
    envs, predictor = LQGVectorEnv(plant, num_envs=2000, horizon=15), Predictor(policy)
    y, _ = envs.reset(seed=0)
    total, state = np.zeros(2000), None
    for _ in range(16):
        action, state = predictor.predict(y, state)
        y, rewards, _, truncated, _ = envs.step(action)
        total -= rewards
    assert truncated.all()
    exact = lqgap.exact_cost(policy, plant, horizon=15)
    assert abs(np.mean(total) - exact) <= 4 * np.std(total) / np.sqrt(2000)


def test_actions_that_nobody_takes_may_be_anything():
    envs = LQGVectorEnv(grid(2), num_envs=2, horizon=0, limits=(-3, 3))
    envs.reset(seed=0)
    envs.step(np.zeros((2, 1)))
    envs.step(np.full((2, 1), np.nan))
    with pytest.raises(lqgap.InvalidArgumentError, match="finite"):
        envs.step(np.full((2, 1), np.nan))


def test_returned_arrays_belong_to_the_caller():
    envs, others = (LQGVectorEnv(grid(2), num_envs=2, **SETTING) for _ in range(2))
    y, _ = envs.reset(seed=0)
    others.reset(seed=0)
    y[:] = 1e9
    assert_same(*(vector.step(np.ones((2, 1))) for vector in (envs, others)))


def test_gymnasium_makes_it_by_its_id():
    envs = gymnasium.make_vec("lqgap/LQG-v0", num_envs=3, family=grid(2), horizon=2)
    assert isinstance(envs.unwrapped, LQGVectorEnv)
    assert envs.num_envs == 3
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    recorded.reset(seed=0)
    for _ in range(3):
        *_, info = recorded.step(np.zeros((3, 1)))
    np.testing.assert_array_equal(info["episode"]["l"], [3, 3, 3])
    envs.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"num_envs": 0}, "num_envs"), ({"autoreset_mode": "Never"}, "'NextStep', 'SameStep', 'Disabled'")],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(lqgap.InvalidArgumentError, match=message):
        LQGVectorEnv(grid(2), **arguments)


def test_a_step_needs_an_episode_and_a_mask_must_be_one():
    envs = LQGVectorEnv(grid(2), num_envs=2, **SETTING)
    with pytest.raises(lqgap.InvalidArgumentError, match="call reset first"):
        envs.step(np.zeros((2, 1)))
    with pytest.raises(lqgap.InvalidArgumentError, match="reset all environments first"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    for mask in ([1, 0], np.array([False, False]), np.array([True])):
        with pytest.raises(lqgap.InvalidArgumentError, match="expected 2 truth values"):
            envs.reset(options={"reset_mask": mask})
    envs.reset(seed=0)
    with pytest.raises(lqgap.InvalidArgumentError, match=r"shape \(1, 2\), expected \(2, 1\)"):
        envs.step(np.zeros((1, 2)))
