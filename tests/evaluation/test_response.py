import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import Integrated, ModelBank, Recurrent, StationaryLQG

STEPS = 120


@pytest.fixture(scope="module")
def members():
    return lg.plants.mass_spring_damper().grid(2)


def steps(first, last):
    """A signal that changes half way."""
    return np.where(np.arange(STEPS)[:, None] < STEPS // 2, first, last)


def loop(policy, plant, references, loads):
    """The same by the controller of a real loop, and a plant in NumPy."""
    controller, x, rows = lg.Controller(policy, follow=[0]), np.zeros(plant.num_states), []
    for reference, load in zip(references, loads, strict=True):
        y = plant.C @ x
        u = controller(y, reference=reference)
        x = plant.A @ x + plant.B @ (u + load)
        rows.append((*y, *u))
    return np.array(rows)


def test_it_is_what_a_controller_does_in_a_loop_without_noise(members):
    policy, references, loads = ModelBank(members.systems), steps(30.0, -10.0), steps(0.0, 2.0)
    found = lg.respond(policy, members, references=references, loads=loads)
    assert found.y.shape == (4, STEPS, 1)
    for index, plant in enumerate(members):
        wanted = loop(policy, plant, references, loads)
        np.testing.assert_allclose(found.y[index], wanted[:, :1], atol=1e-8)
        np.testing.assert_allclose(found.u[index], wanted[:, 1:], atol=1e-8)


def test_in_velocity_form_a_load_is_its_change_and_leaves_no_error(members):
    form = lg.offset_free(members[0], load=1.0, drift=1.0)
    policy, references = StationaryLQG(form), steps(1.0, 1.0)
    loads = np.zeros((STEPS, 1))
    loads[STEPS // 2] = 3.0
    found = lg.respond(policy, form, references=references, loads=loads)
    plain = loop(Integrated(policy), members[0], references, np.cumsum(loads, axis=0))
    np.testing.assert_allclose(found.y[0], plain[:, :1], atol=1e-8)
    np.testing.assert_allclose(np.cumsum(found.u[0], axis=0), plain[:, 1:], atol=1e-8)
    np.testing.assert_allclose(found.y[0, -1], 1, atol=1e-6)
    assert np.max(np.abs(found.y[0, STEPS // 2 :] - 1)) > 0.1


def test_what_cannot_be_asked_is_refused(members):
    policy = StationaryLQG(members[0])
    with pytest.raises(lg.InvalidSystemError, match="references has shape"):
        lg.respond(policy, members, references=np.ones((STEPS, 2)))
    with pytest.raises(lg.InvalidSystemError, match="loads has shape"):
        lg.respond(policy, members, references=np.ones((STEPS, 1)), loads=np.ones((3, 1)))
    network = Recurrent(num_inputs=1, num_outputs=1, width=2, key=jax.random.key(0))
    with pytest.raises(lg.InvalidArgumentError, match="cannot follow a reference"):
        lg.respond(network, members, references=np.ones((STEPS, 1)))
