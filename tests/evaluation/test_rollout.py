import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.evaluation.rollout import draw_noise
from lqgap.linalg import sqrt_psd
from lqgap.policies import AbstractPolicy, RandomProbe, StationaryLQG, Zero
from lqgap.policies.policy import AbstractWrapper
from lqgap.systems.losses import Losses


def test_a_trajectory_obeys_the_plants_equations(seed):
    plant = random_plant(seed)
    key = jax.random.key(seed)
    run = lg.rollout(StationaryLQG(plant), plant, horizon=30, key=key)
    noise = draw_noise(plant, jax.random.split(key)[0], num_steps=31)
    x0, w, z = (
        noise[0, :3] @ sqrt_psd(plant.S0),
        noise[1:, :3] @ sqrt_psd(plant.W),
        noise[1:, 3:] @ sqrt_psd(plant.V),
    )
    assert run.x.shape == (31, 3)
    np.testing.assert_allclose(run.x[0], x0, atol=1e-12)
    np.testing.assert_allclose(run.x[1:], (run.x @ plant.A.T + run.u @ plant.B.T + w)[:-1], atol=1e-12)
    np.testing.assert_allclose(run.y, run.x @ plant.C.T + z, atol=1e-12)
    cost = np.einsum("ti,ij,tj->t", run.y, plant.Q, run.y) + np.einsum("ti,ij,tj->t", run.u, plant.R, run.u)
    np.testing.assert_allclose(run.cost, cost, rtol=1e-12)


def test_noise_has_the_covariances_of_the_plant(seed):
    plant = random_plant(seed)
    run = lg.rollout(Zero(num_inputs=2, num_outputs=2), plant, horizon=20_000, key=jax.random.key(seed))
    w, z = run.x[1:] - (run.x @ plant.A.T)[:-1], (run.y - run.x @ plant.C.T)[:-1]
    first = jax.vmap(
        lambda key: lg.rollout(Zero(num_inputs=2, num_outputs=2), plant, horizon=0, key=key).x[0]
    )(jax.random.split(jax.random.key(9), 20_000))
    for drawn, covariance in ((w, plant.W), (z, plant.V), (first, plant.S0)):
        # An entry of a sample covariance has variance (c_ij^2 + c_ii c_jj) / n; five standard errors.
        scale = np.sqrt((covariance**2 + jnp.outer(jnp.diag(covariance), jnp.diag(covariance))) / 20_000)
        assert np.all(np.abs(drawn.T @ drawn / 20_000 - covariance) < 5 * scale)


def test_the_noise_is_the_same_for_all_policies():
    plant = random_plant(0)
    key = jax.random.key(0)
    runs = [
        lg.rollout(policy, plant, horizon=5, key=key)
        for policy in (Zero(num_inputs=2, num_outputs=2), RandomProbe(9, StationaryLQG(plant)))
    ]
    noise = [run.x[1:] - (run.x @ plant.A.T + run.u @ plant.B.T)[:-1] for run in runs]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)


def test_the_plant_receives_inputs_within_limits_and_the_filter_knows():
    plant = random_plant(0)
    run = lg.rollout(StationaryLQG(plant), plant, horizon=40, key=jax.random.key(0), limits=(-0.05, 0.05))
    assert np.max(np.abs(run.u)) == 0.05
    controller = lg.Controller(StationaryLQG(plant), limits=(-0.05, 0.05))
    np.testing.assert_allclose([controller(y) for y in run.y], run.u, atol=1e-12)


def test_single_precision_is_an_option():
    plant = random_plant(0)
    run = lg.rollout(StationaryLQG(plant), plant, horizon=5, key=jax.random.key(0), precision="float32")
    assert run.x.dtype == run.u.dtype == run.cost.dtype == jnp.float32


def test_many_rollouts_are_a_map_over_keys():
    plant = random_plant(0)
    keys = jax.random.split(jax.random.key(0), 3)
    policy = StationaryLQG(plant)
    many = jax.vmap(lambda key: lg.rollout(policy, plant, horizon=4, key=key))(keys)
    one = lg.rollout(policy, plant, horizon=4, key=keys[1])
    np.testing.assert_allclose(many.x[1], one.x, atol=1e-12)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    plant = random_plant(0)
    with pytest.raises(lg.InvalidArgumentError, match="horizon"):
        lg.rollout(StationaryLQG(plant), plant, horizon=-1, key=jax.random.key(0))
    with pytest.raises(lg.InvalidSystemError, match="batch"):
        lg.rollout(StationaryLQG(plant), lg.stack([plant]), horizon=3, key=jax.random.key(0))


class Watched(AbstractWrapper):
    """Says what it is given to remember."""

    acting: AbstractPolicy

    @property
    def inside(self):
        return self.acting

    def init(self, key):
        return self.acting.init(key)

    def step(self, memory, y, u_last):
        parts = jax.tree.leaves(memory, is_leaf=lambda part: isinstance(part, Losses))
        assert not any(isinstance(part, Losses) for part in parts)
        return self.acting.step(memory, y, u_last)


def test_steps_do_not_account_for_losses_that_never_are():
    """What losses leave behind takes n^3 a step, all else n^2."""
    plant = random_plant(0)
    lg.rollout(Watched(StationaryLQG(plant)), plant, horizon=3, key=jax.random.key(0))
