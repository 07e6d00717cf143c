import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import directional_difference, general_plant, random_plant

import lqgap as lg
from lqgap.evaluation import closed_loop_radius
from lqgap.evaluation.exact import close_loop
from lqgap.policies import ClippedHistory, FiniteHorizonLQG, LinearDynamic, ModelBank, StationaryLQG, Zero

METHODS = ["forward", "doubling"]


def backward_cost(policy, plant, *, horizon):
    """X_h = AA' X_{h+1} AA + NN ,  V = tr(X_0 Pi_0) + sum_h n0 + tr(X_{h+1} Gam)."""
    X, total = np.zeros_like(close_loop(policy.at(0), plant).cost), 0.0
    for h in reversed(range(horizon + 1)):
        loop = close_loop(policy.at(h), plant)
        total += loop.constant + np.sum(X * loop.noise)
        X = loop.transition.T @ X @ loop.transition + loop.cost
    states = plant.num_states
    return np.sum(X[:states, :states] * plant.S0) + total


def controller(record):
    matrices = [record[name] for name in ("Ac", "Bc", "Cc")] if record["Ac"] else [None, None, None]
    return LinearDynamic(*matrices, record["Dc"])


def test_golden_costs_gaps_and_average_costs(golden, golden_plant):
    for record in golden["V_pi"].values():
        policy = controller(record)
        for method in METHODS:
            cost = lg.exact_cost(policy, golden_plant, horizon=10, method=method)
            np.testing.assert_allclose(cost, record["V"]["10"], rtol=1e-9)
        np.testing.assert_allclose(
            lg.exact_cost(policy, golden_plant, horizon=50), record["V"]["50"], rtol=1e-9
        )
        np.testing.assert_allclose(
            lg.exact_gap(policy, golden_plant, horizon=50), record["gap"]["50"], rtol=1e-9
        )
        np.testing.assert_allclose(lg.exact_average_cost(policy, golden_plant), record["J"], rtol=1e-9)
        radius = closed_loop_radius(policy, golden_plant)
        np.testing.assert_allclose(radius, record["closed_loop_radius"], rtol=1e-9)


@pytest.mark.parametrize("draw", [random_plant, general_plant])
def test_the_optimal_controllers_cost_what_the_optimum_says(draw, seed):
    plant = draw(seed)
    finite = lg.solve_finite(plant, horizon=12)
    best = FiniteHorizonLQG(plant, 12)
    np.testing.assert_allclose(lg.exact_cost(best, plant, horizon=12), finite.value, rtol=1e-11)
    np.testing.assert_allclose(backward_cost(best, plant, horizon=12), finite.value, rtol=1e-11)
    np.testing.assert_allclose(lg.exact_gap(best, plant, horizon=12), 0, atol=1e-24)
    np.testing.assert_allclose(
        lg.exact_average_cost(StationaryLQG(plant), plant), lg.solve(plant).J, rtol=1e-10
    )


@pytest.mark.parametrize("draw", [random_plant, general_plant])
def test_the_gap_is_the_difference_of_costs_also_where_the_loop_is_unstable(draw, seed):
    plant = draw(seed, radius=1.2)
    policy = Zero(num_inputs=2, num_outputs=2)
    costs = [float(lg.exact_cost(policy, plant, horizon=40, method=method)) for method in METHODS]
    np.testing.assert_allclose(costs, backward_cost(policy, plant, horizon=40), rtol=1e-11)
    difference = costs[0] - lg.solve_finite(plant, horizon=40).value
    np.testing.assert_allclose(lg.exact_gap(policy, plant, horizon=40), difference, rtol=1e-9)
    assert lg.exact_average_cost(policy, plant) == np.inf


def test_an_unstable_mode_that_nothing_excites_costs_nothing():
    plant = lg.LQG(
        [[0.5, 0], [0, 3.0]], [[1.0], [0]], [[1.0, 1.0]], W=np.diag([1.0, 0]), S0=np.diag([1.0, 0])
    )
    costs = [lg.exact_cost(Zero(num_inputs=1, num_outputs=1), plant, horizon=1000, method=m) for m in METHODS]
    np.testing.assert_allclose(costs, 1001 + 1001 * 4 / 3 - (4 / 3 - 1) / (1 - 0.25), rtol=1e-12)


