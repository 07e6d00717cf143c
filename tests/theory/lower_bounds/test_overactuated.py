import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.policies import FiniteHorizonLQG
from lqgap.theory.lower_bounds.overactuated import nominal_plant, overactuated_class


def worst_of_nominal(horizon, radius):
    policy = FiniteHorizonLQG(nominal_plant(), horizon)
    members = overactuated_class(horizon=horizon, radius=radius)
    return max(float(lg.exact_gap(policy, plant, horizon=horizon)) for plant in members)


def test_the_smallest_class_is_the_named_family():
    ours, named = overactuated_class(horizon=400, c=0.3), lg.plants.overactuated(horizon=400, c=0.3).grid(2)
    for name in ("A", "B", "C", "Q", "R", "W", "V", "S0"):
        np.testing.assert_allclose(getattr(ours.systems, name), getattr(named.systems, name))


def test_no_controller_of_the_nominal_plant_uses_what_differs(seed):
    plant = random_plant(seed, states=2, inputs=4)
    minus, plus = overactuated_class(plant, horizon=16, c=0.2)
    D = 0.5 * np.asarray(plus.B - minus.B)
    np.testing.assert_allclose(0.5 * (plus.B + minus.B), plant.B, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(D, ord=2), 0.2 / 2, rtol=1e-12)
    np.testing.assert_allclose(D @ np.asarray(lg.solve_finite(plant, horizon=5).K), 0, atol=1e-12)


def test_the_corrected_radius_forces_growth_and_the_printed_one_does_not():
    corrected = [worst_of_nominal(horizon, "corrected") for horizon in (100, 1600)]
    printed = [worst_of_nominal(horizon, "printed") for horizon in (100, 1600)]
    slope = np.log(corrected[1] / corrected[0]) / np.log(16)
    assert 0.45 < slope < 0.55
    np.testing.assert_allclose(printed[0], printed[1], rtol=0.1)


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(plant=random_plant(0), horizon=10), "without an input to spare"),
        (dict(horizon=0), "horizon is 0"),
        (dict(horizon=10, c=-1.0), "c is -1"),
        (dict(horizon=10, radius="wide"), "radius is 'wide'"),
    ],
)
def test_what_cannot_be_is_named(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        overactuated_class(**arguments)
