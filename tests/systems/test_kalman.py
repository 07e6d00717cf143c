import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from random_systems import general_plant, random_plant, random_record

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError, NotConvergedError
from lqgap.linalg import sqrt_psd
from lqgap.systems import correct, filter_record, log_likelihood, predict, prior
from lqgap.systems.kalman import expected_costs


def joint_law(plant, u):
    """Mean and covariance of (x_t, y_0..y_t) at the last step, by propagating one long Gaussian vector."""
    n, p, steps = plant.num_states, plant.num_outputs, len(u)
    mean, cov = np.zeros(n), np.asarray(plant.S0)  # of (x_t, y_0..y_{t-1})
    for t in range(steps):
        observe = np.zeros((p, len(mean)))
        observe[:, :n] = plant.C
        lift = np.vstack([np.eye(len(mean)), observe])
        mean, cov = lift @ mean, lift @ cov @ lift.T
        cov[-p:, -p:] += plant.V
        if t < steps - 1:
            move = np.eye(len(mean))
            move[:n, :n] = plant.A
            mean, cov = move @ mean, move @ cov @ move.T
            mean[:n] += plant.B @ u[t]
            cov[:n, :n] += plant.W
    return mean, cov


def with_losses(y):
    y = y.copy()
    y[1, 0] = y[3] = np.nan
    return y


@pytest.mark.parametrize("lose", [False, True])
def test_beliefs_and_likelihood_are_those_of_the_joint_gaussian(seed, lose):
    plant = random_plant(seed, radius=1.1)
    y, u = random_record(seed, plant, steps=5)
    y = with_losses(y) if lose else y
    n = plant.num_states
    mean, cov = joint_law(plant, u)
    seen = np.flatnonzero(~np.isnan(y.ravel())) + n
    gain = cov[:n, seen] @ np.linalg.inv(cov[np.ix_(seen, seen)])
    record = filter_record(plant, y, u)
    np.testing.assert_allclose(
        record.belief.mean[-1], mean[:n] + gain @ (y[~np.isnan(y)] - mean[seen]), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(record.belief.cov[-1], cov[:n, :n] - gain @ cov[seen, :n], atol=1e-9)
    law = scipy.stats.multivariate_normal(mean[seen], cov[np.ix_(seen, seen)])
    np.testing.assert_allclose(log_likelihood(plant, y, u)[-1], law.logpdf(y[~np.isnan(y)]), rtol=1e-9)


def test_a_lost_observation_changes_nothing_and_has_likelihood_one(seed):
    plant = random_plant(seed)
    belief = prior(plant)
    correction = correct(plant, belief, jnp.full(2, jnp.nan))
    np.testing.assert_allclose(correction.belief.mean, belief.mean)
    np.testing.assert_allclose(correction.belief.cov, belief.cov, atol=1e-12)
    np.testing.assert_allclose(correction.log_likelihood, 0, atol=1e-12)


def test_covariances_are_those_of_the_finite_optimum_and_tend_to_the_steady_one(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=200)
    record, finite = filter_record(plant, y, u), lqgap.solve_finite(plant, horizon=199)
    np.testing.assert_allclose(record.gain, finite.L, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(record.S, finite.S, rtol=1e-9)
    np.testing.assert_allclose(record.gain[-1], lqgap.solve(plant).L, rtol=1e-8, atol=1e-10)


def test_observation_never_increases_uncertainty_and_noise_never_decreases_it(seed):
    plant = random_plant(seed)
    before = prior(plant)
    after = correct(plant, before, jnp.ones(2)).belief
    assert jnp.linalg.eigvalsh(before.cov - after.cov)[0] > -1e-12
    onward = predict(plant, after, jnp.ones(2))
    assert jnp.linalg.eigvalsh(onward.cov - plant.W)[0] > -1e-12


def test_costs_of_a_record_are_those_that_the_filter_expects(seed):
    plant = general_plant(seed)
    y, u = random_record(seed, plant)
    run = filter_record(plant, y, u)
    for t, cost in enumerate(expected_costs(plant, y, u)):
        nodes = sqrt_psd(run.belief.cov[t]) * np.sqrt(plant.num_states)  # +-: exact for quadratic functions
        now = jnp.asarray(y[t]), jnp.asarray(u[t])
        states = [run.belief.mean[t] + sign * node for node in nodes.T for sign in (-1, 1)]
        np.testing.assert_allclose(cost, np.mean([plant.cost(x, *now) for x in states]), rtol=1e-9)


def test_the_likelihood_is_differentiable_even_where_observations_are_lost():
    plant = random_plant(0)
    y, u = random_record(0, plant, steps=6)
    slope = jax.grad(lambda plant: log_likelihood(plant, with_losses(y), u)[-1])(plant)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope))


BAD_RECORDS = {
    "y has the wrong width": (np.zeros((5, 3)), np.zeros((5, 2)), r"y has shape \(5, 3\), expected \(time, 2\)"),
    "u has the wrong width": (np.zeros((5, 2)), np.zeros((5, 1)), r"u has shape \(5, 1\), expected \(time, 2\)"),
    "lengths differ": (np.zeros((5, 2)), np.zeros((4, 2)), "y has 5 rows and u has 4"),
    "y is infinite": (np.full((5, 2), np.inf), np.zeros((5, 2)), "y has infinite entries"),
    "u is lost": (np.zeros((5, 2)), np.full((5, 2), np.nan), "u has entries that are NaN"),
    "y is text": ("record", np.zeros((5, 2)), "y holds"),
    "y is empty": (np.zeros((0, 2)), np.zeros((0, 2)), "the record is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD_RECORDS))
def test_a_malformed_record_raises(name):
    y, u, message = BAD_RECORDS[name]
    with pytest.raises(InvalidArgumentError, match=message):
        log_likelihood(random_plant(0), y, u)


def test_a_batch_of_plants_is_mapped_not_passed():
    batch = lqgap.stack([random_plant(0), random_plant(1)])
    y, u = random_record(0, random_plant(0))
    with pytest.raises(InvalidSystemError, match="batch"):
        log_likelihood(batch, y, u)
    assert jax.vmap(lambda plant: log_likelihood(plant, y, u))(batch).shape == (2, len(y))


def test_outputs_that_repeat_each_other_are_filtered_or_refused():
    def likelihood(noise, spread):
        plant = lqgap.LQG(
            np.diag([0.9, 0.5]),
            np.ones((2, 1)),
            [[1.0, 0.0], [1.0, 0.0]],
            V=noise * np.eye(2),
            S0=spread * np.eye(2),
        )
        return log_likelihood(plant, [[1.0, 1.0]], [[0.0]])[-1]

    # One observation: y = x + z twice, whose law is N(0, s J + v I) with eigenvalues 2 s + v and v.
    v, s = 1e-8, 1e6
    exact = -0.5 * (2 / (2 * s + v) + np.log(2 * s + v) + np.log(v) + 2 * np.log(2 * np.pi))
    np.testing.assert_allclose(likelihood(v, s), exact, atol=0.01)  # rounding of S: eps s / v = 0.02
    with pytest.raises(NotConvergedError, match="singular up to rounding"):
        likelihood(1e-9, 1e9)
