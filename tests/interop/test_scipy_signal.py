import equinox as eqx
import numpy as np
import pytest
import scipy.signal
from random_systems import random_plant

import lqgap
from lqgap.interop import from_dlti, policy_from_dlti, to_dlti
from lqgap.policies import LinearDynamic, StationaryLQG


def test_a_plant_goes_out_and_comes_back_the_same(seed):
    plant = random_plant(seed)
    weights = {name: getattr(plant, name) for name in ("Q", "R", "W", "V", "S0")}
    again, sampling_time = from_dlti(to_dlti(plant, sampling_time=0.3), **weights)
    assert eqx.tree_equal(again, plant)
    assert sampling_time == 0.3


@pytest.mark.parametrize(
    "make",
    [lambda: StationaryLQG(random_plant(0)), lambda: LinearDynamic(Dc=[[1.0, -2.0]])],
    ids=["dynamic", "static"],
)
def test_a_policy_goes_out_and_comes_back_the_same(make):
    policy = make()
    again, sampling_time = policy_from_dlti(to_dlti(policy, sampling_time=0.3))
    assert eqx.tree_equal(again.at(0), policy.at(0))
    assert sampling_time == 0.3


def test_the_step_response_is_that_of_the_plant(seed):
    plant = random_plant(seed)
    _, theirs, _ = scipy.signal.dlsim(to_dlti(plant, sampling_time=0.1), np.ones((20, 2)))
    x, ours = np.zeros(3), []
    for _ in range(20):
        ours.append(plant.C @ x)
        x = plant.A @ x + plant.B @ np.ones(2)
    np.testing.assert_allclose(theirs, ours, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "system",
    [
        scipy.signal.dlti([0.2, 0.1], [1, -1.2, 0.5], dt=0.25),
        scipy.signal.dlti([-0.5], [0.6, 0.6], 0.2, dt=0.25),
    ],
    ids=["transfer function", "zeros and poles"],
)
def test_every_form_becomes_a_plant_with_its_step_response(system):
    plant, sampling_time = from_dlti(system)
    assert sampling_time == 0.25
    (_, (theirs,)), (_, (ours,)) = (
        scipy.signal.dstep(each, n=15) for each in (system, to_dlti(plant, sampling_time=0.25))
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        (scipy.signal.lti([1.0], [1.0, 1.0]), r"continuous time.*to_discrete.*zero_order_hold"),
        (scipy.signal.dlti([1.0], [1.0, -0.5]), "no sampling time .dt is True"),
        (scipy.signal.dlti([1.0, 0.0], [1.0, -0.5], dt=0.1), "direct feedthrough"),
        (scipy.signal.dlti([1.0, 0.0, 0.0], [1.0, -0.5], dt=0.1), "no state-space form"),
        (([1.0], [1.0, -0.5], 0.1), "is a tuple"),
    ],
)
def test_what_is_no_plant_is_refused_with_what_to_do(system, message):
    with pytest.raises(lqgap.InvalidSystemError, match=message):
        from_dlti(system)
