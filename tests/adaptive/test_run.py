import equinox as eqx
import jax
import numpy as np
import pytest
from random_systems import general_plant

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions, run, run_many
from lqgap.adaptive.run import BLOCK
from lqgap.evaluation.regret import regret
from lqgap.policies import StationaryLQG

HORIZON = 1_500


@pytest.fixture(scope="module")
def springs():
    return lg.plants.mass_spring_damper().grid(3)


@pytest.fixture(scope="module")
def algorithm(springs):
    options = VTROptions.as_in_the_paper(weighting="equal")
    return LQGVTR(springs, horizon=HORIZON, constants=CONSTANTS, options=options)


CONSTANTS = VTRConstants(psi=60.0, beta=3000.0, length=20, state_bound=50.0)


def test_a_trace_tells_the_switches_and_what_is_left(algorithm, springs):
    trace = run(algorithm, springs[4], key=jax.random.key(0), num_points=100)
    assert trace.steps[0] == 0
    assert trace.steps[-1] == HORIZON
    assert np.all(np.diff(trace.steps) > 0)
    assert len(trace.switches) > 3
    assert [s.step for s in trace.switches] == sorted(s.step for s in trace.switches)
    for switch in trace.switches:
        assert switch.figures["score"] >= 1
        assert switch.theta in [tuple(map(float, row)) for row in springs.parameters]
        assert switch.is_truth_inside is not None
    later = trace.steps >= trace.switches[-1].step
    assert np.all(trace.num_members[later] == trace.switches[-1].num_members)
    assert trace.is_truth_inside == all(s.is_truth_inside for s in trace.switches)
    assert np.all(np.diff(trace.excess) >= 0)
    assert not trace.is_stopped
    assert trace.events == ()
    bound = np.max(algorithm.targets.clip_norms) * CONSTANTS.state_bound
    assert 0 < np.max(trace.figures["clip error"]) <= bound


def test_runs_side_by_side_are_the_runs_one_by_one(algorithm, springs):
    keys = jax.random.split(jax.random.key(1), 3)
    plants = jax.tree.map(lambda leaf: leaf[np.asarray([0, 4, 8])], springs.systems)
    together = run_many(algorithm, plants, keys=keys, horizon=BLOCK + 50)
    for index, trace in zip((0, 4, 8), together, strict=True):
        alone = run(algorithm, springs[index], key=keys[[0, 4, 8].index(index)], horizon=BLOCK + 50)
        assert [s.step for s in trace.switches] == [s.step for s in alone.switches]
        np.testing.assert_allclose(trace.regret, alone.regret, rtol=1e-6, atol=1e-6)
        assert trace.is_truth_inside == alone.is_truth_inside


@pytest.mark.slow
def test_both_regrets_are_in_the_mean_that_of_the_evaluation(algorithm, springs):
    horizon, count = 100, 400
    traces = run_many(algorithm, springs[4], keys=jax.random.split(jax.random.key(2), count), horizon=horizon)
    by_identity = np.asarray([trace.regret[-1] for trace in traces])
    by_cost = np.asarray([trace.regret_by_cost[-1] for trace in traces])
    expected = regret(algorithm, springs[4], horizon=horizon, key=jax.random.key(3), num_rollouts=count)
    for values in (by_identity, by_cost):
        stderr = np.hypot(values.std(ddof=1) / np.sqrt(count), expected.stderr[0])
        assert abs(values.mean() - expected.mean[0]) < 4 * stderr
    assert by_identity.std() < by_cost.std()


def test_a_class_that_weighs_states_and_has_correlated_noise_is_learnt_and_its_regret_is_its_cost():
    plants = [general_plant(seed) for seed in (1, 2)]
    learner, count = LQGVTR(lg.stack(plants)), 100
    keys = jax.random.split(jax.random.key(5), count)
    traces = run_many(learner, plants[1], keys=keys, horizon=200, truth=1)
    by_identity, by_cost = (
        np.asarray([getattr(trace, name)[-1] for trace in traces]) for name in ("regret", "regret_by_cost")
    )
    stderr = np.std(by_cost - by_identity, ddof=1) / np.sqrt(count)
    assert abs(np.mean(by_cost - by_identity)) < 4 * stderr
    assert np.mean([trace.is_truth_inside for trace in traces]) > 0.9
    assert np.mean([trace.num_members[-1] == 1 for trace in traces]) > 0.9


def test_a_plant_outside_of_the_class_is_named_and_given_to_another_controller(springs):
    noisy = lg.LQG(
        *(np.asarray(getattr(springs[4], name)) for name in ("A", "B", "C")),
        R=springs[4].R,
        W=4 * np.eye(2),
        V=4 * np.eye(1),
    )
    trace = run(LQGVTR(springs), noisy, key=jax.random.key(0), horizon=600)
    assert trace.num_stopped > 400
    assert trace.events[0].name == "misfit"
    assert "fallback" in trace.events[0].message
    assert trace.is_truth_inside is None


