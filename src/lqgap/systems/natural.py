"""Coordinates of the state that the problem itself gives: results in them do not depend on its units.

A functional f of the state is as large as (f X f')^1/2, where

    X = d^2 (A - BK) X (A - BK)' + W + S0

is the covariance of the state under its own optimal input, from the start on, discounted by
d = 0.99 / max(1, rho(A)) so that every plant has one. Of the state, outputs show the functionals C, CA, ..
alone; made orthonormal in this metric, one after the other (block Arnoldi), they are the rows of T:

    x -> T x ,      T X T' = I ,      C T^-1 = [ lower triangular, 0 ] .

A plant that is given in other coordinates, or with inputs and outputs in other units, has the same natural
state. What no output shows, and what is always zero, comes last, in any coordinates. Where all plants of a
class must share their coordinates, X is the mean of theirs and C, A those of the first.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.arguments import is_concrete
from lqgap.batches import map_in_chunks, take
from lqgap.linalg.lyapunov import lyapunov_sum
from lqgap.linalg.psd import symmetrize
from lqgap.linalg.riccati import solve_riccati
from lqgap.linalg.stability import spectral_radius
from lqgap.systems.lqg import LQG
from lqgap.systems.optimum import solve_control
from lqgap.systems.transform import change_coordinates

DISCOUNT = 0.99
MARGIN = 0.005  # rho(A) above one that needs no further discount: a double pole at one is known to 1e-8 only
DEPENDENT = 1e-8  # a functional of which less than this part is new adds nothing


def naturalize(systems: LQG) -> LQG:
    """Every plant of a batch in its own natural coordinates; to inputs and outputs it is the same."""
    if not is_concrete(systems):
        return jax.vmap(in_natural_coordinates)(systems)
    # In three programs, since that of the Riccati equation is long, and shared.
    systems, slower = map_in_chunks(_begin, systems)
    return map_in_chunks(_finish, (systems, slower, solve_control(slower).K))


def in_natural_coordinates(plant: LQG) -> LQG:
    """The plant in its natural coordinates."""
    plant = _in_better_coordinates(plant)
    return change_coordinates(plant, orthonormal_functionals(plant, typical_covariance(plant)))


def common_coordinates(systems: LQG) -> Float[Array, "state state"]:
    """T of a class whose values are known, the same for all of its plants."""
    T, systems, slower = _begin_class(systems)
    return _finish_class(T, systems, slower, solve_control(slower).K)


def typical_covariance(plant: LQG) -> Float[Array, "state state"]:
    """X: how large states are under their own optimal input."""
    slower = _discount(plant)
    K = solve_riccati(slower.A, slower.B, Q=plant.state_weight, R=plant.R, N=plant.N).K
    return _covariance(slower, K)


def orthonormal_functionals(plant: LQG, X: Float[Array, "state state"]) -> Float[Array, "state state"]:
    """T: the functionals C, CA, CA^2, .. made orthonormal in the metric X, and what completes them."""
    n, p = plant.num_states, plant.num_outputs

    def add(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        basis, count = carry
        # Those before times A, not powers of A: they stay apart also where sampling is fast.
        known = jnp.concatenate([plant.C, basis @ plant.A])[number]
        candidate = known / jnp.maximum(_size(known, X), jnp.finfo(X.dtype).tiny)
        for _ in range(2):  # what the first leaves of rounding, the second takes away
            candidate = candidate - (basis @ X @ candidate) @ basis
        new = _size(candidate, X)
        is_new = (new > DEPENDENT) & (count < n)
        row = jnp.where(is_new, candidate / jnp.where(is_new, new, 1), 0)
        return basis.at[jnp.minimum(count, n - 1)].add(row), count + is_new

    basis, count = jax.lax.fori_loop(0, p + n, add, (jnp.zeros_like(plant.A), jnp.asarray(0)))
    complement = jnp.linalg.qr(basis.T)[0].T
    return jnp.where(jnp.arange(n)[:, None] < count, basis, complement)


def _in_better_coordinates(plant: LQG) -> LQG:
    """In bad ones rounding would spoil X: it is found in these, which need no equation solved."""
    return change_coordinates(plant, orthonormal_functionals(plant, _short_covariance(plant)))


def _discount(plant: LQG) -> LQG:
    discount = DISCOUNT / jnp.maximum(1.0, spectral_radius(plant.A) - MARGIN)
    return eqx.tree_at(lambda p: (p.A, p.B), plant, (discount * plant.A, discount * plant.B))


def _covariance(slower: LQG, K: Array) -> Array:
    return symmetrize(lyapunov_sum(slower.A - slower.B @ K, slower.W + slower.S0))


def _short_covariance(plant: LQG) -> Array:
    """Of as many steps as there are states, without inputs."""
    X = term = plant.W + plant.S0
    for _ in range(plant.num_states - 1):
        term = plant.A @ term @ plant.A.T
        X = X + term
    return symmetrize(X)


def _size(functional: Array, X: Array) -> Array:
    return jnp.sqrt(jnp.maximum(functional @ X @ functional, 0))


@jax.jit
@jax.vmap
def _begin(plant: LQG) -> tuple[LQG, LQG]:
    plant = _in_better_coordinates(plant)
    return plant, _discount(plant)


@jax.jit
@jax.vmap
def _finish(given: tuple[LQG, LQG, Array]) -> LQG:
    plant, slower, K = given
    return change_coordinates(plant, orthonormal_functionals(plant, _covariance(slower, K)))


@jax.jit
def _begin_class(systems: LQG) -> tuple[Array, LQG, LQG]:
    T = orthonormal_functionals(take(systems, 0), jnp.mean(jax.vmap(_short_covariance)(systems), axis=0))
    systems = jax.vmap(change_coordinates, in_axes=(0, None))(systems, T)
    return T, systems, jax.vmap(_discount)(systems)


@jax.jit
def _finish_class(T: Array, systems: LQG, slower: LQG, K: Array) -> Array:
    X = jnp.mean(jax.vmap(_covariance)(slower, K), axis=0)
    return orthonormal_functionals(take(systems, 0), X) @ T
