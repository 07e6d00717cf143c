"""The Bayes gap of one or two steps from below, by convexity: proved up to rounding, whatever the grids.

What the best input saves cannot be found by a search that may miss a minimum, nor by a sum that may be too
large. Let w_i be the weight of member i (prior times density) and t_i the input it wants, over a reference
density rho that is at least as wide as every member's, and eta_i = rho / w_i. Then

    g(eta, t) = min_u sum_i ||u - t_i||^2_{M_i} / eta_i
              = max { sum_i -2 l_i't_i - eta_i l_i'M_i^-1 l_i : sum_i l_i = 0 }

is *convex* in (eta, t) and falls with eta; t_i is linear and eta_i convex in what was observed. So

  - one step: on a cell of observations the integral of rho g is at least the mass of the cell times g at its
    mean t and at the mean of the chord of eta, which is above eta (Jensen);
  - two steps: with the multipliers l of the middle of a cell of first observations and first inputs, all that
    follows is a *concave* function of both, whose least value is at a corner, and whose integral is at least
    that of its chord. The same holds for the cost of the first input itself,
    ||u - t||^2_M / eta >= 2 l'(u - t) - eta l'M^-1 l. Cells of inputs are halved where that changes the
    result (branch and bound); beyond the outermost ones the first step alone costs as much.

Cells that are left out only lower the bound, as all costs are positive. Errors are of second order in the
sizes of the cells; none has to be estimated.
"""

import itertools

import equinox as eqx
import numpy as np
import scipy.linalg
import scipy.special
from jaxtyping import Float

from lqgap.evaluation.reference import Reference

REACH = 6.5  # of the grids of observations, in standard deviations of the reference density
CELLS = {1: 1600, 2: 240}  # of observations, by the number of outputs, along each: of one step
FIRST_CELLS, NEXT_CELLS = 128, 240  # of first and of next observations: of two steps
INPUT_CELLS = {1: 12, 2: 6}  # of first inputs, at the outset, by the number of inputs
TOLERANCE = 2e-4  # relative: cells of inputs are halved until they cost less
MAX_HALVINGS = 12
LARGEST = 650.0  # logarithm of 1 / weight that is told from infinity
CHUNK = 256  # cells of inputs at once


def one_step_bound(models: Reference, prior: Float[np.ndarray, " member"]) -> float:
    """Below the gap of the best policy against a prior, if the member is revealed after one step."""
    alive = np.asarray(prior) > 0
    K, M, L, roots = (np.asarray(X)[alive, 0] for X in (models.K, models.M, models.L, models.S_root))
    S = roots @ roots.mT
    root = _dominating_root(S)
    outputs = len(root)
    axis = Cells(CELLS[outputs])
    log_eta = 0.5 * (np.linalg.slogdet(S)[1] - np.linalg.slogdet(root @ root.T)[1])
    log_eta -= np.log(np.asarray(prior)[alive])
    growth = root.T @ np.linalg.solve(S, root[None]) - np.eye(outputs)
    nodes, mean = (_product(points, outputs) for points in (axis.nodes, axis.mean))
    square = np.einsum("...a,iab,...b->i...", nodes, growth, nodes)
    eta = np.exp(np.minimum(0.5 * square + log_eta.reshape(-1, *[1] * outputs), LARGEST))
    for along in range(1, outputs + 1):
        eta = np.moveaxis(axis.chord(np.moveaxis(eta, along, -1)), -1, along)
    mass = np.prod(_product(axis.mass, outputs), axis=-1)
    weight = np.where(eta < np.exp(LARGEST - 60), mass / eta, 0)  # what is capped counts as nothing
    wanted = -np.einsum("iab,...b->i...a", K @ L @ root, mean)
    total = np.einsum("i...,iab->...ab", weight, M)
    pull = np.einsum("i...,iab,i...b->...a", weight, M, wanted)
    total += np.exp(-LARGEST) * np.eye(M.shape[1])  # where no member weighs anything
    off = np.linalg.solve(total, pull[..., None])[..., 0] - wanted
    return float(np.sum(weight * np.einsum("i...a,iab,i...b->i...", off, M, off)))


