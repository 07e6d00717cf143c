"""What training returns where a bank alone would not learn."""

import functools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import LQGVTR, CertaintyEquivalence
from lqgap.policies import ModelBank, ProbingBank, StationaryLQG, Zero
from lqgap.training import TrainingOptions
from lqgap.training.task import Outcome, TrainingTask

HORIZON = 200
SHORT = TrainingOptions(
    steps=4, validate_every=4, validation_rollouts=256, num_rollouts=32, receipt_rollouts=512
)


def trained(members, train_fn=lg.train_robust, probe="auto", horizon=HORIZON, **how):
    options = TrainingOptions(**{**vars(SHORT), "probe": probe})
    bank = ModelBank(members.systems)
    return train_fn(bank, members, horizon=horizon, key=jax.random.key(0), options=options, ends=False, **how)


@functools.cache
def spare():
    return lg.plants.spare_actuator().grid(3)


@functools.cache
def learners():
    """Of learners over the class the gaps at the horizon, which are their regret and D_h."""
    return {
        name: lg.gap(
            learner, spare(), horizon=HORIZON, key=jax.random.key(9), num_rollouts=512, ends=False
        ).worst
        for name, learner in (
            ("vtr", LQGVTR(spare())),
            ("certainty", CertaintyEquivalence(spare(), probing=0.3)),
        )
    }


def test_the_reduction_holds_for_what_training_returns():
    result = trained(spare())
    assert result.returned == "probing bank"
    assert isinstance(result.policy, ProbingBank)
    assert dict(result.compared)["probing bank"] < 0.8 * dict(result.compared)["as trained"]
    assert result.worst_gap <= min(learners().values())
    assert result.to_json()["returned"] == "probing bank"


def test_without_probing_it_does_not():
    result = trained(spare(), probe="off")
    assert result.compared == ()
    assert isinstance(result.policy, ModelBank)
    assert result.worst_gap > min(learners().values())


def test_domain_randomisation_compares_means():
    result = trained(spare(), lg.train_randomized)
    assert result.returned == "probing bank"
    assert result.mean_gap < 0.9 * dict(result.compared)["as trained"]


def test_where_controllers_teach_enough_nothing_else_is_tried():
    motors = lg.plants.dc_motor().grid(2)
    assert trained(motors, horizon=20).compared == ()


def test_a_candidate_that_is_best_is_returned_and_named():
    alone = lg.plants.dc_motor().grid(1)
    best = StationaryLQG(alone[0])
    two = lg.plants.dc_motor().grid(2)
    others = {"of the middle": best, "of one": StationaryLQG(two[0])}
    result = trained(two, horizon=20, candidates=others)
    assert set(dict(result.compared)) == {"as trained", *others}
    least = min(dict(result.compared).values())
    assert dict(result.compared)[result.returned] <= 1.03 * least
    assert np.isfinite(result.worst_gap)


def test_what_was_given_is_returned_and_named_where_all_that_was_tried_is_worse():
    motors = lg.plants.dc_motor().grid(2)
    bank, idle = ModelBank(motors.systems), Zero(num_inputs=1, num_outputs=1)
    task = TrainingTask(bank, 20, jax.random.key(0), SHORT, None, None, True)
    outcome = Outcome(idle, motors, np.full(4, 0.25), is_converged=True, is_robust=True)
    with pytest.warns(lg.LqgapWarning, match="ended where it began"):
        result = task.result(outcome)
    assert result.policy is bank
    assert result.returned == "as given"
