import functools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.evaluation import gap_by_horizon
from lqgap.policies import FiniteHorizonLQG, ModelBank, StationaryLQG, Zero, explore_then_commit


@functools.cache
def members():
    return lg.simulators.Finite(
        [lg.LQG([[0.9, 0.2], [0.0, 0.7]], [[0.0], [b]], [[1.0, 0.0]]) for b in (0.6, 1.4)]
    )


HORIZONS = (3, 11, 20)


def policies(horizon):
    bank = ModelBank(members().systems, horizon=horizon)
    return {
        "zero": Zero(num_inputs=1, num_outputs=1),
        "stationary": StationaryLQG(members()[0]),
        "bank": bank,
        "probe": explore_then_commit(bank, 2),
        "finite horizon": FiniteHorizonLQG(members()[0], horizon),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zero", "stationary", "bank", "probe", "finite horizon"])
def test_every_horizon_has_the_gap_that_it_has_alone(name):
    together = gap_by_horizon(
        policies(20)[name], members(), horizons=HORIZONS, key=jax.random.key(1), num_rollouts=2000
    )
    for horizon, estimate in zip(HORIZONS, together, strict=True):
        alone = lg.gap(
            policies(horizon)[name], members(), horizon=horizon, key=jax.random.key(2), num_rollouts=2000
        )
        # Noise is drawn for all steps at once, so it differs: five standard errors of the difference.
        stderr = np.hypot(alone.stderr, estimate.stderr)
        np.testing.assert_array_less(np.abs(alone.mean - estimate.mean), 5 * stderr + 1e-12)
        assert np.all(estimate.per_step[:, horizon + 1 :] == 0)


def test_without_an_end_gaps_are_partial_sums_of_the_longest():
    bank = ModelBank(members().systems)
    estimates = gap_by_horizon(
        bank, members(), horizons=HORIZONS, key=jax.random.key(1), num_rollouts=50, ends=False
    )
    alone = lg.gap(bank, members(), horizon=20, key=jax.random.key(1), num_rollouts=50, ends=False)
    for horizon, estimate in zip(HORIZONS, estimates, strict=True):
        np.testing.assert_allclose(
            estimate.mean, np.sum(alone.per_step[:, : horizon + 1], axis=1), rtol=1e-12
        )
    np.testing.assert_allclose(estimates[-1].stderr, alone.stderr, rtol=1e-12)


def test_linear_policies_have_the_exact_gap_at_every_horizon():
    policy = StationaryLQG(members()[0])
    estimates = gap_by_horizon(policy, members(), horizons=HORIZONS, key=jax.random.key(0), num_rollouts=4000)
    for horizon, estimate in zip(HORIZONS, estimates, strict=True):
        exact = float(lg.exact_gap(policy, members()[1], horizon=horizon))
        assert abs(estimate.mean[1] - exact) < 5 * estimate.stderr[1]


@pytest.mark.usefixtures("as_users_run_it")
def test_arguments_are_read():
    with pytest.raises(lg.InvalidArgumentError, match=r"horizons is \[\], expected a list"):
        gap_by_horizon(policies(20)["bank"], members(), horizons=[], key=jax.random.key(0))
    with pytest.raises(lg.InvalidArgumentError, match=r"made for steps 0\.\.20"):
        gap_by_horizon(policies(20)["bank"], members(), horizons=[21], key=jax.random.key(0))
