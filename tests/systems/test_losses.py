import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.policies import ModelBank
from lqgap.systems.kalman import filter_record, plan_filter
from lqgap.systems.losses import Losses, NoLosses, without_losses


@eqx.filter_jit
def follow(plant, plan, seen):
    """L', S' and D along a record of which these components are seen."""

    def step(losses, now):
        L, S, seen = now
        return losses.after(plant.A, plant.C, L, S, seen), (*losses.gains(plant.C, L, S), losses.D)

    return jax.lax.scan(step, Losses(jnp.zeros_like(plant.A)), (plan.L, plan.S, seen))[1]


def test_losses_leave_the_covariance_of_the_exact_filter(seed):
    plant = random_plant(seed)
    y, u = random_record(seed, plant, steps=40)
    seen = np.random.default_rng(seed).random(y.shape) < 0.6
    plan = plan_filter(plant, num_steps=len(y))
    L, S, D = follow(plant, plan, jnp.asarray(seen))
    exact = filter_record(plant, np.where(seen, y, np.nan), u)
    before = np.asarray(plant.A @ exact.belief.cov[:-1] @ plant.A.T) + np.asarray(plant.W)
    np.testing.assert_allclose(plan.Sigma[1:] + D[1:], before, rtol=1e-9, atol=1e-12)
    whole = np.all(seen, axis=1)
    assert 3 < np.sum(whole) < 35
    np.testing.assert_allclose(S[whole], exact.S[whole], rtol=1e-9)
    np.testing.assert_allclose(L[whole], exact.gain[whole], rtol=1e-9, atol=1e-12)
    assert np.min(np.linalg.eigvalsh(D)) > -1e-12


def test_without_a_loss_gains_are_the_planned_ones_to_the_bit(seed):
    plant = random_plant(seed)
    plan = plan_filter(plant, num_steps=20)
    L, S, D = follow(plant, plan, jnp.full((20, plant.num_outputs), True))
    np.testing.assert_array_equal(L, plan.L)
    np.testing.assert_array_equal(S, plan.S)
    np.testing.assert_array_equal(D, 0)


def test_rollouts_remember_no_losses():
    bank = ModelBank(lg.stack([random_plant(0), random_plant(1)]))
    memory = bank.init(jax.random.key(0))
    assert isinstance(without_losses(memory).losses, NoLosses)
    kept = jax.tree.leaves(without_losses(memory))
    assert len(kept) == len(jax.tree.leaves(memory)) - 1
