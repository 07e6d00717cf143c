"""Things that fly or drive: a double integrator with delay, an airliner, a hovering drone."""

from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np

from lqgap.simulators.box import ParameterBox
from lqgap.simulators.plants.quantities import Extent, named_family, nonnegative, positive, real, whole
from lqgap.systems import LQG, Signals, delay_input, zero_order_hold

DELAYS = [0, 1, 2, 3]


def double_integrator(*, gain: Extent = (0.5, 1.5), delay: Extent = DELAYS, dt: Extent = 0.1) -> ParameterBox:
    """A vehicle without friction whose position is measured and whose input takes effect late.

    The state is (position, speed, past inputs); there are as many past inputs as the longest delay has, so
    that all members are of one size, and those beyond a member's own delay are not observable. The open
    loop is not stable.

    Args:
        gain: acceleration of a unit input, m/s^2.
        delay: steps until an input takes effect; a whole number or a list of them.
        dt: time of a step, s.
    """
    delays = delay if isinstance(delay, list) else [delay]

    @named_family(Signals(inputs=["command"], outputs=["position [m]"]))
    def make(
        *,
        gain: Annotated[Extent, real("m/s^2")],
        delay: Annotated[Extent, whole("steps")],
        dt: Annotated[Extent, positive("s")],
    ) -> LQG:
        plant = LQG([[1.0, dt], [0.0, 1.0]], [[0.0], [gain * dt]], [[1.0, 0.0]])
        return delay_input(plant, delay, longest=int(max(delays)))

    return make(gain=gain, delay=delay, dt=dt)


@named_family(Signals(dt=1.0, inputs=["elevator", "thrust"]))
def boeing_747(
    *,
    measured: Literal["states", "speed_and_attitude"] = "states",
    static_stability: Annotated[Extent, real()] = (0.8, 1.2),
    pitch_damping: Annotated[Extent, real()] = (0.8, 1.2),
    heave_damping: Annotated[Extent, real()] = 1.0,
    elevator: Annotated[Extent, real()] = (0.8, 1.2),
    thrust: Annotated[Extent, real()] = (0.8, 1.2),
) -> LQG:
    """Longitudinal flight of a large airliner in steps of a second, driven by elevator and thrust.

    The state is (forward speed, vertical speed, pitch rate, pitch angle). Derivatives are scaled where they
    stand in A - I, the change over a step; 1 is nominal.

    Args:
        measured: "states" (all four) or "speed_and_attitude" (forward speed and pitch angle).
        static_stability: scale of pitching by vertical speed.
        pitch_damping: scale of the decay of the pitch rate.
        heave_damping: scale of the decay of the vertical speed.
        elevator: scale of the effect of the elevator.
        thrust: scale of the effect of thrust.
    """
    A = [
        [0.99, 0.03, -0.02, -0.32],
        [0.01, 1 - 0.53 * heave_damping, 4.7, 0.0],
        [0.02, -0.06 * static_stability, 1 - 0.6 * pitch_damping, 0.0],
        [0.01, -0.04 * static_stability, 0.72, 0.99],
    ]
    B = jnp.array([[0.01, 0.99], [-3.44, 1.66], [-0.83, 0.44], [-0.47, 0.25]])
    C = np.eye(4) if measured == "states" else np.eye(4)[[0, 3]]
    return LQG(A, B @ jnp.diag(jnp.asarray([elevator, thrust])), C)


@named_family(Signals(inputs=["command 1", "command 2"]))
def uav_hover(
    *,
    mass: Annotated[Extent, positive("kg")] = (0.8, 1.2),
    thrust_gain: Annotated[Extent, real("N")] = (0.8, 1.2),
    drag: Annotated[Extent, nonnegative("N s/m")] = 0.0,
    dt: Annotated[Extent, positive("s")] = 0.5,
) -> LQG:
    """A drone that holds its place in two directions; its state (twice position, speed) is measured.

    Without drag only thrust_gain / mass shows in the input and output. The open loop is not stable.

    Args:
        mass: kg.
        thrust_gain: force of a unit input, N.
        drag: force by speed, N s/m.
        dt: time of a step, s.
    """
    A, B = zero_order_hold([[0.0, 1.0], [0.0, -drag / mass]], [[0.0], [thrust_gain / mass]], dt=dt)
    both = jnp.eye(2)
    return LQG(jnp.kron(both, A), jnp.kron(both, B), jnp.eye(4), Q=jnp.diag(jnp.array([1, 0.1, 2, 0.2])))
