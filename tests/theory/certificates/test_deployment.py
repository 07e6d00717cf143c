import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from springs import FAMILY

import lqgap as lg
from lqgap.errors import InvalidArgumentError
from lqgap.policies import ModelBank, StationaryLQG
from lqgap.simulators import Finite, ParameterBox
from lqgap.theory import certify_deployment, certify_deployments
from lqgap.theory.certificates.replay import read_logs, replay, replay_all

SCALAR = ParameterBox(lambda gain: lg.LQG([[0.8]], [[gain]], [[1.0]]), {"gain": (0.5, 2.0)})
SIGNED = ParameterBox(
    lambda sign, gain: lg.LQG([[0.8]], [[sign * gain]], [[1.0]]), {"sign": [-1, 1], "gain": (0.5, 2.0)}
)


def deploy(policy, systems, *, steps, seed=0):
    """One log of every plant."""
    keys = jax.random.split(jax.random.key(seed), len(systems.A))
    run = jax.jit(jax.vmap(lambda plant, key: lg.rollout(policy, plant, horizon=steps - 1, key=key)))
    trajectory = run(systems, keys)
    return np.array(trajectory.y), np.array(trajectory.u)


def realised(systems, y, u):
    """What was really paid."""
    steps = y.shape[1]
    replayed = jax.vmap(lambda plant, y, u: replay(plant, y, u, horizon=steps - 1, window=steps))
    return np.asarray(replayed(systems, jnp.asarray(y), jnp.asarray(u)).gap)


def unrefuted_maximum(members, prior, y, u, delta=0.05):
    """The largest gap over members that pass the test, written out for one log."""
    of_prior = np.array([float(lg.log_likelihood(plant, y, u)[-1]) for plant in prior])
    least = scipy.special.logsumexp(of_prior) - np.log(len(prior)) + np.log(delta)
    likelihood, gaps = replay_all(read_logs([y], [u], members.systems, horizon=None), members.systems)
    return np.max(np.where(likelihood[:, 0] >= least, gaps[:, 0], -np.inf))


@pytest.mark.slow
def test_a_finite_class_is_maximised_over_what_is_not_refuted():
    members = FAMILY.grid(3)
    y, u = deploy(ModelBank(members.systems), members.subset([4]).systems, steps=80)
    certificate = certify_deployment(members, y[0], u[0])
    np.testing.assert_allclose(certificate.upper, unrefuted_maximum(members, members, y[0], u[0]), rtol=1e-9)
    assert 0 < certificate.num_unrefuted < len(members)
    assert any(np.allclose(row, certificate.parameters) for row in np.asarray(members.parameters))


@pytest.mark.slow
def test_a_box_is_maximised_between_the_points_of_its_grid():
    """At least what a grid of 900 points shows, and attained by an unrefuted plant."""
    truths = FAMILY.sample(3, key=jax.random.key(3), replace=True)
    y, u = deploy(ModelBank(FAMILY.grid(3).systems), truths.systems, steps=150)
    prior = FAMILY.grid(6)
    certificate = certify_deployments(FAMILY, y, u, prior=prior)
    dense = FAMILY.grid(30)
    for index in range(3):
        of_grid = unrefuted_maximum(dense, prior, y[index], u[index])
        assert of_grid <= certificate.upper[index] <= 1.3 * of_grid
        worst = Finite([FAMILY.system(certificate.parameters[index])])
        attained = unrefuted_maximum(worst, prior, y[index], u[index])
        np.testing.assert_allclose(attained, certificate.upper[index], rtol=1e-6)


@pytest.mark.slow
def test_discrete_parameters_are_all_looked_at():
    y, u = deploy(StationaryLQG(SIGNED.system([-1, 1.0])), SIGNED.members([[-1.0, 1.3]]).systems, steps=3)
    certificate = certify_deployment(SIGNED, y[0], u[0])
    prior = SIGNED.grid(256)
    by_grid = unrefuted_maximum(SIGNED.grid(1000), prior, y[0], u[0])
    np.testing.assert_allclose(certificate.upper, by_grid, rtol=1e-2)
    assert certificate.parameters[0] == 1  # the wrong sign would have cost more, and is not refuted yet


@pytest.mark.slow
@pytest.mark.parametrize("where", ["grid", "box"])
def test_most_deployments_are_covered(where):
    """At most delta of 200 are not, three standard errors allowed; a finite class misses the truths between."""
    grid, delta, count = FAMILY.grid(5), 0.1, 200
    truths = (
        grid.sample(count, key=jax.random.key(1), replace=True)
        if where == "grid"
        else FAMILY.sample(count, key=jax.random.key(1), replace=True)
    )
    y, u = deploy(ModelBank(grid.systems), truths.systems, steps=300)
    paid = realised(truths.systems, y, u)
    certificate = certify_deployments(FAMILY, y, u, delta=delta, prior=grid)
    covered = np.mean(certificate.upper >= paid)
    assert covered >= 1 - delta - 3 * np.sqrt(delta * (1 - delta) / count)


def test_a_log_with_losses_is_certified_too():
    members = SCALAR.grid(5)
    y, u = deploy(StationaryLQG(members[1]), members.subset([3]).systems, steps=40)
    y[0, 5:9] = np.nan
    certificate = certify_deployment(members, y[0], u[0])
    np.testing.assert_allclose(certificate.upper, unrefuted_maximum(members, members, y[0], u[0]), rtol=1e-9)


def test_a_class_that_is_wrong_certifies_nothing():
    """With a prior that explains the log, the class that does not is refuted altogether."""
    truth = SCALAR.system([0.5])
    y, u = deploy(StationaryLQG(truth), lg.stack([truth]), steps=400)
    wrong, prior = Finite([lg.LQG([[0.8]], [[-2.0]], [[1.0]])]), Finite([truth])
    assert certify_deployment(wrong, y[0], u[0], prior=prior).upper == np.inf


def test_a_longer_task_plans_other_gains():
    members = SCALAR.grid(3)
    y, u = deploy(StationaryLQG(members[0]), members.subset([2]).systems, steps=6)
    short, long = (certify_deployment(members, y[0], u[0], horizon=horizon).upper for horizon in (None, 30))
    assert short != long


def test_more_confidence_costs_a_larger_bound():
    members = SCALAR.grid(9)
    y, u = deploy(StationaryLQG(members[0]), members.subset([4]).systems, steps=60)
    bold, safe = (certify_deployment(members, y[0], u[0], delta=delta) for delta in (0.5, 1e-6))
    assert bold.num_unrefuted < safe.num_unrefuted
    assert bold.upper <= safe.upper


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: dict(members=FAMILY.grid(2).systems), "members is a LQG"),
        (lambda: dict(delta=2.0), r"delta is 2\.0"),
        (lambda: dict(y=np.zeros((3, 2))), r"y has shape \(3, 2\)"),
        (lambda: dict(horizon=0), "horizon is 0"),
        (
            lambda: dict(
                members=ParameterBox(
                    lambda gain: lg.LQG([[0.8]], [[float(gain)]], [[1.0]]), {"gain": (0.5, 2.0)}
                )
            ),
            "cannot be traced",
        ),
    ],
)
def test_what_cannot_be_is_named(change, message):
    arguments = dict(members=SCALAR.grid(3), y=np.ones((3, 1)), u=np.ones((3, 1))) | change()
    with pytest.raises(InvalidArgumentError, match=message):
        certify_deployment(**arguments)
