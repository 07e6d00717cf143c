"""Records of a plant under random inputs, drawn with NumPy so that they do not depend on JAX's generator."""

import numpy as np
import scipy.linalg


def records(plant, *, steps, seed, count, sigma_u=1.0, settle=100):
    """Pairs (y, u), rows of time; plants run for a while before, to be stationary, or with settle=0 start anew."""
    rng = np.random.default_rng(seed)
    A, B, C, W, V, S0 = (np.asarray(getattr(plant, name)) for name in ("A", "B", "C", "W", "V", "S0"))
    total = settle + steps
    u = sigma_u * rng.normal(size=(total, count, B.shape[1]))
    drive = u @ B.T + rng.normal(size=(total, count, len(A))) @ np.real(scipy.linalg.sqrtm(W)).T
    noise = rng.normal(size=(total, count, len(C))) @ np.linalg.cholesky(V).T
    x = np.zeros((total + 1, count, len(A)))
    x[0] = rng.normal(size=x[0].shape) @ np.real(scipy.linalg.sqrtm(S0)).T
    for t in range(total):
        x[t + 1] = x[t] @ A.T + drive[t]
    y = x[:-1] @ C.T + noise
    return [(y[settle:, index], u[settle:, index]) for index in range(count)]


def record(plant, *, steps, seed, sigma_u=1.0, settle=100):
    """One record."""
    return records(plant, steps=steps, seed=seed, count=1, sigma_u=sigma_u, settle=settle)[0]
