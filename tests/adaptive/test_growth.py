"""How the mean regret of what is shipped grows, on a class whose controllers are uninformative."""

import functools

import jax
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTROptions, run_many


@functools.cache
def mean_excess(probe, horizon, runs, truth, limits=None):
    """At a fifth of the horizon and at its end, and the runs at the end."""
    members = lg.plants.spare_actuator().grid(3)
    traces = run_many(
        LQGVTR(members, options=VTROptions(probe=probe)),
        members[truth],
        horizon=horizon,
        keys=jax.random.split(jax.random.key(truth), runs),
        num_points=10,
        limits=limits,
    )
    excess = np.asarray([trace.excess for trace in traces])
    steps = traces[0].steps
    return excess[:, np.searchsorted(steps, horizon // 5)].mean(), excess[:, -1].mean(), traces


def slope_of(early, late):
    return np.log(late / early) / np.log(5)


def test_the_default_learns_where_its_controllers_tell_nothing_and_without_probing_it_does_not():
    """On the members with an actuator that works, 100 runs: the mean at 2000 steps is known to 10 %."""
    for truth in (1, 2):
        early, late, traces = mean_excess("auto", 2_000, 100, truth)
        assert late < 150
        assert slope_of(early, late) < 0.6
        assert np.mean([trace.theta[-1, 0] != 0 for trace in traces]) > 0.9
    early, late, _ = mean_excess("off", 2_000, 10, 1)
    assert slope_of(early, late) > 0.95
    assert late > 400


def test_what_probing_costs_where_the_actuator_is_dead_stops_growing():
    early, late, traces = mean_excess("auto", 2_000, 100, 0)
    assert slope_of(early, late) < 0.6
    assert all(np.isfinite(trace.excess[-1]) for trace in traces)


def test_with_limits_the_default_still_learns():
    """Excess is above an optimum without limits, and grows: what counts is which member is acted on."""
    _, _, traces = mean_excess("auto", 2_000, 50, 1, (-0.5, 0.5))
    right = np.mean([trace.theta[-1, 0] == 0.5 for trace in traces])
    assert right > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("truth", range(3))
def test_over_ten_thousand_steps_the_mean_grows_like_a_logarithm(truth):
    early, late, _ = mean_excess("auto", 10_000, 400, truth)
    assert slope_of(early, late) < 0.4
    assert late < 120


def test_a_learner_says_what_its_controllers_do_not_tell():
    members = lg.plants.spare_actuator().grid(3)
    (remark,) = LQGVTR(members).remarks(100)
    assert "spare = 0 cannot tell" in remark
    assert LQGVTR(lg.plants.unknown_sign().grid(2)).remarks(100) == ()


def test_what_probing_costs_is_traced():
    _, _, traces = mean_excess("auto", 2_000, 100, 0)
    probing = np.mean([np.asarray(trace.figures["probing"]).mean() for trace in traces]) * 2_000
    # Where the actuator is dead, probing is nearly all that is lost; the figure is of one step in 200.
    assert 0.5 < probing / np.mean([trace.excess[-1] for trace in traces]) < 1.5
