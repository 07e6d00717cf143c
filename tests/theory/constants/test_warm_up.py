import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from records import records

import lqgap
from lqgap.simulators import Finite, check_assumptions, likelihood_set
from lqgap.theory.constants.norms import actual_norms, uniform_norms
from lqgap.theory.constants.warm_up import (
    belief_change,
    decay_of_errors,
    filter_change,
    largest_output,
    selection_constant,
    warm_up,
    warm_up_of_errors,
)


@pytest.fixture(scope="module")
def models():
    """A plant, its norms with room for its neighbours, and T_w for C_w = 1 and two episodes."""
    plant = lqgap.LQG([[0.8]], [[1.0]], [[1.0]])
    audit = check_assumptions(Finite([plant]))
    norms = actual_norms(uniform_norms(audit), audit)
    grown = {name: 1.05 * getattr(norms, name) for name in ("N_S", "N_K", "N_L", "growth", "kappa_2")}
    norms = replace(norms, **grown, kappa_predictor=1.0, gamma_predictor=0.9 * norms.gamma_predictor)
    parts = warm_up(norms, Kbar=2.0, C_w=1.0) | warm_up_of_errors(norms, Kbar=2.0, C_w=1.0)
    return plant, norms, parts


def neighbours(plant, eps):
    """(A, B, C, L) of models that are eps off in every matrix, in all directions."""
    o = lqgap.solve(plant)
    centre = np.array([float(X[0, 0]) for X in (plant.A, plant.B, plant.C, o.L)])
    return [centre + eps * np.array(signs) for signs in itertools.product((-1, 1), repeat=4)]


def test_the_errors_of_a_wrong_model_stay_in_their_share(models):
    """The recursion of E22 in scalars, with the largest innovations, in the directions that do most harm."""
    plant, norms, parts = models
    o = lqgap.solve(plant)
    A, B, C, K, L = (float(X[0, 0]) for X in (plant.A, plant.B, plant.C, o.K, o.L))  # the model acted on
    eps = 2 * math.sqrt(1 / max(parts.values()))
    theta = (1 - norms.gamma_1) / (4 * norms.N_L * norms.N_S)
    ebar = (1 - norms.gamma_1) / (4 * norms.N_L)
    kappa, gamma = decay_of_errors(norms)
    for a, b, c, gain in neighbours(plant, eps):
        Lam = A - a - (B - b) * K
        G0, G1 = (a + Lam) * (1 - L * C), (a + Lam) * L * (C - c) - Lam
        G2, G3 = a - b * K + b * K * L * (C - c), b * K * (1 - L * C)
        assert abs(G0) <= kappa * (1 - gamma)
        assert abs(G2) <= 1 - gamma
        for sign in (1, -1):
            error, belief = sign * theta / (2 * kappa), 2.0 * (A - B * K) + theta / (2 * kappa)
            for _ in range(200):
                error, belief = (
                    abs(G0 * error) + abs(G1 * belief) + abs(a * gain - (a + Lam) * L) * ebar,
                    abs(G2 * belief) + abs(G3 * error) + abs(a * gain - b * K * L) * ebar,
                )
                assert error <= theta


def test_beliefs_of_two_members_differ_by_no_more_than_their_share(models):
    """Histories of the largest size, in the directions that do most harm: the sum of absolute differences."""
    plant, norms, _ = models
    eps, length = 1e-3, 400
    o = lqgap.solve(plant)
    A, B, C, L = (float(X[0, 0]) for X in (plant.A, plant.B, plant.C, o.L))
    D_u, D_y = norms.N_K, largest_output(norms)
    s = np.arange(length)

    def weights(a, b, c, gain):
        keep = 1 - gain * c
        return (keep * a) ** s * keep * b, (keep * a) ** s * gain

    ours = weights(A, B, C, L)
    for other in neighbours(plant, eps):
        theirs = weights(*other)
        apart = D_u * np.sum(abs(ours[0] - theirs[0])) + D_y * np.sum(abs(ours[1] - theirs[1]))
        keep, kept = 1 - other[3] * other[2], 1 - L * C
        assert abs(keep * other[0] - kept * A) <= filter_change(norms) * eps
        assert 0 < apart <= belief_change(norms) * eps


def test_parts_fall_as_models_are_identified_better(models):
    _, norms, parts = models
    better = warm_up(norms, Kbar=2.0, C_w=0.25) | warm_up_of_errors(norms, Kbar=2.0, C_w=0.25)
    assert better.keys() == parts.keys()
    for name, value in parts.items():
        np.testing.assert_allclose(better[name], 0.25 * value)


def test_what_a_likelihood_set_leaves_is_as_near_as_its_constant_says():
    """In none of 40 records more than (C_w / T)^1/2 off, delta being 0.01; in some, a third of that."""
    grid = itertools.product(np.linspace(0.5, 0.9, 5), np.linspace(0.6, 1.4, 5))
    members = Finite([lqgap.LQG([[a]], [[b]], [[1.0]]) for a, b in grid])
    matrices = np.stack([np.ravel(X) for X in (members.systems.A, members.systems.B, members.optima().L)])
    C_w, off = selection_constant(members, delta=0.01), []
    for number in range(8):
        for y, u in records(members[3 * number], steps=200, seed=number, count=5, settle=0):
            left = likelihood_set(members, y, u, delta=0.01)
            rows = np.asarray(left.parameters)[:, 0].astype(int)  # members are numbered
            off.append(np.max(np.abs(matrices[:, rows] - matrices[:, [3 * number]])))
    assert max(off) <= np.sqrt(C_w / 200) < 3.5 * max(off)


def test_the_constant_of_two_plants_is_that_of_their_relative_entropy():
    """Gains b that differ: predictions by (b_1 - b_2) u filtered by 1 / (1 - abar z^-1), abar = (1 - L) a."""
    members = Finite([lqgap.LQG([[0.8]], [[b]], [[1.0]]) for b in (1.0, 1.1)])
    optimum = lqgap.solve(members[0])
    abar, S = float((0.8 * (1 - optimum.L))[0, 0]), float(optimum.S[0, 0])
    entropy = 0.1**2 / (1 - abar**2) / (2 * S)
    expected = 6 * math.log(2 / 0.05) * 0.1**2 / entropy
    assert selection_constant(members, delta=0.05) == pytest.approx(expected, rel=1e-6)
    assert selection_constant(Finite([members[0]]), delta=0.05) == 0
