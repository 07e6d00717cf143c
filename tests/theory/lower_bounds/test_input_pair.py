import jax.numpy as jnp
import numpy as np
import pytest
from opposite import opposite
from random_systems import random_definite

import lqgap as lg
from lqgap.evaluation.gap import references_of
from lqgap.policies import FiniteHorizonLQG
from lqgap.theory.lower_bounds.belief import belief_bound
from lqgap.theory.lower_bounds.input_pair import (
    Candidate,
    common_metric,
    differ_in_input,
    infimum,
    input_pair_bound,
)
from lqgap.theory.lower_bounds.overactuated import nominal_plant, overactuated_class

PAIR = np.array([[0, 1]])
CANDIDATE = Candidate(np.linspace(0.1, 0.3, 20), np.linspace(0, 0.04, 20), 0.3, 0.2)


def test_the_common_metric_is_below_both(seed):
    rng = np.random.default_rng(seed)
    first, wanted = (jnp.asarray(random_definite(rng, 3)) for _ in range(2))
    second = first + 0.1 * jnp.asarray(random_definite(rng, 3) - random_definite(rng, 3))
    metric = common_metric(first, second, wanted)
    for other in (first, second):
        assert np.min(np.linalg.eigvalsh(other - metric)) > -1e-10
    np.testing.assert_allclose(common_metric(first, first, wanted), first, atol=1e-12)


def test_a_coarse_grid_of_the_infimum_is_below_a_fine_one():
    choice = np.log([0.5, 0.5, 4.0])
    coarse, middle, fine = (infimum(CANDIDATE, choice, count) for count in (40, 200, 5000))
    assert 0 < coarse < middle < fine


def test_the_infimum_is_that_of_its_formula():
    v, w, b = 0.5, 0.6, 3.0
    g = np.linspace(0, 2, 200_001)
    z = np.linspace(-9, 9, 20_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    total = np.sum(CANDIDATE.wanted) * np.sum(np.minimum(z**2, b) * density)
    bracket = np.maximum(np.sqrt(total) - 0.3 * np.sqrt(g), 0) ** 2
    for om, info in zip(CANDIDATE.wanted, CANDIDATE.information, strict=True):
        bracket = bracket - b * om * np.minimum(
            1, (np.sqrt(info) + 0.2 * np.sqrt(g)) ** 2 * (1 / v + 1 / w**2)
        )
    expected = np.exp(-v / 8 - w / 2) * np.min(g + 0.25 * np.maximum(bracket, 0))
    assert expected > 0
    np.testing.assert_allclose(infimum(CANDIDATE, np.log([v, w, b]), 4096), expected, rtol=1e-3)


def test_what_left_double_precision_bounds_nothing():
    assert infimum(Candidate(np.ones(3), np.zeros(3), np.inf, 1.0), np.zeros(3), 10) == 0
    assert infimum(Candidate(np.full(3, -1e-18), np.zeros(3), 0.0, 0.0), np.zeros(3), 10) == 0


@pytest.mark.parametrize("horizon", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_bound_is_below_the_exact_minimax_and_not_far(horizon):
    references = references_of(opposite(), horizon=horizon)
    exact = belief_bound(references, num_steps=horizon).upper
    value = input_pair_bound(references, PAIR).value[0]
    assert 0.3 * exact < value <= exact


def test_pairs_that_differ_in_more_than_their_input_have_no_such_bound():
    members = lg.plants.mass_spring_damper().grid(2)  # stiffness, then gain
    pairs = np.array([[0, 1], [0, 2], [2, 3], [0, 3]])
    assert differ_in_input(members.systems, pairs).tolist() == [True, False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [100, 400, 1600])
def test_the_nominal_controller_is_certified_on_the_class_that_it_cannot_tell_apart(horizon):
    """The factors of the specification: at most 1.9 at c = 0.3, at least 0.07 sqrt(H) at c = 0.5."""
    near, far = (overactuated_class(horizon=horizon, c=c) for c in (0.3, 0.5))
    nominal = FiniteHorizonLQG(nominal_plant(), horizon)
    worst = max(float(lg.exact_gap(nominal, plant, horizon=horizon)) for plant in near)
    assert worst <= 1.9 * input_pair_bound(references_of(near.systems, horizon=horizon), PAIR).value[0]
    value = input_pair_bound(references_of(far.systems, horizon=horizon), PAIR).value[0]
    assert value >= 0.07 * np.sqrt(horizon)
    assert value <= max(float(lg.exact_gap(nominal, plant, horizon=horizon)) for plant in far)
