"""Plants and linear policies from and to python-control.

python-control is an optional dependency (`pip install lqgap[control]`) that takes seconds to load: it is
imported when a function needs it.
"""

from types import ModuleType
from typing import Any

import numpy as np

from lqgap.arguments import FloatLike, MatrixLike
from lqgap.errors import InvalidSystemError, LqgapError
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


def from_control(
    system: Any,
    *,
    Q: MatrixLike | None = None,
    R: MatrixLike | None = None,
    W: MatrixLike | None = None,
    V: MatrixLike | None = None,
    S0: MatrixLike | None = None,
) -> tuple[LQG, float]:
    """The plant of a discrete-time StateSpace or TransferFunction, and its sampling time.

    Costs and covariances are as in `LQG`: what is left out is the identity.
    """
    matrices, sampling_time = _read(system)
    return make_plant(matrices, Weights(Q, R, W, V, S0)), sampling_time


def policy_from_control(system: Any) -> tuple[LinearDynamic, float]:
    """The policy of a discrete-time controller from observations to inputs, and its sampling time."""
    matrices, sampling_time = _read(system)
    return make_policy(matrices), sampling_time


def to_control(item: Any, *, sampling_time: FloatLike) -> Any:
    """A plant (from u to y) or a time-invariant linear policy (from y to u) as a control.StateSpace.

    A policy carries its own sign: `control.feedback(plant, policy, sign=1)` closes the loop.
    """
    matrices = read_matrices(item)
    sampling_time = read_sampling_time(sampling_time)
    return _load_control().ss(matrices.A, matrices.B, matrices.C, matrices.D, sampling_time)


def _load_control() -> ModuleType:
    try:
        import control
    except ImportError:
        raise LqgapError("python-control is not installed: pip install 'lqgap[control]'") from None
    return control


def _read(system: Any) -> tuple[StateSpace, float]:
    control = _load_control()
    if not isinstance(system, control.StateSpace | control.TransferFunction):
        raise InvalidSystemError(
            f"the system is a {type(system).__name__}, expected a control.StateSpace or a TransferFunction"
        )
    sampling_time = _read_dt(system.dt)
    try:
        system = control.ss(system)
    except Exception as error:  # python-control raises many kinds, and all mean the same here
        raise InvalidSystemError(f"python-control finds no state-space form: {error}") from None
    return StateSpace(*(np.asarray(getattr(system, name)) for name in "ABCD")), sampling_time


def _read_dt(dt: Any) -> float:
    if dt is None or dt is True:
        raise InvalidSystemError(
            f"the system has no sampling time (dt is {dt}): say which it is, as control.ss(A, B, C, D, 0.1) "
            f"does for a step of 0.1 s"
        )
    if dt == 0:
        raise InvalidSystemError(
            "the system is in continuous time (dt is 0, which control.ss sets by default): sample it first, "
            "by control.sample_system(system, 0.1) or lqgap.systems.zero_order_hold(A, B, dt=0.1)"
        )
    return read_sampling_time(dt)
