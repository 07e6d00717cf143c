"""A position servo of unknown inertia, friction and load: 24 V, an encoder of 2000 counts, 100 Hz (loop.md)."""

import jax.numpy as jnp
import numpy as np

import lqgap as lg

lg.enable_x64()
DT, COUNT = 0.01, 2 * np.pi / 2000


def motor(inertia, friction):
    """Angle, speed and current, moved by a voltage and a torque, sampled; and noise on the speed."""
    J, b = 1e-4 * inertia, 1e-4 * friction
    A = jnp.array([[0, 1, 0], [0, -b / J, 0.05 / J], [0, -100.0, -2000.0]])
    B = jnp.array([[0, 0], [0, -1 / J], [2000, 0]])
    W = lg.systems.accumulate_noise(A, np.diag([0, 1000.0, 0]), dt=DT)
    return *lg.systems.zero_order_hold(A, B, dt=DT), W


def build(inertia, friction):
    """The plant that a controller moves by its voltage, with its encoder."""
    A, B, W = motor(inertia, friction)
    return lg.LQG(A, B[:, :1], [[1.0, 0, 0]], R=[[1e-3]], W=W, V=[[COUNT**2 / 12]])


box = lg.ParameterBox(build, {"inertia": (0.5, 2), "friction": (0.1, 1)})
family = lg.offset_free(box, load=1, drift=0.2)  # V, and V in a step
bank = lg.policies.Integrated(lg.policies.ModelBank(family.grid(4).systems))


def run(policy, inertia, friction, seconds):
    """Angles and references: 1 and -1 rad in turn for 5 s each, and 50 mNm from the first second on."""
    controller, (A, B, _) = lg.Controller(policy, limits=(-24, 24), follow=[0]), motor(inertia, friction)
    x, angles, references = np.zeros(3), [], [(-1) ** (t // 500) for t in range(round(seconds / DT))]
    for t, reference in enumerate(references):
        u = controller(np.round(x[:1] / COUNT) * COUNT, reference=reference)
        x = np.asarray(A) @ x + np.asarray(B) @ [u[0], 0.05 * (t >= 100)]
        angles.append(x[0])
    return np.array(angles), np.array(references)
