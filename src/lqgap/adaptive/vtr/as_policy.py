"""An adaptive algorithm as a policy, for a `Controller` or an evaluation."""

from typing import TYPE_CHECKING, Any

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from lqgap.adaptive.vtr.state import VTRMemory
from lqgap.policies import AbstractPolicy

if TYPE_CHECKING:
    from lqgap.adaptive.vtr.algorithm import LQGVTR


class AdaptivePolicy(AbstractPolicy):
    """An adaptive algorithm as a policy: the same inputs, without the account of them."""

    algorithm: "LQGVTR"

    @property
    def num_inputs(self) -> int:
        """Length of u."""
        return self.algorithm.systems.num_inputs

    @property
    def num_outputs(self) -> int:
        """Length of y."""
        return self.algorithm.systems.num_outputs

    @property
    def horizon(self) -> int:
        """The last step it is made for."""
        return self.algorithm.horizon

    def init(self, key: PRNGKeyArray) -> VTRMemory:
        """Before the first observation."""
        return self.algorithm.init(key)

    def step(
        self, memory: VTRMemory, y: Float[Array, " output"], u_last: Float[Array, " input"]
    ) -> tuple[VTRMemory, Float[Array, " input"]]:
        """Observe, maybe switch, act."""
        memory, u, _ = self.algorithm.step(memory, y, u_last)
        return memory, u

    def trainable(self) -> Any:
        """Nothing: it learns by itself."""
        return jax.tree.map(lambda _: False, self)
