"""Masses, springs and motors, sampled with a zero-order hold.

Mechanical plants are written as  mass q'' + damping q' + stiffness q = force u  in the state x = (q, q').
The linearised hanging pendulum follows from its Lagrangian and Rayleigh function, with the cart at p and a
uniform pole of mass m and length l at the angle a from straight down:

    kinetic:      cart_mass p'^2/2 + m (p'^2 + l p' a' cos a + l^2 a'^2/3)/2
    potential:    k p^2/2 - m g l cos(a)/2
    Rayleigh:     cart_damping p'^2/2 + pole_damping a'^2/2
    about a = 0:  (cart_mass + m) p'' + m l a''/2 + cart_damping p' + k p = f ,     actuator_lag f' = u - f
                  m l p''/2 + m l^2 a''/3 + pole_damping a' + m g l a/2 = 0
"""

from typing import Annotated, Any, Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from lqgap.simulators.plants.quantities import Extent, named_family, nonnegative, positive, real
from lqgap.systems import LQG, Signals, zero_order_hold

GRAVITY = 9.81


@named_family(Signals(inputs=["command"], outputs=["position [m]"]))
def mass_spring_damper(
    *,
    stiffness: Annotated[Extent, nonnegative("N/m")] = (0.5, 4.0),
    gain: Annotated[Extent, real("N")] = (1.0, 5.0),
    mass: Annotated[Extent, positive("kg")] = 1.0,
    damping: Annotated[Extent, nonnegative("N s/m")] = 0.5,
    dt: Annotated[Extent, positive("s")] = 0.3,
) -> LQG:
    """A mass on a spring, pushed; its position is measured, its state is (position, speed).

    Args:
        stiffness: of the spring, N/m.
        gain: force of a unit input, N.
        mass: kg.
        damping: viscous, N s/m.
        dt: time of a step, s.
    """
    A, B = _first_order([[mass]], [[damping]], [[stiffness]], [[gain]])
    A, B = zero_order_hold(A, B, dt=dt)
    return LQG(A, B, [[1.0, 0.0]], R=[[0.1]])


@named_family(Signals(inputs=["force 1 [N]", "force 2 [N]"], outputs=["position 1 [m]", "position 2 [m]"]))
def two_mass_spring(
    *,
    mass_1: Annotated[Extent, positive("kg")] = 1.0,
    mass_2: Annotated[Extent, positive("kg")] = (1.5, 2.5),
    stiffness_1: Annotated[Extent, nonnegative("N/m")] = 4.0,
    stiffness_2: Annotated[Extent, nonnegative("N/m")] = (1.0, 3.0),
    stiffness_3: Annotated[Extent, nonnegative("N/m")] = 6.0,
    damping: Annotated[Extent, nonnegative("N s/m")] = 1.0,
    dt: Annotated[Extent, positive("s")] = 0.1,
) -> LQG:
    """Two masses between walls, joined by springs and dampers; both are pushed, their positions measured.

    Args:
        mass_1, mass_2: kg.
        stiffness_1, stiffness_2, stiffness_3: of the springs from the left to the right wall, N/m.
        damping: of the left and the middle damper, N s/m; the right one has twice as much.
        dt: time of a step, s.
    """
    A, B = _first_order(
        [[mass_1, 0.0], [0.0, mass_2]],
        [[2 * damping, -damping], [-damping, 3 * damping]],
        [[stiffness_1 + stiffness_2, -stiffness_2], [-stiffness_2, stiffness_2 + stiffness_3]],
        jnp.eye(2),
    )
    A, B = zero_order_hold(A, B, dt=dt)
    return LQG(A, B, jnp.eye(2, 4))


@named_family(Signals(inputs=["force [N]"], outputs=["position 2 [m]"]))
def acc_two_mass(
    *,
    stiffness: Annotated[Extent, positive("N/m")] = (0.5, 2.0),
    damping: Annotated[Extent, nonnegative("N s/m")] = 0.0,
    mass_1: Annotated[Extent, positive("kg")] = 1.0,
    mass_2: Annotated[Extent, positive("kg")] = 1.0,
    dt: Annotated[Extent, positive("s")] = 0.1,
) -> LQG:
    """The benchmark of the American Control Conference: two free masses, one pushed, the other measured.

    Args:
        stiffness: of the spring between the masses, N/m.
        damping: of a damper parallel to the spring, N s/m; the benchmark has none.
        mass_1, mass_2: kg.
        dt: time of a step, s.
    """
    between = jnp.array([[1.0, -1.0], [-1.0, 1.0]])
    A, B = _first_order(
        [[mass_1, 0.0], [0.0, mass_2]], damping * between, stiffness * between, [[1.0], [0.0]]
    )
    A, B = zero_order_hold(A, B, dt=dt)
    return LQG(A, B, [[0.0, 1.0, 0.0, 0.0]])


