import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_vtr import CONSTANTS, STEPS, Naive, naive_run, random_class, random_noise, stream

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions
from lqgap.adaptive.vtr.state import LEFT_BALL, MISFIT, RUNNING
from lqgap.policies import LinearDynamic
from lqgap.simulators import Finite


def switches_of(info):
    return [
        (int(t), int(info.choice.optimistic[t]), tuple(np.flatnonzero(info.choice.members[t])))
        for t in np.flatnonzero(info.is_switch)
    ]


@pytest.mark.parametrize(
    ("buffer_size", "history", "seeds"),
    [
        (16, "clipped", range(2)),
        pytest.param(16, "clipped", range(2, 20), marks=pytest.mark.slow),
        pytest.param(0, "clipped", range(20), marks=pytest.mark.slow),
        pytest.param(16, "full", range(20), marks=pytest.mark.slow),
    ],
)
def test_every_step_is_that_of_the_procedure_computed_anew(buffer_size, history, seeds):
    total = 0
    for seed in seeds:
        plants, num_warmup = random_class(seed), 5 * (seed % 2)
        constants = VTRConstants(**CONSTANTS, num_warmup=num_warmup, sigma_u=0.7, delta=1e-300)
        options = VTROptions(history=history, buffer_size=buffer_size, stops_on_misfit=False)
        algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=options)
        truth, key = plants[seed % 4], jax.random.key(seed)
        noise = random_noise(seed, truth)
        own = jax.random.split(key)[0]
        probes = [jax.random.normal(jax.random.fold_in(own, t), (1,)) for t in range(num_warmup)]
        members = [Naive(plant, lg.solve(plant)) for plant in plants]
        expected, switches = naive_run(
            members,
            members[seed % 4],
            constants,
            [np.asarray(part) for part in noise],
            probes=np.asarray(probes),
            steps=STEPS,
            length=CONSTANTS["length"] if history == "clipped" else None,
        )
        u, _, info = stream(algorithm, truth, noise, key)
        assert switches_of(info) == switches
        np.testing.assert_allclose(u, expected, rtol=1e-8, atol=1e-8)
        total += len(switches)
    assert total >= 2 * len(seeds)


def test_it_gives_up_for_ever_where_the_belief_leaves_its_ball():
    plants = random_class(0)
    constants = VTRConstants(**(CONSTANTS | {"state_bound": 1e-3}))
    safe = LinearDynamic(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.full((1, 1), 0.25))
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, fallback=safe)
    u, y, info = stream(algorithm, plants[0], random_noise(0, plants[0]), jax.random.key(0))
    assert np.all(np.asarray(info.status) == LEFT_BALL)
    assert not np.any(info.is_switch)
    np.testing.assert_allclose(u[:-1], 0.25 * y[:-1], rtol=1e-12)
    np.testing.assert_array_equal(u[-1], 0.0)


def test_observations_that_fit_no_member_pass_control_to_the_fallback():
    plants = random_class(1)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS))
    loud = tuple(5 * part for part in random_noise(0, plants[0]))
    u, _, info = stream(algorithm, plants[0], loud, jax.random.key(0))
    stopped = np.flatnonzero(np.asarray(info.status) == MISFIT)
    assert 0 < stopped[0] < 20
    np.testing.assert_array_equal(u[stopped[0] :], 0.0)
    quiet = LQGVTR(
        lg.stack(plants),
        horizon=STEPS,
        constants=VTRConstants(**CONSTANTS),
        options=VTROptions(stops_on_misfit=False),
    )
    _, _, info = stream(quiet, plants[0], loud, jax.random.key(0))
    assert np.all(np.asarray(info.status) == RUNNING)


def test_a_lost_observation_leaves_out_the_samples_that_would_need_it():
    plants = random_class(2)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS))
    w, v = random_noise(3, plants[0])
    lost = 20
    u, _, info = stream(algorithm, plants[0], (w, v.at[lost].set(jnp.nan)), jax.random.key(0))
    assert np.all(np.isfinite(u))
    assert list(np.flatnonzero(info.is_lost)) == [lost]
    window = np.arange(lost, lost + CONSTANTS["length"])
    assert not np.any(np.asarray(info.is_switch)[window + 1])
    assert np.all(np.isnan(np.asarray(info.clip_error)[window]))
    assert np.all(np.isfinite(np.delete(np.asarray(info.clip_error), window)))
    whole, _, _ = stream(algorithm, plants[0], (w, v), jax.random.key(0))
    np.testing.assert_array_equal(u[:lost], whole[:lost])


