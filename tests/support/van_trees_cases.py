"""Small problems of a van Trees bound with arbitrary tests, that paths on a grid solve exactly."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from exact_paths import follow_paths, grid_of_paths, pieces_of, window_sum
from varied_plants import varied_branch

from lqgap.theory.lower_bounds.van_trees.clipping import ClippedNormal, clipped_normal
from lqgap.theory.lower_bounds.van_trees.deviations import Problem, known_covariance
from lqgap.theory.lower_bounds.van_trees.moments import Row, effects_of, second_moment
from lqgap.theory.lower_bounds.van_trees.sensitivity import Sensitivity, sensitivity_of
from lqgap.theory.lower_bounds.van_trees.window import Window, exogenous_of, windows_of

LEVEL, LENGTH = 1.1, 3


class Rows(NamedTuple):
    """Of all tests: leading axes step, input."""

    a: jax.Array
    b: jax.Array


class Case(NamedTuple):
    """A plant and its tests."""

    system: Sensitivity
    window: Window
    chi: ClippedNormal
    rows: Rows

    def instants(self, h):
        """Of the window of a step, latest first, without those before the record."""
        last = (h + 1) * self.system.num_outputs - 1
        return list(range(last, max(last - self.rows.a.shape[2], -1), -1))

    def row(self, h, i):
        return Row(self.rows.a[h, i], self.rows.b[h, i])

    @property
    def places(self):
        """Steps, places of their windows and the instants there."""
        return [(h, j, t) for h in range(self.rows.a.shape[0]) for j, t in enumerate(self.instants(h))]

    @property
    def tests(self):
        """Steps and inputs."""
        return [(h, i) for h in range(self.rows.a.shape[0]) for i in range(self.rows.a.shape[1])]


@eqx.filter_jit
def _make(plant, theta, horizon, ends, length):
    system = sensitivity_of(plant, theta, horizon=horizon, ends=ends)
    return system, windows_of(system, exogenous_of(system), length=length)


@functools.cache
def small_case(size, ends=False, *, instants=4, length=LENGTH, scale=0.3):
    """Four instants: score before the window, windows cut by the record's beginning, deviations inside of them."""
    inputs, outputs = size
    steps = instants // outputs
    branch, theta = varied_branch(*size), jnp.array([0.3, -0.4])
    system, window = _make(branch.plant, theta, steps - 1, ends, length)
    rng = np.random.default_rng(inputs + 3 * outputs)
    a = scale * rng.normal(size=(steps, inputs, length, 2))
    b = scale * rng.normal(size=(steps, inputs, length))
    inside = np.asarray(window.is_inside)[:, None, :]
    rows = Rows(jnp.asarray(a * inside[..., None]), jnp.asarray(b * inside))
    return Case(system, window, clipped_normal(jnp.asarray(LEVEL)), rows)


@eqx.filter_jit
def _moments(rows, window, chi):
    return _all_tests(second_moment, rows, window, chi)


@eqx.filter_jit
def _effects(rows, window, chi):
    return _all_tests(effects_of, rows, window, chi)


def _all_tests(fn, rows, window, chi):
    def one(a, b, window):
        return fn(Row(a, b), window, chi)

    return jax.vmap(jax.vmap(one, (0, 0, None)))(rows.a, rows.b, window)


def moments_of(case):
    """`SecondMoment` of all tests."""
    return jax.tree.map(np.asarray, _moments(case.rows, case.window, case.chi))


def effects_of_all(case):
    """`Effects` of all tests, not yet added."""
    return jax.tree.map(np.asarray, _effects(case.rows, case.window, case.chi))


class Solved(NamedTuple):
    """What a policy does on all paths, with their weights."""

    paths: tuple
    weight: np.ndarray
    pieces: dict  # by (step, input), a list by place
    W: dict

    def mean(self, values):
        return self.weight @ values


def solve_paths(case, policy, paths=None):
    """The terms of all tests under a policy, exactly; or on paths that are given with their weights."""
    x, weight = paths or grid_of_paths(LEVEL, case.system.F.shape[0])
    followed = follow_paths(case.system, x, policy)
    pieces, W = {}, {}
    for h, i in case.tests:
        row, instants = case.row(h, i), case.instants(h)
        pieces[h, i] = pieces_of(case.system, followed, row, instants, LEVEL)
        W[h, i] = window_sum(row.a[: len(instants)], instants, x, LEVEL)
    return Solved(followed, weight, pieces, W)


def no_deviation(case):
    """The optimal policy."""
    inputs = case.system.E.shape[-1]
    return lambda known: np.zeros((len(known.x), inputs))


def mutant(tree, name, factor):
    """A field multiplied by a factor."""
    return eqx.tree_at(lambda t: getattr(t, name), tree, replace_fn=lambda leaf: factor * leaf)


@functools.cache
def undisturbed(size):
    """The paths of a small case without deviations."""
    case = small_case(size)
    return solve_paths(case, no_deviation(case))


def value_of(solved, share):
    """F: what is left of the cost, what psi gains and what the tests cost."""
    p = solved.paths
    total = sum((1 - share[h]) * solved.mean(np.sum(d**2, axis=1)) for h, d in enumerate(p.d))
    for (h, i), pieces in solved.pieces.items():
        psi = p.psi0[h][:, :, i] + p.psid[h][:, :, i]
        v = sum(piece.D for piece in pieces)
        total += solved.mean(2 * np.sum(psi * solved.W[h, i], axis=1) - v**2 / share[h])
    return total


def problem_of(case):
    """The linear-quadratic problem of all tests."""
    effects = jax.tree.map(lambda leaf: jnp.sum(leaf, axis=1), effects_of_all(case))
    pull = jnp.einsum("hilk,hkix->hlx", case.rows.a[:, :, 1:], case.system.Y)
    covariance = known_covariance(case.system, case.chi, length=case.rows.a.shape[2])
    return Problem(case.system, case.chi, effects, pull, covariance)
