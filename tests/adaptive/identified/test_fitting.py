import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import IdentifiedCertaintyEquivalence, UnknownPlant
from lqgap.adaptive.identified.fitting import Units, design_for, draw_normals, fit_model, is_certified
from lqgap.adaptive.identified.optimism import Optimism


@functools.cache
def record(name, steps, seed=0):
    """A stream with random inputs, in units of what is told of the plant."""
    plant = getattr(lg.plants, name)().nominal()
    told = UnknownPlant.like(plant, window=8)
    draws = np.random.default_rng(seed)
    A, B, C = (np.asarray(part) for part in (plant.A, plant.B, plant.C))
    x, ys = np.zeros(len(A)), []
    us = draws.normal(size=(steps, B.shape[1])) @ np.asarray(told.probe).T * 2
    for u in us:
        ys.append(C @ x + draws.normal(size=len(C)))
        x = A @ x + B @ u + draws.normal(size=len(A))
    regression = told.regression
    stream, _ = jax.jit(
        lambda y, u: jax.lax.scan(lambda s, now: (regression.step(s, *now), None), regression.init(), (y, u))
    )(jnp.asarray(ys), jnp.concatenate([jnp.zeros_like(us[:1]), us[:-1]]))
    return plant, told, stream, Units(jnp.std(jnp.asarray(ys), axis=0), jnp.std(jnp.asarray(us), axis=0))


@jax.jit
def identified(told, stream, units, optimism, key):
    model = fit_model(told, stream, units)
    found = design_for(told, model, units)
    leaning = optimism.lean(told, model, found, units)
    normals = draw_normals(told, key=key)
    return model, found, leaning, is_certified(found, model, normals=normals), units.restore_design(found)


@jax.jit
def planned(told, stream, units):
    return IdentifiedCertaintyEquivalence(told).identify(
        stream, units, draw_normals(told, key=jax.random.key(0))
    )


def of(name, steps, seed=0):
    plant, told, stream, units = record(name, steps, seed)
    return plant, identified(told, stream, units, Optimism(told, confidence=0.95), jax.random.key(seed))


@pytest.mark.parametrize("name", ["mass_spring_damper", "web_server"])
def test_a_long_record_gives_the_plants_controller(name):
    plant, (model, _, _, is_safe, restored) = of(name, 4_000)
    assert is_safe
    assert model.is_sound
    assert float(restored.J) == pytest.approx(float(lg.solve(plant).J), rel=0.15)
    radius = restored.loop_radius(lg.identification.innovation_form(lg.solve(plant), plant))
    assert radius < 1


def test_optimism_stays_in_the_set_lowers_the_cost_and_fades_with_the_record():
    gains = []
    for steps in (400, 4_000):
        _, (model, found, leaning, *_) = of("mass_spring_damper", steps)
        apart = model.metric.misfit(leaning.plant, found.plant)
        assert 0 < apart <= 1.5 * 12.6
        assert leaning.J < found.J
        gains.append(1 - float(leaning.J / found.J))
    assert gains[1] < 0.6 * gains[0]  # like one over the root: 0.32


@pytest.mark.parametrize("name", ["mass_spring_damper", "web_server"])
def test_a_probe_of_unit_size_costs_the_average_cost_of_the_model(name):
    """E ||probe||^2_M = J: sigma^2 J t^-1/2 at step t, in the units that the plant is given in."""
    _, told, stream, units = record(name, 400)
    plan = planned(told, stream, units).plan
    np.testing.assert_allclose(np.trace(plan.probe.T @ plan.design.M @ plan.probe), plan.J, rtol=1e-9)


def test_a_record_that_is_too_short_is_not_sound():
    _, (model, *_) = of("mass_spring_damper", 20)
    assert not model.is_sound


def test_a_first_order_plant_is_given_one_state_if_the_order_is_chosen():
    plant, _, stream, units = record("dc_motor", 1_000)
    free = UnknownPlant.like(plant, window=8, chooses_order=True)
    model, _, _, _, restored = identified(
        free, stream, units, Optimism(free, confidence=0.95), jax.random.key(0)
    )
    assert model.num_states == 1
    assert int(jnp.sum(model.sure.is_seen)) == 3
    for part in (restored.plant.B[1], restored.plant.C[:, 1], restored.plant.F[1]):
        np.testing.assert_allclose(part, 0, atol=1e-20)
    assert float(restored.J) == pytest.approx(float(lg.solve(plant).J), rel=0.2)
