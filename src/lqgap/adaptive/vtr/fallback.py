"""The policy that takes over when LQG-VTR gives up, if none of its own controllers is safe on all members."""

import jax.numpy as jnp
import numpy as np

from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.evaluation.arguments import require_fit
from lqgap.policies import AbstractPolicy, LinearDynamic
from lqgap.policies.policy import require_policy
from lqgap.simulators import Finite
from lqgap.training.stabilizer import find_stabilizer

STABLE = 0.999  # spectral radius of a member that may be left alone


def zero_or_stabilizer(members: Finite) -> AbstractPolicy:
    """No input at all, as in the paper, if all members are stable; else one controller that makes them so."""
    systems = members.systems
    if np.max(np.abs(np.linalg.eigvals(np.asarray(systems.A)))) < STABLE:
        p, m = systems.num_outputs, systems.num_inputs
        return LinearDynamic(jnp.zeros((1, 1)), jnp.zeros((1, p)), jnp.zeros((m, 1)), jnp.zeros((m, p)))
    found = stabilizer_or_none(members)
    if found is None:
        raise InvalidArgumentError(
            "fallback is missing, and no linear controller was found that stabilises all members. Give one "
            "in Python, such as fallback=ModelBank(members.systems), or another alarm than 'ball'"
        )
    return found


def stabilizer_or_none(members: Finite) -> AbstractPolicy | None:
    """One linear controller that stabilises all members, if it is found."""
    try:
        return find_stabilizer(members)
    except NotConvergedError:
        return None


def require_fallback(fallback: AbstractPolicy, members: Finite) -> AbstractPolicy:
    """The given policy, if it fits the members."""
    require_fit(require_policy("fallback", fallback), members.systems)
    return fallback
