import equinox as eqx
import jax
import numpy as np
import pytest
from random_systems import random_plant

import lqgap
from lqgap.interop.state_space import (
    StateSpace,
    make_plant,
    make_policy,
    read_matrices,
    read_sampling_time,
)
from lqgap.policies import FiniteHorizonLQG, LinearDynamic, Recurrent, StationaryLQG, Zero

PLANT = random_plant(0)


def test_a_plant_has_no_feedthrough():
    matrices = read_matrices(PLANT)
    for name in "ABC":
        np.testing.assert_array_equal(getattr(matrices, name), getattr(PLANT, name))
    np.testing.assert_array_equal(matrices.D, np.zeros((2, 2)))


def test_a_plant_goes_out_and_comes_back_the_same():
    weights = {name: getattr(PLANT, name) for name in ("Q", "R", "W", "V", "S0")}
    assert eqx.tree_equal(make_plant(read_matrices(PLANT), **weights), PLANT)


@pytest.mark.parametrize(
    "make",
    [lambda: StationaryLQG(PLANT, filters="steady"), lambda: Zero(num_inputs=2, num_outputs=2)],
    ids=["dynamic", "static"],
)
def test_a_policy_goes_out_and_comes_back_the_same(make):
    policy = make()
    assert eqx.tree_equal(make_policy(read_matrices(policy)).at(0), policy.at(0))


def test_what_has_no_constant_matrices_is_refused():
    with pytest.raises(lqgap.InvalidArgumentError, match=r"made for steps 0..5.* without a horizon"):
        read_matrices(FiniteHorizonLQG(PLANT, 5))
    with pytest.raises(lqgap.InvalidArgumentError, match=r"changes until step .* filters='steady'\) is one"):
        read_matrices(StationaryLQG(PLANT))
    with pytest.raises(
        lqgap.InvalidArgumentError, match="is a Recurrent, expected an LQG or a linear policy"
    ):
        read_matrices(Recurrent(num_inputs=2, num_outputs=2, key=jax.random.key(0)))
    with pytest.raises(lqgap.InvalidSystemError, match="batch"):
        read_matrices(lqgap.stack([PLANT, PLANT]))


@pytest.mark.usefixtures("as_users_run_it")
def test_a_batch_of_policies_is_refused():
    batch = jax.vmap(lambda gain: LinearDynamic(Dc=gain))(np.ones((5, 2, 2)))
    with pytest.raises(lqgap.InvalidArgumentError, match="batch of policies"):
        read_matrices(batch)


def test_feedthrough_in_a_plant_is_refused_with_the_reason():
    system = StateSpace(np.eye(1), np.eye(1), np.eye(1), np.array([[0.5]]))
    with pytest.raises(lqgap.InvalidSystemError, match=r"D = \[\[0.5\]\].*y = C x \+ z.*delay of one step"):
        make_plant(system)


def test_a_plant_needs_a_state_and_a_policy_does_not():
    static = StateSpace(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((2, 0)), np.zeros((2, 1)))
    with pytest.raises(lqgap.InvalidSystemError, match="no states"):
        make_plant(static)
    assert isinstance(make_policy(static), LinearDynamic)


@pytest.mark.parametrize("wrong", [0, -0.1, np.nan, "fast", [0.1, 0.2]])
def test_a_sampling_time_is_a_positive_number(wrong):
    with pytest.raises(lqgap.InvalidArgumentError, match="sampling_time"):
        read_sampling_time(wrong)
