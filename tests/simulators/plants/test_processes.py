import numpy as np
import pytest
import scipy.integrate

from lqgap.errors import InvalidArgumentError
from lqgap.simulators import plants


def test_web_server_scales_entries():
    family = plants.web_server()
    plant = family.build(coupling=1.2, persistence=0.9, keep_alive=1.1, max_clients=0.8)
    np.testing.assert_allclose(plant.A, [[0.54 * 0.9, -0.11 * 1.2], [-0.026 * 1.2, 0.63 * 0.9]])
    np.testing.assert_allclose(plant.B, 1e-4 * np.array([[-85 * 1.1, 4.4 * 0.8], [-2.5 * 1.1, 2.8 * 0.8]]))
    np.testing.assert_allclose(
        family.build(coupling=1, persistence=1, keep_alive=1, max_clients=1).B,
        1e-4 * np.array([[-85, 4.4], [-2.5, 2.8]]),
    )


def test_laplacian_has_the_matrices_of_the_literature():
    plant = plants.laplacian().build(coupling=0.01, self_heating=0.01)
    np.testing.assert_allclose(plant.A, [[1.01, 0.01, 0], [0.01, 1.01, 0.01], [0, 0.01, 1.01]])
    np.testing.assert_allclose(plant.B, np.eye(3))
    np.testing.assert_allclose(plant.Q, 10 * np.eye(3))


def test_laplacian_may_have_any_number_of_racks():
    plant = plants.laplacian(racks=5).build(coupling=0.02, self_heating=0.01)
    eigenvalues = 1.01 + 0.04 * np.cos(np.pi * np.arange(1, 6) / 6)  # of a path graph
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(plant.A)), np.sort(eigenvalues), rtol=1e-12)
    np.testing.assert_allclose(plants.laplacian(racks=1).build(coupling=0.02, self_heating=0.01).A, [[1.01]])


def test_one_room_cools_with_its_time_constant_and_settles_where_losses_equal_heat():
    plant = plants.thermal_zones(rooms=1, heater=2.0).build(capacity=0.8, wall=6.0, partition=5.0)
    np.testing.assert_allclose(plant.A, [[np.exp(-0.25 / (0.8 * 6.0))]], rtol=1e-12)
    np.testing.assert_allclose(plant.B / (1 - plant.A), [[2.0 * 6.0]], rtol=1e-9)


def test_equally_heated_rooms_do_not_feel_the_partitions():
    plant = plants.thermal_zones().build(capacity=1.2, wall=8.0, partition=3.0)
    np.testing.assert_allclose(plant.A @ np.ones(3), np.full(3, np.exp(-0.25 / (1.2 * 8.0))), rtol=1e-12)
    settled = np.linalg.solve(np.eye(3) - plant.A, plant.B @ np.ones(3))
    np.testing.assert_allclose(settled, np.full(3, 8.0), rtol=1e-9)


def test_heat_goes_into_the_rooms_or_through_the_walls():
    """Energy over a step, with the losses integrated along a trajectory that sums the flows room by room."""
    capacity, wall, partition, power = 0.7, 12.0, 4.0, np.array([1.0, 0.0, 3.0])
    start = np.array([5.0, -1.0, 2.0])

    def rates(_, state):
        rooms = state[:3]
        through = np.concatenate([[0], np.diff(rooms) / partition, [0]])
        return np.concatenate([(np.diff(through) - rooms / wall + power) / capacity, [rooms.sum() / wall]])

    run = scipy.integrate.solve_ivp(rates, (0, 0.25), [*start, 0.0], rtol=1e-11, atol=1e-12)
    rooms, lost = run.y[:3, -1], run.y[3, -1]
    plant = plants.thermal_zones().build(capacity=capacity, wall=wall, partition=partition)
    reached = plant.A @ start + plant.B @ power
    np.testing.assert_allclose(reached, rooms, rtol=1e-8)
    np.testing.assert_allclose(capacity * np.sum(reached - start) + lost, 0.25 * power.sum(), rtol=1e-8)


def test_heat_flows_alike_both_ways_and_never_from_cold_to_warm():
    plant = plants.thermal_zones().build(capacity=1.0, wall=10.0, partition=5.0)
    np.testing.assert_allclose(plant.A, plant.A.T, atol=1e-12)
    assert np.all(plant.A > 0)
    assert np.all(np.sum(plant.A, axis=1) < 1)


@pytest.mark.parametrize(("function", "argument"), [("thermal_zones", "rooms"), ("laplacian", "racks")])
@pytest.mark.parametrize("count", [0, -1, 2.5, "three", None])
@pytest.mark.usefixtures("as_users_run_it")
def test_there_is_a_whole_number_of_rooms_and_racks(function, argument, count):
    with pytest.raises(InvalidArgumentError, match=f"{argument} is .*expected"):
        getattr(plants, function)(**{argument: count})
