"""The least that any policy can make of its deviations: one linear-quadratic problem per plant.

With d_t = u_t - u*_t in units of its cost (the policy may even know theta), eta the part of the state that
deviations reach, share_h = lambda_h the share of the cost that the test takes, and the sums over the tests
(rows of h) and places (j, l) of `moments.Effects`, each divided by lambda_h:

    E sum_t { [(1 - eps)(1 - lambda_t) - pen_t] |d_t|^2 + 2 (Y_t eta_t).W_t - |l_t|^2 / (eps (1 - lambda_t))
              - eta_t'Hee_t eta_t - 2 x_t'Hxe_t eta_t } ,   x_t = (zeta0_t, chi_{t-1}, .., chi_{t-kappa+1}) ,

    pen_t = (1 + 1/z + kx/y) sup_t ,     Om_t = kk sum_{tau>t} a a' + stein sum_{tau=t} a a' ,
    Hxe_t = N'Om N + exact + young ,     Hee_t = N'(Om + y kx sum_{tau>t} a a')N + exact + (1 + z) young .

Any z, y, eps > 0 give a bound. The infimum over all adapted d is that of a Riccati recursion for what is to
come, eta'P eta + 2 eta'C x and a part without eta:

    P_t = F'P F - F'P E Lambda^-1 E'P F - Hee_t ,     C_t = (F' - F'P E Lambda^-1 E') C A_x - Hxe_t' ,
    lost_t = E |Lambda^-1/2 E'C x_{t+1}|^2 ,     Lambda_t = price + E'P E     (P, C of t + 1) ,

where x_{t+1} = A_x x_t + noise, with a covariance that no policy changes. The infimum is -sum lost_t; it is
finite if Lambda_t is positive definite at every input, which is required with a margin.
"""

from typing import Any

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
    chi: ClippedNormal
    effects: Effects  # rows of a step added: leading axes step, place
    pull: Float[Array, "step lag state"]  # of 2 chi_{t-i} (.) eta, by psi
    covariance: Float[Array, "instant known known"]


class Value(eqx.Module):
    """What the deviations may gain (negative), and the smallest eigenvalue of Lambda."""

    value: Float[Array, ""]
    margin: Float[Array, ""]


def known_covariance(system: Sensitivity, chi: ClippedNormal, *, length: int) -> Array:
    """Of (zeta0_t, chi_t, .., chi_{t-length+1}, x_t); chi's before the record have no effect."""
    size = system.F.shape[-1]

    def advance(state: tuple[Array, Array], given: tuple[Array, Array]) -> tuple[tuple[Array, Array], Any]:
        (Pi, responses), (F, G) = state, given  # of zeta0 to x_{t-1}, x_{t-2}, ..
        after = jnp.concatenate([G[:, None], F @ responses], axis=1)[:, : length - 1]
        return (F @ Pi @ F.T + jnp.outer(G, G), after), state

    start = (jnp.zeros((size, size)), jnp.zeros((size, length - 1)))
    _, (Pi, responses) = jax.lax.scan(advance, start, (system.F, system.G))
    with_chi = jnp.pad(chi.product * responses, ((0, 0), (0, 0), (1, 1)))
    own = chi.square * jnp.eye(length + 1).at[-1, -1].set(1 / chi.square)
    own = own.at[0, -1].set(chi.product).at[-1, 0].set(chi.product)
    own = jnp.broadcast_to(own, (len(Pi), *own.shape))
    return jnp.concatenate(
        [jnp.concatenate([Pi, with_chi], axis=2), jnp.concatenate([with_chi.mT, own], axis=2)], axis=1
    )


def best_deviation(problem: Problem, share: Float[Array, " step"], young: Young) -> Value:
    """The infimum over all deviations at given lambda."""
    terms = _assemble(problem, share, young)
    price = (1 - young.linear) * (1 - share) - terms.penalty

    def go_back(ahead: _Ahead, given: tuple[_Instant, Array]) -> tuple[_Ahead, tuple[Array, Array]]:
        instant, price = given
        seen = _look_ahead(ahead, instant)
        Lambda = seen.curvature + price * jnp.eye(len(seen.curvature))
        smallest = jnp.where(instant.has_input, _smallest(Lambda), jnp.inf)
        Lambda = jnp.where(instant.has_input, Lambda, jnp.eye(len(Lambda)))
        lost = jnp.sum(_solve(Lambda, seen.by_x) * (seen.by_x @ instant.covariance))
        return seen.after(Lambda, instant), (lost, smallest)

    given = (_instants(problem, terms), _to_instants(price, len(problem.system.F)))
    _, (lost, smallest) = jax.lax.scan(go_back, _nothing_ahead(problem), given, reverse=True)
    linear = jnp.sum(terms.size**2 / (young.linear * (1 - share)))
    return Value(-jnp.sum(lost) - linear, jnp.min(smallest))


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

    def go_back(ahead: _Ahead, given: tuple[_Instant, Array, Array, Array]) -> tuple[_Ahead, Array]:
        instant, penalty, size, worth = given
        seen = _look_ahead(ahead, instant)
        identity = jnp.eye(len(seen.curvature))
        curvature = _smallest(seen.curvature)
        moved = jnp.sum((seen.by_x @ instant.covariance) * seen.by_x) + size**2 / young.linear
        need = jnp.maximum(-curvature, 0) + penalty
        price = 1.02 * need + factor * jnp.sqrt(moved / worth) + 2 * MARGIN
        price = jnp.clip(price / (1 - young.linear), SMALLEST_PRICE, LARGEST_PRICE)
        paid = jnp.maximum((1 - young.linear) * price - penalty, MARGIN)
        paid = paid + jnp.maximum(MARGIN - curvature - paid, 0)
        Lambda = jnp.where(instant.has_input, seen.curvature + paid * identity, identity)
        return seen.after(Lambda, instant), price

    penalty, size, worth = (
        _to_instants(each, len(problem.system.F)) for each in (terms.penalty, terms.size, worth)
    )
    given = (_instants(problem, terms), penalty, size, worth)
    _, price = jax.lax.scan(go_back, _nothing_ahead(problem), given, reverse=True)
    return 1 - _of_inputs(price, problem.system.num_outputs)


