"""The policy that takes over when an adaptive algorithm gives up.

For plants that are stable by themselves it is zero input. For others that would be unsafe: there it is a
linear controller that stabilises all members.
"""

import jax.numpy as jnp
import numpy as np

from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import require_fit
from lqgap.policies import AbstractPolicy, LinearDynamic
from lqgap.policies.policy import require_policy
from lqgap.simulators import Finite
from lqgap.training.stabilizer import find_stabilizer

STABLE = 0.999  # spectral radius of a member that may be left alone


def choose_fallback(fallback: AbstractPolicy | None, members: Finite) -> AbstractPolicy:
    """The given policy, or the least that is safe on all members."""
    systems = members.systems
    if fallback is not None:
        require_fit(require_policy("fallback", fallback), systems)
        return fallback
    if np.max(np.abs(np.linalg.eigvals(np.asarray(systems.A)))) < STABLE:
        p, m = systems.num_outputs, systems.num_inputs
        return LinearDynamic(jnp.zeros((1, 1)), jnp.zeros((1, p)), jnp.zeros((m, 1)), jnp.zeros((m, p)))
    try:
        return find_stabilizer(members)
    except NotConvergedError as error:
        raise InvalidArgumentError(
            f"fallback is missing, and none was found: {error}. Give one in Python, such as "
            f"fallback=ModelBank(members.systems); a study has no key for it: leave out vtr"
        ) from None
