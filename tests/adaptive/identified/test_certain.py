import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from lqgap.adaptive import IdentifiedCertaintyEquivalence, UnknownPlant
from lqgap.identification import innovation_form
from lqgap.policies import StationaryLQG


def test_with_the_plant_itself_as_the_model_beliefs_are_those_of_the_steady_filter_through_losses():
    plant = lg.plants.web_server().nominal()
    form = innovation_form(lg.solve(plant), plant)
    learner = IdentifiedCertaintyEquivalence(UnknownPlant.like(plant))
    plan, chi, _ = learner.blank()
    plan = type(plan)(type(plan.design)(form, *_rest(plan.design)), plan.probe, plan.J)
    steady = StationaryLQG(plant, filters="steady")
    draws = np.random.default_rng(0)
    memory, u = steady.init(jax.random.key(0)), jnp.zeros(2)
    G = np.asarray(_gain(plant))
    for t in range(12):
        y = jnp.asarray(draws.normal(size=2)).at[0].set(jnp.nan if t == 5 else 0.3)
        chi = learner.advance(plan, chi, y, u)
        memory, wanted = steady.step(memory, y, u)
        if t <= 5:  # afterwards the exact filter remembers the loss in its gain
            np.testing.assert_allclose(-G @ chi, wanted, rtol=1e-8, atol=1e-10)
        u = wanted


def _rest(design):
    return design.G, design.M, design.Phat, design.J, design.is_sound


def _gain(plant):
    optimum = lg.solve(plant)
    return jnp.linalg.solve(optimum.M, plant.B.T @ optimum.P)
