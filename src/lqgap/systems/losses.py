"""The exact filter where observations, or components of them, were lost, from gains planned without losses.

Gains L and covariances S = C Sigma C' + V are planned for a record without losses, Sigma the covariance of
the prediction. Losses make it Sigma + D, and with it

    S' = S + C D C' ,     L' = (Sigma + D) C' S'^-1 = L + (I - LC) D C' S'^-1 .

With s the components seen and the others filled as in `innovation`, e = T e_s, the correction is L' T e_s. A
filter with any gain K in place of L knows less by (K - L) S (K - L)', so that

    D_+ = A [ (I - KC) D (I - KC)' + (K - L) S (K - L)' ] A' ,   K = L' T .

All of it takes no more than the planned matrices. D is positive semidefinite, and zero to the bit as long as
nothing is lost.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class AbstractLosses(eqx.Module):
    """What a filter remembers of losses."""

    @abc.abstractmethod
    def gains(
        self,
        C: Float[Array, "output state"],
        L: Float[Array, "state output"],
        S: Float[Array, "output output"],
    ) -> tuple[Float[Array, "state output"], Float[Array, "output output"]]:
        """L' and S' in place of the planned L and S."""

    @abc.abstractmethod
    def after(
        self,
        A: Float[Array, "state state"],
        C: Float[Array, "output state"],
        L: Float[Array, "state output"],
        S: Float[Array, "output output"],
        seen: Bool[Array, " output"],
    ) -> "AbstractLosses":
        """One step on, after an observation of which these components were seen."""


class Losses(AbstractLosses):
    """What losses have added to the covariance of the prediction."""

    D: Float[Array, "state state"]

    def gains(self, C: Array, L: Array, S: Array) -> tuple[Array, Array]:
        """L' and S'."""
        S_now = S + C @ self.D @ C.T
        inverse = -_sweep(S_now, jnp.full(len(S), True))
        return L + (self.D - L @ C @ self.D) @ C.T @ inverse, S_now

    def after(self, A: Array, C: Array, L: Array, S: Array, seen: Array) -> "Losses":
        """D_+."""
        L_now, S_now = self.gains(C, L, S)
        expected = jnp.where(seen[:, None], jnp.eye(len(S), dtype=S.dtype), _sweep(S_now, seen))
        K = L_now @ jnp.where(seen[None, :], expected, 0)
        keep = jnp.eye(len(A), dtype=A.dtype) - K @ C
        return Losses(A @ (keep @ self.D @ keep.T + (K - L) @ S @ (K - L).T) @ A.T)


class NoLosses(AbstractLosses):
    """For rollouts, in which nothing is lost: gains are those planned."""

    def gains(self, C: Array, L: Array, S: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """As planned."""
        return L, S

    def after(self, A: Array, C: Array, L: Array, S: Array, seen: Array) -> "NoLosses":  # noqa: ARG002
        """The same."""
        return self


def without_losses(memory: Any) -> Any:
    """The memory of a policy, for a run in which nothing is lost: steps then take a fraction of the time."""
    is_losses = lambda part: isinstance(part, Losses)  # noqa: E731
    return jax.tree.map(lambda part: NoLosses() if is_losses(part) else part, memory, is_leaf=is_losses)


def _sweep(S: Array, chosen: Array) -> Array:
    """The matrix with rows and columns s swept: -S_ss^-1, and S_rs S_ss^-1 in the other rows.

    In a batch every operation is elementwise, many times faster than a call of LAPACK for each matrix.
    """
    for k in range(len(S)):
        row = S[k] / S[k, k]
        swept = (S - jnp.outer(S[k], row)).at[k].set(row).at[:, k].set(row).at[k, k].set(-1 / S[k, k])
        S = jnp.where(chosen[k], swept, S)
    return S
