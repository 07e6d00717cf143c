import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import ClippedHistory, LinearDynamic, ModelBank, Recurrent, StationaryLQG
from lqgap.training import Monitor, TrainingOptions, train_randomized, train_robust


@functools.cache
def golden_pair():
    return lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -0.7)])


SHORT = TrainingOptions(steps=40, validate_every=10, validation_rollouts=64, receipt_rollouts=64)


def build(pole, gain):
    return lg.LQG([[pole]], [[gain]], [[1.0]])


@pytest.mark.slow
def test_the_exact_minimax_of_one_step_is_reached_within_two_per_cent():
    """For H = 1 the minimax gap of this pair is 0.1635, at the prior 0.464 (tests/support/golden/lqg.json, bayes_H1)."""
    bank = ModelBank(golden_pair().systems, horizon=1)
    options = TrainingOptions(
        steps=1000,
        num_rollouts=16_384,
        learning_rate=0.01,
        adversary_rate=0.5,
        validation_rollouts=65_536,
        receipt_rollouts=1_000_000,
        patience=40,
        tolerance=1e-3,
        precision="float64",
    )
    result = train_robust(bank, golden_pair(), horizon=1, key=jax.random.key(0), options=options)
    assert 0.98 < result.worst_gap / 0.1635 < 1.02  # the standard error is 0.0014 of it


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: StationaryLQG(golden_pair()[0]),
        lambda: LinearDynamic([[0.5]], [[0.1]], [[-0.1]], [[-0.1]]),
        lambda: ClippedHistory.from_plant(golden_pair()[0], length=3),
        lambda: ModelBank(golden_pair().systems, horizon=12),
        lambda: Recurrent(num_inputs=1, num_outputs=1, width=4, key=jax.random.key(0)),
    ],
    ids=["StationaryLQG", "LinearDynamic", "ClippedHistory", "ModelBank", "Recurrent"],
)
def test_every_trainable_policy_gets_no_worse(make):
    policy = make()
    before = lg.gap(policy, golden_pair(), horizon=12, key=jax.random.key(5), num_rollouts=2000)
    result = train_robust(policy, golden_pair(), horizon=12, key=jax.random.key(0), options=SHORT)
    after = lg.gap(result.policy, golden_pair(), horizon=12, key=jax.random.key(5), num_rollouts=2000)
    # Chosen on 64 rollouts, judged on 2000 others: four standard errors of the difference.
    assert after.worst < before.worst + 4 * np.hypot(after.worst_stderr, before.worst_stderr)
    np.testing.assert_allclose(result.weights.sum(), 1)
    assert result.history[-1]["best"] <= result.history[0]["best"]


STOPPED = TrainingOptions(steps=1, validation_rollouts=16, receipt_rollouts=256)
WILD = TrainingOptions(
    steps=10, validate_every=5, learning_rate=100.0, validation_rollouts=16, receipt_rollouts=256
)


def assert_no_worse(result, start, plants, horizon):
    """On other noise than that on which the better of start and result was chosen."""
    before, after = (
        lg.gap(policy, plants, horizon=horizon, key=jax.random.key(5), num_rollouts=2048)
        for policy in (start, result.policy)
    )
    # Four standard errors: of the choice, among 256 rollouts, and of this judgement.
    error = np.hypot(after.worst_stderr, before.worst_stderr) * np.sqrt(1 + 2048 / 256)
    assert after.worst < before.worst + 4 * error


@pytest.mark.parametrize("options", [STOPPED, WILD], ids=["stopped early", "steps far too large"])
@pytest.mark.parametrize(
    "make",
    [lambda: StationaryLQG(golden_pair()[0]), lambda: ModelBank(golden_pair().systems, horizon=12)],
    ids=["StationaryLQG", "ModelBank"],
)
@pytest.mark.filterwarnings("ignore::lqgap.LqgapWarning")  # that nothing was gained, which it may say
def test_a_training_that_fails_returns_nothing_worse_than_its_start(make, options):
    start = make()
    result = train_robust(start, golden_pair(), horizon=12, key=jax.random.key(0), options=options)
    assert_no_worse(result, start, golden_pair(), 12)
    assert result.improvement >= 0
    np.testing.assert_allclose(result.weights.sum(), 1)


@pytest.mark.slow
def test_randomisation_with_all_weight_on_one_member_is_that_members_controller():
    pair = lg.simulators.Finite([build(0.9, 1.0), build(0.9, 0.4)])
    start, truth = StationaryLQG(pair[0]), pair[1]
    options = TrainingOptions(steps=300, validate_every=50, patience=9, receipt_rollouts=64)
    result = train_randomized(
        start, pair, horizon=30, key=jax.random.key(0), weights=[0.0, 1.0], options=options
    )
    before, after, best = (
        float(lg.exact_gap(policy, truth, horizon=30))
        for policy in (start, result.policy, StationaryLQG(truth))
    )
    assert after < best + 0.02 * (before - best)