def cost_with_takeover(policy, plant, *, last, horizon):
    """Of steps 0..horizon, if a linear policy acts until step `last` and the optimal one, -K xhat, after it.

    Covariances of (x, xhat_{t|t-1}, xi), step by step.
    """
    A, B, C, Q, R, W, V = (np.asarray(getattr(plant, name)) for name in "ABCQRWV")
    K, gains = np.asarray(lg.solve(plant).K), np.asarray(lg.solve_finite(plant, horizon=horizon).L)
    Ac, Bc, Cc, Dc = (np.asarray(part) for part in jax.tree.leaves(policy.at(0)))
    n, none = len(A), np.zeros
    Pi, total = none((2 * n + len(Ac), 2 * n + len(Ac))), 0.0
    Pi[:n, :n] = plant.S0
    y = np.hstack([C, none((len(C), n + len(Ac)))])
    for t, L in enumerate(gains):
        keep = np.eye(n) - L @ C
        # u = U s + Y z, with z the noise of y
        U, Y = np.hstack([Dc @ C, none((len(Dc), n)), Cc]), Dc
        if t > last:
            U, Y = np.hstack([-K @ L @ C, -K @ keep, none((len(K), len(Ac)))]), -K @ L
        total += np.sum(Q * (y @ Pi @ y.T + V)) + np.sum(R * (U @ Pi @ U.T + Y @ V @ Y.T))
        free = [[A, none((n, n + len(Ac)))], [A @ L @ C, A @ keep, none((n, len(Ac)))]]
        step = np.block([*free, [Bc @ C, none((len(Ac), n)), Ac]])
        step[: 2 * n] += np.vstack([B, B]) @ U
        noise = np.vstack([B @ Y, A @ L + B @ Y, Bc])
        Pi = step @ Pi @ step.T + noise @ V @ noise.T
        Pi[:n, :n] += W
    return total


def test_without_an_end_the_gap_is_what_is_paid_in_all_time_if_the_optimum_takes_over(seed):
    plant, last = random_plant(seed, radius=1.05), 7
    policy = LinearDynamic(0.3 * np.eye(2), np.eye(2), 0.1 * np.eye(2), -0.1 * np.eye(2))
    # From then on the state left is forgotten like 0.9^(2 t): 300 steps are all time.
    costs = [cost_with_takeover(policy, plant, last=until, horizon=last + 300) for until in (last, -1)]
    gap = lg.exact_gap(policy, plant, horizon=last, ends=False)
    np.testing.assert_allclose(gap, costs[0] - costs[1], rtol=1e-8)
    value = lg.solve_finite(plant, horizon=last, ends=False).value
    for method in METHODS:
        cost = lg.exact_cost(policy, plant, horizon=last, method=method, ends=False)
        np.testing.assert_allclose(cost - value, gap, rtol=1e-9)


def test_a_small_gap_keeps_its_digits():
    plant = random_plant(0)
    best = FiniteHorizonLQG(plant, 12)

    def gap_at(change):
        return lg.exact_gap(eqx.tree_at(lambda p: p.K, best, best.K * (1 + change)), plant, horizon=12)

    # Quadratic in the change up to a cubic term (a share of the change), and rounded to 1e-16 of the deviation. Of a
    # difference of costs, or of covariances, three digits would be left at 1e-6 and none at 1e-9.
    np.testing.assert_allclose(gap_at(2e-6) / gap_at(1e-6), 4, rtol=1e-5)
    np.testing.assert_allclose(gap_at(2e-9) / gap_at(1e-9), 4, rtol=1e-5)
    assert 0 < gap_at(1e-6) < 1e-10


def test_derivatives_equal_differences(seed):
    plant = random_plant(seed)
    rng = np.random.default_rng(seed)
    point = [jnp.asarray(rng.normal(size=shape) * 0.2) for shape in ((2, 2), (2, 2), (2, 2), (2, 2))]
    direction = [jnp.asarray(rng.normal(size=(2, 2))) for _ in point]

    for function in (
        lambda *k: lg.exact_cost(LinearDynamic(*k), plant, horizon=15, method="forward"),
        lambda *k: lg.exact_cost(LinearDynamic(*k), plant, horizon=15, method="doubling"),
        lambda *k: lg.exact_gap(LinearDynamic(*k), plant, horizon=15),
        lambda *k: lg.exact_average_cost(LinearDynamic(*k), plant),
    ):
        gradient = jax.grad(function, argnums=(0, 1, 2, 3))(*point)
        slope = sum(jnp.sum(g * d) for g, d in zip(gradient, direction, strict=True))
        np.testing.assert_allclose(slope, directional_difference(function, point, direction), rtol=1e-6)


