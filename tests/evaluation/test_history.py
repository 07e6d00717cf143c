import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.policies import ClippedHistory
from lqgap.systems import predictor_matrix


def test_the_length_is_the_smallest_that_meets_the_tolerance():
    plant = random_plant(0)
    plan = lg.evaluation.plan_memory(plant, tolerance=1e-3)
    optimum = lg.solve(plant)
    closed = plant.A - plant.B @ optimum.K
    belief = sum(
        np.linalg.matrix_power(closed, k)
        @ optimum.L
        @ optimum.S
        @ optimum.L.T
        @ np.linalg.matrix_power(closed, k).T
        for k in range(400)
    )

    def error(length):
        left = plant.C @ jnp.linalg.matrix_power(predictor_matrix(optimum, plant), length) @ plant.A
        return np.sqrt(np.trace(np.linalg.solve(optimum.S, left @ belief @ left.T)))

    np.testing.assert_allclose(plan.error[0], error(plan.length), rtol=1e-8)
    assert plan.error[0] <= 1e-3 < error(plan.length - 1)


def test_the_price_is_that_of_the_clipped_policy_and_the_worst_member_decides():
    plants = [random_plant(0), random_plant(4)]
    plan = lg.evaluation.plan_memory(lg.simulators.Finite(plants), tolerance=1e-1)
    assert plan.length == max(lg.evaluation.plan_memory(plant, tolerance=1e-1).length for plant in plants)
    for plant, price in zip(plants, plan.price, strict=True):
        clipped = ClippedHistory.from_plant(plant, length=plan.length)
        np.testing.assert_allclose(
            price, lg.exact_average_cost(clipped, plant) / lg.solve(plant).J - 1, atol=1e-12
        )
        assert price >= 0


@pytest.mark.usefixtures("as_users_run_it")
def test_what_forgets_too_slowly_is_named():
    slow = lg.LQG([[0.9999]], [[1.0]], [[1.0]], W=[[1e-9]])
    with pytest.raises(lg.NotConvergedError, match="decay too slowly"):
        lg.evaluation.plan_memory(slow, tolerance=1e-9)
    with pytest.raises(lg.InvalidArgumentError, match="expected a finite class"):
        lg.evaluation.plan_memory(lg.plants.mass_spring_damper())
