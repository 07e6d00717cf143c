"""Policies that follow references, in the loop and by their own equations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import Committed, FiniteHorizonLQG, ModelBank, Recurrent, StationaryLQG
from lqgap.policies.target import aim


def members():
    return lg.plants.mass_spring_damper().grid(2)


def run(policy, plant, reference, *, steps=400):
    """A plant without noise, under a controller."""
    controller, x = lg.Controller(policy, follow=[0]), np.zeros(plant.num_states)
    for _ in range(steps):
        u = controller(plant.C @ x, reference=reference)
        x = plant.A @ x + plant.B @ u
    return np.asarray(plant.C @ x)


@pytest.mark.parametrize(
    "make",
    [StationaryLQG, lambda p: ModelBank(lg.stack([p])), lambda p: Committed(ModelBank(lg.stack([p])), 5)],
)
def test_with_the_right_model_a_reference_is_reached(make):
    for plant in members():
        np.testing.assert_allclose(run(make(plant), plant, [0.7]), 0.7, rtol=1e-6)


def test_a_bank_finds_its_plant_and_goes_to_the_rest_of_it():
    """A reference far above the noise that members expect tells which of them is true."""
    bank = ModelBank(members().systems)
    for plant in members():
        np.testing.assert_allclose(run(bank, plant, [70.0]), 70.0, rtol=1e-3)


def test_references_change_no_belief_and_no_likelihood():
    """The same observations and inputs lead to the same beliefs, whatever the policy steers to."""
    bank = ModelBank(members().systems)
    rng = np.random.default_rng(0)
    y, u = jnp.asarray(rng.normal(size=(2, 30, 1)))
    plain = steered = bank.init(jax.random.key(0))
    steered = aim(steered, bank.rest([0]), np.array([5.0]))
    step = eqx.filter_jit(type(bank).step)
    for t in range(30):
        plain, chosen = step(bank, plain, y[t], u[t])
        steered, steered_to = step(bank, steered, y[t], u[t])
    np.testing.assert_array_equal(steered.log_likelihood, plain.log_likelihood)
    np.testing.assert_array_equal(steered.xhat, plain.xhat)
    # Inputs differ by u_r + K x_r of every member, as far as it has gone, weighed by its posterior.
    rest = bank.rest([0])
    added = rest.u[:, :, 0] + np.einsum("kij,kj->ki", bank.K[0], rest.x[:, :, 0])
    added *= 1 - rest.pace[:, None] ** 30
    np.testing.assert_allclose(steered_to - chosen, 5.0 * bank.weights(plain) @ added, rtol=1e-9)


def test_gains_of_a_horizon_steer_to_the_same_rest():
    plant = members()[0]
    policy = FiniteHorizonLQG(plant, 3)
    memory = aim(policy.init(jax.random.key(0)), policy.rest([0]), np.array([1.0]))
    rest = policy.rest([0])
    step = eqx.filter_jit(type(policy).step)
    for t in range(4):
        memory, u = step(policy, memory, jnp.zeros(1), jnp.zeros(1))
        gone = 1 - rest.pace ** (t + 1)
        wanted = gone * rest.u[:, 0] - policy.K[t] @ (memory.xhat - gone * rest.x[:, 0])
        np.testing.assert_allclose(u, wanted, rtol=1e-9)


def test_another_reference_is_gone_to_from_where_the_target_is():
    policy = StationaryLQG(members()[0])
    step, rest = eqx.filter_jit(type(policy).step), policy.rest([0])
    memory = aim(policy.init(jax.random.key(0)), rest, np.array([1.0]))
    memory, _ = step(policy, memory, jnp.zeros(1), jnp.zeros(1))
    memory, _ = step(policy, aim(memory, rest, np.array([-2.0])), jnp.zeros(1), jnp.zeros(1))
    gone = -2 + rest.pace * ((1 - rest.pace) + 2)
    np.testing.assert_allclose(memory.target.x, gone * rest.x[:, 0], rtol=1e-12)
    assert 0 < rest.pace < 1


def test_policies_without_models_say_why_they_cannot_follow():
    network = Recurrent(num_inputs=1, num_outputs=1, width=2, key=jax.random.key(0))
    with pytest.raises(lg.InvalidArgumentError, match="Recurrent cannot follow a reference"):
        lg.Controller(network, follow=[0])
