import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import ExploreThenCommit, UnknownPlant, run_many


@pytest.fixture(scope="module")
def spring():
    return lg.plants.mass_spring_damper().nominal()


def test_one_model_is_made_when_the_exploration_ends(spring):
    learner = ExploreThenCommit(UnknownPlant.like(spring), num_random=150)
    traces = run_many(learner, spring, horizon=1_000, keys=jax.random.split(jax.random.key(0), 4))
    for trace in traces:
        trips = int(trace.figures["trips"][-1])
        assert len(trace.switches) <= 1 + trips
        assert trace.switches[0].step == 150
        assert trace.figures["optimism"][-1] >= 0


@pytest.mark.slow
def test_the_cost_of_exploring_grows_with_the_horizon_as_it_is_long(spring):
    """Across horizons the slope is near 2/3: exploring dominates."""
    means = []
    for horizon in (1_000, 10_000):
        learner = ExploreThenCommit(UnknownPlant.like(spring, window=8), horizon=horizon)
        traces = run_many(learner, spring, horizon=horizon, keys=jax.random.split(jax.random.key(0), 20))
        means.append(np.median([trace.excess[-1] for trace in traces]))
    assert 0.5 < np.log10(means[1] / means[0]) < 0.75


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(spring):
    told = UnknownPlant.like(spring)
    with pytest.raises(lg.InvalidArgumentError, match="horizon or num_random"):
        ExploreThenCommit(told)
    with pytest.raises(lg.InvalidArgumentError, match="num_random"):
        ExploreThenCommit(told, num_random=5)
