import jax
import numpy as np
import pytest
from springs import FAMILY

import lqgap
from lqgap.errors import InvalidArgumentError, NotConvergedError
from lqgap.simulators import Finite, ParameterBox, likelihood_set

SCALAR = ParameterBox(lambda gain: lqgap.LQG([[0.8]], [[gain]], [[1.0]]), {"gain": (0.0, 2.0)})


def simulate(plant, *, steps, seed):
    """A record under random inputs."""
    rng = np.random.default_rng(seed)
    A, B, C = (np.asarray(X) for X in (plant.A, plant.B, plant.C))
    u = rng.normal(size=(steps, B.shape[1]))
    x, y = rng.normal(size=len(A)), []
    for t in range(steps):
        y.append(C @ x + rng.normal(size=len(C)))
        x = A @ x + B @ u[t] + rng.normal(size=len(A))
    return np.array(y), u


def test_a_finite_class_shrinks_to_the_truth():
    members = FAMILY.grid(4)
    y, u = simulate(members[5], steps=400, seed=0)
    sizes = [len(likelihood_set(members, y[:steps], u[:steps])) for steps in (5, 50, 400)]
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert sizes[2] < len(members)
    left = likelihood_set(members, y, u)
    assert any(np.allclose(row, members.parameters[5]) for row in np.asarray(left.parameters))


def test_the_set_is_the_defining_inequality_at_every_time():
    members = SCALAR.grid(5)
    y, u = simulate(members[2], steps=60, seed=1)
    likelihoods = np.array([lqgap.log_likelihood(plant, y, u) for plant in members])
    mixture = np.log(np.mean(np.exp(likelihoods - likelihoods.max(axis=0)), axis=0)) + likelihoods.max(axis=0)
    expected = np.all(likelihoods >= mixture + np.log(0.1), axis=1)
    left = likelihood_set(members, y, u, delta=0.1)
    np.testing.assert_allclose(left.parameters, np.asarray(members.parameters)[expected])


@pytest.mark.slow
def test_a_truth_between_the_points_of_the_prior_is_covered():
    """Ville: the truth is lost in at most delta of all runs; 200 runs, three standard errors."""
    truth, delta, runs = 0.37, 0.1, 200
    plant = SCALAR.system([truth])
    prior = SCALAR.grid(4)  # 0, 0.67, 1.33, 2: the truth is none of them
    lost = 0
    for seed in range(runs):
        y, u = simulate(plant, steps=30, seed=seed)
        lost += not likelihood_set(SCALAR, y, u, delta=delta, prior=prior).is_inside(np.array([[truth]]))[0]
    assert lost / runs <= delta + 3 * np.sqrt(delta * (1 - delta) / runs)


@pytest.mark.slow
def test_a_family_given_data_is_again_a_family():
    y, u = simulate(SCALAR.system([0.6]), steps=200, seed=3)
    left = likelihood_set(SCALAR, y, u)
    assert left.names == SCALAR.names
    drawn = left.sample(30, key=jax.random.key(0))
    assert np.all(left.is_inside(np.asarray(drawn.parameters)))
    grid = left.grid(41)
    assert 1 < len(grid) < 41
    assert np.min(np.abs(np.asarray(grid.parameters) - 0.6)) < 0.05
    cover = left.cover(0.05)
    assert len(cover) < len(SCALAR.cover(0.05))


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(delta=1.5), r"delta is 1\.5"),
        (dict(delta="small"), "delta holds .*'small'"),
        (dict(y=np.zeros((3, 2))), r"y has shape \(3, 2\)"),
        (dict(prior=SCALAR), "prior is a ParameterBox"),
        (dict(members=[1]), "members is a list"),
        (dict(members="cover"), "members is a cover"),
    ],
)
def test_bad_input_raises(change, message):
    arguments = dict(members=SCALAR.grid(3), y=np.zeros((3, 1)), u=np.zeros((3, 1))) | change
    if arguments["members"] == "cover":
        arguments["members"] = SCALAR.cover(1.0)
    with pytest.raises(InvalidArgumentError, match=message):
        likelihood_set(**arguments)


def test_numbers_beyond_double_precision_are_no_evidence_either_way():
    with pytest.raises(NotConvergedError, match="beyond double precision"):
        likelihood_set(SCALAR.grid(3), np.full((3, 1), 1e200), np.zeros((3, 1)))


def test_lost_samples_are_no_evidence():
    members = Finite([SCALAR.system([0.0]), SCALAR.system([2.0])])
    assert len(likelihood_set(members, np.full((50, 1), np.nan), np.ones((50, 1)))) == 2
