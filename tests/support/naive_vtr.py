"""LQG-VTR as it is written, in NumPy, with everything computed anew from the whole history at every step; and
small random classes to run it on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from random_systems import random_plant

STEPS = 60
SIZES = {"states": 2, "inputs": 1, "outputs": 1}
CONSTANTS = {"psi": 30.0, "beta": 300.0, "length": 6, "state_bound": 1e9}


@eqx.filter_jit
def stream(algorithm, truth, noise, key, limit=jnp.inf):
    """Inputs, observations, and what the algorithm tells of each step."""
    w, v = noise

    def step(carry, now):
        memory, x, u_last = carry
        y = truth.C @ x + now[1]
        memory, u = algorithm.step(memory, y, u_last)
        u = jnp.clip(u, -limit, limit)
        return (memory, truth.A @ x + truth.B @ u + now[0], u), (u, y, algorithm.snapshot(memory))

    start = (algorithm.init(key), w[0], jnp.zeros(truth.num_inputs))
    return jax.lax.scan(step, start, (w[1:], v))[1]


def random_noise(seed, truth, *, steps=STEPS):
    draws = np.random.default_rng(seed)
    return (
        jnp.asarray(draws.normal(size=(steps + 2, truth.num_states))),
        jnp.asarray(draws.normal(size=(steps + 1, truth.num_outputs))),
    )


def random_class(seed, count=4):
    return [random_plant(100 * seed + i, **SIZES) for i in range(count)]


class Naive:
    """A member: its matrices, gains and predictions."""

    def __init__(self, plant, optimum):
        for name in ("A", "B", "C", "Q"):
            setattr(self, name, np.asarray(getattr(plant, name)))
        for name in ("K", "L", "S", "P"):
            setattr(self, name, np.asarray(getattr(optimum, name)))
        self.J = float(optimum.J)
        self.zeta = self.P - self.C.T @ self.Q @ self.C
        self.keep = np.eye(len(self.A)) - self.L @ self.C

    def belief(self, ys, us, *, length=None):
        """xhat_{t|t} from all, or the last, observations and inputs."""
        first = 0 if length is None else max(0, len(ys) - length)
        xhat = np.zeros(len(self.A))
        for t in range(first, len(ys)):
            u_last = us[t - 1] if t > 0 else np.zeros(self.B.shape[1])
            # A clipped belief knows nothing of the state before its first input.
            xhat = self.keep @ (self.A @ xhat + self.B @ u_last) + self.L @ ys[t]
        return xhat

    def target(self, xhat, u):
        """The bias after input u, as a function of the next observation."""
        sigma = self.keep @ (self.A @ xhat + self.B @ u)
        return lambda y: (sigma + self.L @ y) @ self.zeta @ (sigma + self.L @ y) + y @ self.Q @ y

    def mean_target(self, target, acting, ys, us, u, *, length):
        """Its mean if this member is the truth."""
        m = self.C @ (self.A @ self.belief(ys, us, length=length) + self.B @ u)
        Phi = acting.L.T @ acting.zeta @ acting.L + acting.Q
        return target(m) + np.trace(Phi @ self.S)


def naive_run(plants, truth, constants, noise, *, probes, steps, length, limit=np.inf):
    """Inputs, and switches as (step, model, set); `length` None is the whole history."""
    J = np.asarray([plant.J for plant in plants])
    count, (w, v) = len(plants), noise
    x, F, Y, ys, us = w[0], [], [], [], []
    model, start, switches, members = int(np.argmin(J)), 0, [], np.ones(count, dtype=bool)
    waiting = None
    for t in range(steps + 1):
        ys.append(truth.C @ x + v[t])
        if waiting is not None:
            F.append(waiting[1])
            Y.append(waiting[0](ys[-1]))
            if _score(F, start, constants.psi) >= 1 and len(switches) < constants.max_switches:
                start = len(F)
                losses = ((np.asarray(F) - np.asarray(Y)[:, None]) ** 2).sum(axis=0)
                members = _distances(F)[np.argmin(losses)] <= constants.beta
                model = int(np.argmin(np.where(members, J, np.inf)))
                switches.append((t, model, tuple(np.flatnonzero(members))))
        acting = plants[model]
        belief = acting.belief(ys, us)
        u = -acting.K @ belief if t >= constants.num_warmup else constants.sigma_u * probes[t]
        u = np.zeros_like(u) if t == steps else np.clip(u, -limit, limit)
        if t >= constants.num_warmup:
            target = acting.target(belief, u)
            f = [member.mean_target(target, acting, ys, us, u, length=length) for member in plants]
            waiting = (target, np.asarray(f))
        us.append(u)
        x = truth.A @ x + truth.B @ u + w[t + 1]
    return np.asarray(us), switches


def _distances(rows):
    rows = np.asarray(rows)
    return ((rows[:, :, None] - rows[:, None, :]) ** 2).sum(axis=0)


def _score(F, start, psi):
    kept = _distances(F[:start]) if start else 0.0
    return np.max(_distances(F[start:]) / (kept + psi))
