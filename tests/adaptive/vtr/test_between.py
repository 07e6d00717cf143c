import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import LQGVTR, run_many
from lqgap.adaptive.vtr.between import Between, Model
from lqgap.simulators import AbstractFamily

NUM_RUNS = 24


@pytest.fixture(scope="module")
def family():
    return lg.plants.mass_spring_damper()


def test_models_near_a_member_are_those_of_their_parameters_up_to_the_square_of_the_distance(family):
    members, T = family.grid(5), jnp.eye(2)
    between, theta = Between(family, members, T), np.asarray(members.parameters)
    errors = []
    for size in (0.2, 0.1):
        delta = size * np.array([1.0, -1.0])
        exact = Model.of(family.members((theta + delta @ np.asarray(between.units))[6:8]).in_coordinates(T))
        for row, number in enumerate((6, 7)):
            member, slopes = jax.tree.map(lambda leaf, i=number: leaf[i], (between.members, between.slopes))
            moved = member.moved(slopes, jnp.asarray(delta))
            errors.append(
                [
                    np.max(np.abs(a - b[row]))
                    for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(exact), strict=True)
                ]
            )
    large, small = np.max(errors[:2], axis=0), np.max(errors[2:], axis=0)
    assert np.all(small <= 0.35 * large + 1e-9)  # a quarter, and what is of third order


@functools.cache
def runs(has_family):
    """Truths drawn from the box: excess after 500 and 6000 steps, and the models acted on in the end."""
    family = lg.plants.mass_spring_damper()
    members, truths = family.grid(4), family.sample(NUM_RUNS, key=jax.random.key(3))
    keys = jax.random.split(jax.random.key(4), NUM_RUNS)
    policy = LQGVTR(members, family=family)
    policy = policy if has_family else LQGVTR(policy.members)
    traces = run_many(policy, truths.systems, horizon=6_000, keys=keys, num_points=24)
    at = np.searchsorted(traces[0].steps, (500, 5_999))
    at = np.minimum(at, len(traces[0].steps) - 1)
    excess = np.asarray([trace.excess for trace in traces])[:, at]
    theta = np.asarray([trace.theta[-1] for trace in traces])
    return excess, theta, np.asarray(truths.parameters), policy


def test_between_the_members_the_parameters_are_found():
    _, theta, truths, policy = runs(has_family=True)
    spacing = np.diagonal(np.asarray(policy.between.units))
    error = np.abs(theta - truths) / spacing
    # A grid is off by a quarter of its spacing on average, whatever is observed.
    assert np.mean(error) < 0.25
    assert np.median(error) < 0.2


def test_excess_grows_less_than_on_the_grid_alone():
    with_family, _, _, _ = runs(has_family=True)
    on_grid, _, _, _ = runs(has_family=False)
    assert with_family[:, 1].mean() < 0.85 * on_grid[:, 1].mean()
    assert np.log(np.divide(*with_family.mean(axis=0)[::-1])) / np.log(12) < 0.45


def test_choices_are_not_moved_and_a_family_of_choices_has_nothing_between():
    signs = lg.plants.unknown_sign()
    assert not Between.fits(signs)
    assert LQGVTR(signs.grid(2), family=signs).between is None
    family = lg.plants.unknown_sign(gain=(0.5, 1.0))
    assert isinstance(family, AbstractFamily)
    policy = LQGVTR(family.grid(2), family=family)
    between = policy.between
    assert between.position.shape[1] == 1
    assert set(np.asarray(between.kind).tolist()) == {0, 1}
    memory = policy.init(jax.random.key(0))
    jumped = memory.evidence.log_likelihood.at[-1].set(10.0)
    evidence = jax.tree.map(lambda leaf: leaf, memory.evidence)
    evidence = type(evidence)(**{**vars(evidence), "log_likelihood": jumped})
    known = jax.tree.map(lambda leaf: leaf + 1, memory.estimate)
    moved = between._move_on(known, evidence)
    assert int(moved.anchor) == len(policy.members) - 1
    assert np.all(np.asarray(moved.precision) == 0)  # the other sign teaches nothing of this one


def test_losses_and_limits_leave_estimates_finite(family):
    policy = LQGVTR(family.grid(3), family=family)
    step, memory = eqx.filter_jit(policy.step), policy.init(jax.random.key(0))
    random, u = np.random.default_rng(0), jnp.zeros(1)
    for t in range(100):
        y = jnp.asarray(random.normal(size=1)) if t % 5 else jnp.asarray([jnp.nan])
        memory, u = step(memory, y, jnp.clip(u, -0.1, 0.1))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(memory.estimate))
    low, high = between_ends(policy, memory)
    assert np.all((low - 1e-9 <= memory.estimate.delta) & (memory.estimate.delta <= high + 1e-9))


def between_ends(policy, memory):
    return np.asarray(policy.between.ends - policy.between.position[memory.estimate.anchor][None])
