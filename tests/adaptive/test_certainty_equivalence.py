import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_identified import STEPS, record, require_controllers, slope, spring, told

import lqgap as lg
from lqgap.adaptive import IdentifiedCertaintyEquivalence, UnknownPlant, run_many


@pytest.mark.parametrize("probing", [0.0, 0.3])
def test_inputs_are_those_of_a_recomputation_from_the_record(probing):
    key = jax.random.key(3)
    learner = IdentifiedCertaintyEquivalence(told(), probing=probing)
    seen = record(learner, key=key)
    random = jax.vmap(lambda t: jax.random.normal(jax.random.fold_in(jax.random.split(key)[0], t), (1,)))
    z, first = np.asarray(random(jnp.arange(STEPS))), seen.made[0]
    assert len(seen.made) >= 2
    assert first >= 2 * learner.plant.num_features
    np.testing.assert_array_equal(seen.u[:19], 0)
    size = 0.3 * np.sqrt(np.mean(seen.y[:20] ** 2) / spring().R[0, 0])
    np.testing.assert_allclose(seen.u[19:first], size * z[19:first], rtol=1e-12)

    def probe(model, t):
        """sigma t^-1/4 (J / m)^1/2 M^-1/2 z, for one input."""
        _, M, _, J = model.solve(model.theta)
        return probing * t**-0.25 * np.sqrt(J / M[0]) * z[t] * model.su

    require_controllers(seen, probe_fn=probe)


def test_a_run_learns_the_plant(seed):
    plant = spring()
    learner = IdentifiedCertaintyEquivalence(UnknownPlant.like(plant))
    traces = run_many(learner, plant, horizon=1_000, keys=jax.random.split(jax.random.key(seed), 4))
    for trace in traces:
        half = trace.excess[len(trace.steps) // 2]
        assert trace.excess[-1] < 1.6 * half
        assert trace.figures["J"][-1] == pytest.approx(3.915, rel=0.5)
        assert not any(event.name == "no model" for event in trace.events)


@pytest.mark.slow
def test_regret_grows_slowly():
    assert slope(IdentifiedCertaintyEquivalence(told()))[0] < 0.5


@pytest.mark.usefixtures("as_users_run_it")
def test_a_negative_probe_is_refused():
    with pytest.raises(lg.InvalidArgumentError, match="probing"):
        IdentifiedCertaintyEquivalence(told(), probing=-1.0)
