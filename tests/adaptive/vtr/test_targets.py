import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from naive_vtr import CONSTANTS, random_class

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions
from lqgap.adaptive.vtr.targets import clip_models
from lqgap.simulators import Finite
from lqgap.systems import arx_matrix


def test_predictions_are_those_of_the_clipped_filters_and_their_error_is_bounded():
    members, length = Finite(random_class(0)), 6
    optima = members.optima()
    N, norms = clip_models(optima, members.systems, length)
    for index, plant in enumerate(members):
        optimum = lg.solve(plant)
        np.testing.assert_allclose(N[index], arx_matrix(optimum, plant, length=length), rtol=1e-8, atol=1e-10)
        Abar = np.asarray(plant.A - optimum.F @ plant.C)
        left_out = np.asarray(plant.C) @ np.linalg.matrix_power(Abar, length) @ np.asarray(plant.A)
        whitened = np.linalg.solve(np.linalg.cholesky(np.asarray(optimum.S)), left_out)
        np.testing.assert_allclose(norms[index], np.linalg.norm(whitened, 2), rtol=1e-6)


def test_a_sample_is_formed_again_with_the_input_that_was_applied():
    plants = random_class(5)
    options = VTROptions.as_in_the_paper(selection="likelihood", weighting="equal")
    learner = LQGVTR(lg.stack(plants), constants=VTRConstants(**CONSTANTS), options=options)
    step, sample = eqx.filter_jit(learner.step), eqx.filter_jit(learner.targets.sample)
    memory, u = step(learner.init(jax.random.key(0)), jnp.asarray([1.3]), jnp.zeros(1))
    applied, y = 0.3 * u, jnp.asarray([-0.4])
    after, _ = step(memory, y, applied)
    belief = memory.evidence.xhat, memory.acts_on, memory.possible
    again = sample(memory.targets, *belief, applied, is_wanted=jnp.asarray(True))
    f, target = np.asarray(again.predictions), float(again.target(y))
    np.testing.assert_allclose(after.targets.statistics.new.loss, (f - target) ** 2, rtol=1e-9)
    assert not np.allclose(f, memory.targets.predictions)
