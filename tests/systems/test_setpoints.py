import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.systems import change_coordinates
from lqgap.systems.optimum import solve_members
from lqgap.systems.setpoints import OVERSHOOT, Rest, find_rest, has_full_rank


def rest_of(plant, follow):
    K = solve_members(plant if plant.A.ndim == 3 else lg.stack([plant])).K
    return find_rest(plant.A, plant.B, plant.C, K if plant.A.ndim == 3 else K[0], follow=follow)


def go_to_rest(plant, K, rest, *, steps):
    """The first output under u = u_r - K (x - x_r), whose target moves at the pace of the rest."""
    x, target, outputs = np.zeros(plant.num_states), 0.0, []
    for _ in range(steps):
        outputs.append(float(plant.C[0] @ x))
        target = 1 + rest.pace * (target - 1)
        x = plant.A @ x + plant.B @ (rest.u[:, 0] * target - K @ (x - rest.x[:, 0] * target))
    return np.array(outputs)


def test_at_its_pace_an_optimal_loop_hardly_overshoots_and_at_a_smaller_one_it_does():
    for plant in lg.plants.mass_spring_damper().grid(2):
        K, rest = lg.solve(plant).K, rest_of(plant, [0])
        at_once, slower, faster = (
            go_to_rest(plant, K, Rest(rest.x, rest.u, np.asarray(pace)), steps=300)
            for pace in (0.0, rest.pace, 0.8 * rest.pace)
        )
        assert slower.max() <= 1 + 1.01 * OVERSHOOT
        np.testing.assert_allclose(slower[-1], 1, atol=1e-9)
        if rest.pace > 0:
            assert at_once.max() > faster.max() > 1 + OVERSHOOT


def test_a_loop_that_does_not_overshoot_goes_at_once():
    plant = lg.LQG([[0.9]], [[1.0]], [[1.0]])
    assert rest_of(plant, [0]).pace == 0
    unstable = find_rest(plant.A, plant.B, plant.C, [[3.0]], follow=[0])  # whose target hardly matters
    assert 0 < unstable.pace < 1


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
