import numpy as np
import pytest
from naive_identified import record, require_controllers, slope, told

import lqgap as lg
from lqgap.adaptive import LqgOpt


def test_inputs_are_those_of_a_recomputation_from_the_record():
    seen = record(LqgOpt(told()))
    assert len(seen.made) >= 2
    require_controllers(seen, confidence=0.95)


@pytest.mark.slow
def test_regret_grows_slowly_and_optimism_fades():
    found, traces = slope(LqgOpt(told()))
    assert found < 0.5
    gain = np.mean([trace.figures["optimism"] for trace in traces], axis=0)
    assert 0.02 < gain[-1] < 0.5 * gain[np.searchsorted(traces[0].steps, 200)]


@pytest.mark.usefixtures("as_users_run_it")
def test_a_confidence_is_a_probability():
    with pytest.raises(lg.InvalidArgumentError, match="confidence"):
        LqgOpt(told(), confidence=1.5)
