import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.progress import time_budget
from lqgap.training import Monitor, TrainingOptions, train_robust

SHORT = TrainingOptions(steps=40, validate_every=10, validation_rollouts=64, receipt_rollouts=64)


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on_with_the_same_result(tmp_path):
    pair = lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -0.7)])
    bank, key = ModelBank(pair.systems, horizon=12), jax.random.key(0)

    class Stopped(Exception):  # noqa: N818
        pass

    def stop(record):
        if record["step"] == 20:
            raise Stopped

    whole = train_robust(bank, pair, horizon=12, key=key, options=SHORT)
    with pytest.raises(Stopped):
        train_robust(bank, pair, horizon=12, key=key, options=SHORT, monitor=Monitor(stop, folder=tmp_path))
    resumed = train_robust(bank, pair, horizon=12, key=key, options=SHORT, monitor=Monitor(folder=tmp_path))
    for one, other in zip(jax.tree.leaves(whole.policy), jax.tree.leaves(resumed.policy), strict=True):
        np.testing.assert_array_equal(one, other)
    assert whole.history == resumed.history
    with pytest.raises(lg.InvalidArgumentError, match="another training"):
        train_robust(
            bank,
            pair,
            horizon=12,
            key=jax.random.key(1),
            options=SHORT,
            monitor=Monitor(folder=tmp_path),
        )


def test_training_that_ends_where_it_began_says_so():
    pair = lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -0.7)])
    options = TrainingOptions(steps=1, learning_rate=1e-9, validation_rollouts=64, receipt_rollouts=64)
    start = StationaryLQG(pair[0])
    with pytest.warns(lg.LqgapWarning, match="ended where it began"):
        result = train_robust(start, pair, horizon=12, key=jax.random.key(0), options=options)
    assert not result.has_improved


def test_training_that_is_cut_returns_the_best_that_it_has_seen():
    pair = lg.simulators.Finite([lg.LQG([[0.9]], [[b]], [[1.0]]) for b in (1.0, -0.7)])
    options = TrainingOptions(steps=1000, validation_rollouts=64, receipt_rollouts=64)
    with time_budget(1e-9) as budget, pytest.warns(lg.LqgapWarning, match="ended where it began"):
        result = train_robust(
            StationaryLQG(pair[0]), pair, horizon=12, key=jax.random.key(0), options=options
        )
    assert budget.is_cut
    assert [record["step"] for record in result.history] == [0.0]
    assert np.isfinite(result.worst_gap)
