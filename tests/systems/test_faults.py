import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from lqgap.systems.faults import CALM, MAX_LOST, Gate, is_absurd


def lost_of(is_absurd):
    """Which samples of a record count as lost."""

    def step(gate, absurd):
        gate = gate.judge(absurd)
        return gate, gate.is_lost

    return np.asarray(jax.lax.scan(step, Gate.unused(), jnp.asarray(is_absurd))[1])


@pytest.mark.parametrize("num_outputs", [1, 3])
def test_a_sample_is_absurd_if_it_is_so_improbable_to_every_model(num_outputs):
    limit = chi2.isf(1e-50, num_outputs)
    assert is_absurd(jnp.asarray([2 * limit, 1.001 * limit]), num_outputs)
    assert not is_absurd(jnp.asarray([2 * limit, 0.999 * limit]), num_outputs)


def test_calm_samples_buy_the_right_to_lose_one():
    for calm in (CALM - 1, CALM):
        assert lost_of([False] * calm + [True])[-1] == (calm == CALM)


def test_what_goes_on_is_taken_in():
    lost = lost_of([False] * 1_000 + [True] * 200)
    assert np.flatnonzero(lost).tolist() == [1_000 + k for k in range(MAX_LOST)]


def test_an_absurd_sample_that_is_taken_in_ends_what_was_saved():
    lost = lost_of([False] * (CALM - 1) + [True] + [False] * (CALM - 1) + [True] + [False] * CALM + [True])
    assert np.flatnonzero(lost).tolist() == [3 * CALM]
