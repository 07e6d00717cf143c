import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant

import lqgap as lg
from lqgap.adaptive.constants import VTRConstants
from lqgap.adaptive.vtr import LQGVTR
from lqgap.systems import clipped_beliefs, steady_beliefs

STEPS = 60


def naive(plants, truth, constants, noise, probes):
    """The procedure as it is written, with everything computed anew from the whole history at every step."""
    optima = [lg.solve(plant) for plant in plants]
    J = np.asarray([optimum.J for optimum in optima])
    count = len(plants)
    w, v = noise
    x, F, Y = w[0], [], []
    # Of the whole length from the start, so that nothing is compiled twice; what is still to come is zero.
    ys, us = np.zeros((STEPS + 1, truth.num_outputs)), np.zeros((STEPS + 1, truth.num_inputs))
    model, start, switches, members = int(np.argmin(J)), 0, [], np.ones(count, dtype=bool)
    waiting = None
    for t in range(STEPS + 1):
        y = np.asarray(truth.C) @ x + v[t]
        ys[t] = y
        if waiting is not None:
            F.append(waiting[1])
            Y.append(float(waiting[0](jnp.asarray(y))))
            kept, new = np.asarray(F[:start]).reshape(-1, count), np.asarray(F[start:])
            dist = lambda rows: ((rows[:, :, None] - rows[:, None, :]) ** 2).sum(axis=0)  # noqa: E731
            if (
                np.max(dist(new) / (dist(kept) + constants.psi)) >= 1
                and len(switches) < constants.max_switches
            ):
                start = len(F)
                losses = ((np.asarray(F) - np.asarray(Y)[:, None]) ** 2).sum(axis=0)
                members = dist(np.asarray(F))[np.argmin(losses)] <= constants.beta
                model = int(np.argmin(np.where(members, J, np.inf)))
                switches.append((t, model, tuple(np.flatnonzero(members))))
        belief = steady_beliefs(optima[model], plants[model], ys, us)[t]
        u = np.asarray(-optima[model].K @ belief)
        if t < constants.num_warmup:
            u = constants.sigma_u * probes[t]
        if t == STEPS:
            u = np.zeros_like(u)
        us[t] = u
        if t >= constants.num_warmup:
            target = lg.value_target(optima[model], plants[model], belief, u)
            f = []
            for optimum, plant in zip(optima, plants, strict=True):
                clipped = clipped_beliefs(optimum, plant, ys, us, length=constants.length)[t]
                f.append(float(target.mean(plant.C @ (plant.A @ clipped + plant.B @ u), optimum.S)))
            waiting = (target, np.asarray(f))
        x = np.asarray(truth.A) @ x + np.asarray(truth.B) @ u + w[t + 1]
    return us, switches


def stream(plants, truth, constants, noise, key, num_waiting):
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, num_waiting=num_waiting)
    w, v = (jnp.asarray(part) for part in noise)

    def step(carry, now):
        memory, x, u_last = carry
        w_next, v_now = now
        memory, u, info = algorithm.step(memory, truth.C @ x + v_now, u_last)
        return (memory, truth.A @ x + truth.B @ u + w_next, u), (u, info)

    start = (algorithm.init(key), w[0], jnp.zeros(truth.num_inputs))
    _, (u, info) = jax.jit(lambda: jax.lax.scan(step, start, (w[1:], v)))()
    switches = [
        (int(t), int(info.model[t]), tuple(np.flatnonzero(info.members[t])))
        for t in np.flatnonzero(info.is_switch)
    ]
    return np.asarray(u), switches


@pytest.mark.parametrize(("seed", "num_warmup", "num_waiting"), [(0, 0, 0), (1, 0, 16), (2, 5, 16)])
def test_every_step_is_that_of_the_procedure_computed_anew(seed, num_warmup, num_waiting):
    draws = np.random.default_rng(seed)
    plants = [random_plant(10 * seed + i) for i in range(4)]
    truth = plants[int(draws.integers(4))]
    constants = VTRConstants(
        psi=30.0, beta=300.0, length=6, state_bound=1e9, num_warmup=num_warmup, sigma_u=0.7
    )
    noise = (
        draws.normal(size=(STEPS + 2, truth.num_states)),
        draws.normal(size=(STEPS + 1, truth.num_outputs)),
    )
    key = jax.random.key(seed)
    probes = [jax.random.normal(jax.random.fold_in(key, t), (truth.num_inputs,)) for t in range(num_warmup)]
    expected, expected_switches = naive(plants, truth, constants, noise, np.asarray(probes))
    u, switches = stream(plants, truth, constants, noise, key, num_waiting)
    assert switches == expected_switches
    assert len(switches) > 1
    np.testing.assert_allclose(u, expected, rtol=1e-8, atol=1e-8)


def test_it_halts_for_ever_where_the_belief_leaves_its_ball():
    plants = [random_plant(0), random_plant(1)]
    constants = VTRConstants(psi=30.0, beta=300.0, length=6, state_bound=1e-3)
    noise = (np.ones((STEPS + 2, plants[0].num_states)), np.ones((STEPS + 1, plants[0].num_outputs)))
    u, switches = stream(plants, plants[0], constants, noise, jax.random.key(0), 0)
    np.testing.assert_array_equal(u, 0.0)
    assert switches == []
