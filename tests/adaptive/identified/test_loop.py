"""What every learner without a class must obey; a new one is a line of LEARNERS."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import (
    AdaptOn,
    ExploreThenCommit,
    IdentifiedCertaintyEquivalence,
    IdentifiedDisturbanceResponse,
    LqgOpt,
    UnknownPlant,
    run,
    run_many,
)
from lqgap.adaptive.identified import loop

LEARNERS = {
    "certainty equivalence": IdentifiedCertaintyEquivalence,
    "explore, then commit": lambda told: ExploreThenCommit(told, horizon=300),
    "LqgOpt": LqgOpt,
    "disturbance response": lambda told: IdentifiedDisturbanceResponse(told, horizon=300),
    "AdaptOn": AdaptOn,
}
every = pytest.mark.parametrize("name", LEARNERS)
STEPS = 400


@functools.cache
def spring():
    return lg.plants.mass_spring_damper().nominal()


@functools.cache
def learner_of(name, window=6):
    return LEARNERS[name](UnknownPlant.like(spring(), window=window))


@eqx.filter_jit
def drive(learner, plant, normals, errors, limit, key):
    """Memories of all steps, observations and applied inputs; what is seen has errors, NaN where it is lost."""

    def step(carry, now):
        memory, x, u_last = carry
        normal, error = now
        y = plant.C @ x + normal[-len(plant.C) :]
        memory, u = learner.step(memory, y + error, u_last)
        u = jnp.clip(u, -limit, limit)
        x = plant.A @ x + plant.B @ u + normal[: len(plant.A)]
        return (memory, x, u), (
            y,
            u,
            learner.snapshot(memory),
            memory.stream.moments.count,
            memory.is_committed,
        )

    start = (learner.init(key), jnp.zeros(len(plant.A)), jnp.zeros(plant.B.shape[1]))
    return jax.lax.scan(step, start, (normals, errors))[1]


def driven(name, plant=None, *, share=0.0, limit=np.inf, seed=0, window=6, errors=0.0):
    plant = spring() if plant is None else plant
    draws = np.random.default_rng(seed)
    normals = draws.normal(size=(STEPS, len(plant.A) + len(plant.C)))
    errors = np.where(draws.uniform(size=STEPS) < share, np.nan, errors)
    return drive(learner_of(name, window), plant, normals, errors, jnp.asarray(limit), jax.random.key(seed))


def run_of(plant):
    return run(learner_of("certainty equivalence"), plant, horizon=60, key=jax.random.key(0))


@pytest.mark.parametrize("at", [60, 300])  # of the warm-up, and in control
@every
def test_a_fault_of_the_sensor_counts_as_lost(name, at):
    wild, lost = (driven(name, errors=np.where(np.arange(STEPS) == at, size, 0)) for size in (1e4, np.nan))
    np.testing.assert_array_equal(np.flatnonzero(wild[2].is_fault), [at])
    np.testing.assert_allclose(wild[1], lost[1], rtol=1e-9, atol=1e-9)


@every
def test_large_samples_that_go_on_are_taken_in(name):
    """A first state far off is no fault; of a sensor whose zero jumps, three samples are lost."""
    told = driven(name, errors=1e3 * 0.8 ** np.arange(STEPS))[2]
    assert not np.any(told.is_fault)
    told, count = driven(name, errors=np.where(np.arange(STEPS) >= 300, 1e3, 0))[2:4]
    assert np.flatnonzero(told.is_fault).tolist() == [300, 301, 302]
    assert count[-1] > count[299] + 80


@every
def test_lost_samples_are_left_out_and_control_goes_on(name):
    y, u, told, count, is_committed = driven(name, share=0.05)
    assert np.all(np.isfinite(u))
    assert count[-1] < STEPS - 6 * 0.05 * STEPS
    assert is_committed[-1]
    assert np.sqrt(np.mean(np.asarray(y)[-100:] ** 2)) < 4
    assert all(np.all(np.isfinite(figure)) for figure in told.figures.values())


@every
def test_clipped_inputs_do_not_corrupt_the_model(name):
    y, _, told, _, is_committed = driven(name, limit=1.0)
    assert is_committed[-1]
    assert np.sqrt(np.mean(np.asarray(y)[-100:] ** 2)) < 8
    if "J" in told.figures:
        assert told.figures["J"][-1] == pytest.approx(3.915, rel=0.6)


@every
def test_a_plant_of_more_states_than_told_is_controlled_or_given_up_by_name(name):
    plant = lg.plants.two_mass_spring().nominal()
    short = lg.LQG(plant.A, plant.B[:, :1], plant.C[:1], Q=[[1.0]], R=[[1.0]])
    y, u, told, _, _ = driven(name, short)
    assert np.all(np.isfinite(u))
    assert np.all(np.isfinite(y))
    assert np.all(np.asarray(told.status) <= len(loop.REASONS))


def test_an_unstable_plant_without_a_stabiliser_is_named_and_nothing_is_nan():
    unstable = lg.LQG([[1.5, 0.1], [0.0, 0.5]], [[0.001], [1.0]], [[1.0, 0.0]], Q=[[1.0]], R=[[0.1]])
    _, u, told, _, _ = driven("certainty equivalence", unstable)
    assert np.all(np.isfinite(u))
    assert np.any(np.asarray(told.status) == loop.GROWING)
    assert "stabilizer=" in loop.REASONS[loop.GROWING - 1][1]
    (event,) = [event for event in run_of(unstable).events if event.name == "diverged"]
    assert "stabilizer=" in event.message


@pytest.mark.slow
def test_an_unstable_class_comes_with_a_stabiliser_and_is_learnt():
    plant = lg.plants.laplacian().nominal()
    learner = IdentifiedCertaintyEquivalence(UnknownPlant.like(plant))
    traces = run_many(learner, plant, horizon=2_000, keys=jax.random.split(jax.random.key(0), 4))
    J = float(lg.solve(plant).J)
    for trace in traces:
        late = trace.steps > 1_500
        rate = (trace.excess[-1] - trace.excess[late][0]) / np.sum(late)
        assert rate < 0.1 * J


def test_the_schedule_doubles_and_models_that_fail_are_tried_again():
    _, _, told, _, is_committed = driven("certainty equivalence")
    d = learner_of("certainty equivalence").plant.num_features
    made = np.flatnonzero(np.diff(np.asarray(told.num_changes), prepend=0))
    first = int(np.argmax(np.asarray(is_committed)))
    tries = [2 * d]
    while tries[-1] < 8 * d:
        tries.append(min(int(np.ceil(1.25 * tries[-1])), 8 * d))
    assert made[0] == first
    assert first in tries
    if not np.any(told.status):
        assert all(later >= 2 * sooner for sooner, later in itertools.pairwise(made))


def test_the_guard_hands_over_and_takes_back():
    """A jump of the state: three samples count as lost, then no input, a model at once, and control again."""
    learner, plant = learner_of("certainty equivalence"), spring()
    draws, x, u_last = np.random.default_rng(1), np.zeros(2), np.zeros(1)
    memory, step, statuses, plans = learner.init(jax.random.key(1)), eqx.filter_jit(learner.step), [], []
    for t in range(360):
        y = np.asarray(plant.C) @ x + draws.normal(size=1)
        memory, u = step(memory, y, u_last)
        statuses.append(int(learner.snapshot(memory).status))
        plans.append(int(memory.num_plans))
        ceiling, u_last = float(memory.ceiling), np.asarray(u)
        if statuses[-1] == loop.GUARDED:
            np.testing.assert_array_equal(u_last, 0)
        kick = 20 * np.sqrt(ceiling) if t == 300 else 0.0
        x = np.asarray(plant.A) @ x + np.asarray(plant.B) @ u_last + draws.normal(size=2) + [kick, 0]
    at = statuses.index(loop.GUARDED)
    assert at == 304
    assert plans[at] == plans[at - 1] + 1
    assert statuses[-1] == 0


@pytest.mark.slow
@every
def test_runs_side_by_side_are_the_runs_one_by_one(name):
    keys = jax.random.split(jax.random.key(2), 3)
    together = run_many(learner_of(name), spring(), keys=keys, horizon=300)
    alone = run(learner_of(name), spring(), key=keys[1], horizon=300)
    np.testing.assert_allclose(together[1].excess, alone.excess, rtol=1e-6)


@every
def test_a_file_holds_a_learner(name, tmp_path):
    lg.save_policy(tmp_path / "learner", learner_of(name))
    assert eqx.tree_equal(lg.load_policy(tmp_path / "learner"), learner_of(name))


def test_a_run_that_is_shorter_than_its_warm_up_says_so():
    assert "warm-up" in learner_of("LqgOpt").remarks(50)[0]
    assert learner_of("LqgOpt").remarks(5_000) == ()


@every
def test_a_learner_in_single_precision_learns_in_double(name):
    single = jax.tree.map(lambda x: x.astype("float32") if eqx.is_inexact_array(x) else x, learner_of(name))
    begun = jax.eval_shape(single.init, jax.random.key(0))
    y, u_last = (jax.ShapeDtypeStruct((1,), "float32") for _ in range(2))
    moved, u = jax.eval_shape(single.step, begun, y, u_last)
    assert u.dtype == "float32"
    shapes = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in (begun, moved)]
    assert shapes[0] == shapes[1]


def test_all_samples_lost_is_quiet_for_ever():
    _, u, _, count, is_committed = driven("certainty equivalence", share=1.0)
    np.testing.assert_array_equal(u, 0)
    assert count[-1] == 0
    assert not np.any(is_committed)
