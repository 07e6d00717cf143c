import jax
import numpy as np
import pytest
from naive_identified import MEMORY, record, require_taps, spring, told

from lqgap.adaptive import AdaptOn, UnknownPlant, run_many


def test_inputs_are_those_of_a_recomputation_from_the_record():
    """Models at 4d and 8d, each with features from the last samples; the taps and their sums stay."""
    seen = record(AdaptOn(told(), memory=MEMORY))
    assert seen.made == [64, 128]
    require_taps(seen)


@pytest.mark.slow
def test_regret_grows_slowly():
    plant = spring()
    learner = AdaptOn(UnknownPlant.like(plant, window=8))
    traces = run_many(learner, plant, horizon=10_000, keys=jax.random.split(jax.random.key(0), 20))
    mean = np.mean([trace.excess for trace in traces], axis=0)
    at = np.searchsorted(traces[0].steps, [1_000, 10_000])
    assert np.log10(mean[at[1]] / mean[at[0]]) < 0.4
