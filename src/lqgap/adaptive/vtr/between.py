"""A plant between the members: one model more, whose parameters are estimated.

From the likeliest member c the parameters move by delta, in units of the distance between members,

    A(delta) = A_c + sum_k delta_k dA_c/dk ,  and so B, C, L and K of the optimum,

so that its filter, and the derivative of it, need no equation to be solved on the way. With its innovation e
and D = de/d delta along the whole past, by recursive prediction errors (Ljung 1999, section 11.4),

    G <- G + D' S_c^-1 D ,    g <- g + D' S_c^-1 (D delta - e) ,    delta = (G_0 + G)^-1 g .

Until delta is known to SHARP, the members' mean is acted on, and then this model. Where another member is
likelier than c by REFUTED nats the model moves on from there, and takes what it knows along if that is near.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lqgap.adaptive.vtr.evidence import Evidence, MemberFilters
from lqgap.batches import take
from lqgap.linalg.psd import solve_unrolled
from lqgap.simulators import AbstractFamily, Finite

REFUTED = 3.0  # nats by which another member is likelier
PRECISION = 1.0  # G_0, whose standard deviation is the distance between members
SHARP = 0.45  # the standard deviation of delta from which on the model is acted on
FARTHEST, FAR = 1.0, 2.5  # that delta may be, and a member to which nothing is taken along
STEP = 0.1  # of the differences that derivatives are taken by, in the same units


class Model(eqx.Module):
    """A filter and its controller; of members, or their derivatives by each parameter."""

    A: Array
    B: Array
    C: Array
    L: Array
    K: Array

    @staticmethod
    def of(members: Finite) -> "Model":
        """The models of the members."""
        systems, optima = members.systems, members.optima()
        return Model(systems.A, systems.B, systems.C, optima.L, optima.K)

    def moved(self, slopes: "Model", delta: Float[Array, " parameter"]) -> "Model":
        """The model of other parameters."""
        return jax.tree.map(lambda own, slope: own + jnp.tensordot(delta, slope, axes=1), self, slopes)


class Estimate(eqx.Module):
    """The model between the members, as far as it is known."""

    anchor: Int[Array, ""]
    delta: Float[Array, " parameter"]
    precision: Float[Array, "parameter parameter"]  # G
    moment: Float[Array, " parameter"]  # g
    xhat: Float[Array, " state"]
    slopes: Float[Array, "parameter state"]  # of xhat by delta

    @property
    def is_sharp(self) -> Bool[Array, ""]:
        """True once the parameters are known well enough to act by."""
        units = jnp.eye(len(self.moment))
        variances = jax.vmap(lambda unit: unit @ solve_unrolled(self.information, unit)[0])(units)
        return jnp.all(variances < SHARP**2)

    @property
    def information(self) -> Float[Array, "parameter parameter"]:
        """G_0 + G."""
        return self.precision + PRECISION * jnp.eye(len(self.moment))


class Between(eqx.Module):
    """Derivatives of the members by their parameters, and the estimate of a plant between them."""

    members: Model
    slopes: Model
    position: Float[Array, "member parameter"]  # in units of delta
    units: Float[Array, "parameter all"]  # of delta
    ends: Float[Array, "end parameter"]  # of the ranges, likewise
    kind: Int[Array, " member"]  # members of one kind have the same choices

    def __init__(self, family: AbstractFamily, members: Finite, T: Array):
        theta = np.asarray(members.parameters)
        low, high = (np.array([getattr(each, end) for each in family.parameters]) for end in ("low", "high"))
        moves = np.array([not each.choices and each.low < each.high for each in family.parameters])
        self.kind = jnp.asarray(np.unique(theta[:, ~moves], axis=0, return_inverse=True)[1].ravel())
        per_kind = len(members) / (1 + int(jnp.max(self.kind)))
        unit = (high - low) / max(per_kind ** (1 / moves.sum()) - 1, 1)
        slopes = []
        for k in np.flatnonzero(moves):
            ends = np.clip(theta[:, k] + STEP * unit[k] * np.array([[-1], [1]]), low[k], high[k])
            rows = [np.where(np.arange(len(low)) == k, end[:, None], theta) for end in ends]
            before, after = (Model.of(family.members(row).in_coordinates(T)) for row in rows)
            per_unit = (unit[k] / (ends[1] - ends[0]))[:, None, None]
            slopes.append(jax.tree.map(lambda a, b, by=per_unit: (b - a) * by, before, after))
        self.members = Model.of(members.in_coordinates(T))
        self.slopes = jax.tree.map(lambda *each: jnp.stack(each, axis=1), *slopes)
        self.position = jnp.asarray((theta / np.where(moves, unit, 1))[:, moves])
        self.units = jnp.asarray(np.diag(unit)[moves])
        self.ends = jnp.asarray(np.stack([low, high])[:, moves] / unit[moves])

    @staticmethod
    def fits(family: AbstractFamily | Finite | None) -> bool:
        """True if some parameter of the family is an interval, so that plants lie between members."""
        parameters = family.parameters if isinstance(family, AbstractFamily) else ()
        return any(not each.choices and each.low < each.high for each in parameters)

    def begin(self) -> Estimate:
        """The estimate before the first observation: that of a member."""
        n, d, zeros = self.members.A.shape[-1], self.position.shape[1], jnp.zeros
        return Estimate(jnp.asarray(0), zeros(d), zeros((d, d)), zeros(d), zeros(n), zeros((d, n)))

    def observe(
        self,
        estimate: Estimate,
        evidence: Evidence,
        filters: MemberFilters,
        y: Float[Array, " output"],
        u_last: Float[Array, " input"],
    ) -> Estimate:
        """The estimate after an observation, which the evidence already has."""
        member, slopes = take((self.members, self.slopes), estimate.anchor)
        L, law = take(filters.at(evidence.time - 1), estimate.anchor)
        member = replace(member, L=L)

        def filter_fn(delta: Array, xhat: Array) -> tuple[Array, Array]:
            model = member.moved(slopes, delta)
            predicted = model.A @ xhat + model.B @ u_last
            e = jnp.where(jnp.isnan(y), 0.0, y - model.C @ predicted)
            return predicted + model.L @ e, e

        def slope_fn(direction: Array, slope: Array) -> tuple[Array, Array]:
            return jax.jvp(filter_fn, (estimate.delta, estimate.xhat), (direction, slope))[1]

        xhat, e = filter_fn(estimate.delta, estimate.xhat)
        slopes_of_xhat, D = jax.vmap(slope_fn)(jnp.eye(len(estimate.delta)), estimate.slopes)
        weighed = D @ law.precision
        known = replace(
            estimate,
            precision=estimate.precision + weighed @ D.T,
            moment=estimate.moment + weighed @ (D.T @ estimate.delta - e),
            xhat=xhat,
            slopes=slopes_of_xhat,
        )
        moved = self._move_on(known, evidence)
        low, high = self.ends - self.position[moved.anchor][None]
        bounds = jnp.maximum(low, -FARTHEST), jnp.minimum(high, FARTHEST)
        return replace(moved, delta=jnp.clip(solve_unrolled(moved.information, moved.moment)[0], *bounds))

    def _move_on(self, estimate: Estimate, evidence: Evidence) -> Estimate:
        """The estimate relative to the likeliest member, if the one so far is refuted."""
        best, anchor = jnp.argmax(evidence.log_likelihood), estimate.anchor
        is_refuted = evidence.log_likelihood[best] > evidence.log_likelihood[anchor] + REFUTED
        apart = self.position[anchor] - self.position[best]
        is_far = jnp.any(jnp.abs(apart) > FAR) | (self.kind[anchor] != self.kind[best])
        along = replace(estimate, anchor=best, moment=estimate.moment + estimate.precision @ apart)
        fresh = replace(self.begin(), anchor=best, xhat=evidence.xhat[best])
        moved = jax.tree.map(lambda new, old: jnp.where(is_far, new, old), fresh, along)
        return jax.tree.map(lambda new, old: jnp.where(is_refuted, new, old), moved, estimate)

    def theta(self, estimate: Estimate, parameters: Float[Array, "member all"]) -> Float[Array, " all"]:
        """The parameters of the model."""
        return parameters[estimate.anchor] + estimate.delta @ self.units

    def input(self, estimate: Estimate) -> Float[Array, " input"]:
        """The input of the model's own controller."""
        member, slopes = take((self.members, self.slopes), estimate.anchor)
        return -member.moved(slopes, estimate.delta).K @ estimate.xhat
