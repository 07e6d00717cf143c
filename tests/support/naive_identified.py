"""Learners without a class, written down step by step in NumPy, for the times at which they made models."""

import numpy as np
import scipy.linalg

WINDOW_KEPT, NUM_QUIET, NUM_STEPS, NUM_HALVINGS = 60, 20, 6, 8


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

    def polish(self, *theta):
        """Gauss-Newton; the Jacobian column by column, by the product rule of powers."""
        shapes = [part.shape for part in theta]
        ends = np.cumsum([part.size for part in theta])[:-1]
        unflatten = lambda v: [part.reshape(s) for part, s in zip(np.split(v, ends), shapes, strict=True)]  # noqa: E731
        vector = np.concatenate([part.ravel() for part in theta])
        wanted = self.distance(self.M_hat)
        misfit = lambda v: np.sum((wanted - self.distance(self.markov(unflatten(v)))) ** 2)  # noqa: E731
        least = misfit(vector)
        for _ in range(NUM_STEPS):
            here = unflatten(vector)
            columns = [self.derivative(here, unflatten(unit)) for unit in np.eye(len(vector))]
            D = np.stack([self.distance(column) for column in columns], axis=1)
            move = np.linalg.lstsq(D, wanted - self.distance(self.markov(here)), rcond=1e-8)[0]
            for k in range(NUM_HALVINGS):
                tried = vector + 0.5**k * move
                A, _, C, F = unflatten(tried)
                if np.max(np.abs(np.linalg.eigvals(A - F @ C))) < 1 and misfit(tried) < least:
                    vector, least = tried, misfit(tried)
                    break
        return unflatten(vector)

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

    def plant(self):
        """(A, B, C, F) of the signals themselves."""
        A, B, C, F = self.theta
        return A, B / self.su, C * self.sy[:, None], F / self.sy

    def gain(self):
        """G of the signals themselves."""
        A, B, C, _ = self.theta
        P = scipy.linalg.solve_discrete_are(A, B, C.T @ self.Q @ C, self.R)
        return self.su[:, None] * np.linalg.solve(self.R + B.T @ P @ B, B.T @ P)


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
