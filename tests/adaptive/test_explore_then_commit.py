import jax
import numpy as np
import pytest
from naive_identified import record, require_controllers, spring, told

import lqgap as lg
from lqgap.adaptive import ExploreThenCommit, UnknownPlant, run_many


@pytest.mark.parametrize("confidence", [0.95, None])
def test_inputs_are_those_of_a_recomputation_from_the_record(confidence):
    seen = record(ExploreThenCommit(told(), num_random=100, confidence=confidence))
    assert len(seen.made) == 1
    require_controllers(seen, confidence=confidence)


def test_one_model_is_made_when_the_exploration_ends():
    learner = ExploreThenCommit(UnknownPlant.like(spring()), num_random=150)
    traces = run_many(learner, spring(), horizon=1_000, keys=jax.random.split(jax.random.key(0), 4))
    for trace in traces:
        trips = int(trace.figures["trips"][-1])
        assert len(trace.switches) <= 1 + trips
        assert trace.switches[0].step == 150
        assert trace.figures["optimism"][-1] >= 0


@pytest.mark.slow
def test_the_cost_of_exploring_grows_with_the_horizon_as_it_is_long():
    """Across horizons the slope is near 2/3: exploring dominates."""
    means = []
    for horizon in (1_000, 10_000):
        learner = ExploreThenCommit(UnknownPlant.like(spring(), window=8), horizon=horizon)
        traces = run_many(learner, spring(), horizon=horizon, keys=jax.random.split(jax.random.key(0), 20))
        means.append(np.median([trace.excess[-1] for trace in traces]))
    assert 0.5 < np.log10(means[1] / means[0]) < 0.75


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    told = UnknownPlant.like(spring())
    with pytest.raises(lg.InvalidArgumentError, match="horizon or num_random"):
        ExploreThenCommit(told)
    with pytest.raises(lg.InvalidArgumentError, match="num_random"):
        ExploreThenCommit(told, num_random=5)
