"""Plants at points of a box, with all that the bound needs of each.

A box may hold parameters fixed: a family contains its slices, and the bound of a slice holds for the family.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lqgap.simulators.building import Branch
from lqgap.systems import LQG
from lqgap.theory.lower_bounds.van_trees.sensitivity import Sensitivity, sensitivity_of
from lqgap.theory.lower_bounds.van_trees.window import Window, exogenous_of, windows_of


class Box(eqx.Module):
    """Intervals of some parameters of a branch, the others held."""

    branch: Branch
    low: Float[Array, " free"]
    high: Float[Array, " free"]
    held: Float[Array, " continuous"]
    free: Int[Array, " free"]

    def plant(self, z: Float[Array, " free"]) -> LQG:
        """The plant at coordinates in [-1, 1]."""
        values = self.low + (self.high - self.low) * (z + 1) / 2
        return self.branch.plant(self.held.at[self.free].set(values))

    def slice(self, kept: Sequence[int]) -> "Box":
        """Some of the free parameters, the others held at their middles."""
        middle = self.held.at[self.free].set((self.low + self.high) / 2)
        rows = jnp.asarray(kept)
        return Box(self.branch, self.low[rows], self.high[rows], middle, self.free[rows])

    @property
    def names(self) -> list[str]:
        """Of the free parameters."""
        return [self.branch.names[self.branch.columns[int(column)]] for column in self.free]


class Nodes(eqx.Module):
    """Points z of a box with weights; everything has a leading axis of nodes.

    `turn` takes coefficients, which are in units of the middle plant's input cost, to those of each plant.
    """

    z: Float[Array, "node parameter"]
    weight: Float[Array, " node"]
    system: Sensitivity
    window: Window
    turn: Float[Array, "node step input input"]

    def __len__(self) -> int:
        return len(self.z)


def box_of(branch: Branch) -> Box:
    """The whole ranges of a branch; a parameter whose range is a point is held."""
    low, high = branch.ends
    free = np.flatnonzero(high > low)
    low, high = jnp.asarray(low), jnp.asarray(high)
    return Box(branch, low[free], high[free], low, jnp.asarray(free))


@eqx.filter_jit
def make_nodes(
    box: Box,
    z: Float[Array, "node parameter"],
    weight: Float[Array, " node"],
    *,
    horizon: int,
    ends: bool,
    length: int,
) -> Nodes:
    """The plants at points, and their windows."""

    def prepare(z: Array) -> tuple[Sensitivity, Window]:
        system = sensitivity_of(box.plant, z, horizon=horizon, ends=ends)
        return system, windows_of(system, exogenous_of(system), length=length)

    with_middle = jnp.concatenate([z, jnp.zeros_like(z[:1])])  # one batch: compiled once
    prepared = jax.vmap(prepare)(with_middle)
    middle = prepared[0].root[-1]
    system, window = jax.tree.map(lambda leaf: leaf[:-1], prepared)
    return Nodes(z, weight, system, window, jnp.linalg.inv(system.root).mT @ middle.mT)
