"""The least that any policy can make of its deviations: one linear-quadratic problem per plant.

With d_t = u_t - u*_t in units of its cost (the policy may even know theta), eta the part of the state that
deviations reach, share_h = lambda_h the share of the cost that the test takes, and the sums over the tests
(rows of h) and places (j, l) of `moments.Effects`, each divided by lambda_h:

    E sum_t { [(1 - eps)(1 - lambda_t) - pen_t] |d_t|^2 + 2 (Y_t eta_t).W_t - |l_t|^2 / (eps (1 - lambda_t))
              - eta_t'Hee_t eta_t - 2 x_t'Hxe_t eta_t } ,   x_t = (zeta0_t, chi_{t-1}, .., chi_{t-kappa+1}) ,

    pen_t = (1 + 1/z + kx/y) sup_t ,     Om_t = kk sum_{tau>t} a a' + stein sum_{tau=t} a a' ,
    Hxe_t = N'Om N + exact + young ,     Hee_t = N'(Om + y kx sum_{tau>t} a a')N + exact + (1 + z) young .

Any z, y, eps > 0 give a bound. The infimum over all adapted d is that of a Riccati recursion: finite if
Lambda_t = price + E'P_{t+1}E is positive definite at every input, which is required with a margin.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.linalg.psd import solve_unrolled
from lqgap.theory.lower_bounds.van_trees.clipping import ClippedNormal
from lqgap.theory.lower_bounds.van_trees.moments import Effects
from lqgap.theory.lower_bounds.van_trees.sensitivity import Sensitivity

MARGIN = 1e-3  # of the smallest eigenvalue of Lambda, in units of the input's cost
LARGEST_PRICE, SMALLEST_PRICE = 0.95, 4e-3  # 1 - lambda


class Young(eqx.Module):
    """The free constants z, y and eps of three inequalities 2ab <= ca^2 + b^2/c."""

    products: Float[Array, ""]
    score: Float[Array, ""]
    linear: Float[Array, ""]


class Problem(eqx.Module):
    """The linear-quadratic problem of one plant, but for lambda: the sums of each step's tests."""

    system: Sensitivity
    instants: Array
    chi: ClippedNormal
    effects: Effects  # rows of a step added: leading axes step, place
    pull: Float[Array, "step lag state"]  # of 2 chi_{t-i} (.) eta, by psi
    covariance: Float[Array, "instant exogenous exogenous"]


class Value(eqx.Module):
    """What the deviations may gain (negative), and the smallest eigenvalue of Lambda."""

    value: Float[Array, ""]
    margin: Float[Array, ""]


def exogenous_covariance(system: Sensitivity, chi: ClippedNormal, *, length: int) -> Array:
    """The covariance of (zeta0_t, chi_{t-1}, .., chi_{t-length+1}) at every instant."""
    size = system.F.shape[-1]

    def advance(X: Array, matrices: tuple[Array, Array]) -> tuple[Array, Array]:
        A, B = _exogenous_step(*matrices, length=length)
        return A @ X @ A.T + B @ _noise(chi) @ B.T, X

    _, X = jax.lax.scan(advance, jnp.zeros((size + length - 1,) * 2), (system.F, system.G))
    return X


