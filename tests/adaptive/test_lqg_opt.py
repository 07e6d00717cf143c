import jax
import numpy as np
import pytest
from naive_identified import record, require_controllers, spring, told

import lqgap as lg
from lqgap.adaptive import LqgOpt, UnknownPlant, run_many


def test_inputs_are_those_of_a_recomputation_from_the_record():
    seen = record(LqgOpt(told()))
    assert len(seen.made) >= 2
    require_controllers(seen, confidence=0.95)


@pytest.mark.slow
def test_regret_grows_slowly_and_optimism_fades():
    learner = LqgOpt(UnknownPlant.like(spring(), window=8))
    traces = run_many(learner, spring(), horizon=10_000, keys=jax.random.split(jax.random.key(0), 20))
    steps, mean = traces[0].steps, np.mean([trace.excess for trace in traces], axis=0)
    at = np.searchsorted(steps, [1_000, 10_000])
    assert np.log10(mean[at[1]] / mean[at[0]]) < 0.5
    gain = np.mean([trace.figures["optimism"] for trace in traces], axis=0)
    assert 0.02 < gain[at[1]] < 0.5 * gain[np.searchsorted(steps, 200)]


@pytest.mark.usefixtures("as_users_run_it")
def test_a_confidence_is_a_probability():
    with pytest.raises(lg.InvalidArgumentError, match="confidence"):
        LqgOpt(UnknownPlant.like(spring()), confidence=1.5)
