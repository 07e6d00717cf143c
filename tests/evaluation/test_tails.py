import math

import numpy as np
import pytest

from lqgap.evaluation.tails import FEWEST, heaviest_index, tail_index


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.4, 0.9])
def test_the_index_of_a_generalised_pareto_sample_is_its_shape(shape, seed):
    """The largest of such values are again of the law, with the same shape. Its estimate from M of them has the
    standard deviation (1 + k) / sqrt(M); the prior draws it to 1/2 by 10 / (M + 10) of the way."""
    uniform = np.random.default_rng(seed).uniform(size=100_000)
    sample = -np.log(uniform) if shape == 0 else (uniform**-shape - 1) / shape
    num_largest = 3 * math.sqrt(len(sample))
    drawn = (num_largest * shape + 5) / (num_largest + 10)
    assert tail_index(sample) == pytest.approx(drawn, abs=4 * (1 + shape) / math.sqrt(num_largest))


def test_the_index_has_no_unit_and_no_origin():
    sample = np.random.default_rng(0).pareto(2, 1000)
    assert tail_index(1e9 * sample - 5e9) == pytest.approx(tail_index(sample), rel=1e-6)


def test_samples_without_a_tail_and_with_infinite_values_are_told_apart():
    sample = np.ones(FEWEST)
    assert tail_index(sample) == -math.inf
    assert tail_index(np.full(FEWEST, math.inf)) == -math.inf  # the mean is known: it is infinite
    assert tail_index(np.append(sample, math.inf)) == math.inf
    assert tail_index(np.append(sample, 2.0)) == math.inf  # one of many: how many more?


def test_few_values_do_not_show_their_tail():
    assert math.isnan(tail_index(np.arange(FEWEST - 1.0)))


def test_the_limit_grows_to_where_the_variance_ends_and_with_the_number_of_samples():
    limits = [heaviest_index(count, 1) for count in (256, 1024, 4096)]
    assert limits == sorted(limits)
    assert limits[-1] == pytest.approx(0.5, abs=0.01)
    assert heaviest_index(256, 100) > heaviest_index(256, 10) > limits[0]
