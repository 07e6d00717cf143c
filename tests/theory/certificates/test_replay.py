import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_systems import random_plant, random_record

import lqgap as lg
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.policies import StationaryLQG
from lqgap.theory.certificates.replay import (
    Logs,
    read_logs,
    replay,
    replay_all,
    replay_with_losses,
    settling_time,
)


def test_a_story_is_the_filter_written_out(seed):
    plant, horizon = random_plant(seed), 20
    y, u = random_record(seed, plant, steps=12)  # the log ends before the task does
    finite = lg.solve_finite(plant, horizon=horizon)
    x, gap = np.zeros(3), 0.0
    for t in range(12):
        x = x + finite.L[t] @ (y[t] - plant.C @ x)
        off = u[t] + finite.K[t] @ x
        gap += off @ finite.M[t] @ off
        x = plant.A @ x + plant.B @ u[t]
    replayed = replay(plant, jnp.asarray(y), jnp.asarray(u), horizon=horizon, window=horizon + 1)
    np.testing.assert_allclose(replayed.gap, gap, rtol=1e-10)
    np.testing.assert_allclose(replayed.log_likelihood, lg.log_likelihood(plant, y, u)[-1], rtol=1e-10)
    expected = -0.5 * (np.sum(replayed.misfit**2) + np.sum(np.log(np.linalg.det(2 * np.pi * finite.S[:12]))))
    np.testing.assert_allclose(replayed.log_likelihood, expected, rtol=1e-10)


@pytest.mark.slow
def test_gains_that_have_settled_need_not_be_computed():
    members = lg.plants.mass_spring_damper().grid(2)
    horizon = 299
    window = settling_time(members.systems, horizon=horizon)
    assert window < horizon + 1
    y, u = (jnp.asarray(part) for part in random_record(0, members[1], steps=horizon + 1))
    short, full = (replay(members[1], y, u, horizon=horizon, window=w) for w in (window, horizon + 1))
    np.testing.assert_allclose(short.log_likelihood, full.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(short.gap, full.gap, rtol=1e-9)


def test_a_horizon_too_short_to_settle_is_computed_whole():
    assert settling_time(lg.plants.mass_spring_damper().grid(2).systems, horizon=10) == 11


def test_a_record_without_losses_is_told_alike_both_ways_and_losses_count(seed):
    plant = random_plant(seed)
    y, u = (jnp.asarray(part) for part in random_record(seed, plant))
    one, other = replay(plant, y, u, horizon=15, window=16), replay_with_losses(plant, y, u, horizon=15)
    for name in ("log_likelihood", "gap", "misfit"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)
    lossy = y.at[3].set(jnp.nan).at[7, 0].set(jnp.nan)
    replayed = replay_with_losses(plant, lossy, u, horizon=15)
    np.testing.assert_allclose(replayed.log_likelihood, lg.log_likelihood(plant, lossy, u)[-1], rtol=1e-10)
    assert np.isfinite(replayed.gap)
    assert not np.isclose(replayed.gap, one.gap)


@pytest.mark.slow
def test_the_mean_of_what_was_paid_is_the_gap():
    """Of 4000 logs under the true plant; four standard errors."""
    plant, horizon = random_plant(1), 15
    policy = StationaryLQG(random_plant(4))
    keys = jax.random.split(jax.random.key(0), 4000)
    run = jax.jit(jax.vmap(lambda key: lg.rollout(policy, plant, horizon=horizon, key=key)))(keys)
    logs = Logs(run.y, run.u, horizon, horizon + 1, False)
    _, gaps = replay_all(logs, lg.stack([plant]))
    error = np.std(gaps) / np.sqrt(gaps.size)
    assert abs(np.mean(gaps) - float(lg.exact_gap(policy, plant, horizon=horizon))) < 4 * error


@pytest.mark.slow
def test_members_and_logs_are_told_in_any_number(monkeypatch):
    members = lg.plants.mass_spring_damper().grid(3)
    records = [random_record(seed, members[0], steps=5) for seed in range(4)]
    y, u = zip(*records, strict=True)
    logs = read_logs(y, u, members.systems, horizon=None)
    together = replay_all(logs, members.systems)
    assert together[0].shape == (9, 4)
    monkeypatch.setattr("lqgap.theory.certificates.replay.NUMBERS_AT_A_TIME", 15)  # three logs at a time
    for one, other in zip(together, replay_all(logs, members.systems), strict=True):
        np.testing.assert_allclose(one, other)
    replayed = replay(members[5], jnp.asarray(y[2]), jnp.asarray(u[2]), horizon=4, window=5)
    np.testing.assert_allclose([part[5, 2] for part in together], [replayed.log_likelihood, replayed.gap])


def test_a_likelihood_beyond_double_precision_is_refused():
    plant = random_plant(0)
    y, u = random_record(0, plant, steps=3)
    with pytest.raises(NotConvergedError, match="units of y"):
        replay_all(read_logs([1e200 * y], [u], lg.stack([plant]), horizon=None), lg.stack([plant]))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(y=[]), r"y is \[\], expected a list"),
        (dict(y=[np.zeros((3, 2))]), "1 records of y and 2 of u"),
        (
            dict(y=[np.zeros((3, 2)), np.zeros((4, 2))], u=[np.zeros((3, 2)), np.zeros((4, 2))]),
            "3 to 4 steps",
        ),
        (dict(y=[np.zeros((3, 1))] * 2), r"y has shape \(3, 1\)"),
        (dict(horizon=1), "horizon is 1"),
    ],
)
def test_what_cannot_be_read_is_named(change, message):
    arguments = dict(y=[np.zeros((3, 2))] * 2, u=[np.zeros((3, 2))] * 2, horizon=None) | change
    with pytest.raises(InvalidArgumentError, match=message):
        read_logs(arguments["y"], arguments["u"], lg.stack([random_plant(0)]), horizon=arguments["horizon"])
