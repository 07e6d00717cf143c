"""Two rooms that are heated: the plant, and a real loop with weather, guests, delays and another set-point."""

import jax.numpy as jnp
import numpy as np

import lqgap as lg


def rooms(capacity, wall):
    """Two rooms side by side, moved by their heaters and by the temperature outside, in steps of 15 minutes."""
    A = -(jnp.eye(2) / wall + jnp.array([[1.0, -1.0], [-1.0, 1.0]]) / 5) / capacity
    B = jnp.concatenate([jnp.eye(2), jnp.full((2, 1), 1 / wall)], axis=1) / capacity
    return lg.systems.zero_order_hold(A, B, dt=0.25)


def heat(policy, capacity, wall, delay):
    """The rms error of the last 15 of 120 hours, after days, cold weather, guests and another set-point."""
    controller, is_measured = lg.Controller(policy, limits=(0, 8), follow=[0, 1]), policy.num_outputs == 3
    A, B = map(np.asarray, rooms(capacity, wall))
    x, late, errors, rng = np.full(2, 10.0), [np.zeros(2)] * delay, [], np.random.default_rng(0)
    for hour in np.arange(0, 120, 0.25):
        outside = 5 + 5 * np.sin(2 * np.pi * hour / 24) - 8 * (hour > 60)
        reference = np.array([21.0, 19.0]) if hour < 80 else np.array([20.0, 20.0])
        y = x + 0.05 * rng.normal(size=2)
        late = [*late, controller([*y, outside] if is_measured else y, reference=reference)]
        x = A @ x + B @ [late[0][0] + 0.3 * (hour > 30), late[0][1], outside]
        late = late[1:]
        errors.append(x - reference)
    return np.sqrt(np.mean(np.square(errors[-60:])))
