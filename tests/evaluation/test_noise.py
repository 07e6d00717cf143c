import jax
import jax.numpy as jnp
import numpy as np
import scipy
import scipy.special

from lqgap.evaluation.noise import invert, standard_normal


def test_words_become_the_quantiles_they_stand_for():
    rng = np.random.default_rng(0)
    words = np.concatenate([rng.integers(0, 2**32, 100_000), 2 ** np.arange(32), [0, 1, 2, 3]]).astype(
        np.uint32
    )
    tail = ((words >> 1) + 0.5) / 2**31
    expected = np.where(words & 1, 1, -1) * scipy.special.ndtri(tail / 2)
    error = np.abs(invert(jnp.asarray(words)) - expected)
    assert np.max(error[np.abs(expected) < 5]) < 1e-5
    assert np.max(error) < 3e-3
    assert np.max(np.abs(expected)) > 6.2


def test_draws_are_standard_normal_and_independent(seed):
    draws = np.asarray(standard_normal(jax.random.key(seed), (100_001,), jnp.float64))
    # A fixed seed for each of three tests at a level of 1e-3: they pass, or something is wrong.
    assert scipy.stats.kstest(draws, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / np.sqrt(len(draws))
    # Both halves of a word.
    assert abs(np.corrcoef(draws[:50_000], draws[50_001:])[0, 1]) < 4 / np.sqrt(50_000)


def test_a_key_gives_the_same_numbers_in_both_precisions_and_any_shape():
    key = jax.random.key(3)
    double, single = (standard_normal(key, (7, 3), dtype) for dtype in (jnp.float64, jnp.float32))
    assert (double.dtype, single.dtype) == (jnp.float64, jnp.float32)
    np.testing.assert_array_equal(double, single)
    assert standard_normal(key, (), jnp.float64).shape == ()