class _Terms(eqx.Module):
    """The sums of a problem at given lambda."""

    penalty: Float[Array, " step"]
    size: Float[Array, " step"]
    Hee: Float[Array, "instant state state"]
    Hex: Float[Array, "instant state exogenous"]


def _assemble(problem: Problem, share: Array, young: Young) -> _Terms:
    system, chi, effects = problem.system, problem.chi, problem.effects
    count, p = len(system.F), system.num_outputs

    def gather(values: Array) -> Array:
        """By instant: place l of a window is l instants before the step's last."""
        weighted = _to_instants(values / share.reshape(-1, *(1,) * (values.ndim - 1)), count)
        pads = [(0, 0)] * (values.ndim - 2)
        return sum(
            (jnp.pad(weighted[:, place], [(0, place), *pads])[place:] for place in range(1, values.shape[1])),
            start=weighted[:, 0],
        )

    outer = gather(effects.outer)
    with_products = gather(effects.outer[:, :-1])
    exact, by_young = gather(effects.exact), gather(effects.young)
    both = chi.square * _after(outer) + chi.stein * outer
    by_score = young.score * chi.product * _after(with_products)
    N = system.N
    Hxe = N.mT @ both @ N + exact + by_young
    lags = gather(effects.lags) - _to_instants(problem.pull, count)
    factor = 1 + 1 / young.products + chi.product / young.score
    return _Terms(
        penalty=factor * _of_inputs(gather(effects.sup), p),
        size=_of_inputs(gather(effects.size), p),
        Hee=Hxe + N.mT @ by_score @ N + young.products * by_young,
        Hex=jnp.concatenate([Hxe.mT, lags.mT], axis=2),
    )


class _Instant(eqx.Module):
    """What the recursion meets at an instant."""

    F: Array
    G: Array
    E: Array
    Hee: Array
    Hex: Array
    covariance: Array
    has_input: Array


class _Ahead(eqx.Module):
    """What is to come: eta'P eta + 2 eta'C x."""

    P: Array
    C: Array


class _Seen(eqx.Module):
    """The same before a deviation d is added: d'(curvature)d + 2 d'(by_eta eta + by_x x) + .."""

    curvature: Array
    by_eta: Array
    by_x: Array
    P: Array
    C: Array

    def after(self, Lambda: Array, instant: _Instant) -> _Ahead:
        """With the best deviation, and what the instant itself adds; chi_t and x_t are averaged out."""
        size = len(self.P)
        exogenous = [slice(0, size), slice(size + 1, -1)]
        best = _solve(Lambda, self.by_eta)
        C = self.C - best.T @ self.by_x
        C = jnp.concatenate([C[:, part] for part in exogenous], axis=1)
        return _Ahead(self.P - best.T @ self.by_eta - instant.Hee, C - instant.Hex)


def _look_ahead(ahead: _Ahead, instant: _Instant) -> _Seen:
    F, G, E = instant.F, instant.G, instant.E
    size = len(F)
    by_zeta, by_chi = ahead.C[:, :size], ahead.C[:, size:]
    # In terms of (zeta0_t, chi_t, .., x_t): the last of the chi's is forgotten.
    C = jnp.concatenate([by_zeta @ F, by_chi, jnp.zeros((size, 1)), by_zeta @ G[:, None]], axis=1)
    PF, E_t = ahead.P @ F, E.T
    return _Seen(E_t @ ahead.P @ E, E_t @ PF, E_t @ C, F.T @ PF, F.T @ C)


def _nothing_ahead(problem: Problem) -> _Ahead:
    lags, size = problem.pull.shape[1:]
    return _Ahead(jnp.zeros((size, size)), jnp.zeros((size, size + lags)))


def _instants(problem: Problem, terms: _Terms) -> _Instant:
    system = problem.system
    count, p = len(system.F), system.num_outputs
    has_input = (jnp.arange(count) + 1) % p == 0
    E = _to_instants(system.E, count)
    return _Instant(system.F, system.G, E, terms.Hee, terms.Hex, problem.covariance, has_input)


def _solve(Lambda: Array, gain: Array) -> Array:
    return jax.vmap(lambda column: solve_unrolled(Lambda, column)[0], in_axes=1, out_axes=1)(gain)


def _smallest(Lambda: Array) -> Array:
    """Eigenvalue; of one number without a call of LAPACK."""
    return Lambda[0, 0] if len(Lambda) == 1 else jnp.linalg.eigvalsh(Lambda)[0]


def _after(values: Array) -> Array:
    """Sums over later instants."""
    return jnp.cumsum(values[::-1], axis=0)[::-1] - values


def _to_instants(values: Array, count: int) -> Array:
    """Of steps, at the last instants of them."""
    pads = [(0, 0)] * (values.ndim - 1)
    return jnp.pad(values[:, None], [(0, 0), (count // len(values) - 1, 0), *pads]).reshape(
        count, *values.shape[1:]
    )


def _of_inputs(values: Array, num_outputs: int) -> Array:
    """Of instants, the last ones of steps."""
    return values[num_outputs - 1 :: num_outputs]
