import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from random_systems import random_definite

from lqgap.systems.innovation import complete, correct_by_gain, fill_lost, filter_step, innovation_law


@pytest.mark.parametrize("lost", [(), (0,), (2,), (0, 2), (0, 1, 2)])
def test_lost_components_are_filled_and_scored_as_a_dense_gaussian_says(seed, lost):
    rng = np.random.default_rng(seed)
    S, e = random_definite(rng, 3), rng.normal(size=3)
    seen = [i for i in range(3) if i not in lost]
    given = e.copy()
    given[list(lost)] = np.nan
    part = fill_lost(jnp.asarray(given), jnp.asarray(S))
    filled, log_density = part.innovation, part.log_density

    expected = e.copy()
    if lost:
        among = np.linalg.solve(S[np.ix_(seen, seen)], e[seen]) if seen else np.zeros(0)
        expected[list(lost)] = S[np.ix_(lost, seen)] @ among
    np.testing.assert_allclose(filled, expected, rtol=1e-12, atol=1e-14)
    dense = scipy.stats.multivariate_normal(cov=S[np.ix_(seen, seen)]).logpdf(e[seen]) if seen else 0.0
    np.testing.assert_allclose(log_density, dense, rtol=1e-12, atol=1e-14)


def test_the_gain_applied_to_the_filled_innovation_is_the_correction_by_what_was_seen(seed):
    rng = np.random.default_rng(seed)
    Sigma, C, V = random_definite(rng, 4), rng.normal(size=(3, 4)), random_definite(rng, 3)
    S = C @ Sigma @ C.T + V
    L = Sigma @ C.T @ np.linalg.inv(S)
    e = rng.normal(size=3)
    filled = fill_lost(jnp.asarray([e[0], np.nan, e[2]]), jnp.asarray(S)).innovation
    seen = [0, 2]
    correction = Sigma @ C[seen].T @ np.linalg.solve(S[np.ix_(seen, seen)], e[seen])
    np.testing.assert_allclose(L @ filled, correction, rtol=1e-11, atol=1e-13)


def test_derivatives_are_finite_when_something_is_lost():
    S = jnp.asarray([[2.0, 0.5], [0.5, 1.0]])

    def score(scale):
        return fill_lost(jnp.asarray([1.0, jnp.nan]) - scale, scale * S).log_density

    assert np.isfinite(jax.grad(score)(1.3))


def test_many_outputs_are_solved_as_few_are(seed):
    rng = np.random.default_rng(seed)
    S, e = random_definite(rng, 6), rng.normal(size=6)
    e[[1, 4]] = np.nan
    part = fill_lost(jnp.asarray(e), jnp.asarray(S))
    filled, log_density = part.innovation, part.log_density
    seen = [0, 2, 3, 5]
    dense = scipy.stats.multivariate_normal(cov=S[np.ix_(seen, seen)]).logpdf(e[seen])
    np.testing.assert_allclose(log_density, dense, rtol=1e-11)
    among = np.linalg.solve(S[np.ix_(seen, seen)], e[seen])
    np.testing.assert_allclose(filled[jnp.asarray([1, 4])], S[np.ix_([1, 4], seen)] @ among, rtol=1e-10)


def test_single_precision_stays_single():
    part = fill_lost(jnp.asarray([1.0, jnp.nan], jnp.float32), jnp.eye(2, dtype=jnp.float32))
    filled, log_density = part.innovation, part.log_density
    assert filled.dtype == log_density.dtype == jnp.float32


@pytest.mark.parametrize("lost", [(), (1,), (0, 1, 2)])
def test_a_filter_step_predicts_and_corrects_whether_or_not_the_law_was_prepared(seed, lost):
    rng = np.random.default_rng(seed)
    A, B, C, L = (jnp.asarray(rng.normal(size=shape)) for shape in ((4, 4), (4, 2), (3, 4), (4, 3)))
    S, xhat, u = jnp.asarray(random_definite(rng, 3)), jnp.asarray(rng.normal(size=4)), jnp.ones(2)
    y = jnp.asarray(np.where(np.isin(range(3), lost), np.nan, rng.normal(size=3)))
    predicted = A @ xhat + B @ u
    part = fill_lost(y - C @ predicted, S)
    filled, log_density = part.innovation, part.log_density
    found = filter_step(A, B, C, L, S, xhat, u, y)
    np.testing.assert_allclose(found.xhat, predicted + L @ filled, rtol=1e-12)
    np.testing.assert_allclose(found.log_density, log_density, rtol=1e-12)
    np.testing.assert_allclose(complete(y, C @ predicted, S), C @ predicted + found.innovation, rtol=1e-12)
    prepared = correct_by_gain(C, L, innovation_law(S), predicted, y)
    for ours, theirs in zip(jax.tree.leaves(prepared), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
