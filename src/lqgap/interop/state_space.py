"""State-space matrices, the language of other tools: one step a sampling time.

    s_+ = A s + B v ,   out = C s + D v

A plant goes from inputs to observations and has D = 0; a policy goes from observations to inputs, unchanged:
u = Cc xi + Dc y without a minus sign, so that a loop is closed with positive feedback.
"""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from lqgap.arguments import MatrixLike, read_positive
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.policies import AbstractLinearPolicy, LinearDynamic
from lqgap.systems import LQG
from lqgap.systems.lqg import require_single


class StateSpace(eqx.Module):
    """The matrices of one linear system in discrete time."""

    A: Float[np.ndarray, "order order"]
    B: Float[np.ndarray, "order in_size"]
    C: Float[np.ndarray, "out_size order"]
    D: Float[np.ndarray, "out_size in_size"]


def read_matrices(item: Any) -> StateSpace:
    """The matrices of a plant, or of a linear policy that does not change with time."""
    if isinstance(item, LQG):
        require_single(item)
        feedthrough = np.zeros((item.num_outputs, item.num_inputs))
        return StateSpace(np.asarray(item.A), np.asarray(item.B), np.asarray(item.C), feedthrough)
    if not isinstance(item, AbstractLinearPolicy):
        raise InvalidArgumentError(
            f"the argument is a {type(item).__name__}, expected an LQG or a linear policy: only these have "
            f"state-space matrices"
        )
    if item.horizon is not None:
        raise InvalidArgumentError(
            f"the {type(item).__name__} changes with time (it is made for steps 0..{item.horizon}) and is no "
            f"one state-space model: use a policy without a horizon"
        )
    if item.num_transient:
        raise InvalidArgumentError(
            f"the {type(item).__name__} changes until step {item.num_transient}, when its filter is steady, "
            f"and is no one state-space model: lqgap.policies.StationaryLQG(plant, filters='steady') is one"
        )
    step = item.at(0)
    if step.Dc.ndim != 2:
        raise InvalidArgumentError(f"the {type(item).__name__} is a batch of policies, expected one")
    return StateSpace(*(np.asarray(matrix) for matrix in (step.Ac, step.Bc, step.Cc, step.Dc)))


def make_plant(system: StateSpace, **weights: MatrixLike | None) -> LQG:
    """The plant with these dynamics, and costs and covariances by name; raises if the input acts at once."""
    require_no_feedthrough(system.D)
    if len(system.A) == 0:
        raise InvalidSystemError("the system has no states, so that it is no plant: expected at least one")
    return LQG(system.A, system.B, system.C, **weights)


def require_no_feedthrough(D: Any) -> None:
    """Raise if the input acts on the output at once."""
    if np.any(D):
        raise InvalidSystemError(
            f"the system has a direct feedthrough, D = {np.asarray(D).tolist()}, and a plant of lqgap has "
            f"none (y = C x + z): the input is chosen after the output is seen. If it takes effect one step "
            f"later, put a delay of one step (1/z) before the system"
        )


def make_policy(system: StateSpace) -> LinearDynamic:
    """The linear policy with these dynamics."""
    if len(system.A) == 0:
        return LinearDynamic(Dc=system.D)
    return LinearDynamic(system.A, system.B, system.C, system.D)


def read_sampling_time(sampling_time: Any) -> float:
    """A positive number of seconds."""
    return float(read_positive("sampling_time", sampling_time))
