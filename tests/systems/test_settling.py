import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.systems.kalman import plan_filter
from lqgap.systems.natural import naturalize
from lqgap.systems.optimum import solve_members
from lqgap.systems.settling import FEWEST, MOST, TRACED, settle_filters, settling_time


def settle(plants):
    systems = lg.stack(plants)
    return settle_filters(systems, solve_members(systems))


def test_gains_are_exact_at_first_and_steady_at_last(seed):
    plants = [random_plant(seed), random_plant(seed + 10)]
    gains = settle(plants)
    assert gains.is_settled
    for i, plant in enumerate(plants):
        exact, o = plan_filter(plant, num_steps=MOST), lg.solve(plant)
        length = len(gains.L)
        np.testing.assert_allclose(gains.L[:-1, i], exact.L[: length - 1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(gains.S[:-1, i], exact.S[: length - 1], rtol=1e-12)
        np.testing.assert_array_equal(gains.L[-1, i], o.L)
        np.testing.assert_array_equal(gains.S[-1, i], o.S)
        # What is left out of the exact gains is of the size that the tolerance allows.
        np.testing.assert_allclose(exact.L[length - 1 :] - o.L[None], 0, atol=1e-8)


def test_stacks_have_few_lengths_and_the_settling_time_is_the_first_settled_step():
    """A scalar filter: |Sigma_t - Sigma| falls by calA^2 a step."""
    slow = lg.LQG([[0.999]], [[1.0]], [[1.0]], W=[[1e-4]])
    systems = lg.stack([slow])
    gains, o = settle([slow]), lg.solve(slow)
    time = int(settling_time(systems, solve_members(systems)))
    errors = np.abs(np.asarray(plan_filter(slow, num_steps=time + 1).Sigma[:, 0, 0] - o.Sigma[0, 0]))
    closed = (slow.A - slow.B @ o.K)[0, 0]
    unit = o.Sigma[0, 0] + 1e-4 * (1 + closed**2) * (slow.W + slow.S0)[0, 0]
    assert errors[time] <= 1e-10 * unit < errors[time - 1]
    assert len(gains.L) in [2**k for k in range(4, 12)]
    assert time < len(gains.L) <= max(FEWEST, 2 * time)
    assert len(settle([slow, random_plant(0, states=1, inputs=1, outputs=1)]).L) == len(gains.L)


def test_a_filter_that_starts_settled_is_constant():
    plant = random_plant(0)
    steady = lg.LQG(**{**plant.matrices(), "S0": lg.solve(plant).Sigma})
    assert len(settle([steady]).L) == 1


def test_the_settling_time_does_not_depend_on_units(seed):
    plant = random_plant(seed)
    scaled = lg.systems.change_coordinates(plant, np.diag([1e4, 1.0, 1e-3]))
    times = [
        int(settling_time(systems, solve_members(systems)))
        for systems in (lg.stack([plant]), lg.stack([scaled]))
    ]
    assert abs(times[0] - times[1]) <= 1  # the covariance of the solver is rounded


def padded(gain, delay, *, scale=1.0):
    plant = lg.LQG([[0.78, 0.22], [0.0, 0.98]], [[gain], [0.0]], [[1.0, 0.0]], W=np.diag([0.02, 0.09]))
    delayed = lg.systems.delay_input(plant, delay, longest=6)
    return lg.systems.change_coordinates(delayed, np.diag(scale ** np.arange(8.0)))


@pytest.mark.parametrize("scale", [1.0, 0.03, 3.0])
def test_past_inputs_that_are_known_exactly_do_not_keep_a_filter_from_settling(scale):
    """Without the delay there is nothing more to settle."""
    alone = lg.stack([lg.systems.delay_input(padded(1.0, 0), 0)])
    plants = [padded(gain, delay, scale=scale) for gain in (0.4, 2.5) for delay in (2, 6)]
    expected = int(settling_time(alone, solve_members(alone)))
    for systems in (lg.stack(plants), naturalize(lg.stack(plants))):
        assert abs(int(settling_time(systems, solve_members(systems))) - expected) <= 3


def test_a_filter_that_never_settles_is_cut_off_and_says_so():
    endless = lg.LQG([[1 - 1e-7]], [[1.0]], [[1.0]], W=[[1e-12]])
    gains = settle([endless])
    assert len(gains.L) == MOST
    assert not gains.is_settled
    with pytest.raises(lg.InvalidArgumentError, match="has not settled after 2048 steps"):
        lg.adaptive.LQGVTR(lg.simulators.Finite([endless]), horizon=5)


def test_under_tracing_the_length_is_fixed():
    plant = random_plant(0)
    traced = jax.jit(lambda shift: settle_filters(*_shifted(plant, shift)))(jnp.asarray(0.0))
    assert traced.L.shape == (TRACED, 1, 3, 2)
    np.testing.assert_allclose(traced.L[:10, 0], plan_filter(plant, num_steps=10).L, rtol=1e-12)


def _shifted(plant, shift):
    systems = jax.tree.map(lambda leaf: leaf[None] + shift, plant)
    return systems, jax.vmap(lg.solve)(systems)