def best_deviation(problem: Problem, share: Float[Array, " step"], young: Young) -> Value:
    """The infimum over all deviations at given lambda."""
    terms = _assemble(problem, share, young)
    size = problem.pull.shape[-1]
    start = jnp.zeros((2 * size + problem.pull.shape[1],) * 2)

    def go_back(P: Array, given: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        F, G, E, stage, price, has_input = given
        Lambda, gain, Q = _eliminate(P, F, G, E, price, has_input, size)
        Q = Q - gain.T @ _solve(Lambda, gain)
        lost = jnp.sum(Q[-2:, -2:] * _noise(problem.chi))
        smallest = jnp.where(has_input, jnp.linalg.eigvalsh(Lambda)[0], jnp.inf)
        return Q[:-2, :-2] + stage, (lost, smallest)

    price = (1 - young.linear) * (1 - share) - terms.penalty
    _, (lost, smallest) = jax.lax.scan(go_back, start, _steps(problem, terms, price), reverse=True)
    linear = jnp.sum(terms.size**2 / (young.linear * (1 - share)))
    return Value(jnp.sum(lost) - linear, jnp.min(smallest))


def better_share(
    problem: Problem,
    share: Float[Array, " step"],
    young: Young,
    worth: Float[Array, " step"],
    factor: float | Float[Array, ""],
) -> Float[Array, " step"]:
    """Shares that balance what the tests lose by 1 - lambda and what deviations gain, going back in time.

    Args:
        share: at which the tests' sums are taken.
        worth: what a test loses by a unit of 1 - lambda.
        factor: of the part that is not needed for a finite infimum.
    """
    terms = _assemble(problem, share, young)
    size = problem.pull.shape[-1]
    start = jnp.zeros((2 * size + problem.pull.shape[1],) * 2)
    given = _steps(problem, terms, jnp.zeros_like(share))
    penalty, sizes, worth = (
        _to_instants(each, len(problem.system.F)) for each in (terms.penalty, terms.size, worth)
    )

    def go_back(P: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        F, G, E, stage, _, has_input, X, penalty, size_t, worth = given
        Lambda, gain, Q = _eliminate(P, F, G, E, jnp.zeros(()), has_input, size)
        curvature = jnp.where(has_input, jnp.linalg.eigvalsh(Lambda)[0], 0.0)
        exogenous = jnp.concatenate([gain[:, : len(X)], gain[:, -2:]], axis=1)
        cov = jax.scipy.linalg.block_diag(X, _noise(problem.chi))
        moved = jnp.sum((exogenous @ cov) * exogenous) + size_t**2 / young.linear
        need = jnp.maximum(-curvature, 0) + penalty
        price = 1.02 * need + factor * jnp.sqrt(moved / worth) + 2 * MARGIN
        price = jnp.clip(price / (1 - young.linear), SMALLEST_PRICE, LARGEST_PRICE)
        paid = jnp.maximum((1 - young.linear) * price - penalty, MARGIN)
        Lambda = Lambda + paid * jnp.eye(len(Lambda))
        Lambda = jnp.where(has_input, Lambda, jnp.eye(len(Lambda)))
        smallest = jnp.linalg.eigvalsh(Lambda)[0]
        Lambda = Lambda + jnp.maximum(MARGIN - smallest, 0) * jnp.eye(len(Lambda))
        Q = Q - gain.T @ _solve(Lambda, gain)
        return Q[:-2, :-2] + stage, price

    _, price = jax.lax.scan(go_back, start, (*given, problem.covariance, penalty, sizes, worth), reverse=True)
    return 1 - price[problem.system.num_outputs - 1 :: problem.system.num_outputs]


class _Terms(eqx.Module):
    """The sums of a problem at given lambda."""

    penalty: Float[Array, " step"]
    size: Float[Array, " step"]
    stage: Float[Array, "instant joint joint"]


def _assemble(problem: Problem, share: Array, young: Young) -> _Terms:
    system, chi, effects = problem.system, problem.chi, problem.effects
    count, size = len(system.F), problem.pull.shape[-1]

    def gather(values: Array) -> Array:
        weighted = values / share.reshape(-1, *(1,) * (values.ndim - 1))
        flat = weighted.reshape(-1, *values.shape[2:])
        return jnp.zeros((count, *values.shape[2:])).at[problem.instants.ravel()].add(flat)

    outer = gather(effects.outer)
    with_products = gather(effects.outer.at[:, -1].set(0))
    exact, by_young = gather(effects.exact), gather(effects.young)
    both = chi.square * _after(outer) + chi.stein * outer
    by_score = young.score * chi.product * _after(with_products)
    N = system.N
    Hxe = N.mT @ both @ N + exact + by_young
    Hee = N.mT @ (both + by_score) @ N + exact + (1 + young.products) * by_young
    p = system.num_outputs
    lags = gather(effects.lags) - _to_instants(problem.pull, count)
    stage = jnp.zeros((count, 2 * size + lags.shape[1], 2 * size + lags.shape[1]))
    here = size + lags.shape[1]
    stage = stage.at[:, :size, here:].set(-Hxe).at[:, here:, :size].set(-Hxe.mT)
    stage = stage.at[:, size:here, here:].set(-lags).at[:, here:, size:here].set(-lags.mT)
    stage = stage.at[:, here:, here:].set(-Hee)
    factor = 1 + 1 / young.products + chi.product / young.score
    return _Terms(factor * gather(effects.sup)[p - 1 :: p], gather(effects.size)[p - 1 :: p], stage)


def _solve(Lambda: Array, gain: Array) -> Array:
    return jax.vmap(lambda column: solve_unrolled(Lambda, column)[0], in_axes=1, out_axes=1)(gain)


def _after(values: Array) -> Array:
    """Sums over later instants."""
    return jnp.cumsum(values[::-1], axis=0)[::-1] - values


def _to_instants(values: Array, count: int) -> Array:
    """Of steps, at the last instants of them."""
    p = count // len(values)
    return jnp.zeros((count, *values.shape[1:])).at[p - 1 :: p].set(values)


def _steps(problem: Problem, terms: _Terms, price: Array) -> tuple[Array, ...]:
    system = problem.system
    count, p = len(system.F), system.num_outputs
    has_input = (jnp.arange(count) + 1) % p == 0
    E = _to_instants(system.E, count)
    return system.F, system.G, E, terms.stage, _to_instants(price, count), has_input


def _noise(chi: ClippedNormal) -> Array:
    """The covariance of (x, chi)."""
    return jnp.array([[1.0, chi.product], [chi.product, chi.square]])


def _exogenous_step(F: Array, G: Array, *, length: int) -> tuple[Array, Array]:
    size = len(F)
    A = jax.scipy.linalg.block_diag(F, jnp.eye(length - 1, k=-1))
    B = jnp.zeros((size + length - 1, 2)).at[:size, 0].set(G)
    return A, (B.at[size, 1].set(1.0) if length > 1 else B)


def _eliminate(
    P: Array, F: Array, G: Array, E: Array, price: Array, has_input: Array, size: int
) -> tuple[Array, Array, Array]:
    """Lambda, B'P[A G] and [A G]'P[A G] of y' = A y + G w + B d, y = (zeta0, chi's, eta)."""
    A, B = _exogenous_step(F, G, length=len(P) - 2 * size + 1)
    A = jax.scipy.linalg.block_diag(A, F)
    step = jnp.concatenate([A, jnp.zeros((len(A), 2)).at[: len(B)].set(B)], axis=1)
    P_input = P[:, -size:] @ E
    Lambda = E.T @ P_input[-size:] + price * jnp.eye(E.shape[1])
    Lambda = jnp.where(has_input, Lambda, jnp.eye(E.shape[1]))
    return Lambda, P_input.T @ step, step.T @ P @ step
