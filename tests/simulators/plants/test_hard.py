import numpy as np
import pytest
import scipy

import lqgap
from lqgap.errors import InvalidArgumentError, NotDetectableError, NotStabilizableError
from lqgap.simulators import plants


def test_unknown_sign_has_two_members_of_the_same_cost():
    members = [plants.unknown_sign().build(sign=sign) for sign in (-1, 1)]
    np.testing.assert_allclose([float(plant.B[0, 0]) for plant in members], [-1, 1])
    np.testing.assert_allclose([lqgap.solve(plant).J for plant in members], [3.0642, 3.0642], atol=5e-5)


@pytest.mark.parametrize("sign", [0, 0.5, (-1, 1), [-1, 0, 1], "plus"])
def test_a_sign_is_plus_or_minus_one(sign):
    with pytest.raises(InvalidArgumentError, match=r"sign is .* 1 or -1"):
        plants.unknown_sign(sign=sign)


def test_phase_pair_has_the_matrices_of_the_literature():
    z = 1.01
    family = plants.phase_pair()
    inside, outside = (family.build(zero=zero) for zero in family.parameters[0].choices)
    np.testing.assert_allclose(inside.C, [[-1 / z + z, z]], rtol=1e-12)
    np.testing.assert_allclose(outside.C, [[-z + 1 / z, 1 / z]], rtol=1e-12)
    for plant in (inside, outside):
        np.testing.assert_allclose(plant.A, [[1, 1], [0, 1]])
        np.testing.assert_allclose(plant.B, [[0], [1]])
        np.testing.assert_allclose(plant.W, 1e-4 * np.eye(2))
        np.testing.assert_allclose([plant.V, plant.R], np.full((2, 1, 1), 1e-2))
        np.testing.assert_allclose([plant.S0, np.eye(1) * plant.Q * np.eye(2)], [np.eye(2)] * 2)


def test_phase_pair_differs_in_phase_and_not_in_magnitude():
    frequencies = np.linspace(0.1, 3, 7)
    responses = []
    for zero in (0.8, 1.25):
        plant = plants.phase_pair().build(zero=zero)
        numerator, denominator = scipy.signal.ss2tf(
            *map(np.asarray, (plant.A, plant.B, plant.C)), np.zeros((1, 1))
        )
        np.testing.assert_allclose(np.roots(np.trim_zeros(numerator[0], "f")), [zero], rtol=1e-9)
        responses.append(scipy.signal.freqz(numerator[0], denominator, worN=frequencies)[1])
    np.testing.assert_allclose(*np.abs(responses), rtol=1e-9)
    assert np.all(np.abs(np.angle(responses[0] / responses[1])) > 0.01)


def test_a_zero_on_the_pole_has_no_optimum():
    with pytest.raises((NotDetectableError, NotStabilizableError)):
        lqgap.solve(plants.phase_pair().build(zero=1.0))


def test_the_second_input_of_overactuated_shrinks_with_the_horizon():
    for horizon, size in [(1, 0.5), (16, 0.25), (10_000, 0.05)]:
        minus, plus = (plants.overactuated(horizon=horizon).build(sign=sign) for sign in (-1, 1))
        np.testing.assert_allclose(minus.B, [[0.6, -size]], rtol=1e-12)
        np.testing.assert_allclose(plus.B, [[0.6, size]], rtol=1e-12)
    np.testing.assert_allclose(plus.A, [[0.9]])
    np.testing.assert_allclose([plus.Q, plus.W, plus.V], np.ones((3, 1, 1)))
    np.testing.assert_allclose(plus.R, np.eye(2))


def test_the_members_of_overactuated_cost_the_same():
    minus, plus = (plants.overactuated().build(sign=sign) for sign in (-1, 1))
    np.testing.assert_allclose(lqgap.solve(minus).J, lqgap.solve(plus).J, rtol=1e-12)


def test_without_a_spare_actuator_its_input_is_never_used():
    dead, works, reversed_ = (plants.spare_actuator().build(spare=spare) for spare in (0.0, 0.5, -0.5))
    np.testing.assert_allclose(dead.B, [[0.6, 0.0]])
    gains = [np.asarray(lqgap.solve(plant).K) for plant in (dead, works, reversed_)]
    assert gains[0][1, 0] == 0
    np.testing.assert_allclose(gains[1][1], -gains[2][1])
    assert gains[1][1, 0] > 0.1
