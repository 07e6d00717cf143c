import jax
import numpy as np
from naive_vtr import CONSTANTS, STEPS, random_class, random_noise, stream

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants


def test_a_controller_takes_the_same_steps():
    plants = random_class(7)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS))
    u, y, _ = stream(algorithm, plants[0], random_noise(7, plants[0]), jax.random.key(7))
    controller = lg.Controller(algorithm.policy(), key=jax.random.key(7), ends=True)
    own = np.asarray([controller(np.asarray(row)) for row in y])
    np.testing.assert_allclose(own, u, rtol=1e-10, atol=1e-12)


def test_an_evaluation_runs_it_like_any_policy():
    plants = random_class(7)
    policy = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS)).policy()
    estimate = lg.gap(policy, lg.stack(plants), horizon=STEPS, key=jax.random.key(0), num_rollouts=64)
    assert np.all(estimate.mean > 0)
    assert not any(jax.tree.leaves(policy.trainable()))
