"""Disturbance response control: inputs linear in past disturbances, learned on what they would have cost.

A stabiliser inside, u^0 = Cc xi + Dc y (zero where there is none), and a model (A, B, C, F) make a loop with
the state (s, xi), the outputs z = (y, u^0) and the input w = u - u^0. With w as really played,

    x_+ = A x + B w ,            nature's z = z - C x        what would be seen if no w had ever been played
    s_+ = A s + B w + F e ,      e = y - C_y s               innovations
    w_t = sum_{k<r} taps[k] f_{t-k} ,      f = e or nature's y

in matrices of that loop. The loss of a step is that of these taps always: all past inputs are replayed,

    z_t(taps) = nature's z_t + sum_{k<r} v_{t-k} taps[k] ,     v_t = C Xi_t ,   Xi_+ = A Xi + B (x) f
    loss = ||y||_Q^2 + ||u^0 + w||_R^2 = ||r_t||^2 ,     r_t(taps) = r_t(0) + rows_t vec(taps)

so that the gradient 2 rows' r has the cost of outputs in it; with past inputs held as they were played it
would have none, and the taps would go to zero. Updates:

    gradient:   taps -= 2 eta rows' r ,    eta = 1 / (c_t + cbar_t sqrt(t)) , or with 1 + t/50 for sqrt(t)
    Newton:     taps -= inverse_t rows' r ,    inverse_t^-1 = lambda I + sum rows' rows

with c_t = 2 tr(rows' rows) and cbar its running mean. Newton's is recursive least squares: it follows the
regularised leader. Both features contain the optimal controller as r grows, that of e is -G [A (I - BG)]^k F;
on e the sums are conditioned better by orders of magnitude than on nature's y.
"""

from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lqgap.arguments import FloatLike, IntLike, read_count, read_positive
from lqgap.identification.realization import Realization
from lqgap.linalg import sqrt_psd
from lqgap.policies.policy import LinearStep, require_one_of
from lqgap.systems.innovation import fill_lost

Update = Literal["newton", "gradient", "strong gradient"]
Feature = Literal["innovations", "nature"]
NUM_QUIET = 20  # steps whose features set the scale, after the first r
TINY = 1e-300
MAX_MEMORY = 200


class Loop(eqx.Module):
    """A model with a stabiliser inside: its outputs are y and the stabiliser's input."""

    A: Float[Array, "state state"]
    B: Float[Array, "state input"]
    C: Float[Array, "seen state"]
    F: Float[Array, "state output"]
    Dc: Float[Array, "input output"]
    S: Float[Array, "output output"]


class Features(eqx.Module):
    """What a loop makes of the samples: states before the last input, and the last disturbances."""

    s: Float[Array, " state"]
    x: Float[Array, " state"]
    Xi: Float[Array, "state input output"]
    natural: Float[Array, " seen"]
    inner: Float[Array, " input"]  # of the stabiliser
    f: Float[Array, "memory output"]  # newest first
    v: Float[Array, "memory seen input output"]
    is_whole: Bool[Array, ""]  # nothing was lost


class ResponseLaw(eqx.Module):
    """What is learned, and what the scale is taken from."""

    taps: Float[Array, "memory input output"]
    inverse: Float[Array, "parameter parameter"]
    scale: Float[Array, ""]  # 2 tr(rows' rows) on average
    count: Int[Array, ""]  # of steps with features


