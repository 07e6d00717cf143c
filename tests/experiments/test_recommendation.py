import math

import numpy as np
import pytest

from lqgap.experiments.recommendation import Candidate, Recommendation, recommend
from lqgap.experiments.record import Estimate, MethodGaps

NUM_RUNS = 400


def candidate(method, box, *, real=0.0, stderr=0.1, rng=0, has_file=True, is_fit=True):
    def estimate(value):
        return None if value is None else Estimate(mean=value, stderr=stderr)

    gaps = MethodGaps(
        method=method,
        grid_worst=estimate(1.0),
        grid_mean=estimate(1.0),
        box_worst=estimate(box),
        box_worst_at=None,
        real=[],
        real_worst=estimate(real),
        real_mean=estimate(real),
    )
    spread = stderr * math.sqrt(NUM_RUNS) * np.random.default_rng(rng).normal(size=NUM_RUNS)
    worst = max(each.mean for each in (gaps.box_worst, gaps.grid_worst, gaps.real_worst) if each)
    return Candidate(gaps, (worst + spread).tolist(), has_file, is_fit)


def choose(**candidates):
    return recommend(
        {name: candidate(name, *args, **options) for name, (args, options) in candidates.items()}
    )


def known(*args, **options):
    return args, options


def test_the_smallest_worst_gap_over_all_that_was_tried_is_recommended():
    found = choose(nominal=known(9.0), robust=known(5.0), bank=known(3.0, real=8.0))
    assert found == Recommendation("robust")
    assert choose(bank=known(None, real=3.0), nominal=known(None, real=2.0)).method == "nominal"


def test_what_is_unfit_is_never_recommended_however_small_its_gap():
    found = choose(bank=known(2.0, is_fit=False), nominal=known(9.0))
    assert found == Recommendation("nominal")
    assert choose(bank=known(2.0, is_fit=False)) == Recommendation(None)
    assert recommend({}) == Recommendation(None)


def test_of_equal_methods_the_simplest_is_recommended_and_the_others_are_named():
    found = choose(nominal=known(9.0), bank=known(5.5, stderr=0.5, rng=1), robust=known(5.0, stderr=0.5))
    assert found == Recommendation("bank", ("robust",))


def test_noise_that_methods_have_in_common_makes_no_equals():
    found = choose(robust=known(5.0, stderr=0.5), bank=known(5.5, stderr=0.5), nominal=known(9.0))
    assert found == Recommendation("robust")


@pytest.mark.parametrize("stderr", [30.0, math.inf])
def test_noise_that_hides_everything_makes_no_equals(stderr):
    found = choose(robust=known(5.0), nominal=known(20.0, stderr=stderr))
    assert found == Recommendation("robust")


def test_a_method_without_a_file_is_named_if_it_is_better_and_never_chosen():
    assert choose(vtr=known(2.0, has_file=False), bank=known(5.0)) == Recommendation("bank", (), "vtr")
    assert choose(vtr=known(4.95, rng=1, has_file=False), bank=known(5.0)) == Recommendation("bank")
    assert choose(vtr=known(2.0, has_file=False)) == Recommendation(None, (), "vtr")