def test_model_selection_leaves_what_the_record_of_the_warm_up_leaves():
    plants, num_warmup = random_class(3, count=6), 40
    constants = VTRConstants(**CONSTANTS, num_warmup=num_warmup, sigma_u=2.0, delta=0.2)
    options = VTROptions(stops_on_misfit=False)
    algorithm = LQGVTR(Finite(plants), horizon=STEPS, constants=constants, options=options)
    u, y, info = stream(algorithm, plants[1], random_noise(1, plants[1]), jax.random.key(1))
    before, after = (int(np.sum(info.choice.members[t])) for t in (num_warmup - 1, num_warmup))
    # Of this step alone, where `select_models` takes all times together.
    record = y[: num_warmup + 1], u[: num_warmup + 1]
    values = np.asarray([lg.systems.log_likelihood(plant, *record)[-1] for plant in plants])
    mixture = np.logaddexp.reduce(values) - np.log(6)
    assert after == np.sum(values >= mixture + np.log(0.2)) < before == 6
    chosen = int(info.choice.optimistic[num_warmup])
    assert info.choice.members[num_warmup][chosen]


def test_samples_are_weighted_by_the_variance_of_their_target():
    plants = random_class(5)
    constants = VTRConstants(**CONSTANTS)
    options = VTROptions(weighting="variance", buffer_size=0, stops_on_misfit=False)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=options)
    memory, y = algorithm.init(jax.random.key(0)), jnp.asarray([1.3])
    memory, u, _ = eqx.filter_jit(algorithm.step)(memory, y, jnp.zeros(1))
    model = memory.model
    mean = model.plant.C @ (model.plant.A @ model.xhat + model.plant.B @ u)
    weight = 1 / memory.target.variance(mean, model.optimum.S)
    following = jnp.asarray([-0.4])
    after, _, _ = eqx.filter_jit(algorithm.step)(memory, following, u)
    sums = after.statistics.new
    f, target = np.asarray(memory.predictions), float(memory.target(following))
    np.testing.assert_allclose(sums.loss, weight * (f - target) ** 2, rtol=1e-10)
    np.testing.assert_allclose(sums.dist, weight * (f[:, None] - f[None, :]) ** 2, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(sums.weight, weight, rtol=1e-12)


def test_sets_by_likelihood_hold_the_members_it_leaves():
    plants = random_class(6)
    constants = VTRConstants(**CONSTANTS, delta=0.1)
    options = VTROptions(confidence="likelihood", stops_on_misfit=False)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=options)
    u, y, info = stream(algorithm, plants[2], random_noise(2, plants[2]), jax.random.key(2))
    at = [t for t, _, _ in switches_of(info)]
    assert len(at) > 2
    records = [np.asarray(lg.systems.log_likelihood(plant, y, u)) for plant in plants]
    for t in at:
        values = np.asarray([record[t] for record in records])
        left = values >= np.logaddexp.reduce(values) - np.log(4) + np.log(0.1)
        np.testing.assert_array_equal(info.choice.members[t], left)
        assert int(info.choice.estimate[t]) == np.argmax(values)


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    plants = lg.stack(random_class(0))
    with pytest.raises(lg.InvalidArgumentError, match="constants is 'printed'"):
        LQGVTR(plants, horizon=10, constants="printed")
    with pytest.raises(lg.InvalidArgumentError, match="horizon"):
        LQGVTR(plants, horizon=0)


def test_a_controller_takes_the_same_steps():
    plants = random_class(7)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS))
    u, y, _ = stream(algorithm, plants[0], random_noise(7, plants[0]), jax.random.key(7))
    controller = lg.Controller(algorithm.policy(), key=jax.random.key(7), ends=True)
    own = np.asarray([controller(np.asarray(row)) for row in y])
    np.testing.assert_allclose(own, u, rtol=1e-10, atol=1e-12)


def test_an_evaluation_runs_it_like_any_policy():
    plants = random_class(7)
    policy = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS)).policy()
    estimate = lg.gap(policy, lg.stack(plants), horizon=STEPS, key=jax.random.key(0), num_rollouts=64)
    assert np.all(estimate.mean > 0)
    assert not any(jax.tree.leaves(policy.trainable()))
