"""Policies are nonlinear and heavy-tailed ones; their expectations are exact (see `exact_paths`)."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_paths import grid_of_paths
from van_trees_cases import (
    LEVEL,
    effects_of_all,
    moments_of,
    mutant,
    no_deviation,
    problem_of,
    small_case,
    solve_paths,
    value_of,
)
from varied_plants import SIZES

from lqgap.theory.lower_bounds.van_trees.deviations import Young, best_deviation, better_share

YOUNG = (0.7, 1.3, 0.2)
RARE, FACTOR = 1e-3, 30.0


def policies(inputs, states):
    """Functions of all that is known at a step, in most the parameters included; some are drawn."""
    rng = np.random.default_rng(5)
    by_zeta, by_eta = rng.normal(size=(2, states, inputs))
    now, first = rng.normal(size=(2, inputs))

    def linear(known):
        return known.zeta0 @ by_zeta + 0.3 * known.eta @ by_eta + np.outer(known.x[:, -1], now)

    def clipped(known):
        return np.outer(np.clip(known.x[:, -1], -LEVEL, LEVEL), now) + np.outer(known.x[:, 0] > LEVEL, first)

    def bent(known):
        sign = np.where(known.x[:, -1:] > LEVEL, -1, 1)
        return np.outer(known.x[:, -1] ** 2 - 0.3, now) + sign * (
            known.zeta0 @ by_zeta + 0.2 * known.eta @ by_eta
        )

    def detuned(known):
        return 0.5 + 0.4 * known.zeta0 @ by_zeta + 0.1 * known.eta @ by_eta

    return {"linear": linear, "clipped": clipped, "bent": bent, "detuned": detuned}


def rare(case, policy):
    """Paths on which a policy deviates rarely, and then 30 times as much: tails of kurtosis over 1000."""
    x, weight = grid_of_paths(LEVEL, len(case.system.F))
    scale = np.repeat([0.0, FACTOR], len(x))[:, None]
    paths = (np.concatenate([x, x]), np.concatenate([(1 - RARE) * weight, RARE * weight]))
    return (lambda known: scale * policy(known)), paths


def change_by_effects(case, effects, solved, share):
    """F less its value without deviations, by `Effects` and, of Y1, along the paths."""
    p, chi = solved.paths, case.chi
    total = sum((1 - share[h]) * solved.mean(np.sum(d**2, axis=1)) for h, d in enumerate(p.d))
    for (h, i), pieces in solved.pieces.items():
        total += 2 * solved.mean(np.sum(p.psid[h][:, :, i] * solved.W[h, i], axis=1))
        of = {name: getattr(effects, name)[h, i] for name in ("outer", "exact", "young", "lags")}
        lost = 0.0
        for j, (t, piece) in enumerate(zip(case.instants(h), pieces, strict=True)):
            for r in range(t + 1):
                factor = chi.stein if r == t else chi.square
                lost += factor * both(solved, p.nu0[r], p.nud[r], of["outer"][j])
            lost += both(solved, p.zeta0[t], p.eta[t], of["exact"][j] + of["young"][j])
            for lag in range(min(t, of["lags"].shape[1])):
                chi_before = np.clip(p.x[:, t - 1 - lag], -LEVEL, LEVEL)
                lost += 2 * solved.mean(chi_before * (p.eta[t] @ of["lags"][j, lag]))
            linear = chi.product * (piece.score0 + piece.scored) + piece.Q2_0 + piece.Y2
            lost += solved.mean(piece.Y1**2 + 2 * linear * piece.Y1)
        total -= lost / share[h]
    return total


def both(solved, exogenous, deviating, form):
    """E (2 x'H eta + eta'H eta)."""
    return solved.mean(np.einsum("ni,ij,nj->n", 2 * exogenous + deviating, form, deviating))


def shares(case):
    return np.linspace(0.5, 0.7, len(case.system.E))


def runs(case):
    """All policies on all paths, and one rarely."""
    found = policies(case.system.E.shape[-1], case.system.F.shape[-1])
    for policy in found.values():
        yield solve_paths(case, policy)
    policy, paths = rare(case, found["bent"])
    yield solve_paths(case, policy, paths)


@pytest.mark.parametrize("size", [(1, 1), (2, 1)])
def test_deviations_change_the_value_as_their_effects_say(size):
    case = small_case(size, instants=3)
    require_the_change(case, shares(case), effects_of_all(case))


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_deviations_change_the_value_in_tasks_that_end_and_go_on(size, ends):
    case = small_case(size, ends)
    require_the_change(case, shares(case), effects_of_all(case))


def require_the_change(case, share, effects):
    at_rest = value_of(solve_paths(case, no_deviation(case)), share)
    for solved in runs(case):
        exact = value_of(solved, share) - at_rest
        np.testing.assert_allclose(change_by_effects(case, effects, solved, share), exact, rtol=1e-9)


@pytest.mark.parametrize("name", ["outer", "exact", "young", "lags"])
def test_no_effect_may_be_left_out(name):
    """Mutants: without one of the effects, or with its sign turned, the identity above fails."""
    case = small_case((1, 1), instants=3)
    for factor in (0, -1):
        with pytest.raises(AssertionError):
            require_the_change(case, shares(case), mutant(effects_of_all(case), name, factor))


def young():
    return Young(*(jnp.asarray(value) for value in YOUNG))


@eqx.filter_jit
def best(problem, share):
    return best_deviation(problem, share, young())


class Terms(NamedTuple):
    """Of the linear-quadratic problem as the head of `deviations` has it."""

    price: np.ndarray  # of |d|^2, by step
    size: np.ndarray  # |l|, by step
    Hxe: np.ndarray  # by instant
    Hee: np.ndarray
    cross: np.ndarray  # of 2 chi_r (.) eta_t, by t and r


def terms_of(case, problem, share):
    z, y, eps = YOUNG
    chi, N, p = case.chi, np.asarray(case.system.N), case.system.num_outputs
    count, size = N.shape[0], N.shape[2]
    terms = Terms(
        (1 - eps) * (1 - share),
        np.zeros(len(share)),
        *np.zeros((2, count, size, size)),
        np.zeros((count, count, size)),
    )
    for h, j, t in case.places:
        outer, exact, by_young, lags, sup, reach = (
            np.asarray(getattr(problem.effects, name))[h, j] / share[h]
            for name in ("outer", "exact", "young", "lags", "sup", "size")
        )
        through = N.transpose(0, 2, 1) @ outer @ N
        main = np.concatenate([chi.square * through[:t], chi.stein * through[t : t + 1]])
        terms.Hxe[: t + 1] += main
        terms.Hee[: t + 1] += main
        terms.Hee[:t] += y * chi.product * through[:t] * (j < lags.shape[0])  # the earliest place has no Y1
        terms.Hxe[t] += exact + by_young
        terms.Hee[t] += exact + (1 + z) * by_young
        for lag in range(min(t, len(lags))):
            terms.cross[t, t - 1 - lag] += lags[lag] - (j == 0) * np.asarray(problem.pull)[h, lag]
        if (t + 1) % p == 0:
            terms.price[t // p] -= (1 + 1 / z + chi.product / y) * sup
            terms.size[t // p] += reach
    return terms


def densely(case, problem, share):
    """The infimum over all linear functions of (x_r, chi_r), r before the input, by one large linear system."""
    terms, system, p = terms_of(case, problem, share), case.system, case.system.num_outputs
    count, size, inputs = len(system.F), system.F.shape[-1], system.E.shape[-1]
    steps = len(system.E)
    pair = np.array([[1.0, case.chi.product], [case.chi.product, case.chi.square]])
    covariance = np.kron(np.eye(count), pair)  # of (x_0, chi_0, x_1, chi_1, ..)
    is_known = np.arange(2 * count)[None, :, None] < 2 * p * np.arange(1, steps + 1)[:, None, None]
    known = np.flatnonzero(np.broadcast_to(is_known, (steps, 2 * count, inputs)))

    def objective(free):
        policy = jnp.zeros(steps * 2 * count * inputs).at[known].set(free).reshape(steps, 2 * count, inputs)
        zeta0, eta, total = jnp.zeros((size, 2 * count)), jnp.zeros((size, 2 * count)), 0.0
        for t in range(count):
            chi_cross = jnp.zeros((size, 2 * count)).at[:, 1::2].set(terms.cross[t].T)
            pulled = terms.Hee[t] @ eta + 2 * terms.Hxe[t].T @ zeta0 + 2 * chi_cross
            total -= jnp.sum(pulled * (eta @ covariance))
            zeta0, eta = (system.F[t] @ zeta0).at[:, 2 * t].add(system.G[t]), system.F[t] @ eta
            if (t + 1) % p == 0:
                d = policy[t // p].T
                total += terms.price[t // p] * jnp.sum(d * (d @ covariance))
                eta = eta + system.E[t // p] @ d
        return total

    zero = jnp.zeros(len(known))
    slope, curvature = jax.jit(lambda free: (jax.grad(objective)(free), jax.hessian(objective)(free)))(zero)
    assert jnp.linalg.eigvalsh(curvature)[0] > 0
    gained = slope @ jnp.linalg.solve(curvature, slope) / 2
    return -gained - np.sum(terms.size**2 / (YOUNG[2] * (1 - share)))


CASES = [((1, 1), 3), *(pytest.param(size, 4, marks=pytest.mark.slow) for size in SIZES)]


@pytest.mark.parametrize(("size", "instants"), CASES)
def test_the_infimum_is_that_of_all_linear_functions_of_the_past(size, instants):
    case = small_case(size, instants=instants, scale=0.06)
    problem, share = problem_of(case), shares(case)
    found = best(problem, jnp.asarray(share))
    assert found.margin > 0
    np.testing.assert_allclose(found.value, densely(case, problem, share), rtol=1e-9)


@pytest.mark.parametrize(("size", "instants"), CASES)
def test_no_policy_is_below_the_bound(size, instants):
    case = small_case(size, instants=instants, scale=0.06)
    share = shares(case)
    psi = 2 * case.chi.product * np.sum(np.asarray(case.window.psi).transpose(0, 3, 1, 2) * case.rows.a)
    at_rest = psi - np.sum(moments_of(case).total / share[:, None])
    np.testing.assert_allclose(value_of(solve_paths(case, no_deviation(case)), share), at_rest, rtol=1e-9)
    bound = at_rest + best(problem_of(case), jnp.asarray(share)).value
    for scale in (0.03, -0.03, 1.0):
        for policy in policies(case.system.E.shape[-1], case.system.F.shape[-1]).values():
            scaled = functools.partial(lambda policy, scale, known: scale * policy(known), policy, scale)
            assert value_of(solve_paths(case, scaled), share) > bound


@eqx.filter_jit
def better(problem, share, worth, factor):
    return better_share(problem, share, young(), worth, factor)


def test_better_shares_have_a_finite_infimum():
    case = small_case((1, 1), instants=3, scale=0.06)
    problem, ones = problem_of(case), jnp.ones(len(case.system.E))
    for worth in (0.05, 0.5):
        found = better(problem, 0.8 * ones, worth * ones, 1.0)
        assert np.all((found > 0) & (found < 1))
        value = best(problem, found)
        assert value.margin > 0
        assert np.isfinite(value.value)
        assert value.value < 0
