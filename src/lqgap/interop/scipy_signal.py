"""Plants and linear policies from and to `scipy.signal.dlti`."""

from typing import Any

import numpy as np
import scipy.signal

from lqgap.arguments import FloatLike, MatrixLike
from lqgap.errors import InvalidSystemError
from lqgap.interop.state_space import (
    StateSpace,
    Weights,
    make_plant,
    make_policy,
    read_matrices,
    read_sampling_time,
)
from lqgap.policies import LinearDynamic
from lqgap.systems import LQG


def from_dlti(
    system: Any,
    *,
    Q: MatrixLike | None = None,
    R: MatrixLike | None = None,
    W: MatrixLike | None = None,
    V: MatrixLike | None = None,
    S0: MatrixLike | None = None,
) -> tuple[LQG, float]:
    """The plant of a `scipy.signal.dlti` of any form, and its sampling time.

    Costs and covariances are as in `LQG`: what is left out is the identity.
    """
    matrices, sampling_time = _read(system)
    return make_plant(matrices, Weights(Q, R, W, V, S0)), sampling_time


def policy_from_dlti(system: Any) -> tuple[LinearDynamic, float]:
    """The policy of a controller from observations to inputs, and its sampling time."""
    matrices, sampling_time = _read(system)
    return make_policy(matrices), sampling_time


def to_dlti(item: Any, *, sampling_time: FloatLike) -> Any:
    """A plant (from u to y) or a time-invariant linear policy (from y to u) as a `scipy.signal.dlti`."""
    matrices = read_matrices(item)
    sampling_time = read_sampling_time(sampling_time)
    return scipy.signal.dlti(matrices.A, matrices.B, matrices.C, matrices.D, dt=sampling_time)


def _read(system: Any) -> tuple[StateSpace, float]:
    if isinstance(system, scipy.signal.lti):
        raise InvalidSystemError(
            "the system is in continuous time (scipy.signal.lti): sample it first, "
            "by system.to_discrete(0.1) or lqgap.systems.zero_order_hold(A, B, dt=0.1)"
        )
    if not isinstance(system, scipy.signal.dlti):
        raise InvalidSystemError(f"the system is a {type(system).__name__}, expected a scipy.signal.dlti")
    if system.dt is None or system.dt is True:
        raise InvalidSystemError(
            f"the system has no sampling time (dt is {system.dt}): say which it is, "
            f"scipy.signal.dlti(A, B, C, D, dt=0.1) for a step of 0.1 s"
        )
    form: Any = system
    try:
        matrices = form.to_ss()
    except ValueError as error:
        raise InvalidSystemError(f"SciPy finds no state-space form: {error}") from None
    parts = (np.asarray(getattr(matrices, name)) for name in "ABCD")
    return StateSpace(*parts), read_sampling_time(system.dt)
