import pytest
from naive_identified import MEMORY, record, require_taps, slope, told

from lqgap.adaptive import AdaptOn


def test_inputs_are_those_of_a_recomputation_from_the_record():
    """Models at 4d and 8d, each with features from the last samples; the taps and their sums stay."""
    seen = record(AdaptOn(told(), memory=MEMORY))
    assert seen.made == [64, 128]
    require_taps(seen)


@pytest.mark.slow
def test_regret_grows_slowly():
    assert slope(AdaptOn(told()))[0] < 0.4
