"""What every learner must obey; a new one is a line of LEARNERS."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_vtr import random_class

import lqgap as lg
from lqgap.adaptive import (
    LQGVTR,
    CertaintyEquivalence,
    FilterBank,
    ThompsonSampling,
    TrainedPolicy,
    VTROptions,
    run,
)
from lqgap.policies import ModelBank

LEARNERS = {
    "mixture": lambda members: FilterBank(members),
    "hysteresis": lambda members: FilterBank(members, "hysteresis"),
    "certainty equivalence": lambda members: CertaintyEquivalence(members, probing=0.1),
    "Thompson sampling, lazy": lambda members: ThompsonSampling(members, lazy=True),
    "trained": lambda members: TrainedPolicy(ModelBank(members), members),
    "LQG-VTR": lambda members: LQGVTR(members),
    "LQG-VTR, minimax": lambda members: LQGVTR(members, options=VTROptions(plan="minimax")),
    "LQG-VTR as in the paper": lambda members: LQGVTR(members, options=VTROptions.as_in_the_paper()),
}
every = pytest.mark.parametrize("name", LEARNERS)
PLANTS = random_class(4)


@eqx.filter_jit
def drive(learner, ys, key):
    """Inputs and snapshots along given observations."""

    def step(carry, y):
        memory, u_last = carry
        memory, u = learner.step(memory, y, u_last)
        return (memory, u), (u, learner.snapshot(memory))

    return jax.lax.scan(step, (learner.init(key), jnp.zeros(1)), ys)[1]


@every
def test_the_same_key_makes_the_same_run(name):
    learner = LEARNERS[name](lg.stack(PLANTS))
    one, other = (run(learner, PLANTS[1], key=jax.random.key(5), horizon=60) for _ in range(2))
    np.testing.assert_array_equal(one.regret, other.regret)
    assert [s.step for s in one.switches] == [s.step for s in other.switches]


@every
def test_lost_samples_leave_inputs_and_snapshots_sound(name):
    learner = LEARNERS[name](lg.stack(PLANTS))
    ys = np.random.default_rng(0).normal(size=(60, 1))
    ys[np.random.default_rng(1).uniform(size=60) < 0.3] = np.nan
    u, told = drive(learner, jnp.asarray(ys), jax.random.key(0))
    assert np.all(np.isfinite(u))
    assert np.all(np.any(told.plausible, axis=1))
    assert np.all(np.isfinite(told.acts_on))
    assert np.all(np.diff(told.num_changes) >= 0)
    assert np.all((np.asarray(told.status) >= 0) & (np.asarray(told.status) <= len(learner.reasons)))


@every
def test_an_evaluation_takes_it_as_it_is(name):
    learner = LEARNERS[name](lg.stack(PLANTS))
    estimate = lg.gap(learner, lg.stack(PLANTS), horizon=30, key=jax.random.key(0), num_rollouts=32)
    assert np.all(np.isfinite(estimate.mean))
    assert not any(jax.tree.leaves(learner.trainable()))


def test_single_precision_gives_about_the_same():
    learner, members = LQGVTR(lg.stack(PLANTS)), lg.stack(PLANTS)
    single, double = (
        lg.gap(learner, members, horizon=30, key=jax.random.key(0), num_rollouts=32, precision=precision).mean
        for precision in ("float32", "float64")
    )
    np.testing.assert_allclose(single, double, rtol=0.05)


@pytest.mark.slow
def test_regret_does_not_grow_linearly_with_false_alarms_counted():
    """Mean of 400 runs: a fixed share of runs that stop for ever would double it with the horizon."""
    members = lg.plants.dc_motor().grid(5)
    keys = jax.random.split(jax.random.key(0), 400)
    traces = lg.adaptive.run_many(LQGVTR(members), members[7], keys=keys, horizon=8_000, num_points=9)
    mean = np.mean([trace.regret for trace in traces], axis=0)
    at = {step: mean[np.searchsorted(traces[0].steps, step)] for step in (1_000, 8_000)}
    assert at[8_000] < 8**0.6 * at[1_000]
    assert max(trace.regret[-1] for trace in traces) < 15 * at[8_000]


@every
def test_a_learner_goes_to_the_rest_of_its_members_or_says_why_not(name):
    learner = LEARNERS[name](lg.stack(PLANTS))
    if not isinstance(learner, LQGVTR):
        assert learner.rest([0]).pace.shape == (len(PLANTS),)
        return
    with pytest.raises(
        lg.InvalidArgumentError, match=r"LQGVTR cannot follow a reference: .* FilterBank, can"
    ):
        lg.Controller(learner, follow=[0])
