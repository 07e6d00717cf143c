import jax.numpy as jnp
import numpy as np
import pytest
from opposite import opposite
from random_systems import random_plant

import lqgap as lg
from lqgap.evaluation.gap import references_of
from lqgap.theory.lower_bounds import belief, relaxation
from lqgap.theory.lower_bounds.relaxation import Cells, one_step_bound, two_step_bound


def by_sums(models, prior, nodes):
    gaps = belief.bayes_gaps(models, jnp.asarray(prior), belief.Quadrature(nodes, models.C.shape[1]))
    return float(prior @ np.asarray(gaps))


def test_weights_of_cells_integrate_linear_functions_and_are_above_convex_ones():
    cells = Cells(50)
    np.testing.assert_allclose(np.sum(cells.mass), 1, atol=1e-9)
    np.testing.assert_allclose(cells.chord(cells.nodes), cells.mean, atol=1e-12)
    assert cells.mass @ cells.chord(cells.nodes**2) > 1
    weights = np.linspace(1, 2, 50)
    values = np.cos(cells.nodes)
    np.testing.assert_allclose(cells.at_nodes(weights) @ values, (weights * cells.mass) @ cells.chord(values))


@pytest.mark.parametrize("outputs", [1, 2])
def test_one_step_is_below_fine_sums_and_close_to_them(seed, outputs):
    """Three members, two inputs, and innovations up to eight times as large as others, for which cells are coarse."""
    plants = [random_plant(seed + shift, inputs=2, outputs=outputs) for shift in (1, 12, 5)]
    models = belief.first_steps(references_of(lg.stack(plants), horizon=4), 1)
    prior = np.array([0.2, 0.5, 0.3])
    exact = by_sums(models, prior, 240 if outputs == 1 else 96)
    found = one_step_bound(models, prior)
    assert {1: 1 - 1e-4, 2: 0.95}[outputs] * exact < found <= exact * (1 + 1e-9)
    assert one_step_bound(models, np.array([0.4, 0.6, 0.0])) > 0


def test_few_cells_only_lower_the_bound(monkeypatch):
    """What makes it a bound is convexity: it holds on the coarsest grid as well."""
    prior = np.array([0.45, 0.55])
    models = belief.first_steps(references_of(opposite(), horizon=30), 2)
    fine = two_step_bound(models, prior)
    found = []
    for cells in (8, 16, 32):
        monkeypatch.setattr(relaxation, "FIRST_CELLS", cells)
        monkeypatch.setattr(relaxation, "NEXT_CELLS", 2 * cells)
        monkeypatch.setattr(relaxation, "MAX_HALVINGS", cells // 4)
        found.append(two_step_bound(models, prior))
    assert 0 < found[0] < found[1] < found[2] < fine
    assert found[2] > 0.95 * fine
    assert two_step_bound(models, np.array([1.0, 0.0])) == 0


def test_two_steps_are_below_the_policy_of_a_search_and_close_to_it():
    """The search is a policy, so that its cost is above that of the best one; here it finds it."""
    prior = np.array([0.45, 0.55])
    for horizon in (2, 30):
        models = belief.first_steps(references_of(opposite(), horizon=horizon), 2)
        searched = by_sums(models, prior, 40)
        assert (1 - 1e-3) * searched < two_step_bound(models, prior) <= searched


@pytest.mark.slow
def test_sums_that_are_too_large_do_not_raise_the_bound():
    """Two best inputs that change places at y = 0 make a kink there: sums of 40 nodes are 1e-3 too large."""
    gains = ([0.33, 0.094], [0.44, -0.063])
    plants = [
        lg.LQG([[0.9]], [gain], [[1.0]], Q=[[0.01]], R=np.diag([0.25, 4e-6]), S0=[[100.0]]) for gain in gains
    ]
    models = belief.first_steps(references_of(lg.stack(plants), horizon=20), 2)
    prior = np.array([0.5, 0.5])
    few, many = (by_sums(models, prior, nodes) for nodes in (40, 160))
    assert few > many * (1 + 8e-4)
    assert many * (1 - 1e-3) < two_step_bound(models, prior) < many
