"""A position servo of unknown inertia, friction and load: 24 V, an encoder of 2000 counts, 100 Hz (loop.md)."""

import jax.numpy as jnp
import numpy as np

import lqgap as lg

lg.enable_x64()
DT, COUNT = 0.01, 2 * np.pi / 2000


def build(inertia, friction):
    """Angle, speed and current, moved by a voltage: with noise on the speed, and the angle measured."""
    A = jnp.array([[0, 1, 0], [0, -friction / inertia, 500 / inertia], [0, -100, -2000]])
    W, V = np.diag([0, 1000.0, 0]), [[COUNT**2 / 12]]
    return lg.discretize(lg.LQG(A, [[0], [0], [2000]], [[1, 0, 0]], R=[[1e-3]], W=W, V=V), dt=DT)


box = lg.ParameterBox(build, {"inertia": (0.5, 2), "friction": (0.1, 1)})
family = lg.offset_free(box, load=1, drift=0.2)  # V, and V in a step
bank = lg.policies.Integrated(lg.policies.ModelBank(family.grid({"inertia": 8, "friction": 3}).systems))


def run(policy, motor, seconds):
    """Angles and references: 1 and -1 rad in turn for 5 s each; a load of 1 V from the first second on."""
    controller, x = lg.Controller(policy, limits=(-24, 24), follow=[0]), np.zeros(3)
    angles, references = [], [(-1) ** (t // 500) for t in range(round(seconds / DT))]
    for t, reference in enumerate(references):
        u = controller(np.round(x[:1] / COUNT) * COUNT, reference=reference)
        x = motor.A @ x + motor.B @ (u - (t >= 100))
        angles.append(x[0])
    return np.array(angles), np.array(references)
