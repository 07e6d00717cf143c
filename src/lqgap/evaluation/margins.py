"""How far a linear policy on a plant is from instability, the loop broken at the plant's inputs.

With u = v + Cc xi + Dc y, the sensitivity S(z) from v to u has the closed loop of `exact` as its realisation,

    S = [ AA , [B; 0] ; [Dc C, Cc] , I ] ,      S_jj = 1 / (1 + L_j) ,

where L_j is the loop that is broken at input j while the others are closed. On |z| = 1

    gain:   where L_j is real, that is Im S_jj = 0 ,   a factor g = S_jj / (S_jj - 1) ends stability
    phase:  where |L_j| = 1, that is Re S_jj = 1/2 ,   a factor exp(-i phi), L_j = -exp(i phi)
    delay:  at the same points                         phi / omega steps, phi in (0, 2 pi)
    disk:   1 / max |S_jj - 1/2| ,                     no factor (1 + d/2) / (1 - d/2) with |d| < disk
    all:    1 / max sigma(r (S - I/2) r^-1) ,          such factors in all inputs at once, r = diag(R)^1/2

Each of these is a condition q |S|^2 + 2 Re(a S) + c = 0 on one function. All its roots are eigenvalues of a
pencil, in the state x, the adjoint state p and v:

    z x = A x + B v ,   p = z (A'p + C'(q y + a*v)) ,   D'(q y + a*v) + B'p + a y + c v = 0 ,   y = Cx + Dv ,

from which nothing is taken but where to look: roots are found between points at which the function has
different signs. A peak is the level that has no more roots (Bruinsma & Steinbuch 1990).
"""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Array, Float
from scipy.optimize import brentq

from lqgap.errors import InvalidArgumentError
from lqgap.evaluation.arguments import read_systems
from lqgap.evaluation.exact import close_loop
from lqgap.policies import AbstractLinearPolicy, AbstractPolicy, BoundedChanges, Saturated
from lqgap.simulators.finite import Members
from lqgap.systems import LQG

NEAR = 1e-2  # from the unit circle: roots so near tell where to look
PEAK = 1e-10  # of a peak: what another round must add to it
MAX_ROUNDS = 50
WORST = {"gain_low": np.max, "sensitivity": np.max}  # of all others the smallest is
NOTHING = 1e-9  # a factor so small is rounding: a loop with a pole at one has S = 0 there


class Margins(eqx.Module):
    """Margins of every loop, and of all at once; an unstable loop has none, and its peak is infinite."""

    gain_low: Float[np.ndarray, "*member input"]  # the loop is stable with a factor between these two
    gain_high: Float[np.ndarray, "*member input"]
    phase: Float[np.ndarray, "*member input"]  # degrees
    delay: Float[np.ndarray, "*member input"]  # steps
    disk: Float[np.ndarray, "*member input"]
    sensitivity: Float[np.ndarray, "*member input"]  # the peak, max |S_jj|
    disk_of_all: Float[np.ndarray, "*member"]

    def weakest_loops(self) -> dict[str, Float[np.ndarray, "*member"]]:
        """Every kind of margin by name, of the input for which it is least."""
        loops = {name: value for name, value in vars(self).items() if name != "disk_of_all"}
        worst = {name: np.asarray(WORST.get(name, np.min)(value, axis=-1)) for name, value in loops.items()}
        return {**worst, "disk_of_all": self.disk_of_all}

    def smallest(self) -> dict[str, tuple[float, int]]:
        """Of a class: every kind of margin where it is least, and the member's number."""
        found = {}
        for name, values in self.weakest_loops().items():
            index = int(np.argmax(values) if name in WORST else np.argmin(values))
            found[name] = (float(values[index]), index)
        return found


def has_margins(policy: Any) -> bool:
    """Whether a policy is linear within its limits, if it has some, and in the long run always the same."""
    return isinstance(_within_limits(policy), AbstractLinearPolicy) and policy.horizon is None


def margins(policy: AbstractPolicy, plants: Members) -> Margins:
    """The margins of a linear policy, on one plant or every plant of a class, as long as no limit is met."""
    if not has_margins(policy):
        kind, end = type(policy).__name__, policy.horizon
        why = "is not linear" if end is None else f"changes with time and ends at step {end}"
        raise InvalidArgumentError(
            f"policy is a {kind}, which {why}: it has no margins, but lqgap.find_worst(policy, family) looks "
            f"for plants on which it fails"
        )
    linear = _within_limits(policy)
    sensitivities = jax.device_get(_sensitivities(linear, read_systems(policy, plants)))
    each = [_margins(*matrices) for matrices in zip(*sensitivities, strict=True)]
    if isinstance(plants, LQG) and plants.A.ndim == 2:
        return each[0]
    columns = zip(*(vars(one).values() for one in each), strict=True)
    return Margins(*(np.stack(column) for column in columns))


def _within_limits(policy: Any) -> Any:
    return _within_limits(policy.inside) if isinstance(policy, Saturated | BoundedChanges) else policy


class _Transfer(eqx.Module):
    """D + C (z I - A)^-1 B, as a function on the unit circle."""

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray

    def at(self, omega: float) -> np.ndarray:
        resolvent = np.exp(1j * omega) * np.eye(len(self.A)) - self.A
        return self.D + self.C @ np.linalg.solve(resolvent, self.B)


