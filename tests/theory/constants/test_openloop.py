import jax
import numpy as np
from ten_models import ten_models

import lqgap
from lqgap.policies import Zero
from lqgap.theory.constants.openloop import open_loop_cost


def test_doing_nothing_costs_what_the_exact_cost_of_nothing_is():
    members = ten_models()
    cost = open_loop_cost(members.systems, is_random=False)
    nothing = Zero(num_inputs=1, num_outputs=1)
    for horizon in (0, 3, 500):
        expected = [lqgap.exact_cost(nothing, plant, horizon=horizon) for plant in members]
        np.testing.assert_allclose(cost(float(horizon)), expected, rtol=1e-10)
    np.testing.assert_allclose(cost(1e60) / 1e60, cost.average, rtol=1e-12)


def test_white_noise_costs_what_runs_of_it_cost():
    """White inputs are process noise BB' and their own cost; the mean of 4000 runs, within 4 standard errors."""
    plant = lqgap.LQG([[0.8, 0.2], [0, 0.5]], [[0], [1.0]], [[1, 0]], Q=[[2.0]], R=[[0.5]])
    rng, steps, runs = np.random.default_rng(0), 12, 4000
    x, total = rng.normal(size=(runs, 2)), np.zeros(runs)
    A, B, C = (np.asarray(X) for X in (plant.A, plant.B, plant.C))
    for _ in range(steps + 1):
        y, u = x @ C.T + rng.normal(size=(runs, 1)), rng.normal(size=(runs, 1))
        total += 2.0 * y[:, 0] ** 2 + 0.5 * u[:, 0] ** 2
        x = x @ A.T + u @ B.T + rng.normal(size=(runs, 2))
    expected = open_loop_cost(lqgap.stack([plant]), is_random=True)(float(steps))[0]
    assert abs(total.mean() - expected) < 4 * total.std() / np.sqrt(runs)


def test_an_unstable_plant_costs_without_bound_and_spoils_no_other():
    plants = [lqgap.LQG([[a]], [[1.0]], [[1.0]]) for a in (0.5, 1.1)]
    cost = open_loop_cost(jax.tree.map(lambda x: x, lqgap.stack(plants)), is_random=False)(100.0)
    assert np.isfinite(cost[0])
    assert cost[1] == np.inf
