import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.systems import change_coordinates
from lqgap.systems.setpoints import find_rest, has_full_rank


def rest_of(plant, follow):
    return find_rest(plant.A, plant.B, plant.C, follow=follow)


def test_at_rest_the_plant_stays_where_the_reference_is(seed):
    plant = random_plant(seed, states=4, inputs=2, outputs=3)
    rest = rest_of(plant, [2, 0])
    np.testing.assert_allclose(plant.A @ rest.x + plant.B @ rest.u, rest.x, atol=1e-10)
    np.testing.assert_allclose(plant.C[np.array([2, 0])] @ rest.x, np.eye(2), atol=1e-10)


def test_of_several_rests_the_smallest_is_found_in_any_coordinates(seed):
    plant = random_plant(seed, states=3, inputs=3, outputs=2)
    rest = rest_of(plant, [1])
    other = rest_of(change_coordinates(plant, np.diag([1e4, 1.0, 1e-4]) @ np.triu(np.ones((3, 3)))), [1])
    np.testing.assert_allclose(other.u, rest.u, rtol=1e-6)
    size = np.sum((plant.C @ rest.x) ** 2) + np.sum(rest.u**2)
    demands = np.block([[plant.A - np.eye(3), plant.B], [plant.C[1:], np.zeros((1, 3))]])
    for direction in np.linalg.svd(demands)[2][4:]:  # along which the plant rests with the same reference
        for step in (-1e-3, 1e-3):
            x, u = rest.x[:, 0] + step * direction[:3], rest.u[:, 0] + step * direction[3:]
            assert np.sum((plant.C @ x) ** 2) + np.sum(u**2) > size


def test_of_a_batch_every_plant_has_its_own_rest():
    members = lg.plants.mass_spring_damper().grid(2)
    together = rest_of(members.systems, [0])
    for index, plant in enumerate(members):
        np.testing.assert_array_equal(together.u[index], rest_of(plant, [0]).u)


@pytest.mark.parametrize(
    ("C", "why"),
    [([[1.0, 0.0], [0.0, 1.0]], "1 inputs for 2 references"), ([[0.0, 1.0]], "zero at one")],
)
def test_where_no_rest_exists_the_reason_is_told(C, why):
    """The second state is the speed of the first, which is zero at rest: no reference of it can be held."""
    plant = lg.LQG([[1.0, 0.1], [0.0, 0.9]], [[0.0], [1.0]], C)
    with pytest.raises(lg.InvalidArgumentError, match=why):
        rest_of(lg.stack([plant]), range(len(C)))


def test_units_do_not_decide_whether_rows_are_independent():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    units = np.diag([1e8, 1e-8])
    assert has_full_rank(units @ matrix @ units)
    assert not has_full_rank(units @ np.array([[1.0, 2.0], [2.0, 4.0]]) @ units)
