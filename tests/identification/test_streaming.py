import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from lqgap.identification import MarkovRegression, estimate_markov

LENGTH = 3


@eqx.filter_jit
def stream_of(regression, y, u):
    """After all samples; the last observation has no input yet."""
    u_last = jnp.concatenate([jnp.zeros_like(u[:1]), u[:-1]])
    return jax.lax.scan(
        lambda state, now: (regression.step(state, *now), None), regression.init(), (y, u_last)
    )[0]


def test_a_stream_has_the_moments_of_its_record_and_lost_samples_are_left_out():
    draws = np.random.default_rng(0)
    y, u = draws.normal(size=(80, 2)), draws.normal(size=(80, 1))
    y[[17, 40]] = np.nan
    y[60] = 1e200
    regression = MarkovRegression(LENGTH, 2, 1, num_kept=5, ridge=0.5)
    stream = stream_of(regression, y, u)
    whole = np.where(np.abs(y) < 1e100, y, np.nan)
    found = regression.estimate(stream, y_scale=jnp.ones(2), u_scale=jnp.ones(1))
    expected = estimate_markov(whole, u, length=LENGTH, ridge=0.5)
    size = regression.num_features + 2
    np.testing.assert_allclose(stream.moments.total, expected.moments.total[:size, :size], rtol=1e-12)
    assert stream.moments.count == expected.moments.count
    np.testing.assert_allclose(found.parameters.matrix(), expected.parameters.matrix(), rtol=1e-9)
    np.testing.assert_array_equal(stream.y, y[-2:-7:-1])
    np.testing.assert_array_equal(stream.u, u[-2:-7:-1])


def test_estimates_in_other_units_are_those_of_samples_in_other_units():
    draws = np.random.default_rng(1)
    y, u = draws.normal(size=(60, 2)), draws.normal(size=(60, 1))
    regression = MarkovRegression(LENGTH, 2, 1, num_kept=3)
    y_scale, u_scale = jnp.asarray([2.0, 0.1]), jnp.asarray([30.0])
    one = regression.estimate(stream_of(regression, y, u), y_scale=y_scale, u_scale=u_scale)
    other = regression.estimate(
        stream_of(regression, y / np.asarray(y_scale), u / 30), y_scale=jnp.ones(2), u_scale=jnp.ones(1)
    )
    np.testing.assert_allclose(one.parameters.matrix(), other.parameters.matrix(), rtol=1e-9)
    np.testing.assert_allclose(one.parameters.S, other.parameters.S, rtol=1e-9)
