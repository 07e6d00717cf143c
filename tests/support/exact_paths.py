"""Expectations over a few whitened innovations without chance, and the terms of a test along their paths.

Of a standard normal x, polynomials of degree 7 on each side of 0 and of the level of a clip are integrated exactly by
four nodes on every piece. Over all instants these nodes make a grid of paths with weights.
"""

import functools
import itertools
from typing import NamedTuple

import numpy as np

PIECE_NODES, FAR = 4, 12.0


@functools.cache
def clipped_rule(level):
    """Nodes and weights on the four pieces: Gauss' rule for the normal density on each."""
    fine, fine_weights = np.polynomial.legendre.leggauss(80)
    found = []
    for low, high in itertools.pairwise((-FAR, -level, 0.0, level, FAR)):
        x = low + (high - low) * (fine + 1) / 2
        weight = (high - low) / 2 * fine_weights * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
        powers = ((x - x.mean())[:, None] ** np.arange(PIECE_NODES)) * np.sqrt(weight)[:, None]
        Q, _ = np.linalg.qr(powers)
        nodes, vectors = np.linalg.eigh(Q.T @ (x[:, None] * Q))
        found.append((nodes, weight.sum() * vectors[0] ** 2))
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))


def grid_of_paths(level, instants):
    """All combinations of the nodes, and their weights."""
    nodes, weights = clipped_rule(level)
    x = np.stack(np.meshgrid(*[nodes] * instants, indexing="ij"), axis=-1).reshape(-1, instants)
    weight = functools.reduce(np.multiply.outer, [weights] * instants).ravel()
    return x, weight


class Paths(NamedTuple):
    """Of every instant a list of arrays with paths in front; d, psi of every step. `0` without deviations."""

    x: np.ndarray
    zeta0: list
    eta: list
    nu0: list
    nud: list
    psi0: list
    psid: list
    d: list


def follow_paths(system, x, policy):
    """Runs the system; policy(step, x so far, zeta0, eta) are deviations in units of their cost."""
    p, paths = system.num_outputs, len(x)
    F, G, N, E, Y, y = (np.asarray(getattr(system, name)) for name in "FGNEYy")
    zeta0 = np.zeros((paths, F.shape[-1]))
    eta = np.zeros_like(zeta0)
    out = Paths(x, [], [], [], [], [], [], [])
    for t in range(x.shape[1]):
        out.zeta0.append(zeta0)
        out.eta.append(eta)
        out.nu0.append(zeta0 @ N[t].T)
        out.nud.append(eta @ N[t].T)
        after0, after = zeta0 @ F[t].T + np.outer(x[:, t], G[t]), eta @ F[t].T
        if (t + 1) % p == 0:
            h = t // p
            d = policy(h, x[:, : t + 1], zeta0, eta)
            out.psi0.append(np.einsum("kmx,nx->nkm", Y[h], zeta0) + x[:, t][:, None, None] * y[h])
            out.psid.append(np.einsum("kmx,nx->nkm", Y[h], eta))
            out.d.append(d)
            after = after + d @ E[h].T
        zeta0, eta = after0, after
    return out


class Pieces(NamedTuple):
    """Of one place j of one row: D_j and what it is made of."""

    D: np.ndarray
    Q2_0: np.ndarray
    Y1: np.ndarray
    Y2: np.ndarray
    score0: np.ndarray  # a_j.s0
    scored: np.ndarray  # a_j.sd


def window_sum(row_a, instants, x, level):
    """W = sum a chi."""
    return np.clip(x[:, instants], -level, level) @ np.asarray(row_a)


def pieces_of(system, paths, row, instants, level):
    """The increments D_j of v by their definition in `moments`, latest first; `instants` those inside of the record."""
    gamma = np.asarray(system.gamma)
    x, a, b = paths.x, np.asarray(row.a), np.asarray(row.b)
    score0, scored = np.zeros((len(x), a.shape[1])), np.zeros((len(x), a.shape[1]))
    by_instant = {}
    for t in range(max(instants) + 1):
        by_instant[t] = (score0, scored)
        x_t = x[:, t][:, None]
        score0 = score0 + paths.nu0[t] * x_t + gamma[t] * (x_t**2 - 1)
        scored = scored + paths.nud[t] * x_t
    found = []
    for j, t in enumerate(instants):
        x_t = x[:, t]
        chi, slope = np.clip(x_t, -level, level), np.abs(x_t) < level
        early = range(j + 1, len(instants))
        W = sum((np.outer(np.clip(x[:, instants[r]], -level, level), a[r]) for r in early), np.zeros_like(score0))
        s0, sd = (each @ a[j] for each in by_instant[t])
        nu = paths.nu0[t] + paths.nud[t]
        third = chi * (x_t**2 - 1) - slope * x_t
        D = (
            chi * (s0 + sd + b[j])
            + x_t * np.sum(W * nu, axis=1)
            + (a[j] @ gamma[t]) * third
            + (x_t**2 - 1) * (W @ gamma[t])
            + (chi * x_t - slope) * (nu @ a[j])
        )
        Y2 = np.zeros(len(x))
        for r in early:
            R = response(system, t, instants[r])
            Y2 += np.clip(x[:, instants[r]], -level, level) * (paths.eta[instants[r]] @ (R.T @ a[r]))
        Q2_d = np.sum(W * paths.nud[t], axis=1)
        found.append(Pieces(D, np.sum(W * paths.nu0[t], axis=1), Q2_d - Y2, Y2, s0, sd))
    return found


def response(system, late, early):
    """R_{late,early} = N Phi."""
    R = np.asarray(system.N[late])
    for t in range(late - 1, early - 1, -1):
        R = R @ np.asarray(system.F[t])
    return R
