"""Model selection at the end of the warm-up, from the record that it left."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lqgap.adaptive.vtr.calibration import VTRConstants
from lqgap.adaptive.vtr.options import VTROptions
from lqgap.identification import select_models
from lqgap.simulators import Finite


class WarmupRecord(eqx.Module):
    """Observations and inputs of the warm-up; of no length where they are not needed."""

    y: Float[Array, "time output"]
    u: Float[Array, "time input"]

    @staticmethod
    def empty(length: int, *, num_outputs: int, num_inputs: int) -> "WarmupRecord":
        """Before the first observation."""
        return WarmupRecord(jnp.zeros((length, num_outputs)), jnp.zeros((length, num_inputs)))

    def push(
        self, time: Int[Array, ""], y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> "WarmupRecord":
        """With y_t and u_{t-1}; what is not of the warm-up is dropped."""
        before = jnp.where(time == 0, len(self.u), time - 1)  # a negative number would count from the end
        return WarmupRecord(self.y.at[time].set(y, mode="drop"), self.u.at[before].set(u_last, mode="drop"))


def select_from(
    record: WarmupRecord, members: Finite, options: VTROptions, constants: VTRConstants
) -> Bool[Array, " member"]:
    """Which members the record leaves; raises RefutedClassError if it leaves none."""
    numbered = Finite(members.systems)
    left = select_models(
        numbered,
        record.y,
        record.u,
        method=options.selection,
        delta=float(constants.delta),
        length=constants.length,
        C_w=options.C_w,
    )
    kept = np.zeros(len(members), dtype=bool)
    kept[np.asarray(left.parameters)[:, 0].astype(int)] = True
    return jnp.asarray(kept)
