"""Records of a plant under random inputs, drawn with NumPy so that they do not depend on JAX's generator."""

import numpy as np
import scipy.linalg


def records(plant, *, steps, seed, count, sigma_u=1.0, settle=100):
    """Pairs (y, u), rows of time; plants run for a while before, so that the records are stationary."""
    rng = np.random.default_rng(seed)
    A, B, C, W, V = (np.asarray(getattr(plant, name)) for name in "ABCWV")
    total = settle + steps
    u = sigma_u * rng.normal(size=(total, count, B.shape[1]))
    drive = u @ B.T + rng.normal(size=(total, count, len(A))) @ np.real(scipy.linalg.sqrtm(W)).T
    x = np.zeros((total + 1, count, len(A)))
    for t in range(total):
        x[t + 1] = x[t] @ A.T + drive[t]
    y = x[:-1] @ C.T + rng.normal(size=(total, count, len(C))) @ np.linalg.cholesky(V).T
    return [(y[settle:, index], u[settle:, index]) for index in range(count)]


def record(plant, *, steps, seed, sigma_u=1.0):
    """One record."""
    return records(plant, steps=steps, seed=seed, count=1, sigma_u=sigma_u)[0]
