import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation import closed_loop_radius
from lqgap.policies import LinearDynamic, ModelBank


@pytest.mark.parametrize(
    ("family", "points"),
    [("double_integrator", 2), pytest.param("acc_two_mass", 5, marks=pytest.mark.slow)],
)
def test_one_controller_stabilises_every_member(family, points):
    members = getattr(lg.plants, family)().grid(points)
    controller = lg.find_stabilizer(members)
    radii = jax.vmap(lambda plant: closed_loop_radius(controller, plant))(members.systems)
    assert np.max(radii) < 1


def cart_pole(mass, length):
    """Upright, position and angle measured every 20 ms."""
    A = [[0, 1, 0, 0], [0, 0, -9.81 * mass, 0], [0, 0, 0, 1], [0, 0, 9.81 * (1 + mass) / length, 0]]
    A, B = lg.systems.zero_order_hold(A, [[0.0], [1.0], [0.0], [-1 / length]], dt=0.02)
    C, S0 = [[1.0, 0, 0, 0], [0, 0, 1.0, 0]], 0.01 * np.eye(4)
    W = np.diag([1e-6, 1e-4, 1e-6, 1e-4])
    return lg.LQG(A, B, C, Q=np.diag([1.0, 10]), R=[[0.01]], W=W, V=1e-6 * np.eye(2), S0=S0)


@pytest.mark.slow
def test_a_bank_needs_no_stabiliser_below_it():
    """Its members see the whole input, so they stabilise the plant themselves, from the first sample on."""
    members = lg.ParameterBox(cart_pole, {"mass": (0.08, 0.12), "length": (0.4, 0.6)}).grid(2)
    assert np.min(np.abs(np.linalg.eigvals(members.systems.A)).max(axis=1)) > 1.05
    gaps = {
        name: lg.gap(policy, members, horizon=60, key=jax.random.key(0), num_rollouts=256, ends=False)
        for name, policy in (
            ("stabiliser", lg.find_stabilizer(members)),
            ("steady", ModelBank(members.systems, filters="steady")),
            ("bank", ModelBank(members.systems)),
        )
    }
    # 7.3, 8 and 0.026 with standard errors of a tenth: what is lost is lost while the filters settle.
    assert gaps["bank"].worst < 0.02 * gaps["steady"].worst
    assert gaps["bank"].worst < 0.02 * gaps["stabiliser"].worst


def test_static_feedback_cannot_stabilise_a_double_integrator():
    plant = lg.plants.double_integrator().nominal()
    radii = [closed_loop_radius(LinearDynamic(Dc=[[gain]]), plant) for gain in np.linspace(-20, 20, 81)]
    assert min(radii) >= 1 - 1e-9


def test_no_linear_controller_stabilises_the_phase_pair():
    """det(I - AA) > 0 for a stable loop, but its signs for the two members are opposite, whatever the controller."""
    members = lg.plants.phase_pair().grid(2)
    rng = np.random.default_rng(0)
    for order in range(5):
        Ac, Bc = rng.normal(size=(order, order)), rng.normal(size=(order, 1))
        Cc, Dc = rng.normal(size=(1, order)), rng.normal(size=(1, 1))
        signs = []
        for plant in (members[0], members[1]):
            A, B, C = np.asarray(plant.A), np.asarray(plant.B), np.asarray(plant.C)
            loop = np.block([[A + B @ Dc @ C, B @ Cc], [Bc @ C, Ac]])
            signs.append(np.sign(np.linalg.det(np.eye(len(loop)) - loop)))
        assert signs[0] == -signs[1] != 0


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run_it")
def test_where_there_is_none_it_says_so():
    with pytest.raises(lg.NotConvergedError, match="policy that adapts"):
        lg.find_stabilizer(lg.plants.phase_pair().grid(2))


@pytest.mark.usefixtures("as_users_run_it")
def test_only_classes_are_stabilised():
    with pytest.raises(lg.InvalidArgumentError, match="finite class"):
        lg.find_stabilizer(lg.plants.mass_spring_damper())