class _Condition(eqx.Module):
    """q |S|^2 + 2 Re(a S) + c, whose roots are looked for."""

    q: float
    a: complex
    c: float

    def at(self, transfer: _Transfer, omega: float) -> float:
        """Its value; of a matrix, the largest eigenvalue."""
        S = transfer.at(omega)
        return np.linalg.eigvalsh(self.q * S.conj().T @ S + 2 * _real(self.a * S) + self.c * np.eye(len(S)))[
            -1
        ]


@eqx.filter_jit
def _sensitivities(policy: AbstractLinearPolicy, systems: LQG) -> tuple[Array, Array, Array, Array]:
    """A, B and C of S, and R, of every plant."""
    controller = policy.at(policy.num_transient)

    def sensitivity(plant: LQG) -> tuple[Array, Array, Array, Array]:
        B = jnp.pad(plant.B, ((0, len(controller.Ac)), (0, 0)))
        C = jnp.concatenate([controller.Dc @ plant.C, controller.Cc], axis=1)
        return close_loop(controller, plant).transition, B, C, plant.R

    return jax.vmap(sensitivity)(systems)


def _margins(A: np.ndarray, B: np.ndarray, C: np.ndarray, R: np.ndarray) -> Margins:
    m = len(R)
    if not np.abs(np.linalg.eigvals(A)).max() < 1:
        one, none = np.ones(m), np.zeros(m)
        return Margins(one, one, none, none, none, one * np.inf, np.asarray(0.0))
    A, T = scipy.linalg.matrix_balance(A)
    B, C, unit = np.linalg.solve(T, B), C @ T, np.sqrt(np.diagonal(R))
    together = _Transfer(A, B / unit, unit[:, None] * C, np.eye(m))
    loops = [_Transfer(A, B[:, [j]], C[[j]], np.eye(1)) for j in range(m)]
    found = [
        (*_gain(loop), *_phase_and_delay(loop), 1 / _peak(loop, 0.5), _peak(loop, 0.0)) for loop in loops
    ]
    columns: list[Any] = [*np.array(found).T, np.asarray(1 / _peak(together, 0.5))]
    return Margins(*columns)


def _gain(loop: _Transfer) -> tuple[float, float]:
    """The factors nearest to one, below and above it, at which the loop is at its limit."""
    points = [0.0, *_roots(loop, _Condition(0.0, -1j, 0.0)), np.pi]
    S = np.array([loop.at(omega)[0, 0].real for omega in points])
    factors = np.divide(S, S - 1, out=np.full(len(S), np.inf), where=S != 1)
    below, above = factors[(factors > NOTHING) & (factors < 1)], factors[factors > 1]
    return below.max(initial=0), above.min(initial=np.inf)


def _phase_and_delay(loop: _Transfer) -> tuple[float, float]:
    omega = np.array(_roots(loop, _Condition(0.0, 1 + 0j, -1.0)))
    L = np.array([1 / loop.at(point)[0, 0] - 1 for point in omega])
    phi = np.angle(-L)
    return np.abs(np.degrees(phi)).min(initial=np.inf), (phi % (2 * np.pi) / omega).min(initial=np.inf)


def _peak(transfer: _Transfer, center: float) -> float:
    """max sigma(S - center I)."""
    level = lambda square: _Condition(1.0, complex(-center), center**2 - square)  # noqa: E731
    points, best = [0.0, np.pi], 0.0
    for _ in range(MAX_ROUNDS):
        here = max(level(0.0).at(transfer, omega) for omega in points)
        if here <= best * (1 + PEAK):
            break
        best = here
        points = _between(transfer, level(best))
    return np.sqrt(best)


def _roots(transfer: _Transfer, condition: _Condition) -> list[float]:
    """Where in (0, pi) the condition changes its sign."""
    points = _between(transfer, condition)
    signs = [condition.at(transfer, omega) > 0 for omega in points]
    exact: Any = {"xtol": 1e-15, "rtol": 1e-14}
    solve: Any = functools.partial(brentq, lambda omega: condition.at(transfer, omega), **exact)
    changes = (i for i in range(len(points) - 1) if signs[i] != signs[i + 1])
    return [solve(points[i], points[i + 1]) for i in changes]


def _between(transfer: _Transfer, condition: _Condition) -> np.ndarray:
    """Points of (0, pi), one on either side of every root."""
    A, B, C, D = transfer.A, transfer.B, transfer.C, transfer.D
    q, a, c = condition.q, condition.a, condition.c
    n, m = B.shape
    left = np.block(
        [
            [A, np.zeros((n, n)), B],
            [np.zeros((n, n)), np.eye(n), np.zeros((n, m))],
            [(q * D.T + a * np.eye(m)) @ C, B.T, q * D.T @ D + 2 * _real(a * D) + c * np.eye(m)],
        ]
    )
    right = np.zeros_like(left)
    right[:n, :n] = np.eye(n)
    right[n : 2 * n] = np.block([q * C.T @ C, A.T, C.T @ (q * D + np.conj(a) * np.eye(m))])
    z = scipy.linalg.eigvals(left, right)
    z = z[np.isfinite(z)]
    omega = np.angle(z[np.abs(np.abs(z) - 1) < NEAR])
    edges = np.unique([0.0, *omega[(omega > 0) & (omega < np.pi)], np.pi])
    return (edges[1:] + edges[:-1]) / 2


def _real(X: Any) -> np.ndarray:
    """(X + X*) / 2."""
    return (X + X.conj().T) / 2
