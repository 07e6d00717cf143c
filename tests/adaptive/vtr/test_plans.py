import jax.numpy as jnp
import numpy as np
import pytest
from naive_vtr import random_class

import lqgap as lg
from lqgap.adaptive.vtr.plans import Plans
from lqgap.evaluation.exact import closed_loop_radius, exact_average_cost
from lqgap.policies import StationaryLQG
from lqgap.simulators import Finite


def plans_of(plants, kind="bayes"):
    members = Finite(plants)
    return Plans(members.systems, members.optima(), kind, has_excess=True)


def test_the_excess_is_the_average_cost_above_the_optimum():
    plants = random_class(4)
    found = np.asarray(plans_of(plants).excess)
    for i, own in enumerate(plants):
        for j, plant in enumerate(plants):
            policy, J = StationaryLQG(own), float(lg.solve(plant).J)
            if float(closed_loop_radius(policy, plant)) >= 1:
                assert np.isinf(found[i, j])
            else:
                cost = float(exact_average_cost(policy, plant))
                np.testing.assert_allclose(found[i, j], cost - J, rtol=1e-6, atol=1e-9 * cost)
    np.testing.assert_allclose(np.diagonal(found), 0.0, atol=1e-12)


def test_a_controller_that_destabilises_a_possible_plant_is_taken_only_if_it_is_hardly_possible():
    plants = [lg.LQG([[1.1]], [[gain]], [[1.0]]) for gain in (1.0, -1.0)]
    plans = plans_of(plants)
    assert np.isinf(float(plans.excess[0, 1]))
    assert plans.safest() is None
    everyone = jnp.ones(2, dtype=bool)
    assert int(plans.choose(everyone, jnp.asarray([0.0, 0.1]))) == 1
    assert int(plans.choose(everyone, jnp.asarray([0.1, 0.0]))) == 0
    assert np.isinf(float(plans.rate(jnp.asarray(0), everyone)))
    assert float(plans.rate(jnp.asarray(0), jnp.asarray([True, False]))) < 1e-12


@pytest.mark.parametrize("kind", ["bayes", "minimax", "optimistic"])
def test_only_possible_members_are_acted_on(kind):
    """Also where the controller of another one would be a compromise between them."""
    plants = [lg.LQG([[0.9]], [[gain]], [[1.0]]) for gain in (0.3, 0.6, 1.2, 2.4)]
    plans = plans_of(plants, kind)
    ends = jnp.asarray([True, False, False, True])
    assert int(plans.choose(ends, jnp.asarray([0.0, 50.0, 50.0, 0.1]))) in (0, 3)


@pytest.mark.parametrize("kind", ["bayes", "minimax", "optimistic"])
def test_one_possible_member_is_acted_on(kind):
    plans = plans_of(random_class(4), kind)
    for index in range(4):
        alone = jnp.arange(4) == index
        assert int(plans.choose(alone, jnp.zeros(4))) == index
