import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import StationaryLQG
from lqgap.systems import measure_disturbance, velocity_form


def test_in_velocity_form_the_outputs_are_those_of_the_plant_under_its_loads(seed):
    plant = random_plant(seed)
    form = velocity_form(plant, load=1.0, drift=0.1)
    rng = np.random.default_rng(seed)
    u, load = rng.normal(size=(20, 2)), np.cumsum(rng.normal(size=(21, 2)), axis=0)
    x, state = np.zeros(3), np.concatenate([np.zeros(3), load[0]])
    for t in range(20):
        change = u[t] - (u[t - 1] if t else 0)
        np.testing.assert_allclose(form.C @ state, plant.C @ x, atol=1e-10)
        x = plant.A @ x + plant.B @ (u[t] + load[t])
        state = form.A @ state + form.B @ change + np.concatenate([np.zeros(3), load[t + 1] - load[t]])


def test_inputs_without_a_load_stay_as_they_are(seed):
    plant = random_plant(seed)
    form = velocity_form(plant, load=1.0, drift=0.1, inputs=[1])
    u = np.random.default_rng(seed).normal(size=(10, 2))
    x, state = np.zeros(3), np.array([0, 0, 0, 0.7])
    for t in range(10):
        np.testing.assert_allclose(form.C @ state, plant.C @ x, atol=1e-10)
        x = plant.A @ x + plant.B @ (u[t] + np.array([0, 0.7]))
        given = np.array([u[t, 0], u[t, 1] - (u[t - 1, 1] if t else 0)])
        state = form.A @ state + form.B @ given


def closed_loop(form, feedforward):
    """Plant and optimal controller in velocity form: s_+ = transition s + drive r, from close_loop's matrices."""
    one = StationaryLQG(form, filters="steady").at(0)
    transition = np.block([[form.A + form.B @ one.Dc @ form.C, form.B @ one.Cc], [one.Bc @ form.C, one.Ac]])
    return transition, np.concatenate([form.B @ feedforward, form.B @ feedforward])


def test_no_constant_load_and_no_reference_leaves_an_error_in_the_long_run(seed):
    """Final values of the closed loop; loads act on any state, since there are as many inputs as outputs."""
    plant = random_plant(seed)
    form = velocity_form(plant, load=1.0, drift=0.1)
    policy = StationaryLQG(form, filters="steady")
    rest = policy.rest([0, 1])
    transition, drive = closed_loop(form, rest.u + policy.K[0] @ rest.x)
    assert np.abs(np.linalg.eigvals(transition)).max() < 1
    loads = np.concatenate([np.eye(3), np.zeros((len(transition) - 3, 3))])
    final = np.linalg.solve(np.eye(len(transition)) - transition, np.concatenate([loads, drive], axis=1))
    outputs = form.C @ final[: form.num_states]
    expected = np.concatenate([np.zeros((2, 3)), np.eye(2)], axis=1)
    np.testing.assert_allclose(outputs, expected, atol=1e-8 * np.linalg.cond(transition - np.eye(10)))
    plain = np.linalg.solve(np.eye(6) - closed_loop(plant, np.zeros((2, 2)))[0], np.eye(6)[:, :3])
    assert np.abs(plant.C @ plain[:3]).max() > 1e-2  # the controller without loads does leave one


def test_a_load_that_no_output_shows_is_refused():
    speed_only = lg.LQG([[1.0, 0.1], [0.0, 0.9]], [[0.1], [0.0]], [[0.0, 1.0]])
    with pytest.raises(lg.NotDetectableError, match="zero at one"):
        velocity_form(speed_only, load=1.0, drift=0.1)
    with pytest.raises(lg.NotDetectableError, match="more loads than outputs"):
        velocity_form(random_plant(0, inputs=3), load=1.0, drift=0.1)
    velocity_form(random_plant(0, inputs=3), load=1.0, drift=0.1, inputs=[0, 2])


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (dict(load=0.0, drift=1.0), "load is 0.0"),
        (dict(load=1.0, drift=[1.0, 1.0, 1.0]), "or 2 of them"),
        (dict(load=1.0, drift=1.0, inputs=[2]), "below 2"),
    ],
)
def test_arguments_of_loads_are_read_strictly(arguments, why):
    with pytest.raises(lg.InvalidArgumentError, match=why):
        velocity_form(random_plant(0), **arguments)


