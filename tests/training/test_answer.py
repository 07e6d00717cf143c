import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import lqgap as lg
from lqgap.policies import DualBank, ModelBank, StationaryLQG
from lqgap.training import TrainingOptions, train_robust
from lqgap.training.answer import answers, climb, grow, set_prior, tilt_of


@functools.cache
def springs():
    return lg.plants.mass_spring_damper().grid(2)


def test_the_tilted_prior_makes_the_mean_input_that_costs_least_on_average():
    members, weights = springs(), np.asarray([0.4, 0.3, 0.2, 0.1])
    bank = grow(ModelBank(members.systems), members.systems, weights)
    memory, inputs = bank.propose(bank.init(jax.random.key(0)), jnp.asarray([1.3]), jnp.zeros(1))
    likelihood = np.exp(np.asarray(memory.log_likelihood))
    M = np.asarray(members.optima().M)[:, 0, 0]

    def cost(u):
        return np.sum(weights * likelihood * M * (u - np.asarray(inputs)[:, 0]) ** 2)

    best = scipy.optimize.minimize_scalar(cost, tol=1e-12).x
    np.testing.assert_allclose(bank.weights(memory) @ inputs, [best], rtol=1e-6)


def test_banks_of_the_members_answer_and_nothing_else_does():
    members, other = springs(), lg.plants.mass_spring_damper(mass=1.1).grid(2)
    bank = ModelBank(members.systems, horizon=9)
    assert answers(bank, members.systems)
    assert answers(DualBank(members.systems, horizon=9), members.systems)
    for policy, systems in (
        (bank, other.systems),
        (bank, lg.plants.mass_spring_damper().grid(3).systems),
        (ModelBank(members.systems, mode="map"), members.systems),
        (StationaryLQG(members[0]), members.systems),
    ):
        assert not answers(policy, systems)


def test_weight_climbs_to_larger_gaps_and_rests_where_all_are_equal():
    even = jnp.log(jnp.full(3, 1 / 3))
    moved = climb(even, jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray(0))
    assert np.all(np.diff(np.asarray(moved)) > 0)
    np.testing.assert_allclose(jnp.sum(jnp.exp(moved)), 1, rtol=1e-12)
    np.testing.assert_allclose(climb(even, jnp.full(3, 5.0), jnp.asarray(7)), even, rtol=1e-12)
    late = climb(even, jnp.asarray([1.0, 2.0, 3.0]), jnp.asarray(60))
    np.testing.assert_allclose(np.ptp(late), np.ptp(moved) / 2, rtol=1e-12)


def test_a_prior_is_set_in_a_bank_and_in_one_that_probes():
    bank = ModelBank(springs().systems)
    for policy in (bank, DualBank(springs().systems)):
        changed = set_prior(policy, jnp.asarray([1.0, 2.0, 3.0, 4.0]))
        own = changed.bank if isinstance(changed, DualBank) else changed
        np.testing.assert_allclose(own.log_prior, [-1.5, -0.5, 0.5, 1.5])


def test_what_an_input_costs_does_not_depend_on_its_units():
    plant = lg.plants.two_mass_spring().grid(2)
    scale = np.diag([10.0, 0.1])
    systems = plant.systems
    scaled = lg.stack(
        [lg.LQG(p.A, p.B @ scale, p.C, Q=p.Q, R=scale @ p.R @ scale, W=p.W, V=p.V, S0=p.S0) for p in plant]
    )
    difference = np.asarray(tilt_of(scaled) - tilt_of(systems))
    np.testing.assert_allclose(difference, difference[0], atol=1e-8)


@pytest.mark.slow
def test_the_answer_to_the_adversary_comes_near_to_a_saddle_point():
    """Within five per cent of the mean gap under the mixture, where the untrained bank loses half as much again."""
    members = lg.plants.mass_spring_damper().grid(3)
    bank = ModelBank(members.systems, horizon=60)
    options = TrainingOptions(steps=100, receipt_rollouts=4096)
    result = train_robust(bank, members, horizon=60, key=jax.random.key(0), options=options)
    assert result.improvement > 0.3
    assert result.optimality < 0.05 * result.mean_gap + 4 * result.mean_stderr
