import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_vtr import CONSTANTS, STEPS, random_class, random_noise

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions
from lqgap.identification import select_models
from lqgap.simulators import Finite


@pytest.mark.slow
def test_sets_that_look_at_a_whole_record_are_taken_by_hand():
    plants, num_warmup = random_class(3, count=6), 40
    constants = VTRConstants(**CONSTANTS, num_warmup=num_warmup, sigma_u=2.0, delta=0.2)
    options = VTROptions(selection="ellipsoid", stops_on_misfit=False)
    algorithm = LQGVTR(Finite(plants), horizon=STEPS, constants=constants, options=options)
    memory, u_last, ys, us = algorithm.init(jax.random.key(1)), jnp.zeros(1), [], []
    step = eqx.filter_jit(algorithm.step)
    x, (w, v) = jnp.zeros(2), random_noise(1, plants[1])
    for t in range(num_warmup):
        ys.append(plants[1].C @ x + v[t])
        memory, u_last, _ = step(memory, ys[-1], u_last)
        us.append(u_last)
        x = plants[1].A @ x + plants[1].B @ u_last + w[t]
    memory = algorithm.select(memory, u_last)
    left = select_models(
        Finite(plants), jnp.stack(ys), jnp.stack(us), method="ellipsoid", delta=0.2, length=6
    )
    assert list(np.flatnonzero(memory.allowed)) == [int(i) for i in left.parameters[:, 0]]
    with pytest.raises(lg.InvalidArgumentError, match="ellipsoid"):
        algorithm.policy()
