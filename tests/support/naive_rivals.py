"""The rivals over a class as they are written, in NumPy and SciPy: nothing of lqgap but plants."""

import functools

import jax
import numpy as np
from scipy.linalg import solve_discrete_are

import lqgap as lg

STEPS = 200


@functools.cache
def springs():
    """Nine masses on springs, which take a while to tell apart."""
    return list(lg.plants.mass_spring_damper().grid(3))


class Member:
    """A plant with its gain, and its Kalman filter from the first step on."""

    def __init__(self, plant):
        names = ("A", "B", "C", "Q", "R", "W", "V", "S0")
        self.A, self.B, self.C, Q, R, self.W, self.V, S0 = (np.asarray(getattr(plant, n)) for n in names)
        P = solve_discrete_are(self.A, self.B, self.C.T @ Q @ self.C, R)
        self.M = R + self.B.T @ P @ self.B
        self.K = np.linalg.solve(self.M, self.B.T @ P @ self.A)
        Sigma = solve_discrete_are(self.A.T, self.C.T, self.W, self.V)
        S = self.C @ Sigma @ self.C.T + self.V
        L = Sigma @ self.C.T @ np.linalg.inv(S)
        zeta = P - self.C.T @ Q @ self.C
        self.J = np.trace(zeta @ L @ S @ L.T) + np.trace(Q @ S)
        self.xhat, self.Sigma, self.score = np.zeros(len(self.A)), S0, 0.0

    def observe(self, y, u_last, *, is_first):
        """The belief and the log-likelihood after an observation."""
        if not is_first:
            self.xhat = self.A @ self.xhat + self.B @ u_last
            self.Sigma = self.A @ self.Sigma @ self.A.T + self.W
        if np.any(np.isnan(y)):  # all of it is lost, in these tests
            return
        S, e = self.C @ self.Sigma @ self.C.T + self.V, y - self.C @ self.xhat
        self.score -= 0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1])
        L = self.Sigma @ self.C.T @ np.linalg.inv(S)
        self.xhat, self.Sigma = self.xhat + L @ e, self.Sigma - L @ self.C @ self.Sigma


def naive_run(plants, truth, choose, noise, key, *, probing=0.0, lost=(), mixes=False):
    """Inputs and members acted on; `choose(scores, t, acts_on, key)` is the rule."""
    members, plant, (w, v) = [Member(p) for p in plants], Member(truth), noise
    unit = np.mean([m.J for m in members]) * np.mean([np.linalg.inv(m.M) for m in members], axis=0)
    root = probing * np.linalg.cholesky(unit / len(unit))
    key, x, u, acts_on, us, chosen = jax.random.split(key)[0], w[0], np.zeros(plant.B.shape[1]), 0, [], []
    for t in range(STEPS):
        y = np.full(len(plant.C), np.nan) if t in lost else plant.C @ x + v[t]
        for member in members:
            member.observe(y, u, is_first=t == 0)
        key_choice, key_input = jax.random.split(jax.random.fold_in(key, t))
        scores = np.array([member.score for member in members])
        acts_on = choose(scores, t + 1, acts_on, key_choice)
        inputs = np.array([-member.K @ member.xhat for member in members])
        u = posterior(scores) @ inputs if mixes else inputs[acts_on]
        if probing:
            u = u + (t + 1) ** -0.25 * root @ np.asarray(jax.random.normal(key_input, u.shape))
        x = plant.A @ x + plant.B @ u + w[t + 1]
        us.append(u)
        chosen.append(acts_on)
    return np.array(us), np.array(chosen)


def posterior(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()
