import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import UnknownPlant
from lqgap.adaptive.identified.knowledge import window_for
from lqgap.policies import LinearDynamic
from lqgap.simulators import Finite


@pytest.mark.parametrize(
    ("name", "radius", "window"), [("mass_spring_damper", 0.557, 8), ("two_mass_spring", 0.847, 28)]
)
def test_the_window_forgets_all_but_a_hundredth(name, radius, window):
    plant = getattr(lg.plants, name)().nominal()
    optimum = lg.solve(plant)
    found = np.max(np.abs(np.linalg.eigvals(np.asarray(plant.A - optimum.F @ plant.C))))
    assert found == pytest.approx(radius, abs=2e-3)
    assert window_for(Finite.of(plant)) == window
    assert found**window < 0.01 < found ** (window - 1)


def test_random_inputs_cost_what_the_excitation_says():
    R = np.asarray([[2.0, 0.5], [0.5, 1.0]])
    told = UnknownPlant(order=2, Q=np.eye(1), R=R, excitation=0.3)
    z = jax.random.normal(jax.random.key(0), (20_000, 2))
    u = np.asarray(z @ told.probe.T)
    np.testing.assert_allclose(np.asarray(told.probe @ told.probe.T), 0.09 / 2 * np.linalg.inv(R), rtol=1e-12)
    # The mean of 20000 terms with standard deviation below 0.09.
    assert np.mean(np.einsum("ti,ij,tj->t", u, R, u)) == pytest.approx(0.09, abs=4 * 0.09 / np.sqrt(20_000))
    assert told.window == 8


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    good = {"order": 2, "Q": jnp.eye(1), "R": jnp.eye(1)}
    for name, value in (
        ("order", 0),
        ("Q", 1.0),
        ("Q", "x"),
        ("Q", None),
        ("R", [[1.0, 2.0], [3.0]]),
        ("chooses_order", "no"),
        ("window", 3),
        ("excitation", 0.0),
        ("stabilizer", "none"),
        ("stabilizer", LinearDynamic(Dc=[[1.0, 2.0]])),
    ):
        with pytest.raises(lg.LqgapError, match=name):
            UnknownPlant(**(good | {name: value}))


@pytest.mark.parametrize(
    "make",
    [
        lg.adaptive.IdentifiedCertaintyEquivalence,
        lg.adaptive.LqgOpt,
        lg.adaptive.AdaptOn,
        lambda plant: lg.adaptive.ExploreThenCommit(plant, horizon=100),
        lambda plant: lg.adaptive.IdentifiedDisturbanceResponse(plant, horizon=100),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_a_learner_that_is_given_the_plant_says_what_it_may_be_told(make):
    for given in (lg.LQG([[0.5]], [[1.0]], [[1.0]]), None):
        with pytest.raises(lg.InvalidArgumentError, match=r"UnknownPlant\.like"):
            make(given)
