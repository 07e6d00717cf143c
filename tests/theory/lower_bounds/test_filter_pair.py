import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant
from two_filters import operators

import lqgap as lg
from lqgap.evaluation.reference import reference_of
from lqgap.theory.lower_bounds.filter_pair import gain_of_deviation, join, spread

HORIZON = 6


def pair(seed):
    return tuple(reference_of(random_plant(seed + shift), horizon=HORIZON) for shift in (0, 7))


def block_diagonal(metric):
    return jax.scipy.linalg.block_diag(*metric)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_spread_is_the_covariance_of_two_filters_run_side_by_side(share, seed):
    first, second = pair(seed)
    (want, expect), _ = operators(first, second, share)
    moments = spread(
        join(first, second, share),
        jnp.broadcast_to(jnp.eye(len(first.C)), (HORIZON + 1, *[len(first.C)] * 2)),
    )
    inputs = first.B.shape[1]
    for h in range(HORIZON + 1):
        rows = want[h * inputs : (h + 1) * inputs]
        np.testing.assert_allclose(moments.input_difference[h], rows @ rows.T, atol=1e-10)
    np.testing.assert_allclose(
        moments.output_difference, np.sum(expect.reshape(HORIZON + 1, -1) ** 2, axis=1), atol=1e-10
    )


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_gain_is_the_largest_singular_value_and_never_below_it(share, seed):
    first, second = pair(seed)
    filters = join(first, second, share)
    _, (want, expect) = operators(first, second, share)
    root_in = np.linalg.cholesky(block_diagonal(first.M))
    at_once = jnp.broadcast_to(jnp.eye(first.M.shape[1]), first.M.shape)
    never = jnp.zeros((HORIZON + 1, len(first.C), first.B.shape[1]))
    unit = jnp.broadcast_to(jnp.eye(len(first.C)), (HORIZON + 1, len(first.C), len(first.C)))
    for seen, directly, dense, metric in (
        (filters.input_difference, at_once, want + np.eye(len(want)), second.M),
        (filters.output_difference, never, expect, unit),
    ):
        gain = float(gain_of_deviation(filters, seen, directly, metric_in=first.M, metric_out=metric))
        root_out = np.linalg.cholesky(block_diagonal(metric))
        expected = np.linalg.norm(root_out.T @ dense @ np.linalg.inv(root_in).T, ord=2)
        assert expected <= gain * (1 + 1e-12)
        np.testing.assert_allclose(gain, expected, rtol=1e-6)


def test_a_gain_beyond_bounds_is_infinite():
    first, second = (reference_of(lg.LQG([[3.0]], [[b]], [[1.0]]), horizon=30) for b in (1.0, -0.9))
    filters = join(first, second, 0.5)
    # The mean of two nearly opposite inputs is too weak to hold a plant that grows by 3^30.
    gain = gain_of_deviation(
        filters, filters.input_difference, jnp.zeros((31, 1, 1)), metric_in=first.M, metric_out=second.M
    )
    assert gain == np.inf
