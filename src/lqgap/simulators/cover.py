"""A finite cover of a box of parameters, with its radius stated in the invariants of the plants.

Cells of the box are halved, along the parameter that matters most in each, until everything in a cell is
within the radius of the plant at its centre. How far a cell reaches is measured at its corners, where an
affine map reaches farthest, and at a few points inside; a margin stands for what lies between. Small cells
make the map affine, so the number of members grows like radius^-k for k parameters.
"""

import itertools
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from lqgap.batches import take
from lqgap.errors import InvalidArgumentError
from lqgap.simulators.building import Branch, build_members
from lqgap.simulators.finite import Finite, batch_invariants
from lqgap.systems import LQG

MARGIN = 1.05  # on the measured reach of a cell
NUM_INSIDE = 8  # points of a cell that are tried besides centre and corners,
NUM_AT_FIRST = 512  # and of the first few cells together, so that narrow features are not overlooked
TAIL = 0.01  # Markov parameters beyond the window weigh at most this part of the radius
MAX_LENGTH = 256
SMALLEST_CELL = 1 / 256  # of the box: a smaller cell in which no point is inside is left out
MAX_UNDECIDED = 1024  # cells without a point inside; more are not looked into any further
MAX_PARAMETERS = 10  # a cell has 2^10 corners then
TINY = np.finfo(float).tiny


def find_cover(
    branch: Branch, radius: float, *, is_inside: Callable[[np.ndarray], np.ndarray], max_members: int
) -> Float[np.ndarray, "member parameter"]:
    """The parameter values of a cover of one branch of a family."""
    held = dict(branch.held)
    centre = np.array([held.get(p.name, p.middle) for p in branch.parameters])
    half = np.array([0.0 if p.name in held else 0.5 * (p.high - p.low) for p in branch.parameters])
    free = np.flatnonzero(half > 0)
    if len(free) > MAX_PARAMETERS:
        raise InvalidArgumentError(
            f"the family has {len(free)} continuous parameters, and a cover grows like radius^-{len(free)}: "
            f"cover at most {MAX_PARAMETERS} of them, or take a sample"
        )
    units = take(build_members([branch], centre[None, :]), 0)
    length = _window(branch, centre, half, radius, units)
    centres, halves = centre[None, :], half[None, :]
    accepted: list[np.ndarray] = []
    while True:
        patterns = _patterns(len(free), max(NUM_INSIDE, NUM_AT_FIRST // len(centres)))
        points = np.repeat(centres[:, None, :], len(patterns), axis=1)
        points[:, :, free] += patterns[None] * halves[:, None, free]
        vectors = _evaluate(branch, points, length, units)
        inside = is_inside(points.reshape(-1, len(half))).reshape(points.shape[:2])
        chosen = np.argmax(inside, axis=1)  # the centre if it belongs to the family
        rows = np.arange(len(centres))
        reach = np.max(np.linalg.norm(vectors - vectors[rows, chosen][:, None], axis=2), axis=1)
        done = MARGIN * reach <= radius
        undecided = done & ~np.any(inside, axis=1)
        if np.sum(undecided) <= MAX_UNDECIDED:
            done &= ~(undecided & (np.max(halves / np.maximum(half, TINY), axis=1) > SMALLEST_CELL))
        keep = done & np.any(inside, axis=1)
        accepted.append(points[rows, chosen][keep])
        count = sum(map(len, accepted)) + np.sum(~done)
        if count > max_members:
            raise InvalidArgumentError(
                f"a cover of radius {radius:g} has more than {max_members} members: choose a larger radius, "
                f"a smaller range, or raise max_members"
            )
        if np.all(done):
            break
        centres, halves = _halve(centres[~done], halves[~done], vectors[~done], half)
    return np.concatenate(accepted)


def _patterns(num_free: int, num_between: int) -> np.ndarray:
    """Centre, corners and a few points between, in units of the half widths."""
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=num_free)))
    between = np.random.default_rng(0).uniform(-1, 1, size=(num_between, num_free))
    return np.concatenate([np.zeros((1, num_free)), corners, between])


def _evaluate(branch: Branch, points: np.ndarray, length: int, units: LQG) -> np.ndarray:
    theta = points.reshape(-1, points.shape[-1])
    names = [parameter.unit for parameter in branch.parameters]
    members = Finite(build_members([branch], theta), theta, names=branch.names, units=names)
    vectors = members.invariants(length=length, units=units)
    return vectors.reshape(*points.shape[:2], -1)


def _halve(
    centres: np.ndarray, halves: np.ndarray, vectors: np.ndarray, whole: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two cells for each, split where crossing the cell changes the invariants most."""
    free = np.flatnonzero(whole > 0)
    num_free = len(free)
    corners = vectors[:, 1 : 1 + 2**num_free].reshape(len(centres), *[2] * num_free, -1)
    effects = [
        np.linalg.norm(np.diff(corners, axis=1 + axis), axis=-1).reshape(len(centres), -1).max(axis=1)
        for axis in range(num_free)
    ]
    rows = np.arange(len(centres))
    # Where no corner differs (the map turns back within the cell) the widest side is halved.
    widths = (halves[:, free] / whole[free]).T
    split = free[np.argmax(np.stack(effects) + 1e-12 * widths, axis=0)]
    smaller, shift = halves.copy(), np.zeros_like(halves)
    smaller[rows, split] *= 0.5
    shift[rows, split] = smaller[rows, split]
    return np.concatenate([centres - shift, centres + shift]), np.concatenate([smaller, smaller])


def _window(branch: Branch, centre: np.ndarray, half: np.ndarray, radius: float, units: LQG) -> int:
    """How many Markov parameters (a power of two) are needed so that those left out do not matter."""
    spread = np.random.default_rng(1).uniform(-1, 1, size=(32, len(half)))
    systems = build_members([branch], centre + spread * half)
    states, outputs, inputs = systems.num_states, systems.num_outputs, systems.num_inputs
    vectors = batch_invariants(systems, length=MAX_LENGTH, units=units)
    split = MAX_LENGTH * outputs * outputs
    squares = vectors**2
    of_outputs = squares[:, :split].reshape(len(vectors), MAX_LENGTH, -1).sum(axis=2)
    of_inputs = squares[:, split : split + MAX_LENGTH * outputs * inputs]
    energy = of_outputs + of_inputs.reshape(len(vectors), MAX_LENGTH, -1).sum(axis=2)
    tail = np.sqrt(np.cumsum(energy[:, ::-1], axis=1)[:, ::-1].max(axis=0))
    below = np.flatnonzero(tail <= TAIL * radius)
    needed = max(2 * states, int(below[0]) if len(below) else MAX_LENGTH)
    return 1 << (needed - 1).bit_length()
