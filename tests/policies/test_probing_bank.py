import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import ModelBank, ProbingBank


@pytest.fixture(scope="module")
def spare():
    return lg.plants.spare_actuator().grid(3)


def test_where_controllers_teach_enough_it_is_the_bank_of_neighbours():
    """Of dc motors no two need a probe; all controllers stabilise all of them."""
    motors = lg.plants.dc_motor().grid(2)
    probing, bank = ProbingBank(motors.systems), ModelBank(motors.systems)
    assert probing.use == 0
    gaps = [
        lg.gap(each, motors, horizon=40, key=jax.random.key(0), num_rollouts=32) for each in (probing, bank)
    ]
    np.testing.assert_allclose(gaps[0].totals, gaps[1].totals, rtol=1e-9)


def test_inputs_of_members_that_would_ruin_each_other_are_not_mixed():
    """Opposite gains: the mean of both inputs is zero, at even odds, and learns nothing."""
    signs = lg.plants.unknown_sign().grid(2)
    probing, bank = ProbingBank(signs.systems), ModelBank(signs.systems)
    y, zero = jnp.asarray([1.0]), jnp.zeros(1)
    _, u = probing.step(probing.init(jax.random.key(0)), y, zero)
    inputs = bank.propose(bank.init(jax.random.key(0)), y, zero)[1]
    assert float(jnp.mean(inputs)) == 0
    assert float(u[0]) in [float(each[0]) for each in inputs]


def test_it_probes_the_unused_input_until_its_task_is_nearly_over_and_goes_on_after_it(spare):
    probing = ProbingBank(spare.systems, stop=100)
    added = []
    for time in (0, 99, 101):
        memory = probing.init(jax.random.key(1))
        memory = eqx.tree_at(lambda m: m.bank.time, memory, jnp.asarray(time))
        _, u = probing.step(memory, jnp.zeros(1), jnp.zeros(2))
        added.append(np.asarray(u))
    assert added[0][0] == 0
    assert added[0][1] != 0
    assert np.all(added[1] == 0)
    np.testing.assert_array_equal(added[2], added[0] * added[2][1] / added[0][1])
    assert added[2][1] != 0


def test_what_it_may_add_is_bounded(spare):
    probing = ProbingBank(spare.systems, probe=[0.0, 1e-3])
    _, u = probing.step(probing.init(jax.random.key(1)), jnp.zeros(1), jnp.zeros(2))
    assert abs(float(u[1])) <= 1e-3


def test_its_share_of_use_is_that_of_the_pairs_it_would_probe_for(spare):
    """By `plan` itself, at even odds of the member acted on and one other."""
    probing = ProbingBank(spare.systems)
    free = eqx.tree_at(lambda p: p.tuning, probing.probe, jnp.zeros(3))  # of caution two
    would = []
    for k in range(3):
        for j in {0, 1, 2} - {k}:
            cost, _ = free.plan(jnp.asarray(k), jnp.zeros(3).at[jnp.asarray([k, j])].set(0.5))
            would.append(float(cost) > 0)
    assert probing.use == pytest.approx(np.mean(would))