def test_a_plant_whose_innovations_have_the_right_size_but_are_correlated_is_noticed():
    members = lg.stack([lg.LQG([[pole]], [[1.0]], [[1.0]], R=[[0.1]]) for pole in (0.3, 0.5)])
    outside = lg.LQG([[0.9]], [[0.5]], [[1.0]], R=[[0.1]], W=[[0.35]])
    traces = run_many(LQGVTR(members), outside, keys=jax.random.split(jax.random.key(0), 8), horizon=1000)
    assert all(trace.is_stopped for trace in traces)


def test_a_false_alarm_ends_and_the_plant_is_learnt_again(springs):
    """A burst of noise rings; after it the members fit, and control returns."""
    learner, truth = LQGVTR(springs), springs[4]
    draws, x, u_last = np.random.default_rng(0), np.zeros(2), np.zeros(1)
    memory, step, status = learner.init(jax.random.key(0)), eqx.filter_jit(learner.step), []
    for t in range(400):
        scale = 8.0 if 100 <= t < 110 else 1.0
        y = np.asarray(truth.C) @ x + scale * draws.normal(size=1)
        memory, u = step(memory, y, u_last)
        status.append(int(learner.snapshot(memory).status))
        u_last = np.asarray(u)
        x = np.asarray(truth.A) @ x + np.asarray(truth.B) @ u_last + draws.normal(size=2)
    assert not any(status[:100])
    assert any(status[100:120])
    assert not any(status[-50:])
    assert learner.snapshot(memory).plausible[4]


def test_any_policy_runs_and_limits_bind(springs):
    policy = StationaryLQG(springs[4])
    free, bound = (
        run(policy, springs[4], key=jax.random.key(0), horizon=300, limits=limits)
        for limits in (None, (-0.1, 0.1))
    )
    assert free.num_members is None
    assert free.switches == ()
    assert free.excess[-1] < 1e-12
    assert bound.excess[-1] > 1.0


@pytest.mark.slow
def test_the_constants_of_the_theory_say_that_they_are_vacuous(springs):
    nearly = springs.subset([0, 1])
    paper = VTROptions.as_in_the_paper()
    theory = LQGVTR(nearly, horizon=500, constants="theory", options=paper)
    trace = run(theory, springs[0], key=jax.random.key(0), horizon=50)
    assert [event.name for event in trace.events] == ["constants"]
    assert "warm-up" in trace.events[0].message
    assert trace.switches == ()
    assert theory.constants.num_warmup > 500


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named(springs):
    with pytest.raises(lg.InvalidArgumentError, match="policy is a str"):
        run("vtr", springs[0], key=jax.random.key(0))
    algorithm = LQGVTR(springs, horizon=50, constants=CONSTANTS)
    with pytest.raises(lg.InvalidArgumentError, match="horizon"):
        run(algorithm, springs[0], horizon=51, key=jax.random.key(0))
    with pytest.raises(lg.InvalidArgumentError, match="horizon is missing"):
        run(StationaryLQG(springs[0]), springs[0], key=jax.random.key(0))
    with pytest.raises(lg.InvalidArgumentError, match="plants has 9"):
        run_many(algorithm, springs.systems, keys=jax.random.split(jax.random.key(0), 2))


def test_a_run_that_diverges_ends_with_a_named_event_and_its_sums_stay():
    """The gain has the wrong sign: outputs grow by 1.6 a step until they are far."""
    truth, wrong = (lg.LQG([[0.9]], [[gain]], [[1.0]], R=[[1e-3]]) for gain in (1.0, -1.0))
    traces = run_many(StationaryLQG(wrong), truth, keys=jax.random.split(jax.random.key(0), 3), horizon=600)
    J_0 = 1 + 1 / (1 - 0.81)  # of y alone: C x + v
    for trace in traces:
        event = trace.events[-1]
        assert (event.name, event.step) == ("diverged", trace.diverged_at)
        assert trace.diverged_at < 60
        after = trace.steps >= trace.diverged_at
        assert np.all(trace.excess[after] == trace.excess[-1])
        np.testing.assert_allclose(trace.regret[after], trace.regret[-1], rtol=1e-12)
        # The last input of a run costs about (1.9 x)^2, and y = x was below 1000 sqrt(J_0).
        assert 1e4 < trace.excess[-1] < 4 * 1e6 * J_0 * (1.9 * 0.8) ** 2


def test_a_run_that_holds_has_not_diverged(springs):
    trace = run(StationaryLQG(springs[4]), springs[4], key=jax.random.key(0), horizon=100)
    assert trace.diverged_at is None
    assert trace.num_switches == 0
