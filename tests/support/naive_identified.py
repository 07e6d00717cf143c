"""Learners without a class, written down step by step in NumPy, for the times at which they made models."""

import functools
import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.stats

import lqgap as lg
from lqgap.adaptive import UnknownPlant, run_many

STEPS, WINDOW, MEMORY = 200, 8, 5
WINDOW_KEPT, NUM_QUIET, NUM_STEPS, NUM_HALVINGS = 60, 20, 6, 8


@functools.cache
def spring():
    """The plant of recomputations."""
    return lg.plants.mass_spring_damper().nominal()


def told():
    """What learners are told of it."""
    return UnknownPlant(order=2, Q=spring().Q, R=spring().R, window=WINDOW)


class Record(NamedTuple):
    """What a learner saw and did, and at which steps it made models."""

    y: np.ndarray
    u: np.ndarray
    made: list

    @property
    def spans(self):
        """First and last step, and the first sample that is kept, of each model."""
        return [(a, b, max(0, a - WINDOW_KEPT)) for a, b in itertools.pairwise([*self.made, STEPS])]

    def model(self, start):
        """Of the samples until a step."""
        Q, R = (np.asarray(weight) for weight in (spring().Q, spring().R))
        return NaiveModel(self.y[: start + 1], self.u[: start + 1], order=2, window=WINDOW, Q=Q, R=R)

    def require(self, t, expected):
        """To 1e-9 of the largest input."""
        np.testing.assert_allclose(self.u[t], expected, rtol=0, atol=1e-9 * np.abs(self.u).max())


def record(learner, *, share=0.0, key=None):
    """200 steps on the spring, of which a share of observations is lost."""
    draws = np.random.default_rng(0)
    normals = jnp.asarray(draws.normal(size=(STEPS, 3)))
    is_lost = jnp.asarray(draws.uniform(size=STEPS) < share)
    key = jax.random.key(3) if key is None else key
    y, u, models = (np.asarray(x) for x in _drive(learner, spring(), normals, is_lost, key))
    return Record(y, u, np.flatnonzero(np.diff(models, prepend=0)).tolist())


@eqx.filter_jit
def _drive(learner, plant, normals, is_lost, key):
    def step(carry, now):
        memory, x, u_last = carry
        y = plant.C @ x + now[0][2:]
        memory, u = learner.step(memory, jnp.where(now[1], jnp.nan, y), u_last)
        told = learner.snapshot(memory)
        return (memory, plant.A @ x + plant.B @ u + now[0][:2], u), (y, u, told.num_changes)

    start = (learner.init(key), jnp.zeros(2), jnp.zeros(1))
    return jax.lax.scan(step, start, (normals, is_lost))[1]


def slope(learner, num_runs=20):
    """Of the mean excess from 1e3 to 1e4 steps, in logarithms; and the traces."""
    traces = run_many(learner, spring(), horizon=10_000, keys=jax.random.split(jax.random.key(0), num_runs))
    mean = np.mean([trace.excess for trace in traces], axis=0)
    return np.log10(mean[-1] / mean[np.searchsorted(traces[0].steps, 1_000)]), traces


def require_controllers(seen, *, confidence=None, probe_fn=lambda model, t: 0.0):
    """Inputs by the controllers of models, of optimistic ones if there is a confidence, with a probe."""
    for start, end, first in seen.spans:
        model = seen.model(start)
        theta = model.theta if confidence is None else model.lean(confidence)
        for t in range(start, end):
            chi = innovations(model.plant(theta), seen.y[first : t + 1], seen.u[first:t])
            seen.require(t, -model.gain(theta) @ chi + probe_fn(model, t))


def require_taps(seen):
    """Inputs by the regularised leader on all that was seen since the first model, features by the latest."""
    sizes, gram, right = [], None, np.zeros(MEMORY)
    Q, R = (np.asarray(weight) for weight in (spring().Q, spring().R))
    for start, end, first in seen.spans:
        A, B, C, F = seen.model(start).plant()
        radius = np.max(np.abs(np.linalg.eigvals(A)))
        matrices = (A * min(1, 0.999 / radius), B, C, F)
        natural, f, v = responses(matrices, seen.y[first:end], seen.u[first:end], memory=MEMORY)
        for now in range(start - first, end - first):
            rows, r = loss_rows(natural[now], f(now), v(now), Q=Q, R=R)
            if len(sizes) < NUM_QUIET:
                sizes.append(np.sum(rows**2))
                np.testing.assert_array_equal(seen.u[first + now], 0)
                continue
            gram = 5 * np.mean(sizes) / MEMORY * np.eye(MEMORY) if gram is None else gram
            gram, right = gram + rows.T @ rows, right + rows.T @ r
            seen.require(first + now, -np.linalg.solve(gram, right) @ np.concatenate(f(now)))


