"""How predictions and optimal inputs of a plant change with its parameters, the record held fixed.

The outputs of a step are taken one after the other: with S_t = T T' (Cholesky), e_t = T x_t has independent
standard normal components x_{t,j}, each known before the next one. With d_k = d/d theta_k at a fixed record,

    d_k x_{t,j} = -(nu_{t,j}^k + gamma_{t,j}^k x_{t,j}) ,
    nu_{t,j} = [ T^-1 d_k(C xhat) ]_j + sum_{i<j} [T^-1 d_k T]_{ji} x_i ,   gamma_{t,j} = [T^-1 d_k T]_{jj} ,
    d_k log p(x_{t,j}) = nu^k x + gamma^k (x^2 - 1) .

So several outputs are one output at as many instants, of which only the last is followed by an input. The
state zeta = (xhat, d_1 xhat, .., d_q xhat, x_{t,1}, .., x_{t,p-1}) of these instants obeys

    zeta' = F zeta + G x + E d ,     nu = N zeta ,     d_k u* = psi = Y zeta + y x  (last instant of a step)

under P_theta, if inputs are u = u* + root(M)^-1 d: deviations d from the optimal input in units of its cost.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.evaluation.reference import Reference, reference_of
from lqgap.systems import LQG


class Sensitivity(eqx.Module):
    """The linear system of one plant. Instants are steps times outputs; E, Y, y, root of every step."""

    F: Float[Array, "instant state state"]
    G: Float[Array, "instant state"]
    N: Float[Array, "instant parameter state"]
    gamma: Float[Array, "instant parameter"]
    E: Float[Array, "step state input"]
    Y: Float[Array, "step parameter input state"]
    y: Float[Array, "step parameter input"]
    root: Float[Array, "step input input"]  # M = root' root

    @property
    def num_outputs(self) -> int:
        """Instants of a step."""
        return len(self.F) // len(self.E)


def sensitivity_of(
    plant: Callable[[Array], LQG], theta: Float[Array, " parameter"], *, horizon: int, ends: bool
) -> Sensitivity:
    """The system at one value of the parameters."""

    def optimum(theta: Array) -> tuple[Reference, Reference]:
        reference = reference_of(plant(theta), horizon=horizon, ends=ends)
        return reference, reference

    slopes, reference = jax.jacfwd(optimum, has_aux=True)(theta)
    slopes = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, -3) if leaf.ndim > 2 else leaf, slopes)
    fields = jax.vmap(_instants, in_axes=(0, 0, None))(_per_step(reference), _per_step(slopes), len(theta))
    for name in ("F", "G", "N", "gamma"):
        fields[name] = fields[name].reshape(-1, *fields[name].shape[2:])
    return Sensitivity(**fields)


class _Step(eqx.Module):
    """Matrices of a step, or their derivatives (parameters before rows)."""

    A: Any
    B: Any
    C: Any
    K: Any
    M: Any
    L: Any
    T: Any


def _per_step(reference: Any) -> _Step:
    steps = len(reference.K)
    every = {
        name: jnp.broadcast_to(getattr(reference, name), (steps, *getattr(reference, name).shape))
        for name in "ABC"
    }
    return _Step(**every, K=reference.K, M=reference.M, L=reference.L, T=reference.S_root)


def _instants(now: _Step, slope: _Step, num_parameters: int) -> dict[str, Array]:
    """The fields of a `Sensitivity`, of one step."""
    A, B, C, K, L, T = now.A, now.B, now.C, now.K, now.L, now.T
    n, m, p, q = len(A), B.shape[1], len(C), num_parameters
    size = (q + 1) * n
    xhat = jnp.eye(n, size)
    each = jnp.stack([jnp.eye(n, size, k=(k + 1) * n) for k in range(q)])  # d_k xhat
    # As functions of (zeta, e): the filtered estimate, its derivatives and those of the prediction.
    predicted = slope.C @ xhat + C @ each
    filtered, filtered_e = xhat, L
    each_filtered, each_filtered_e = each - L @ predicted, slope.L
    u, u_e = -K @ filtered, -K @ filtered_e
    F = jnp.concatenate([(A @ filtered + B @ u)[None], slope.A @ filtered + A @ each_filtered + slope.B @ u])
    G = jnp.concatenate(
        [(A @ filtered_e + B @ u_e)[None], slope.A @ filtered_e + A @ each_filtered_e + slope.B @ u_e]
    )
    E = jnp.concatenate([B[None], slope.B])
    Y, Y_e = -(slope.K @ filtered + K @ each_filtered), -(slope.K @ filtered_e + K @ each_filtered_e)
    F, G, E = (matrix.reshape(size, -1) for matrix in (F, G @ T, E))
    root = jnp.linalg.cholesky(now.M).T
    scale = jnp.linalg.inv(root)
    # Registers remember x_1 .. x_{p-1} until the last instant.
    whole = size + p - 1
    T_inverse = jax.scipy.linalg.solve_triangular(T, jnp.eye(p), lower=True)
    N, turn = T_inverse @ predicted, T_inverse @ slope.T
    inner = jnp.tril(turn, -1)[..., : p - 1]
    N = jnp.moveaxis(jnp.concatenate([N, inner], axis=-1), 0, 1)
    registers = jnp.arange(size, whole)
    hold = (
        jnp.stack([jnp.eye(whole).at[row].set(0) for row in registers])
        if p > 1
        else jnp.zeros((0, whole, whole))
    )
    last = jnp.zeros((whole, whole)).at[:size].set(jnp.concatenate([F, G[:, : p - 1]], axis=1))
    return dict(
        F=jnp.concatenate([hold, last[None]]),
        G=jnp.concatenate([jnp.eye(whole)[registers], jnp.zeros((1, whole)).at[0, :size].set(G[:, -1])]),
        N=N,
        gamma=jnp.diagonal(turn, axis1=-2, axis2=-1).T,
        E=jnp.zeros((whole, m)).at[:size].set(E @ scale),
        Y=root @ jnp.concatenate([Y, (Y_e @ T)[..., : p - 1]], axis=-1),
        y=(root @ Y_e @ T)[..., -1],
        root=root,
    )
