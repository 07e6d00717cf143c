"""What all learners over a class obey; the rules of each are tested in its own module."""

import equinox as eqx
import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import CertaintyEquivalence, FilterBank, ThompsonSampling, run
from lqgap.adaptive.over_class.candidates import refutation
from lqgap.policies import ModelBank
from lqgap.policy_files import load_policy, save_policy
from lqgap.systems import solve_finite

MAKERS = {
    "mixture": FilterBank,
    "likeliest": lambda members, **how: FilterBank(members, "likeliest", **how),
    "hysteresis": lambda members, **how: FilterBank(members, "hysteresis", **how),
    "certainty equivalence": CertaintyEquivalence,
    "Thompson sampling": ThompsonSampling,
    "Thompson sampling, lazy": lambda members, **how: ThompsonSampling(members, lazy=True, **how),
}
every = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture(scope="module")
def springs():
    return lg.plants.mass_spring_damper().grid(2)


@every
def test_a_plant_outside_of_the_class_is_named_and_control_goes_on(springs, name):
    matrices = (np.asarray(getattr(springs[0], part)) for part in ("A", "B", "C"))
    noisy = lg.LQG(*matrices, R=springs[0].R, W=4 * np.eye(2), V=4 * np.eye(1))
    trace = run(MAKERS[name](springs), noisy, key=jax.random.key(0), horizon=511, limits=(-3.0, 3.0))
    assert trace.events[0].name == "misfit"
    assert "outside" in trace.events[0].message
    assert np.isfinite(trace.excess[-1])
    assert trace.num_stopped > 300


@every
def test_a_true_member_is_found_and_named_by_no_event(springs, name):
    trace = run(MAKERS[name](springs), springs[1], key=jax.random.key(1), horizon=511)
    assert trace.events == ()
    assert trace.is_truth_inside
    np.testing.assert_array_equal(trace.theta[-1], springs.parameters[1])
    assert trace.figures["largest weight"][-1] > 0.99


@every
def test_a_file_holds_it(springs, name, tmp_path):
    learner = MAKERS[name](springs)
    save_policy(tmp_path / "it.safetensors", learner)
    assert eqx.tree_equal(load_policy(tmp_path / "it.safetensors"), learner)


def test_gains_of_a_task_that_ends_are_those_of_its_steps(springs):
    learner = FilterBank(springs, horizon=4)
    assert learner.horizon == 4
    for index in range(2):
        expected = solve_finite(springs[index], horizon=4).K
        np.testing.assert_allclose(learner.candidates.K[:, index], expected, rtol=1e-12, atol=1e-12)
    longer = learner.for_horizon(6, systems=springs.systems)
    assert longer.horizon == 6
    np.testing.assert_allclose(longer.candidates.K[2:], learner.candidates.K, rtol=1e-12, atol=1e-12)
    shorter = learner.for_horizon(3)
    np.testing.assert_array_equal(shorter.candidates.K[:4], learner.candidates.K[1:])
    assert FilterBank(springs).for_horizon(6).horizon is None


def test_the_lead_that_refutes_is_infinite_without_a_level():
    np.testing.assert_allclose(refutation(0.05, 20), np.log(400))
    assert refutation(None, 20) >= 1e300
    with pytest.raises(lg.InvalidArgumentError, match="delta is 0"):
        refutation(0.0, 20)


@every
def test_a_set_point_far_above_the_noise_is_reached_on_every_member(springs, name):
    references = np.full((400, 1), 70.0)
    found = lg.respond(MAKERS[name](springs), springs, references=references)
    late = found.y[:, -50:, 0]
    np.testing.assert_allclose(late.mean(axis=1), 70.0, rtol=2e-2)  # some probe


def test_a_mixture_follows_a_set_point_as_the_bank_of_the_same_members_does(springs):
    references = np.concatenate([np.full((30, 1), 3.0), np.full((30, 1), -1.0)])
    learner, bank = (
        lg.respond(policy, springs, references=references)
        for policy in (FilterBank(springs), ModelBank(springs.systems))
    )
    np.testing.assert_allclose(learner.y, bank.y, atol=1e-8)
    np.testing.assert_allclose(learner.u, bank.u, atol=1e-8)