class NaiveModel:
    """Regression, weighted realisation, Gauss-Newton and Riccati equation on a record."""

    def __init__(self, y, u, *, order, window, Q, R, excitation=0.3):
        p, m = y.shape[1], u.shape[1]
        quiet = y[:NUM_QUIET]
        mean = np.mean(np.einsum("ti,ij,tj->t", quiet, Q, quiet))
        cov_u = excitation**2 * mean / m * np.linalg.inv(R)
        self.sy, self.su = np.sqrt(np.mean(quiet**2, axis=0)), np.sqrt(np.diag(cov_u))
        y, u = y / self.sy, u / self.su
        rows = range(window, len(y))
        lagged = lambda x, t: np.concatenate([x[t - k] for k in range(1, window + 1)])  # noqa: E731
        phi = np.asarray([np.concatenate([lagged(y, t), lagged(u, t)]) for t in rows])
        now = y[window:]
        self.G_data = phi.T @ phi + np.eye(phi.shape[1])
        self.M_hat = np.linalg.solve(self.G_data, phi.T @ now).T
        residual = now - phi @ self.M_hat.T
        self.S = residual.T @ residual / (len(now) - phi.shape[1])
        self.white, self.root = np.linalg.inv(np.linalg.cholesky(self.S)), np.linalg.cholesky(self.G_data)
        self.window, self.order, self.sizes = window, order, (p, m)
        self.Q, self.R = Q * np.outer(self.sy, self.sy), R * np.outer(self.su, self.su)
        self.theta = self.polish(*self.realize())

    def blocks(self, M):
        """C Abar^k F and C Abar^k B."""
        p, m = self.sizes
        of_y = [M[:, k * p : (k + 1) * p] for k in range(self.window)]
        return of_y, [
            M[:, self.window * p + k * m : self.window * p + (k + 1) * m] for k in range(self.window)
        ]

    def realize(self):
        """(A, B, C, F) of the weighted Hankel matrix."""
        (p, m), d1 = self.sizes, self.window // 2
        d2 = self.window - d1
        of_y, of_u = self.blocks(self.M_hat)
        hankel = lambda shift: np.block(  # noqa: E731
            [[of[i + j + shift] for of in (of_y, of_u) for j in range(d2)] for i in range(d1)]
        )
        past = np.r_[: d2 * p, self.window * p : self.window * p + d2 * m]
        right, left = np.linalg.cholesky(self.G_data[np.ix_(past, past)]), np.kron(np.eye(d1), self.white)
        U, s, Vt = np.linalg.svd(left @ hankel(0) @ right)
        n = self.order
        U, s, Vt = U[:, :n], np.sqrt(s[:n]), Vt[:n]
        C = np.linalg.inv(self.white) @ U[:p] * s
        reach = s[:, None] * Vt @ np.linalg.inv(right)
        F, B = reach[:, :p], reach[:, d2 * p : d2 * p + m]
        Abar = (U / s).T @ left @ hankel(1) @ right @ (Vt / s[:, None]).T
        radius = np.max(np.abs(np.linalg.eigvals(Abar)))
        Abar = Abar if radius < 1 else Abar * 0.95 / radius
        return Abar + F @ C, B, C, F

    def markov(self, theta):
        """M(theta)."""
        A, B, C, F = theta
        rows = [C]
        for _ in range(self.window - 1):
            rows.append(rows[-1] @ (A - F @ C))
        return np.concatenate([row @ gain for gain in (F, B) for row in rows], axis=1)

    def distance(self, M):
        """In standard deviations."""
        return (self.white @ M @ self.root).ravel()

    def flat(self, theta):
        """theta as a vector."""
        return np.concatenate([part.ravel() for part in theta])

    def shaped(self, vector):
        """(A, B, C, F) of a vector."""
        n, (p, m) = self.order, self.sizes
        shapes = [(n, n), (n, m), (p, n), (n, p)]
        ends = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes, strict=True)]

    def is_stable(self, theta):
        """Whether its predictor is."""
        A, _, C, F = theta
        return np.max(np.abs(np.linalg.eigvals(A - F @ C))) < 1

    def polish(self, *theta):
        """Gauss-Newton; the Jacobian column by column, by the product rule of powers."""
        vector, wanted = self.flat(theta), self.distance(self.M_hat)
        misfit = lambda v: np.sum((wanted - self.distance(self.markov(self.shaped(v)))) ** 2)  # noqa: E731
        least = misfit(vector)
        for _ in range(NUM_STEPS):
            here = self.shaped(vector)
            columns = [self.derivative(here, self.shaped(unit)) for unit in np.eye(len(vector))]
            D = np.stack([self.distance(column) for column in columns], axis=1)
            move = np.linalg.lstsq(D, wanted - self.distance(self.markov(here)), rcond=1e-8)[0]
            for k in range(NUM_HALVINGS):
                tried = vector + 0.5**k * move
                if self.is_stable(self.shaped(tried)) and misfit(tried) < least:
                    vector, least = tried, misfit(tried)
                    break
        return self.shaped(vector)

    def derivative(self, theta, change):
        """dM along a change of theta."""
        (A, B, C, F), (dA, dB, dC, dF) = theta, change
        Abar, dAbar = A - F @ C, dA - dF @ C - F @ dC
        row, drow, of_y, of_u = C, dC, [], []
        for _ in range(self.window):
            of_y.append(drow @ F + row @ dF)
            of_u.append(drow @ B + row @ dB)
            row, drow = row @ Abar, drow @ Abar + row @ dAbar
        return np.concatenate([*of_y, *of_u], axis=1)

    def plant(self, theta=None):
        """(A, B, C, F) of the signals themselves."""
        A, B, C, F = self.theta if theta is None else theta
        return A, B / self.su, C * self.sy[:, None], F / self.sy

    def solve(self, theta):
        """P, M, G and J of a plant."""
        A, B, C, F = theta
        P = scipy.linalg.solve_discrete_are(A, B, C.T @ self.Q @ C, self.R)
        M = self.R + B.T @ P @ B
        G = np.linalg.solve(M, B.T @ P)
        return P, M, G, np.trace(self.Q @ self.S) + np.trace(F.T @ (P - P @ B @ G) @ F @ self.S)

    def gain(self, theta=None):
        """G of the signals themselves."""
        return self.su[:, None] * self.solve(self.theta if theta is None else theta)[2]

    def slope(self, change):
        """dJ along a change of theta, by the derivative of the Riccati equation."""
        (A, B, C, F), (dA, dB, dC, dF) = self.theta, change
        P, _, G, _ = self.solve(self.theta)
        T = np.eye(len(A)) - B @ G
        both = lambda X: X + X.T  # noqa: E731
        moved = both((A - B @ G @ A).T @ P @ (dA - dB @ G @ A)) + both(C.T @ self.Q @ dC)
        dP = scipy.linalg.solve_discrete_lyapunov((A - B @ G @ A).T, moved)
        inner = T.T @ dP @ T - both(T.T @ P @ dB @ G)
        return np.trace(F.T @ inner @ F @ self.S) + 2 * np.trace(dF.T @ P @ T @ F @ self.S)

    def lean(self, confidence):
        """The cheapest plant of the linearised set, or as far towards it as the true set goes."""
        n, (p, m), vector = self.order, self.sizes, self.flat(self.theta)
        rank = n * (m + 2 * p)
        beta = scipy.stats.chi2.ppf(confidence, rank)
        changes = [self.shaped(unit) for unit in np.eye(len(vector))]
        D = np.stack([self.distance(self.derivative(self.theta, change)) for change in changes], axis=1)
        values, vectors = np.linalg.eigh(D.T @ D)
        g = vectors[:, -rank:].T @ np.asarray([self.slope(change) for change in changes])
        move = vectors[:, -rank:] @ (g / values[-rank:])
        move = -np.sqrt(beta / (g @ (g / values[-rank:]))) * move
        here, least = self.distance(self.markov(self.theta)), self.solve(self.theta)[-1]
        for k in range(7):
            tried = self.shaped(vector + 0.5**k * move)
            apart = np.sum((self.distance(self.markov(tried)) - here) ** 2)
            if self.is_stable(tried) and apart <= 1.5 * beta and self.solve(tried)[-1] < least:
                return tried
        return self.theta


