"""Plants and linear policies from and to python-control and `scipy.signal.dlti`.

Both tools take seconds to load, and python-control is an optional dependency (`pip install lqgap[control]`):
they are imported when a function needs them.
"""

from types import ModuleType
from typing import Any

import numpy as np

from lqgap.arguments import ArrayLike, FloatLike, MatrixLike
from lqgap.errors import InvalidSystemError, LqgapError
from lqgap.interop.state_space import StateSpace, make_plant, make_policy, read_matrices, read_sampling_time
from lqgap.policies import LinearDynamic
from lqgap.systems import LQG, discretize

CONTINUOUS = "the system is in continuous time (python-control sets that by default)"


def from_control(  # noqa: PLR0913
    system: Any,
    *,
    dt: FloatLike | None = None,
    delay: ArrayLike = 0.0,
    Q: MatrixLike | None = None,
    R: MatrixLike | None = None,
    W: MatrixLike | None = None,
    V: MatrixLike | None = None,
    S0: MatrixLike | None = None,
    Qx: MatrixLike | None = None,
    N: MatrixLike | None = None,
) -> tuple[LQG, float]:
    """The plant of a control.StateSpace or TransferFunction, and its sampling time.

    Costs and covariances are as in `LQG`: what is left out is the identity, and Qx and N are zero. A
    system in continuous time is sampled every `dt`, its input acts after a `delay`, and W is an intensity,
    as in `discretize`.
    """
    return _make_plant(*_read_control(system), dt, delay, Q=Q, R=R, W=W, V=V, S0=S0, Qx=Qx, N=N)


def from_dlti(  # noqa: PLR0913
    system: Any,
    *,
    dt: FloatLike | None = None,
    delay: ArrayLike = 0.0,
    Q: MatrixLike | None = None,
    R: MatrixLike | None = None,
    W: MatrixLike | None = None,
    V: MatrixLike | None = None,
    S0: MatrixLike | None = None,
    Qx: MatrixLike | None = None,
    N: MatrixLike | None = None,
) -> tuple[LQG, float]:
    """The plant of a `scipy.signal.dlti` or `lti`, and its sampling time.

    Costs and covariances are as in `LQG`: what is left out is the identity, and Qx and N are zero. A
    system in continuous time is sampled every `dt`, its input acts after a `delay`, and W is an intensity,
    as in `discretize`.
    """
    return _make_plant(*_read_dlti(system), dt, delay, Q=Q, R=R, W=W, V=V, S0=S0, Qx=Qx, N=N)


def policy_from_control(system: Any) -> tuple[LinearDynamic, float]:
    """The policy of a discrete-time controller from observations to inputs, and its sampling time."""
    return _make_policy(*_read_control(system))


def policy_from_dlti(system: Any) -> tuple[LinearDynamic, float]:
    """The policy of a controller from observations to inputs, and its sampling time."""
    return _make_policy(*_read_dlti(system))


def to_control(item: Any, *, sampling_time: Any) -> Any:
    """A plant (from u to y) or a time-invariant linear policy (from y to u) as a control.StateSpace.

    A policy carries its own sign: `control.feedback(plant, policy, sign=1)` closes the loop.
    """
    matrices = read_matrices(item)
    sampling_time = read_sampling_time(sampling_time)
    return _load_control().ss(matrices.A, matrices.B, matrices.C, matrices.D, sampling_time)


def to_dlti(item: Any, *, sampling_time: Any) -> Any:
    """A plant (from u to y) or a time-invariant linear policy (from y to u) as a `scipy.signal.dlti`."""
    import scipy.signal

    matrices = read_matrices(item)
    sampling_time = read_sampling_time(sampling_time)
    return scipy.signal.dlti(matrices.A, matrices.B, matrices.C, matrices.D, dt=sampling_time)


def _make_plant(
    matrices: StateSpace, sampling_time: float, dt: Any, delay: Any, **weights: MatrixLike | None
) -> tuple[LQG, float]:
    plant = make_plant(matrices, **weights)
    if sampling_time > 0:
        if dt is not None:
            raise InvalidSystemError(f"dt is {dt}, and the system is in steps of {sampling_time:g} already")
        return plant, sampling_time
    if dt is None:
        raise InvalidSystemError(f"{CONTINUOUS}: say how often it is sampled, dt=0.1")
    return discretize(plant, dt=dt, delay=delay), float(dt)


def _make_policy(matrices: StateSpace, sampling_time: float) -> tuple[LinearDynamic, float]:
    if sampling_time == 0:
        raise InvalidSystemError(
            f"{CONTINUOUS}: sample it first, by control.sample_system(system, 0.1) or system.to_discrete(0.1)"
        )
    return make_policy(matrices), sampling_time


def _load_control() -> ModuleType:
    try:
        import control
    except ImportError:
        raise LqgapError("python-control is not installed: pip install 'lqgap[control]'") from None
    return control


def _read_control(system: Any) -> tuple[StateSpace, float]:
    """Matrices and sampling time, 0 in continuous time."""
    control = _load_control()
    if not isinstance(system, control.StateSpace | control.TransferFunction):
        raise InvalidSystemError(
            f"the system is a {type(system).__name__}, expected a control.StateSpace or a TransferFunction"
        )
    sampling_time = 0.0 if system.dt == 0 else _read_dt(system.dt, "control.ss(A, B, C, D, 0.1)")
    try:
        system = control.ss(system)
    except Exception as error:  # python-control raises many kinds, and all mean the same here
        raise InvalidSystemError(f"python-control finds no state-space form: {error}") from None
    return _matrices_of(system), sampling_time


def _read_dlti(system: Any) -> tuple[StateSpace, float]:
    import scipy.signal

    if not isinstance(system, scipy.signal.lti | scipy.signal.dlti):
        raise InvalidSystemError(f"the system is a {type(system).__name__}, expected a scipy.signal.dlti")
    is_continuous = isinstance(system, scipy.signal.lti)
    sampling_time = 0.0 if is_continuous else _read_dt(system.dt, "scipy.signal.dlti(A, B, C, D, dt=0.1)")
    form: Any = system
    try:
        return _matrices_of(form.to_ss()), sampling_time
    except ValueError as error:
        raise InvalidSystemError(f"SciPy finds no state-space form: {error}") from None


def _matrices_of(system: Any) -> StateSpace:
    return StateSpace(*(np.asarray(getattr(system, name)) for name in "ABCD"))


def _read_dt(dt: Any, example: str) -> float:
    if dt is None or dt is True:
        raise InvalidSystemError(
            f"the system has no sampling time (dt is {dt}): state it, as {example} does for a step of 0.1 s"
        )
    return read_sampling_time(dt)
