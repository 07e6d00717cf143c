import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import AdaptOn, UnknownPlant, run_many
from lqgap.adaptive.identified.fitting import Units
from lqgap.policies import StationaryLQG


def test_a_model_that_is_not_stable_is_shrunk():
    """Of a record that grows, the likeliest model does."""
    told = UnknownPlant(order=1, Q=np.eye(1), R=np.eye(1), window=2)
    learner, draws = AdaptOn(told, memory=2), np.random.default_rng(0)
    x, regression = 0.0, told.regression
    stream, step, u_last = regression.init(), jax.jit(regression.step), np.zeros(1)
    for _ in range(60):
        y = np.asarray([x]) + 0.1 * draws.normal(size=1)
        stream = step(stream, jnp.asarray(y), jnp.asarray(u_last))
        u_last = draws.normal(size=1)
        x = 1.02 * x + u_last[0] + 0.1 * draws.normal()
    found = eqx.filter_jit(learner.identify)(stream, Units(jnp.ones(1), jnp.ones(1)), jnp.zeros((20, 4)))
    assert found.is_sound
    np.testing.assert_allclose(np.max(np.abs(np.linalg.eigvals(found.plan.A))), 0.999, rtol=1e-9)


@pytest.mark.slow
def test_a_stabiliser_inside_lets_a_plant_be_learnt_that_is_not_stable():
    plant = lg.plants.laplacian().nominal()
    robust = lg.plants.laplacian().grid(2)[0]
    told = UnknownPlant.like(plant, stabilizer=StationaryLQG(robust, filters="steady"))
    traces = run_many(
        AdaptOn(told, memory=5), plant, horizon=2_000, keys=jax.random.split(jax.random.key(0), 4)
    )
    J = float(lg.solve(plant).J)
    for trace in traces:
        late = trace.steps > 1_500
        assert (trace.excess[-1] - trace.excess[late][0]) / np.sum(late) < 0.2 * J
