import numpy as np
import pytest
from naive_vtr import random_class
from random_systems import random_plant

import lqgap as lg
from lqgap.adaptive.truth import read_plants, read_truth
from lqgap.simulators import Finite


def test_biases_tend_to_the_average_cost_and_begin_with_that_of_the_prior():
    plant = random_plant(3)
    optimum = lg.solve(plant)
    real = read_plants(plant, count=1).reference
    np.testing.assert_allclose(real.biases[0, -1], optimum.J, rtol=1e-8)
    # E h_0 = tr(zeta Cov(xhat_0|0)) + tr(Q Cov(y_0)), of the first observation alone.
    C, V, S0, Q = (np.asarray(part) for part in (plant.C, plant.V, plant.S0, plant.Q))
    S = C @ S0 @ C.T + V
    L = S0 @ C.T @ np.linalg.inv(S)
    zeta = np.asarray(optimum.P) - C.T @ Q @ C
    np.testing.assert_allclose(real.biases[0, 0], np.trace(zeta @ L @ S @ L.T) + np.trace(Q @ S))


def test_the_truth_is_looked_for_among_the_members():
    plants = random_class(0)
    members = Finite(plants)
    np.testing.assert_array_equal(read_truth(members, read_plants(plants[2], count=2), None, count=2), [2, 2])
    stranger = read_plants(random_class(1)[0], count=1)
    assert read_truth(members, stranger, None, count=1) is None
    np.testing.assert_array_equal(read_truth(members, stranger, 3, count=1), [3])
    np.testing.assert_array_equal(read_truth(members, stranger, [1.2], count=1), [1])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("truth", [99, -1, [1.0, 2.0, 3.0], {"gain": 1.0}, "a", np.nan])
def test_a_truth_that_is_none_is_named(truth):
    plants = random_class(0)
    with pytest.raises(lg.InvalidArgumentError, match="truth is"):
        read_truth(Finite(plants), read_plants(plants[0], count=2), truth, count=2)


@pytest.mark.usefixtures("as_users_run_it")
def test_plants_must_be_one_or_as_many_as_runs():
    with pytest.raises(lg.InvalidArgumentError, match="plants has 4"):
        read_plants(lg.stack(random_class(0)), count=3)


def test_runs_are_far_a_thousand_times_beyond_those_without_control():
    stable, unstable = (lg.LQG([[pole]], [[1.0]], [[1.0]], Q=[[2.0]]) for pole in (0.5, 1.1))
    open_loop = 2 * (1 / (1 - 0.25) + 1)  # y'Qy of x = w + 0.5 x
    np.testing.assert_allclose(read_plants(stable, count=1).ceiling, [1e6 * open_loop])
    np.testing.assert_allclose(read_plants(unstable, count=1).ceiling, [1e6 * float(lg.solve(unstable).J)])