def two_step_bound(models: Reference, prior: Float[np.ndarray, " member"]) -> float:
    """The same for two members with one output, if the member is revealed after two steps."""
    if np.min(prior) <= 0:
        return 0.0
    inputs = _Inputs(_Pair(models, np.asarray(prior)))
    first = inputs.first
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is a weight of zero
        reach = inputs.reach()
        least, guide = inputs.beyond(reach), np.full((len(reach), 2), np.inf)
        boxes = _outset(reach, inputs.mean.shape[1])
        for halving in range(MAX_HALVINGS + 1):
            found = [inputs.enclose(*chunk) for chunk in _chunks(boxes)]
            low, middle = (np.concatenate(part) for part in zip(*found, strict=True))
            cell = boxes[0]
            np.minimum.at(guide, cell, middle)
            is_open = np.any(low < (1 - TOLERANCE) * guide[cell], axis=1) & (halving < MAX_HALVINGS)
            np.minimum.at(least, cell[~is_open], low[~is_open])
            if not np.any(is_open):
                break
            boxes = _halve(*(part[is_open] for part in boxes))
        # The other half of the first observations is the same with the signs of all inputs changed.
        return 2 * float(np.sum(np.fmax(first.low * least[:, 0] + first.high * least[:, 1], 0)))


class Cells(eqx.Module):
    """Intervals of a standard normal number: its mass and mean in each, and the weights of their ends.

    A function that is linear in each interval has the integral low f(left) + high f(right) over it.
    """

    nodes: Float[np.ndarray, " node"]
    mass: Float[np.ndarray, " cell"]
    mean: Float[np.ndarray, " cell"]
    low: Float[np.ndarray, " cell"]
    high: Float[np.ndarray, " cell"]

    def __init__(self, count: int, *, is_half: bool = False):
        self.nodes = np.linspace(0.0 if is_half else -REACH, REACH, count + 1)
        left, right = self.nodes[:-1], self.nodes[1:]
        near, far = np.minimum(abs(left), abs(right)), np.maximum(abs(left), abs(right))
        straddles = left * right < 0
        mass = scipy.special.ndtr(-near) - scipy.special.ndtr(-far)
        self.mass = np.where(straddles, scipy.special.ndtr(right) - scipy.special.ndtr(left), mass)
        moment = (np.exp(-0.5 * left**2) - np.exp(-0.5 * right**2)) / np.sqrt(2 * np.pi)
        self.mean = np.clip(moment / self.mass, left, right)
        self.high = self.mass * (self.mean - left) / (right - left)
        self.low = self.mass - self.high

    def chord(self, values: Float[np.ndarray, "*batch node"]) -> Float[np.ndarray, "*batch cell"]:
        """The mean in every cell of the function that is linear between the nodes."""
        return (self.low * values[..., :-1] + self.high * values[..., 1:]) / self.mass

    def at_nodes(self, weights: Float[np.ndarray, "*batch cell"]) -> Float[np.ndarray, "*batch node"]:
        """What weights of the integrals over cells are as weights of the values at nodes."""
        found = np.zeros((*weights.shape[:-1], len(self.nodes)))
        found[..., :-1] += self.low * weights
        found[..., 1:] += self.high * weights
        return found