def test_a_measured_disturbance_moves_the_state_and_is_the_last_output(seed):
    plant = random_plant(seed)
    E = np.random.default_rng(seed).normal(size=(3, 1))
    form = measure_disturbance(plant, E, size=2.0, noise=0.1, decay=0.9)
    d, x, state = 1.3, np.zeros(3), np.array([0, 0, 0, 1.3])
    for _ in range(5):
        np.testing.assert_allclose(form.C @ state, [*(plant.C @ x), d], atol=1e-12)
        x, d, state = plant.A @ x + E[:, 0] * d, 0.9 * d, form.A @ state
    # In the long run it is of the size that was given.
    np.testing.assert_allclose(form.W[3, 3] / (1 - 0.9**2), 4.0)
    with pytest.raises(lg.InvalidArgumentError, match="decay is 1"):
        measure_disturbance(plant, E, size=2.0, noise=0.1, decay=1.0)


def test_the_better_a_disturbance_is_measured_the_less_it_costs(seed):
    E = np.random.default_rng(seed).normal(size=(3, 1))
    plant = random_plant(seed)
    costs = [
        float(lg.solve(measure_disturbance(plant, E, size=5.0, noise=noise, decay=0.99)).J)
        for noise in (1e-3, 1.0, 1e3)
    ]
    assert sorted(costs) == costs
    assert costs[0] < 0.98 * costs[2]


def final_error(seed, *, decay):
    """Of a constant d = 1, which the controller expects to decay: the loop's own equations, with d held."""
    E = np.random.default_rng(seed).normal(size=(3, 1))
    measured = measure_disturbance(random_plant(seed), E, size=2.0, noise=1e-3, decay=decay)
    form = velocity_form(measured, load=1.0, drift=0.1)
    transition, _ = closed_loop(form, np.zeros((2, 2)))
    held = transition.copy()
    held[3, 3] = 1.0
    values, vectors = np.linalg.eig(held)
    rest = vectors[:, np.argmin(np.abs(values - 1))].real
    return np.abs((form.C @ rest[: form.num_states])[:2] / rest[3]).max()


def test_what_a_constant_measured_disturbance_leaves_is_of_the_order_of_its_decay(seed):
    first, second = final_error(seed, decay=0.999), final_error(seed, decay=0.9999)
    assert second < 1e-3
    np.testing.assert_allclose(first / second, 10, rtol=0.1)


def test_weights_of_states_stay_and_those_of_states_with_inputs_are_refused():
    plant = random_plant(0)
    weighed = lg.LQG(**plant.matrices(), Qx=np.diag([1.0, 2.0, 3.0]))
    forms = [
        velocity_form(weighed, load=1.0, drift=0.1),
        measure_disturbance(weighed, np.ones((3, 1)), size=1.0, noise=0.1),
    ]
    for form in forms:
        np.testing.assert_array_equal(np.diagonal(form.Qx)[:3], [1.0, 2.0, 3.0])
        assert float(lg.solve(form).J) > 0
    crossed = lg.LQG(**plant.matrices(), Qx=10 * np.eye(3), N=0.1 * np.ones((3, 2)))
    measured = measure_disturbance(crossed, np.ones((3, 1)), size=1.0, noise=0.1)
    np.testing.assert_array_equal(measured.N, [[0.1, 0.1]] * 3 + [[0.0, 0.0]])
    with pytest.raises(lg.InvalidArgumentError, match="inputs are changes"):
        velocity_form(crossed, load=1.0, drift=0.1)