@named_family(Signals(inputs=["voltage [V]"]))
def dc_motor(
    *,
    measured: Literal["speed", "position"] = "speed",
    inertia: Annotated[Extent, positive("kg m^2")] = (0.005, 0.015),
    friction: Annotated[Extent, nonnegative("N m s")] = (0.002, 0.008),
    resistance: Annotated[Extent, positive("Ohm")] = 1.0,
    inductance: Annotated[Extent, positive("H")] = 0.01,
    torque_constant: Annotated[Extent, positive("N m/A")] = 0.1,
    dt: Annotated[Extent, positive("s")] = 0.05,
) -> LQG:
    """A motor with permanent magnets, driven by its voltage; the state is (current, speed) and maybe angle.

    Args:
        measured: "speed" or "position", of which the second adds the angle to the state.
        inertia: of rotor and load, kg m^2.
        friction: viscous, N m s.
        resistance: of the armature, Ohm.
        inductance: of the armature, H.
        torque_constant: torque by current, N m/A, and back voltage by speed, V s.
        dt: time of a step, s.
    """
    num_states = 2 if measured == "speed" else 3
    A = [
        [-resistance / inductance, -torque_constant / inductance, 0.0],
        [torque_constant / inertia, -friction / inertia, 0.0],
        [0.0, 1.0, 0.0],
    ]
    B = [[1 / inductance], [0.0], [0.0]]
    A = [row[:num_states] for row in A[:num_states]]
    A, B = zero_order_hold(A, B[:num_states], dt=dt)
    return LQG(A, B, jnp.eye(num_states)[-1:])


@named_family(Signals(inputs=["force [N]"], outputs=["position [m]", "angle [rad]"]))
def hanging_pendulum_cart(
    *,
    pole_mass: Annotated[Extent, positive("kg")] = (0.1, 0.3),
    pole_length: Annotated[Extent, positive("m")] = (0.5, 1.0),
    cart_damping: Annotated[Extent, nonnegative("N s/m")] = (0.5, 1.5),
    actuator_lag: Annotated[Extent, positive("s")] = (0.05, 0.15),
    cart_mass: Annotated[Extent, positive("kg")] = 1.0,
    stiffness: Annotated[Extent, nonnegative("N/m")] = 5.0,
    pole_damping: Annotated[Extent, nonnegative("N m s")] = 0.01,
    dt: Annotated[Extent, positive("s")] = 0.03,
) -> LQG:
    """A pole hanging from a cart on a spring; position and angle are measured.

    The state is (position, angle, their rates, force of the actuator).

    Args:
        pole_mass: of a uniform pole, kg.
        pole_length: from hinge to tip, m.
        cart_damping: viscous friction of the cart, N s/m.
        actuator_lag: time constant with which the force follows the input, s.
        cart_mass: kg.
        stiffness: of the spring that centres the cart, N/m.
        pole_damping: viscous friction of the hinge, N m s.
        dt: time of a step, s.
    """
    moment = pole_mass * pole_length / 2
    A, B = _first_order(
        [[cart_mass + pole_mass, moment], [moment, 2 * moment * pole_length / 3]],
        [[cart_damping, 0.0], [0.0, pole_damping]],
        [[stiffness, 0.0], [0.0, moment * GRAVITY]],
        [[1.0], [0.0]],
    )
    A = jnp.block([[A, B], [jnp.zeros((1, 4)), jnp.full((1, 1), -1 / actuator_lag)]])
    B = jnp.zeros((5, 1)).at[4, 0].set(1 / actuator_lag)
    A, B = zero_order_hold(A, B, dt=dt)
    return LQG(A, B, jnp.eye(2, 5))


def _first_order(
    mass: Any, damping: Any, stiffness: Any, force: Any
) -> tuple[Float[Array, "state state"], Float[Array, "state input"]]:
    """A and B of  mass q'' + damping q' + stiffness q = force u  in the state (q, q')."""
    mass, damping, stiffness, force = (
        jnp.asarray(matrix, dtype=float) for matrix in (mass, damping, stiffness, force)
    )
    size = len(mass)
    accelerations = jnp.linalg.solve(mass, jnp.concatenate([-stiffness, -damping, force], axis=1))
    A = jnp.concatenate([jnp.eye(size, 2 * size, k=size), accelerations[:, : 2 * size]])
    B = jnp.concatenate([jnp.zeros_like(force), accelerations[:, 2 * size :]])
    return A, B