class _Pair(eqx.Module):
    """Two members over two steps, in standardised observations z_0 and z_1 and the first input u.

    y_0 = s_0 z_0 , y_1 = (c_1 + c_2) / 2 + s_1 z_1 with c_i what member i predicts, and apart = c_1 - c_2:

        log eta_i(z_0)      = level_i + rise_i z_0^2 / 2
        log eta_i(z_0, z_1) = log eta_i(z_0) + next_level_i + (s_1 z_1 -+ apart / 2)^2 / (2 S_i) - z_1^2 / 2

    The members want z_0 wants_i first; what they want next differs by gap, linear in (z_0, u, z_1), in
    coordinates in which both M_i^-1 are diagonal: I and diag(ratio).
    """

    level: np.ndarray
    rise: np.ndarray
    wants: np.ndarray
    M: np.ndarray
    next_level: np.ndarray
    S: np.ndarray
    scale: float
    predictions: tuple[np.ndarray, np.ndarray]  # difference of the two, for each unit of z_0 and of u
    wants_next: tuple[np.ndarray, np.ndarray]
    gap_of_next: np.ndarray
    ratio: np.ndarray

    def __init__(self, models: Reference, prior: np.ndarray):
        A, B, C, K, M, L = (np.asarray(getattr(models, name)) for name in ("A", "B", "C", "K", "M", "L"))
        S = np.asarray(models.S_root)[:, :, 0, 0] ** 2
        first, self.scale = np.sqrt(np.max(S, axis=0))
        self.level = 0.5 * np.log(S[:, 0] / first**2) - np.log(prior)
        self.rise = first**2 / S[:, 0] - 1
        self.next_level, self.S = 0.5 * np.log(S[:, 1] / self.scale**2), S[:, 1]
        seen = first * L[:, 0, :, 0]
        self.wants, self.M = -np.einsum("kij,kj->ki", K[:, 0], seen), M[:, 0]
        predicted = np.einsum("kij,kj->ki", A, seen), B
        of_y, of_u = (np.einsum("kj,kj...->k...", C[:, 0], part) for part in predicted)
        self.predictions = of_y[0] - of_y[1], of_u[0] - of_u[1]
        gains = np.einsum("kij,kj->ki", K[:, 1], L[:, 1, :, 0])
        of_y, of_u = (-np.einsum("kij,kj...->ki...", K[:, 1], part) for part in predicted)
        half = 0.5 * np.sum(gains, axis=0)  # half of `apart` is an innovation of either, with opposite signs
        inverse = np.linalg.inv(M[:, 1])
        self.ratio, vectors = scipy.linalg.eigh(inverse[1], inverse[0])
        self.wants_next = (
            vectors.T @ (of_y[0] - of_y[1] + half * self.predictions[0]),
            vectors.T @ (of_u[0] - of_u[1] + np.outer(half, self.predictions[1])),
        )
        self.gap_of_next = self.scale * vectors.T @ (gains[1] - gains[0])

    def off(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """By how much the first input is not what each member wants."""
        return u - self.wants[:, None, :] * z[:, None]

    def apart(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """By how much the two predictions of the next observation differ."""
        return self.predictions[0] * z + u @ self.predictions[1]

    def gap(self, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """By how much what is wanted next differs, if z_1 is zero."""
        return np.outer(z, self.wants_next[0]) + u @ self.wants_next[1].T

    def eta(self, z: np.ndarray) -> np.ndarray:
        """eta_i(z_0), member by cell."""
        return np.exp(self.level[:, None] + 0.5 * self.rise[:, None] * z**2)

    def next_eta(self, apart: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """eta_i(z_0, z_1) / eta_i(z_0), member by cell by node; infinite where it overflows."""
        off = self.scale * nodes + np.array([-0.5, 0.5])[:, None, None] * apart[:, None]
        with np.errstate(over="ignore"):
            return np.exp(
                self.next_level[:, None, None] + 0.5 * off**2 / self.S[:, None, None] - 0.5 * nodes**2
            )


class _Inputs(eqx.Module):
    """Cells of first observations, and first inputs u = mean z_0 + root w: ||w||^2 dearer than the mean."""

    pair: _Pair
    first: Cells
    later: Cells
    mean: np.ndarray
    root: np.ndarray

    def __init__(self, pair: _Pair):
        self.pair, self.first, self.later = pair, Cells(FIRST_CELLS, is_half=True), Cells(NEXT_CELLS)
        weights = 1 / pair.eta(self.first.mean)
        total = np.einsum("kc,kij->cij", weights, pair.M)
        pull = np.einsum("kc,kij,kj->ci", weights, pair.M, pair.wants)
        self.mean = np.linalg.solve(total, pull[:, :, None])[:, :, 0]
        self.root = np.linalg.inv(np.linalg.cholesky(total)).mT

    def at(self, cell: np.ndarray, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        """The input u."""
        return self.mean[cell] * z[:, None] + np.einsum("cij,cj->ci", self.root[cell], w)

    def reach(self) -> np.ndarray:
        """How far from the mean an input costs more at once than all that follows the mean, cell by cell."""
        every, mean = np.arange(len(self.mean)), np.zeros_like(self.mean)
        after = _Tangent(self, every, mean).later(self.first.mean, mean)
        return np.sqrt(1.3 * np.maximum(after, 0)) + 1e-100

    def beyond(self, reach: np.ndarray) -> np.ndarray:
        """Below the cost of all inputs with |w_j| >= reach for some j, at both ends of every cell."""
        every = np.arange(len(reach))
        found = []
        for direction in np.concatenate([np.eye(self.mean.shape[1]), -np.eye(self.mean.shape[1])]):
            w = reach[:, None] * direction
            # Along this tangent the cost rises in the direction, and only in it.
            tangent = _Tangent(self, every, w)
            found.append([tangent.now(z, w) for z in (self.first.nodes[:-1], self.first.nodes[1:])])
        return np.min(found, axis=0).T

    def enclose(
        self, cell: np.ndarray, centre: np.ndarray, half: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Below the cost of all inputs of boxes, and of their centres, at both ends of their cells."""
        tangent = _Tangent(self, cell, centre)
        corners = [
            centre + half[:, None] * np.array(signs)
            for signs in itertools.product((-1, 1), repeat=centre.shape[1])
        ]
        least, middle = [], []
        for z in (self.first.nodes[cell], self.first.nodes[cell + 1]):
            least.append(np.min([tangent.value(z, w) for w in corners], axis=0))
            middle.append(tangent.value(z, centre))
        return np.stack(least, axis=1), np.stack(middle, axis=1)


class _Tangent(eqx.Module):
    """A concave function of first observation and input below the cost: with the multipliers at a point."""

    inputs: _Inputs
    cell: np.ndarray
    first: np.ndarray  # member, box, input: multipliers of the first step
    next: np.ndarray  # box, input: those of the second, summed over next observations
    constant: np.ndarray
    curvature: np.ndarray  # member, box, node of next observations

    def __init__(self, inputs: _Inputs, cell: np.ndarray, w: np.ndarray):
        pair, later = inputs.pair, inputs.later
        self.inputs, self.cell = inputs, cell
        z = inputs.first.mean[cell]
        u, eta = inputs.at(cell, z, w), pair.eta(z)
        self.first = np.einsum("kij,kcj->kci", pair.M, pair.off(z, u)) / eta[:, :, None]
        mean_eta = eta[:, :, None] * later.chord(pair.next_eta(pair.apart(z, u), later.nodes))
        gap = pair.gap(z, u)[:, None, :] + later.mean[:, None] * pair.gap_of_next
        multipliers = gap / (mean_eta[0][:, :, None] + mean_eta[1][:, :, None] * pair.ratio)
        self.next = later.mass @ multipliers
        self.constant = (later.mass * later.mean) @ multipliers @ pair.gap_of_next
        self.curvature = later.at_nodes(np.stack([np.sum(multipliers**2, -1), multipliers**2 @ pair.ratio]))

    def value(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Below the cost of both steps, over the reference density of the first observation."""
        return self.now(z, w) + self.later(z, w)

    def now(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Below the cost of the first step."""
        pair = self.inputs.pair
        off = pair.off(z, self.inputs.at(self.cell, z, w))
        squares = np.einsum("kci,kij,kcj->kc", self.first, np.linalg.inv(pair.M), self.first)
        return np.sum(2 * np.sum(self.first * off, axis=-1) - pair.eta(z) * squares, axis=0)

    def later(self, z: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Below the cost of the second step."""
        pair = self.inputs.pair
        u = self.inputs.at(self.cell, z, w)
        eta = pair.next_eta(pair.apart(z, u), self.inputs.later.nodes)
        squares = np.sum(np.where(self.curvature > 0, self.curvature * eta, 0), axis=-1)
        linear = np.sum(self.next * pair.gap(z, u), axis=-1) + self.constant
        return 2 * linear - np.sum(pair.eta(z) * squares, axis=0)


def _outset(reach: np.ndarray, num_inputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes that fill the reach of every cell: the cell, the centre and half the width of each."""
    count = INPUT_CELLS[num_inputs]
    grid = _product((np.arange(count) + 0.5) * 2 / count - 1, num_inputs).reshape(-1, num_inputs)
    centre = (reach[:, None, None] * grid).reshape(-1, num_inputs)
    return np.repeat(np.arange(len(reach)), len(grid)), centre, np.repeat(reach / count, len(grid))


def _halve(
    cell: np.ndarray, centre: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every box cut in two along every axis."""
    signs = np.array(list(itertools.product((-0.5, 0.5), repeat=centre.shape[1])))
    parts = centre[:, None, :] + half[:, None, None] * signs
    count = len(signs)
    return np.repeat(cell, count), parts.reshape(-1, centre.shape[1]), np.repeat(half / 2, count)


def _chunks(boxes: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    count = max(len(boxes[0]) // CHUNK, 1)
    return list(zip(*(np.array_split(part, count) for part in boxes), strict=True))


def _dominating_root(S: Float[np.ndarray, "member output output"]) -> Float[np.ndarray, "output output"]:
    """A root of a covariance that is at least each of these, and no larger than it takes."""
    root = np.linalg.cholesky(S[0])
    for each in S[1:]:
        inside = np.linalg.solve(root, np.linalg.solve(root, each).T)
        values, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
        root = root @ vectors * np.sqrt(np.maximum(values, 1))
    return root


def _product(points: np.ndarray, axes: int) -> np.ndarray:
    """All tuples of these points, on a last axis."""
    return np.stack(np.meshgrid(*[points] * axes, indexing="ij"), axis=-1)
