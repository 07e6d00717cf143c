"""Three families as practitioners meet them, in SI units; for studies: `python = "practice:dc_servo"`."""

import jax.numpy as jnp

import lqgap as lg
from lqgap.systems import accumulate_noise, delay_input, zero_order_hold


def dc_servo() -> lg.ParameterBox:
    """A position servo with an encoder of 2000 counts, at 100 Hz; inertia and friction are uncertain."""
    resistance, inductance, torque_constant, counts, dt = 1.0, 5e-4, 0.05, 2000, 0.01
    quantum = 2 * jnp.pi / counts

    def build(inertia, friction):
        J, b = 1e-4 * inertia, 1e-4 * friction
        motion = [0.0, -b / J, torque_constant / J]
        current = [0.0, -torque_constant / inductance, -resistance / inductance]
        A = jnp.array([[0.0, 1.0, 0.0], motion, current])
        B = jnp.array([[0.0], [0.0], [1 / inductance]])
        Ad, Bd = zero_order_hold(A, B, dt=dt)
        W = accumulate_noise(A, jnp.diag(jnp.array([0.0, 1.0, 1e-2])), dt=dt)
        S0 = jnp.diag(jnp.array([0.1, 1.0, 0.01]) ** 2)
        return lg.LQG(Ad, Bd, [[1.0, 0.0, 0.0]], Q=[[1e4]], R=[[1e-2]], W=W, V=[[quantum**2 / 12]], S0=S0)

    return lg.ParameterBox(build, {"inertia": (0.5, 2.0), "friction": (0.1, 1.0)})


def cart_pole() -> lg.ParameterBox:
    """A pole upright on a cart, position and angle measured at 50 Hz; its mass and length within 20 %."""
    cart, gravity, drag, dt = 1.0, 9.81, 0.1, 0.02

    def build(mass, length):
        m, l = 0.2 * mass, 0.5 * length  # noqa: E741  (to the centre of a uniform rod)
        inertia = m * l**2 / 3
        total = (cart + m) * (inertia + m * l**2) - (m * l) ** 2
        to_cart, to_pole = (inertia + m * l**2) / total, m * l / total
        A = jnp.array(
            [
                [0.0, 1.0, 0.0, 0.0],
                [0.0, -drag * to_cart, -((m * l) ** 2) * gravity / total, 0.0],
                [0.0, 0.0, 0.0, 1.0],
                [0.0, drag * to_pole, (cart + m) * m * l * gravity / total, 0.0],
            ]
        )
        B = jnp.array([[0.0], [to_cart], [0.0], [-to_pole]])
        Ad, Bd = zero_order_hold(A, B, dt=dt)
        W = accumulate_noise(A, jnp.diag(jnp.array([0.0, 0.01, 0.0, 0.01])), dt=dt)
        S0 = jnp.diag(jnp.array([0.1, 0.1, 0.05, 0.1]) ** 2)
        C = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
        V = jnp.diag(jnp.array([1e-3, 2e-3]) ** 2)
        return lg.LQG(Ad, Bd, C, Q=jnp.diag(jnp.array([10.0, 10.0])), R=[[0.01]], W=W, V=V, S0=S0)

    return lg.ParameterBox(build, {"mass": (0.8, 1.2), "length": (0.8, 1.2)})


def thermal_process() -> lg.ParameterBox:
    """Two coupled zones whose heaters act 0 to 3 steps late; uncertain gains and time constants."""
    dt, coupling = 10.0, 0.2

    def build(delay, gain_1, gain_2, lag_1, lag_2):
        rates = jnp.array([1 / (60.0 * lag_1), 1 / (90.0 * lag_2)])
        A = jnp.diag(-rates) + coupling * jnp.array([[-1.0, 1.0], [1.0, -1.0]]) * rates[:, None]
        Ad, Bd = zero_order_hold(A, jnp.diag(rates * jnp.array([gain_1, gain_2])), dt=dt)
        plant = lg.LQG(
            Ad, Bd, jnp.eye(2), Q=jnp.eye(2), R=0.1 * jnp.eye(2), W=0.01 * jnp.eye(2), V=0.04 * jnp.eye(2)
        )
        return delay_input(plant, int(delay), longest=3)

    ranges = dict.fromkeys(("gain_1", "gain_2", "lag_1", "lag_2"), (0.6, 1.6))
    return lg.ParameterBox(build, {"delay": [0, 1, 2, 3], **ranges})
