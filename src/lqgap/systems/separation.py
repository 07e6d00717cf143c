"""How much the controllers of a class lose on each other's plants, and what they reveal of them.

Controller k is u = -K_k xhat^k on plant i, all of them stationary. Of every k, i and j there are

    excess       E_ki    what controller k costs a step on plant i above the optimum; infinite if unstable
    information  D^k_ij  the relative entropy a step between members i and j: nats that come for free
    gain         G^k_ij  what a probe xi added to u adds to it, for each unit of its covariance

With H_j(z) = C_j (z - Abar_j)^-1 [F_j, B_j] the predictor of member j as a filter of (y, u), and Q_ki the
answer of plant i under controller k to its innovation e and to the probe, (y, u) = Q_ki (e, xi), predictions
of members i and j differ by (H_i - H_j) Q_ki (e, xi). So, by Parseval, with means over the unit circle,

    D^k_ij = 1/2 [ tr S_j^-1 (H_i - H_j) Q_e S_i Q_e* (H_i - H_j)*  +  tr S_j^-1 S_i - p
                   + log det S_j / det S_i ]
    G^k_ij = 1/2  f Q_xi* (H_i - H_j)* S_j^-1 (H_i - H_j) Q_xi ,       f the spectrum of the probe.

Means are taken at points that lie closer where frequencies are low. Both tables are averaged over (i, j) and
(j, i). Pairs of which controller k does not stabilise one are told apart at once: their information is MOST.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float

from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import Optimum

MOST = 10.0  # nats a step
LEAST_EXCESS = 1e-3  # in units of J: less is not worth a word, or a probe
RUIN = 1e4  # times the largest J: what a step costs under a controller that does not stabilise the plant
DOUBLINGS = 60
POINTS = 128  # on the upper half of the unit circle
WARP = 0.7  # how much closer points are at low frequencies
Array = np.ndarray


@dataclass(frozen=True)
class Separation:
    """What members' controllers reveal of the members."""

    excess: Float[Array, "controller plant"]
    information: Float[Array, "controller plant other"]
    gain: Float[Array, "controller plant other input input"]


def excess_rates(systems: LQG, optima: Optimum) -> Float[Array, "controller plant"]:
    """E, of every controller on every plant."""
    count = len(optima.J)
    everyone = np.arange(count)
    return np.asarray([excess_of(systems, optima, np.full(count, k), everyone) for k in range(count)])


def excess_of(systems: LQG, optima: Optimum, controllers: Array, plants: Array) -> Float[Array, " pair"]:
    """E of pairs of a controller and a plant, by their numbers."""
    A, B, C, K, M, L, S = (each[plants] for each in _arrays(systems, optima))
    A_k, B_k, C_k, K_k, _, L_k, _ = (each[controllers] for each in _arrays(systems, optima))
    n = A.shape[1]
    own = np.eye(n) - L_k @ C_k
    # State (z_i, z_k), both predictions; u = of_state (z_i, z_k) + of_noise e .
    of_noise = -K_k @ L_k
    of_state = np.concatenate([of_noise @ C, -K_k @ own], axis=2)
    F = np.concatenate([B @ of_state, B_k @ of_state], axis=1)
    F[:, :n, :n] += A
    F[:, n:, :n] += A_k @ L_k @ C
    F[:, n:, n:] += A_k @ own
    noise = np.concatenate([A @ L + B @ of_noise, (A_k - B_k @ K_k) @ L_k], axis=1)
    deviation = of_state + np.concatenate([K, np.zeros_like(K)], axis=2)
    at_once = of_noise + K @ L
    total = _sum_powers(F, _transpose(deviation) @ M @ deviation)
    is_stable = np.all(np.isfinite(total), axis=(1, 2))
    total = np.where(is_stable[:, None, None], total, 0.0)
    cost = _transpose(noise) @ total @ noise + _transpose(at_once) @ M @ at_once
    excess = np.where(is_stable, np.maximum(np.einsum("iab,iba->i", cost, S), 0.0), np.inf)
    return np.where(controllers == plants, 0.0, excess)


def own_information(systems: LQG, optima: Optimum) -> Float[Array, "controller other"]:
    """The nats a step that every member's controller reveals on its own plant against each other member."""
    z, weight = _circle()
    H, T = _filters(systems, optima, z)
    S = np.asarray(optima.S)
    e = _answers(H, T)[..., : S.shape[1]]
    found = _Predictors(H, S).power(weight, e @ S[:, None] @ _adjoint(e)) + _spread(S)
    return np.maximum(0.5 * found, 0.0)