def innovations(plant, y, u):
    """chi_t of a model along a record of y_0..y_t and u_0..u_{t-1}, from rest at the first of them."""
    A, B, C, F = plant
    chi = np.zeros(len(A))
    for t, now in enumerate(y):
        s = chi + (B @ u[t - 1] if t else 0)
        chi = A @ s + F @ (now - C @ s)
    return chi


def responses(plant, y, u, *, memory, feature="innovations"):
    """Nature's y, disturbances f and responses v[t] (output x input x output), all by explicit sums from rest."""
    A, B, C, F = plant
    powers = [C]
    for _ in range(len(y)):
        powers.append(powers[-1] @ A)
    s, natural, f = np.zeros(len(A)), [], []
    for t, now in enumerate(y):
        s = s + (B @ u[t - 1] if t else 0)
        e = now - C @ s
        natural.append(now - sum((powers[j - 1] @ B @ u[t - j] for j in range(1, t + 1)), np.zeros(len(C))))
        f.append(e if feature == "innovations" else natural[-1])
        s = A @ s + F @ e
    v = [
        sum(
            (np.multiply.outer(powers[j - 1] @ B, f[t - j]) for j in range(1, t + 1)),
            np.zeros((len(C), B.shape[1], len(C))),
        )
        for t in range(len(y))
    ]
    last = lambda items, t: [items[t - k] if t >= k else np.zeros_like(items[0]) for k in range(memory)]  # noqa: E731
    return natural, lambda t: last(f, t), lambda t: last(v, t)


def loss_rows(natural, f, v, *, Q, R):
    """rows and r(0) of the loss of a step, as a function of the taps laid out as (lag, input, output)."""
    roots = np.linalg.cholesky(Q).T, np.linalg.cholesky(R).T
    m = len(R)
    of_y = np.concatenate([each.reshape(len(Q), -1) for each in v], axis=1)
    of_u = np.concatenate([np.kron(np.eye(m), each[None, :]) for each in f], axis=1)
    return np.concatenate([roots[0] @ of_y, roots[1] @ of_u]), np.concatenate(
        [roots[0] @ natural, np.zeros(m)]
    )
