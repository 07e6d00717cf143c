import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, run
from lqgap.adaptive.vtr.refinement import Refinement
from lqgap.adaptive.vtr.state import VTRChoice
from lqgap.adaptive.vtr.statistics import Sums
from lqgap.simulators import ParameterBox
from lqgap.systems import ValueTarget, arx_matrix

LENGTH = 3


def build(gain, pole):
    return lg.LQG([[pole, 0.2], [0.0, 0.5]], [[0.0], [gain]], [[1.0, 0.0]])


@pytest.fixture(scope="module")
def family():
    return ParameterBox(build, {"gain": (0.5, 1.5), "pole": (0.3, 0.8)})


def refinement_of(family, points):
    members = family.grid(points)
    N = jax.vmap(lambda o, p: arx_matrix(o, p, length=LENGTH))(members.optima(), members.systems)
    return Refinement(family, members, N, LENGTH, jnp.eye(members.systems.num_states)), members, N


def samples_of(N, S, count=40, seed=0):
    """Predictions of all models on random samples."""
    draws = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        target = ValueTarget(
            jnp.asarray([[draws.uniform(1, 2)]]),
            jnp.asarray(draws.normal(size=1)),
            jnp.asarray(draws.uniform()),
        )
        eta = jnp.asarray(draws.normal(size=N.shape[2]))
        rows.append([float(target.mean(n @ eta, s)) for n, s in zip(N, S, strict=True)])
    return np.asarray(rows)


def test_sums_of_combinations_come_from_the_members_sums(family):
    refinement, *_ = refinement_of(family, 2)
    draws = np.random.default_rng(1)
    F, Y = draws.normal(size=(30, 4)), draws.normal(size=30)
    sums = Sums(
        dist=jnp.asarray(((F[:, :, None] - F[:, None, :]) ** 2).sum(axis=0)),
        loss=jnp.asarray(((F - Y[:, None]) ** 2).sum(axis=0)),
        weight=jnp.asarray(30.0),
    )
    c, other = (part / part.sum() for part in draws.uniform(-0.5, 2, size=(2, 4)))
    np.testing.assert_allclose(
        refinement.distance(sums, jnp.asarray(c), jnp.asarray(other)), np.sum((F @ (c - other)) ** 2)
    )
    np.testing.assert_allclose(refinement.loss(sums, jnp.asarray(c)), np.sum((F @ c - Y) ** 2))


def test_a_model_between_the_members_predicts_what_its_shares_predict(family):
    errors = []
    for points in (3, 5):
        refinement, members, N = refinement_of(family, points)
        theta = jnp.asarray([0.93, 0.61])
        plant = family.system(theta)
        optimum = lg.solve(plant)
        own = arx_matrix(optimum, plant, length=LENGTH)
        F = samples_of(
            jnp.concatenate([N, own[None]]), jnp.concatenate([members.optima().S, optimum.S[None]])
        )
        c = np.asarray(refinement.shares(theta))
        np.testing.assert_allclose(c.sum(), 1.0, rtol=1e-9)
        scale = np.std(F[:, -1] - F[:, 0])
        errors.append(np.max(np.abs(F[:, :-1] @ c - F[:, -1])) / scale)
        assert errors[-1] < 20 * float(refinement.residual(theta)) + 1e-9
    assert errors[1] < 1e-4
    assert errors[1] < errors[0] / 10


@pytest.mark.slow
def test_the_choice_is_between_the_members_where_that_is_better(family):
    refinement, members, N = refinement_of(family, 3)
    truth = jnp.asarray([0.93, 0.61])
    plant = family.system(truth)
    optimum = lg.solve(plant)
    own = arx_matrix(optimum, plant, length=LENGTH)
    F = samples_of(
        jnp.concatenate([N, own[None]]), jnp.concatenate([members.optima().S, optimum.S[None]]), count=400
    )
    f, Y = F[:, :-1], F[:, -1]  # without noise, so that the truth has no loss
    sums = Sums(
        dist=jnp.asarray(((f[:, :, None] - f[:, None, :]) ** 2).sum(axis=0)),
        loss=jnp.asarray(((f - Y[:, None]) ** 2).sum(axis=0)),
        weight=jnp.asarray(400.0),
    )
    everyone, best = jnp.ones(9, dtype=bool), jnp.argmin(sums.loss)
    choice = VTRChoice(everyone, best, best, members.parameters[best], jnp.asarray(1.0))
    beta = 0.2 * jnp.min(sums.loss)
    found = eqx.filter_jit(refinement.choose)(sums, choice, beta=beta)
    np.testing.assert_allclose(found.estimate, truth, atol=0.02)
    c, centre = refinement.shares(found.optimistic), refinement.shares(found.estimate)
    assert float(refinement.distance(sums, c, centre)) <= float(beta) * (1 + 1e-9)
    promised = float(lg.solve(family.system(found.optimistic)).J)
    assert promised < float(lg.solve(family.system(found.estimate)).J)
    # No point of a fine grid within the set promises much more: the way along a thin set is long.
    grid = family.grid(41)
    shares = jax.lax.map(refinement.shares, grid.parameters)
    far = jax.vmap(lambda c: refinement.distance(sums, c, centre))(shares)
    best_J = float(np.min(np.asarray(grid.optima().J)[np.asarray(far <= beta)]))
    assert promised <= 1.01 * best_J


@pytest.mark.slow
def test_a_truth_between_the_members_stays_in_every_set_and_is_found(family):
    members = family.grid(3)
    constants = VTRConstants(psi=5.0, beta=120.0, length=8, state_bound=100.0, slack=0.1)
    algorithm = LQGVTR(members, horizon=3000, constants=constants, family=family)
    truth = (0.8, 0.7)
    trace = run(algorithm, family.system(jnp.asarray(truth)), key=jax.random.key(0), truth=truth)
    assert trace.is_truth_inside
    assert trace.events == ()
    last = trace.switches[-1]
    assert tuple(last.theta) not in {tuple(map(float, row)) for row in members.parameters}
    assert float(lg.solve(family.system(jnp.asarray(truth))).J) >= last.J  # optimism


@pytest.mark.usefixtures("as_users_run_it")
def test_a_family_that_cannot_be_differentiated_is_refused():
    discrete = ParameterBox(lambda gain, sign: build(gain * sign, 0.5), {"gain": (0.5, 1.5), "sign": [-1, 1]})
    with pytest.raises(lg.InvalidArgumentError, match="refine=False"):
        LQGVTR(
            discrete.grid(2),
            horizon=50,
            family=discrete,
            constants=VTRConstants(psi=1.0, beta=1.0, length=3, state_bound=9.0),
        )
