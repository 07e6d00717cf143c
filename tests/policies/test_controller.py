import copy

import every_policy
import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import FiniteHorizonLQG, StationaryLQG

PLANT = every_policy.PLANTS[1]


def test_it_chooses_what_the_policy_chooses_in_a_rollout():
    policy = StationaryLQG(PLANT)
    run = lg.rollout(policy, PLANT, horizon=20, key=jax.random.key(0))
    controller = lg.Controller(policy)
    np.testing.assert_allclose([controller(y) for y in run.y], run.u, rtol=1e-12)


def test_reset_begins_anew_also_with_another_key():
    controller = lg.Controller(every_policy.make_policies()["RandomProbe"], key=jax.random.key(1))
    first = [controller(np.ones(2)) for _ in range(3)]
    controller.reset(key=jax.random.key(1))
    np.testing.assert_array_equal([controller(np.ones(2)) for _ in range(3)], first)
    controller.reset(key=jax.random.key(2))
    assert np.any(controller(np.ones(2)) != first[0])
    controller.reset()
    third = controller(np.ones(2))
    controller.reset()
    assert np.any(controller(np.ones(2)) != third)  # every episode has its own chance


def test_it_is_neither_pickled_nor_copied():
    with pytest.raises(TypeError, match="keep its policy"):
        copy.deepcopy(lg.Controller(StationaryLQG(PLANT)))


def test_the_input_really_applied_is_fed_back():
    policy = StationaryLQG(PLANT)
    limited, told = lg.Controller(policy, limits=(-0.1, 0.1)), lg.Controller(policy)
    y = np.random.default_rng(0).normal(size=(10, 2)) * 5
    inputs, applied = [], None
    for now in y:
        inputs.append(limited(now))
        applied = np.clip(told(now, applied=applied), -0.1, 0.1)
    np.testing.assert_allclose(np.abs(inputs).max(), 0.1)
    np.testing.assert_allclose(inputs[-1], applied, rtol=1e-12)
    np.testing.assert_array_equal(limited.u_last, inputs[-1])


def test_an_applied_input_that_the_step_does_not_survive_is_forgotten():
    controller, calm = (lg.Controller(StationaryLQG(PLANT)) for _ in range(2))
    for each in (controller, calm):
        each(np.ones(2))
    with pytest.raises(lg.NotConvergedError, match="not finite"):
        controller(np.full(2, -1.7e308), applied=np.full(PLANT.num_inputs, 1.7e308))
    np.testing.assert_array_equal(controller(np.ones(2)), calm(np.ones(2)))
    np.testing.assert_array_equal(controller.u_last, calm.u_last)


def test_a_lost_sample_is_predicted_over():
    controller = lg.Controller(StationaryLQG(PLANT), nan_is_lost=True)
    controller(np.ones(2))
    here = controller(None)
    again = lg.Controller(StationaryLQG(PLANT), nan_is_lost=True)
    again(np.ones(2))
    np.testing.assert_array_equal(again(np.ma.masked_array([1.0, 2.0], mask=True)), here)
    assert np.all(np.isfinite(controller(np.ones(2))))


@pytest.mark.parametrize("y", [[1.0], [1.0, np.nan], [1.0, np.inf], "abc", ["1", "2"], [[1.0, 2.0]], 3.0])
@pytest.mark.usefixtures("as_users_run_it")
def test_a_bad_observation_is_refused_and_changes_nothing(y):
    controller = lg.Controller(StationaryLQG(PLANT))
    expected = lg.Controller(StationaryLQG(PLANT))(np.ones(2))
    with pytest.raises(lg.InvalidArgumentError, match="y "):
        controller(y)
    np.testing.assert_array_equal(controller(np.ones(2)), expected)


def test_a_number_serves_where_there_is_one_output():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    assert lg.Controller(StationaryLQG(plant))(1.0) == lg.Controller(StationaryLQG(plant))([1.0])


def test_beyond_its_horizon_a_policy_is_not_asked():
    controller = lg.Controller(FiniteHorizonLQG(PLANT, 1))
    controller(np.ones(2))
    controller(np.ones(2))
    with pytest.raises(lg.InvalidArgumentError, match=r"steps 0\.\.1"):
        controller(np.ones(2))


def test_an_input_that_is_not_finite_never_leaves():
    controller = lg.Controller(lg.policies.LinearDynamic(Dc=[[1e300, 1e300]]))
    with pytest.raises(lg.NotConvergedError, match="not finite"):
        controller([1e300, 1e300])


@pytest.mark.usefixtures("as_users_run_it")
def test_only_policies_are_controlled_with():
    with pytest.raises(lg.InvalidArgumentError, match="expected an lqgap policy"):
        lg.Controller("policy")