def separate(systems: LQG, optima: Optimum, *, colour: complex) -> Separation:
    """E, D and G of a class, for a probe that is the real part of zeta_t+1 = colour zeta_t + noise."""
    excess = excess_rates(systems, optima)
    z, weight = _circle()
    S = np.asarray(optima.S)
    p, m, count = S.shape[1], systems.num_inputs, len(S)
    H, T = _filters(systems, optima, z)
    predictors, spread = _Predictors(H, S), _spread(S)
    spectrum = (1 - abs(colour) ** 2) / 2 * (np.abs(z - colour) ** -2.0 + np.abs(z - np.conj(colour)) ** -2.0)
    information, gain = np.empty((count, count, count)), np.empty((count, count, count, m, m))
    for k in range(count):
        answer = _answers(H, T[k])
        e, xi = answer[..., :p], answer[..., p:]
        information[k] = predictors.power(weight, e @ S[:, None] @ _adjoint(e)) + spread
        for a in range(m):
            for b in range(a + 1):
                both = xi[..., :, a, None] * xi[..., None, :, b].conj()
                each = predictors.power(weight * spectrum, 0.5 * (both + _adjoint(both)))
                gain[k, :, :, a, b] = gain[k, :, :, b, a] = each
    is_held = np.isfinite(excess)
    is_clear = ~(is_held[:, :, None] & is_held[:, None, :])
    information, gain = 0.25 * _even(information), 0.25 * _even(gain)  # the half of both, and their mean
    return Separation(
        excess=excess,
        information=np.where(is_clear, MOST, np.clip(information, 0.0, MOST)),
        gain=np.where(is_clear[..., None, None], 0.0, gain),
    )


class _Predictors:
    """The predictors of all members at points of the circle, in the shapes of matrix products."""

    def __init__(self, H: Complex[Array, "member point output signal"], S: Array):
        self.H, self.precision = H, np.linalg.inv(S)
        weighed = self.precision[:, None] @ H
        self.squares = _flat(_adjoint(H) @ weighed)
        self.weighed = _flat(weighed)

    def power(self, weight: Array, spectrum: Complex[Array, "plant point signal signal"]) -> Array:
        """tr S_j^-1 (H_i - H_j) X_i (H_i - H_j)*, averaged over the circle, of all i and j."""
        spectrum = weight[:, None, None] * spectrum
        passed = self.H @ spectrum
        own = np.real(np.sum(passed @ _adjoint(self.H), axis=1))
        own = own.reshape(len(own), -1) @ self.precision.reshape(len(own), -1).T
        return own - 2 * _flat(passed) @ self.weighed.T + _flat(spectrum) @ self.squares.T


def _filters(systems: LQG, optima: Optimum, z: Array) -> tuple[Array, Array]:
    """H_j and T_j, the prediction and the input of member j from (y, u)."""
    A, B, C, K, _, L, _ = _arrays(systems, optima)
    own = np.eye(A.shape[1]) - L @ C
    resolvent = np.linalg.inv(z[:, None, None] * np.eye(A.shape[1]) - (A @ own)[:, None])
    predicted = resolvent @ np.concatenate([A @ L, B], axis=2)[:, None]
    at_once = np.concatenate([L, np.zeros_like(B)], axis=2)
    belief = own[:, None] @ predicted + at_once[:, None]
    return C[:, None] @ predicted, -K[:, None] @ belief


def _answers(H: Array, T: Array) -> Complex[Array, "plant point signal signal"]:
    """(y, u) of every plant under one controller or its own, by the innovation and the probe."""
    rows = np.concatenate([H, np.broadcast_to(T, (len(H), *T.shape[-3:]))], axis=2)
    return np.linalg.inv(np.eye(rows.shape[-1]) - rows)


def _spread(S: Array) -> Float[Array, "plant other"]:
    """tr S_j^-1 S_i - p + log det S_j / det S_i ."""
    logdet = np.linalg.slogdet(S)[1]
    return np.einsum("jab,iba->ij", np.linalg.inv(S), S) - S.shape[1] + logdet[None, :] - logdet[:, None]


def _circle() -> tuple[Complex[Array, " point"], Float[Array, " point"]]:
    """Points on the upper half of the unit circle, and weights of a mean over all of it."""
    angle = np.pi * (np.arange(POINTS) + 0.5) / POINTS
    t = np.exp(1j * angle)
    return (t + WARP) / (1 + WARP * t), (1 - WARP**2) / np.abs(1 + WARP * t) ** 2 / POINTS


def _sum_powers(F: Array, Q: Array) -> Array:
    """sum_t F'^t Q F^t of a batch, by doubling; not finite where it diverges."""
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(DOUBLINGS):
            term = _transpose(F) @ Q @ F
            Q = Q + term
            F = F @ F
            F = np.where(np.abs(F) < 1e-150, 0.0, F)
            if not np.any(term):
                break
    return np.where(np.isfinite(Q), Q, np.inf)


def _arrays(systems: LQG, optima: Optimum) -> tuple[Array, ...]:
    wanted = systems.A, systems.B, systems.C, optima.K, optima.M, optima.L, optima.S
    return tuple(np.asarray(each, dtype=np.float64) for each in wanted)


def _transpose(X: Array) -> Array:
    return np.swapaxes(X, -1, -2)


def _adjoint(X: Array) -> Array:
    return np.swapaxes(X, -1, -2).conj()


def _flat(X: Array) -> Float[Array, "member number"]:
    """Complex matrices at all points as one row of real numbers."""
    rows = X.reshape(len(X), -1)
    return np.concatenate([np.real(rows), np.imag(rows)], axis=1)


def _even(table: Array) -> Array:
    return table + np.swapaxes(table, 1, 2)
