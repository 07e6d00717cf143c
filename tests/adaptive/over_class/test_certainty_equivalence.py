import jax
import numpy as np
import pytest
from naive_rivals import STEPS, naive_run, springs
from naive_vtr import random_noise, stream

import lqgap as lg
from lqgap.adaptive import CertaintyEquivalence, run_many


def refitted(refuted_at):
    def choose(scores, t, acts_on, _):
        is_due = t in (1, 2, 4, 8, 16, 32, 64, 128) or scores.max() - scores[acts_on] >= refuted_at
        return int(np.argmax(scores)) if is_due else acts_on

    return choose


@pytest.mark.parametrize(
    ("probing", "delta"), [(0.0, 0.05), (0.0, None), (0.3, 0.5)], ids=["refuted", "doubling", "probing"]
)
def test_inputs_are_those_of_the_rule_as_it_is_written(probing, delta):
    learner = CertaintyEquivalence(lg.stack(springs()), probing=probing, delta=delta)
    noise, key = random_noise(3, springs()[4], steps=STEPS), jax.random.key(0)
    u, _, told = stream(learner, springs()[4], noise, key)
    rule = refitted(np.inf if delta is None else np.log(9 / delta))
    expected, chosen = naive_run(
        springs(), springs()[4], rule, tuple(map(np.asarray, noise)), key, probing=probing
    )
    np.testing.assert_allclose(u[:STEPS], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(told.acts_on[:STEPS, 0], chosen)


def test_probing_costs_what_its_units_say():
    """One member, so that nothing else costs: sigma_0^2 J sum t^-1/2, up to the chance of 64 runs.

    The excess of a step is sigma^2 J times a chi-square with one degree of freedom: the sum over
    512 steps and 64 runs has a relative deviation of sqrt(2 / 64 sum 1/t) / sum t^-1/2 = 0.010.
    """
    plant = lg.plants.mass_spring_damper().nominal()
    learner = CertaintyEquivalence(lg.stack([plant]), probing=0.3)
    traces = run_many(learner, plant, keys=jax.random.split(jax.random.key(0), 64), horizon=511)
    excess = np.mean([trace.excess[-1] for trace in traces])
    expected = 0.09 * float(lg.solve(plant).J) * np.sum(np.arange(1, 513) ** -0.5)
    assert abs(excess / expected - 1) < 4 * 0.010


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    with pytest.raises(lg.InvalidArgumentError, match="probing is -1"):
        CertaintyEquivalence(lg.stack(springs()), probing=-1.0)


@pytest.mark.slow
def test_refutation_tames_what_a_doubling_epoch_holds_on_to():
    """Means of 200 runs: a member that destabilises the plant is held for a whole epoch without it."""
    members = lg.plants.unknown_sign().grid(2)
    keys = jax.vmap(jax.random.key)(np.arange(1000, 1200))
    plain, refuted = (
        np.mean([trace.excess[-1] for trace in run_many(learner, members[1], horizon=1000, keys=keys)])
        for learner in (CertaintyEquivalence(members, delta=None), CertaintyEquivalence(members))
    )
    assert plain > 3 * refuted
