"""Random well-posed problems, drawn with NumPy so that tests do not depend on JAX's generator."""

import numpy as np

import lqgap


def random_matrices(rng, *, states=3, inputs=2, outputs=2, radius=0.95):
    """A, B, C and random definite Q, R, W, V, S0; A has the given spectral radius."""
    A = rng.normal(size=(states, states))
    A *= radius / np.max(np.abs(np.linalg.eigvals(A)))
    B = rng.normal(size=(states, inputs))
    C = rng.normal(size=(outputs, states))
    sizes = {"Q": outputs, "R": inputs, "W": states, "V": outputs, "S0": states}
    return (A, B, C), {name: random_definite(rng, size) for name, size in sizes.items()}


def random_definite(rng, size):
    """A positive definite matrix with eigenvalues of order one."""
    root = rng.normal(size=(size, size))
    return root @ root.T / size + 0.1 * np.eye(size)


def random_plant(seed, **sizes):
    """A random LQG; plants of radius above 1 are stabilised by their optimum, not by themselves."""
    (A, B, C), weights = random_matrices(np.random.default_rng(seed), **sizes)
    return lqgap.LQG(A, B, C, **weights)


def general_plant(seed, *, states=3, inputs=2, outputs=2, radius=0.95):
    """A random LQG that weighs states and their products with inputs, and whose noises are correlated."""
    rng = np.random.default_rng(seed)
    matrices, weights = random_matrices(rng, states=states, inputs=inputs, outputs=outputs, radius=radius)
    cost, noise = random_definite(rng, states + inputs), random_definite(rng, states + outputs)
    weights |= {"Qx": cost[:states, :states], "N": cost[:states, states:], "R": cost[states:, states:]}
    weights |= {"W": noise[:states, :states], "V": noise[states:, states:]}
    return lqgap.correlate_noise(lqgap.LQG(*matrices, **weights), noise[:states, states:])


def random_record(seed, plant, *, steps=12):
    """Observations and inputs of the right shapes; any numbers make a legal record."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(steps, plant.num_outputs)), rng.normal(size=(steps, plant.num_inputs))


def directional_difference(fn, point, direction, *, step=3e-4):
    """The derivative of fn at a point along a direction, by the five-point rule (error of order step^4)."""

    def shifted(scale):
        return fn(*(x + scale * step * d for x, d in zip(point, direction, strict=True)))

    return (8 * (shifted(1) - shifted(-1)) - (shifted(2) - shifted(-2))) / (12 * step)


def relative_sums(log_densities):
    """Sums over time of one row for each model, relative to the largest and at most 30 below it."""
    total = np.zeros(len(log_densities))
    for now in np.asarray(log_densities).T:
        total = np.maximum(total + now - np.max(total + now), -30.0)
    return total