@pytest.mark.slow
def test_the_class_of_a_family_grows_by_the_members_that_are_worse():
    family = lg.simulators.ParameterBox(build, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)})
    bank = ModelBank(lg.stack([build(0.7, 0.6), build(0.7, 0.8)]), horizon=20)
    options = TrainingOptions(steps=60, validation_rollouts=128, receipt_rollouts=512, rounds=3)
    result = train_robust(bank, family, horizon=20, key=jax.random.key(0), options=options)
    unseen = family.sample(50, key=jax.random.key(9))
    elsewhere = lg.gap(result.policy, unseen, horizon=20, key=jax.random.key(8), num_rollouts=512)
    assert len(result.members) >= 9
    assert elsewhere.worst < 1.15 * result.worst_gap + 4 * elsewhere.worst_stderr


@pytest.mark.parametrize(
    "ranges",
    [
        {"gain": (0.5, 2.0)},
        {"pole": [0.5, 0.9], "gain": (0.5, 2.0)},
        {"pole": [0.5, 0.9], "gain": [0.5, 2.0]},
    ],
    ids=["one parameter", "a choice", "choices alone"],
)
@pytest.mark.parametrize("is_traceable", [True, False])
def test_the_last_round_is_searched_too(ranges, is_traceable):
    def build_plainly(pole=0.7, gain=1.0):
        return build(float(pole), float(gain))

    family = lg.simulators.ParameterBox(
        (lambda pole=0.7, gain=1.0: build(pole, gain)) if is_traceable else build_plainly, ranges
    )
    options = TrainingOptions(steps=1, receipt_rollouts=64, rounds=1)
    start = StationaryLQG(build(0.7, 2.0))
    result = train_robust(start, family, horizon=8, key=jax.random.key(0), options=options)
    everywhere = lg.gap(result.policy, family.grid(9), horizon=8, key=jax.random.key(1), num_rollouts=256)
    np.testing.assert_allclose(result.found.worst, everywhere.worst, rtol=0.3)
    assert result.worst_in_ranges >= result.worst_gap


@pytest.mark.slow
def test_a_density_weighs_the_members_drawn_from_a_family():
    family = lg.simulators.ParameterBox(build, {"pole": (0.5, 0.95), "gain": (0.5, 2.0)})
    options = TrainingOptions(steps=2, validate_every=2, receipt_rollouts=8)
    result = train_randomized(
        StationaryLQG(build(0.7, 1.0)),
        family,
        horizon=5,
        key=jax.random.key(0),
        weights=lambda pole, gain: float(gain > 1),
        options=options,
    )
    gains = np.asarray(result.members.parameters)[:, 1]
    np.testing.assert_array_equal(result.weights > 0, gains > 1)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_weights_are_named():
    policy = StationaryLQG(golden_pair()[0])
    for weights in ([1.0], [1.0, -1.0], [0.0, 0.0], lambda x: x):
        with pytest.raises(lg.InvalidArgumentError, match="weights"):
            train_randomized(policy, golden_pair(), horizon=3, key=jax.random.key(0), weights=weights)
    with pytest.raises(lg.InvalidArgumentError, match="members is a str"):
        train_robust(policy, "all", horizon=3, key=jax.random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize("train", [train_robust, train_randomized])
def test_a_task_that_goes_on_is_trained_and_judged_as_one(train):
    policy = StationaryLQG(golden_pair()[0])
    result = train(policy, golden_pair(), horizon=8, key=jax.random.key(0), options=SHORT, ends=False)
    exact = [
        [float(lg.exact_gap(each, plant, horizon=8, ends=False)) for plant in golden_pair()]
        for each in (policy, result.policy)
    ]
    np.testing.assert_allclose(result.history[0]["worst"], max(exact[0]), rtol=1e-9)
    np.testing.assert_array_less(np.abs(result.gaps.mean - exact[1]), 5 * result.gaps.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("train", [train_robust, train_randomized])
def test_limits_make_a_linear_policy_sampled(train):
    policy, seen = StationaryLQG(golden_pair()[0]), []
    monitor = Monitor(callback=seen.append)
    result = train(
        policy,
        golden_pair(),
        horizon=8,
        key=jax.random.key(0),
        options=SHORT,
        limits=(-0.5, 0.5),
        monitor=monitor,
    )
    assert jnp.isfinite(result.worst_gap)
    assert tuple(seen) == result.history