def test_the_gradient_is_the_one_of_the_closed_formula():
    plant = random_plant(3)
    rng = np.random.default_rng(3)
    Ac, Bc, Cc, Dc = (rng.normal(size=(2, 2)) * 0.2 for _ in range(4))
    horizon, n = 7, 3
    A, B, C, Q, R, W, V, S0 = (
        np.asarray(getattr(plant, x)) for x in ("A", "B", "C", "Q", "R", "W", "V", "S0")
    )
    kappa = np.block([[Dc, Cc], [Bc, Ac]])
    Bb = np.block([[B, np.zeros((n, 2))], [np.zeros((2, 2)), np.eye(2)]])
    Cb = np.block([[C, np.zeros((2, 2))], [np.zeros((2, n)), np.eye(2)]])
    Vh = np.zeros((4, 4))
    Vh[:2, :2] = V
    E1 = np.eye(4)[:2]
    AA = np.block([[A, np.zeros((n, 2))], [np.zeros((2, n + 2))]]) + Bb @ kappa @ Cb
    Gam = np.zeros((5, 5))
    Gam[:n, :n] = W
    Gam += Bb @ kappa @ Vh @ kappa.T @ Bb.T
    out = np.hstack([C, np.zeros((2, 2))])
    NN = out.T @ Q @ out + (E1 @ kappa @ Cb).T @ R @ (E1 @ kappa @ Cb)
    Pi = np.zeros((5, 5))
    Pi[:n, :n] = S0
    Pis = [Pi]
    for _ in range(horizon):
        Pis.append(AA @ Pis[-1] @ AA.T + Gam)
    X, expected = np.zeros((5, 5)), np.zeros((4, 4))
    for Pi in reversed(Pis):  # X is X_{h+1}
        expected += 2 * E1.T @ R @ E1 @ kappa @ (Cb @ Pi @ Cb.T + Vh)
        expected += 2 * Bb.T @ X @ (AA @ Pi @ Cb.T + Bb @ kappa @ Vh)
        X = AA.T @ X @ AA + NN
    gradient = jax.grad(lambda k: lg.exact_cost(LinearDynamic(*k), plant, horizon=horizon))((Ac, Bc, Cc, Dc))
    np.testing.assert_allclose(
        np.block([[gradient[3], gradient[2]], [gradient[1], gradient[0]]]), expected, rtol=1e-9, atol=1e-11
    )


@pytest.mark.parametrize(
    ("family", "ratio", "digits"),
    [("laplacian", 1.38, 0.005), ("uav_hover", 1.53, 0.005), ("web_server", 1.02, 0.005)],
)
def test_the_predictor_form_that_others_use_is_dearer(family, ratio, digits):
    plant = getattr(lg.plants, family)().nominal()
    optimum = lg.solve(plant)
    # u = -K xhat_{t|t-1}: the same gains without the observation of this step.
    predictor = LinearDynamic(
        plant.A - plant.B @ optimum.K - optimum.F @ plant.C,
        optimum.F,
        -optimum.K,
        np.zeros((plant.num_inputs, plant.num_outputs)),
    )
    assert abs(lg.exact_average_cost(predictor, plant) / optimum.J - ratio) < digits


def test_a_clipped_policy_tends_to_the_optimum():
    plant = random_plant(0)
    costs = [
        lg.exact_average_cost(ClippedHistory.from_plant(plant, length=length), plant) for length in (1, 4, 80)
    ]
    assert costs[0] > costs[1] > lg.solve(plant).J
    np.testing.assert_allclose(costs[2], lg.solve(plant).J, rtol=1e-9)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_has_no_exact_cost_is_refused_with_advice():
    plant = random_plant(0)
    with pytest.raises(
        lg.InvalidArgumentError,
        match=r"policy is a ModelBank, expected .*AbstractLinearPolicy",
    ):
        lg.exact_cost(ModelBank(lg.stack([plant])), plant, horizon=3)
    with pytest.raises(lg.InvalidArgumentError, match="without a horizon"):
        lg.exact_average_cost(FiniteHorizonLQG(plant, 3), plant)
    with pytest.raises(lg.InvalidArgumentError, match="changes with time"):
        lg.exact_cost(FiniteHorizonLQG(plant, 3), plant, horizon=3, method="doubling")
    with pytest.raises(lg.InvalidArgumentError, match="method is 'guess'"):
        lg.exact_cost(StationaryLQG(plant), plant, horizon=3, method="guess")