class Response(eqx.Module):
    """A way of learning taps.

    Args:
        memory: r.
        regularization: lambda, in units of the mean eigenvalue of rows' rows without input.
    """

    Q_root: Float[Array, "output output"]
    R_root: Float[Array, "input input"]
    regularization: Float[Array, ""]
    memory: int = eqx.field(static=True)
    update: Update = eqx.field(static=True)
    feature: Feature = eqx.field(static=True)

    def __init__(
        self,
        Q: Float[Array, "output output"],
        R: Float[Array, "input input"],
        *,
        memory: IntLike,
        update: Update,
        feature: Feature,
        regularization: FloatLike,
    ):
        require_one_of("update", update, get_args(Update))
        require_one_of("feature", feature, get_args(Feature))
        self.Q_root, self.R_root, self.update, self.feature = sqrt_psd(Q), sqrt_psd(R), update, feature
        self.memory = read_count("memory", memory, least=1, most=MAX_MEMORY)
        size = read_positive("regularization", regularization)
        self.regularization = jnp.asarray(size, dtype=jnp.float64)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Of the taps: memory, inputs, outputs."""
        return self.memory, len(self.R_root), len(self.Q_root)

    def at_rest(self, order: int) -> Features:
        """Before any sample, of a loop of this order."""
        r, m, p = self.sizes
        return Features(
            s=jnp.zeros(order),
            x=jnp.zeros(order),
            Xi=jnp.zeros((order, m, p)),
            natural=jnp.zeros(p + m),
            inner=jnp.zeros(m),
            f=jnp.zeros((r, p)),
            v=jnp.zeros((r, p + m, m, p)),
            is_whole=jnp.asarray(False),
        )

    def nothing_learned(self, *, count: int = 0) -> ResponseLaw:
        """No input, after this many steps with features."""
        r, m, p = self.sizes
        size = r * m * p
        return ResponseLaw(
            jnp.zeros((r, m, p)), jnp.zeros((size, size)), jnp.asarray(0.0), jnp.asarray(count)
        )

    def advance(
        self, loop: Loop, seen: Features, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> Features:
        """The features after another observation; lost components of y are taken as expected."""
        p, played = len(y), loop.B @ (u_last - seen.inner)
        s, x = seen.s + played, seen.x + played
        expected = loop.C @ s
        e = fill_lost(y - expected[:p], loop.S).innovation
        inner = expected[p:] + loop.Dc @ e
        natural = jnp.concatenate([expected[:p] + e, inner]) - loop.C @ x
        f = e if self.feature == "innovations" else natural[:p]
        v = jnp.einsum("an,nic->aic", loop.C, seen.Xi)
        return Features(
            s=loop.A @ s + loop.F @ e,
            x=loop.A @ x,
            Xi=jnp.einsum("ab,bic->aic", loop.A, seen.Xi) + loop.B[:, :, None] * f[None, None, :],
            natural=natural,
            inner=inner,
            f=jnp.concatenate([f[None], seen.f[:-1]]),
            v=jnp.concatenate([v[None], seen.v[:-1]]),
            is_whole=~jnp.any(jnp.isnan(y)),
        )

    def surprise(
        self, loop: Loop, seen: Features, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> Float[Array, ""]:
        """e' S^-1 e of another observation."""
        s = seen.s + loop.B @ (u_last - seen.inner)
        return fill_lost(y - loop.C[: len(y)] @ s, loop.S).distance

    def act(self, law: ResponseLaw, seen: Features) -> Float[Array, " input"]:
        """u_t, with the stabiliser's."""
        return seen.inner + jnp.einsum("kic,kc->i", law.taps, seen.f)

    def learn(self, law: ResponseLaw, seen: Features) -> ResponseLaw:
        """One update by the loss of this step; at first no more than the scale is found."""
        rows, r = self.residual(law.taps, seen)
        size, count = 2 * jnp.sum(rows**2), law.count + seen.is_whole
        since = count - self.memory
        is_learning = seen.is_whole & (since > NUM_QUIET)
        weight = jnp.where(seen.is_whole & (since > 0), 1 / jnp.maximum(since, 1), 0.0)
        scale = law.scale + weight * (size - law.scale)
        taps, inverse = self._newton(law, rows, r) if self.update == "newton" else self._descend(law, rows, r)
        identity = jnp.eye(len(inverse))
        start = identity * 2 * len(inverse) / (self.regularization * jnp.maximum(scale, TINY))
        return ResponseLaw(
            taps=jnp.where(is_learning, taps, law.taps),
            inverse=jnp.where(is_learning, inverse, jnp.where(since <= NUM_QUIET, start, law.inverse)),
            scale=scale,
            count=count,
        )

    def residual(
        self, taps: Float[Array, "memory input output"], seen: Features
    ) -> tuple[Float[Array, "residual parameter"], Float[Array, " residual"]]:
        """rows_t and r_t(taps)."""
        _, m, p = self.sizes
        of_y = jnp.einsum("ab,kbic->akic", self.Q_root, seen.v[:, :p])
        own = jnp.eye(m)[None, :, :, None] * seen.f[:, None, None, :]
        of_u = jnp.einsum("ab,kbic->akic", self.R_root, seen.v[:, p:] + own)
        rows = jnp.concatenate([of_y, of_u]).reshape(p + m, -1)
        without = jnp.concatenate([self.Q_root @ seen.natural[:p], self.R_root @ seen.natural[p:]])
        return rows, without + rows @ taps.ravel()

    def _newton(self, law: ResponseLaw, rows: Array, r: Array) -> tuple[Array, Array]:
        """Recursive least squares."""
        spread = rows @ law.inverse
        gain = jnp.linalg.solve(jnp.eye(len(rows)) + spread @ rows.T, spread).T
        inverse = law.inverse - gain @ spread
        return law.taps - (gain @ r).reshape(law.taps.shape), 0.5 * (inverse + inverse.T)

    def _descend(self, law: ResponseLaw, rows: Array, r: Array) -> tuple[Array, Array]:
        """A gradient step, whose length is capped as in normalised least mean squares."""
        since = jnp.maximum(law.count - self.memory - NUM_QUIET + 1, 1)
        growth = jnp.sqrt(since) if self.update == "gradient" else 1 + since / 50
        eta = 1 / jnp.maximum(2 * jnp.sum(rows**2) + law.scale * growth, TINY)
        return law.taps - 2 * eta * (r @ rows).reshape(law.taps.shape), law.inverse


def keep_finite(new: ResponseLaw, old: ResponseLaw) -> ResponseLaw:
    """The new law, unless something in it is not finite."""
    is_finite = jnp.all(jnp.isfinite(new.taps)) & jnp.all(jnp.isfinite(new.inverse))
    return jax.tree.map(lambda one, other: jnp.where(is_finite, one, other), new, old)


def close_inside(model: Realization, inside: LinearStep) -> Loop:
    """A model with a linear controller inside."""
    A, B, C, F = model.A, model.B, model.C, model.F
    order = len(inside.Ac)
    return Loop(
        A=jnp.block([[A + B @ inside.Dc @ C, B @ inside.Cc], [inside.Bc @ C, inside.Ac]]),
        B=jnp.concatenate([B, jnp.zeros((order, B.shape[1]))]),
        C=jnp.block([[C, jnp.zeros((len(C), order))], [inside.Dc @ C, inside.Cc]]),
        F=jnp.concatenate([F + B @ inside.Dc, inside.Bc]),
        Dc=inside.Dc,
        S=model.S,
    )
