from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_vtr import CONSTANTS, STEPS, Naive, naive_run, random_class, random_noise, stream

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions
from lqgap.adaptive.vtr.alarm import CAPPED, LEFT_BALL, MISFIT, RUNNING
from lqgap.adaptive.vtr.plans import RUIN
from lqgap.evaluation.exact import exact_average_cost
from lqgap.policies import LinearDynamic, StationaryLQG
from lqgap.simulators import Finite

PAPER = VTROptions.as_in_the_paper(selection="likelihood", weighting="equal")


def switches_of(told):
    """Step, number of the model acted on, and members of the set."""
    return [
        (int(t), int(told.acts_on[t, 0]), tuple(np.flatnonzero(told.plausible[t])))
        for t in np.flatnonzero(np.diff(told.num_changes, prepend=0))
    ]


@pytest.mark.parametrize(
    ("history", "limit", "seeds"),
    [
        ("clipped", np.inf, range(2)),
        ("clipped", 0.5, range(2)),
        pytest.param("clipped", np.inf, range(2, 20), marks=pytest.mark.slow),
        pytest.param("clipped", 0.5, range(20), marks=pytest.mark.slow),
        pytest.param("full", np.inf, range(20), marks=pytest.mark.slow),
    ],
)
def test_every_step_is_that_of_the_procedure_computed_anew(history, limit, seeds):
    total = 0
    for seed in seeds:
        plants, num_warmup = random_class(seed), 5 * (seed % 2)
        constants = VTRConstants(**CONSTANTS, num_warmup=num_warmup, sigma_u=0.7, delta=1e-300)
        options = replace(PAPER, history=history)
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
            limit=limit,
        )
        u, _, told = stream(algorithm, truth, noise, key, jnp.asarray(limit))
        assert switches_of(told) == switches
        np.testing.assert_allclose(u, expected, rtol=1e-8, atol=1e-8)
        total += len(switches)
    assert total >= 2 * len(seeds)


def test_as_in_the_paper_it_gives_up_for_ever_where_the_belief_leaves_its_ball():
    plants = random_class(0)
    constants = VTRConstants(**(CONSTANTS | {"state_bound": 1e-3}))
    safe = LinearDynamic(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.full((1, 1), 0.25))
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=PAPER, fallback=safe)
    u, y, told = stream(algorithm, plants[0], random_noise(0, plants[0]), jax.random.key(0))
    assert np.all(np.asarray(told.status) == LEFT_BALL)
    assert not np.any(told.num_changes)
    np.testing.assert_allclose(u[:-1], 0.25 * y[:-1], rtol=1e-12)
    np.testing.assert_array_equal(u[-1], 0.0)


def test_a_halt_for_a_while_is_over_after_a_wait_that_grows():
    plants = random_class(0)
    constants = VTRConstants(**(CONSTANTS | {"state_bound": 1e-3}))
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=PAPER)
    memory = algorithm.init(jax.random.key(0))
    at = lambda alarm, rings, time: alarm.ring(jnp.asarray(rings), jnp.asarray(time), LEFT_BALL)  # noqa: E731
    alarm = at(memory.alarm, True, 10)
    assert bool(at(alarm, False, 73).is_on)
    back = at(alarm, False, 74)
    assert not bool(back.is_on)
    assert int(at(back, True, 100).until) == 100 + 128
    returning = replace(PAPER, alarm="ball for a while")
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=returning)
    _, _, told = stream(algorithm, plants[0], random_noise(0, plants[0]), jax.random.key(0))
    assert np.all(np.asarray(told.status) == LEFT_BALL)  # each step rings anew


def test_observations_that_fit_no_member_pass_control_to_the_safest_controller():
    plants = [lg.LQG([[0.7]], [[gain]], [[1.0]]) for gain in (0.5, 1.0, 1.5)]
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS)
    loud = tuple(5 * part for part in random_noise(0, plants[0]))
    u, y, told = stream(algorithm, plants[0], loud, jax.random.key(0))
    alarmed = np.flatnonzero(np.asarray(told.status) == MISFIT)
    assert alarmed[0] < 20
    assert alarmed[-1] == STEPS
    safest = StationaryLQG(plants[algorithm.safest])
    memory, expected = safest.init(jax.random.key(0)), []
    for t in range(STEPS):
        memory, now = safest.step(memory, y[t], u[t - 1] if t else jnp.zeros(1))
        expected.append(now)
    np.testing.assert_allclose(u[alarmed[:-1]], np.asarray(expected)[alarmed[:-1]], rtol=1e-8, atol=1e-8)
    deaf = LQGVTR(lg.stack(plants), horizon=STEPS, options=VTROptions(alarm="none"))
    _, _, told = stream(deaf, plants[0], loud, jax.random.key(0))
    assert np.all(np.asarray(told.status) == RUNNING)


def test_a_lost_observation_leaves_out_the_samples_that_would_need_it():
    plants = random_class(2)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=VTRConstants(**CONSTANTS), options=PAPER)
    w, v = random_noise(3, plants[0])
    lost = 20
    u, _, told = stream(algorithm, plants[0], (w, v.at[lost].set(jnp.nan)), jax.random.key(0))
    assert np.all(np.isfinite(u))
    window = np.arange(lost, lost + CONSTANTS["length"])
    assert not set(window + 1) & {t for t, _, _ in switches_of(told)}
    error = np.asarray(told.figures["clip error"])
    assert np.all(np.isnan(error[window]))
    assert np.all(np.isfinite(np.delete(error, window)))
    whole, _, _ = stream(algorithm, plants[0], (w, v), jax.random.key(0))
    np.testing.assert_array_equal(u[:lost], whole[:lost])


@pytest.mark.parametrize("confidence", ["targets", "likelihood"])
def test_model_selection_leaves_what_the_record_of_the_warm_up_leaves_and_no_more_is_ever_acted_on(
    confidence,
):
    plants, num_warmup = random_class(3, count=6), 40
    constants = VTRConstants(**CONSTANTS, num_warmup=num_warmup, sigma_u=2.0, delta=0.2)
    options = VTROptions(confidence=confidence, alarm="none")
    algorithm = LQGVTR(Finite(plants), horizon=STEPS, constants=constants, options=options)
    u, y, told = stream(algorithm, plants[1], random_noise(1, plants[1]), jax.random.key(1))
    # Of this step alone, where `select_models` takes all times together.
    record = y[: num_warmup + 1], u[: num_warmup + 1]
    values = np.asarray([lg.systems.log_likelihood(plant, *record)[-1] for plant in plants])
    left = values >= np.logaddexp.reduce(values) - np.log(6) + np.log(0.2)
    assert np.sum(left) < 6
    np.testing.assert_array_equal(told.plausible[num_warmup], left)
    assert not np.any(np.asarray(told.plausible)[num_warmup:] & ~left)
    assert np.all(left[np.asarray(told.acts_on[num_warmup:, 0], dtype=int)])


def test_samples_weigh_one_over_the_largest_variance_that_a_possible_member_gives_them():
    plants = random_class(5)
    constants = VTRConstants(**CONSTANTS)
    options = VTROptions(confidence="targets", alarm="none")
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=options)
    memory, y = algorithm.init(jax.random.key(0)), jnp.asarray([1.3])
    memory, u = eqx.filter_jit(algorithm.step)(memory, y, jnp.zeros(1))
    sample, systems = memory.targets, algorithm.targets.systems
    eta = jnp.concatenate([sample.past_inputs.ravel(), sample.past_outputs.ravel(), u])
    means = algorithm.targets.N @ eta
    optima = [lg.solve(plant) for plant in plants]
    variances = [float(sample.target.variance(m, o.S)) for m, o in zip(means, optima, strict=True)]
    weight = 1 / max(variances)
    assert len(systems.A) == len(variances)
    following = jnp.asarray([-0.4])
    after, _ = eqx.filter_jit(algorithm.step)(memory, following, u)
    sums = after.targets.statistics.new
    f, target = np.asarray(sample.predictions), float(sample.target(following))
    np.testing.assert_allclose(sums.loss, weight * (f - target) ** 2, rtol=1e-8)
    np.testing.assert_allclose(sums.dist, weight * (f[:, None] - f[None, :]) ** 2, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("plan", ["bayes", "minimax", "optimistic"])
def test_at_every_step_the_plan_is_that_of_the_likelihood_set_computed_anew(plan):
    plants = random_class(6)
    constants = VTRConstants(delta=0.1)
    options = VTROptions(plan=plan, alarm="none")
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=options)
    u, y, told = stream(algorithm, plants[2], random_noise(2, plants[2]), jax.random.key(2))
    records = np.asarray([lg.systems.log_likelihood(plant, y, u) for plant in plants])
    J = [float(lg.solve(plant).J) for plant in plants]
    costs = [[float(exact_average_cost(StationaryLQG(a), b)) for b in plants] for a in plants]
    excess = np.minimum(np.asarray(costs) - np.asarray(J)[None, :], RUIN * np.max(J))
    for t in range(STEPS + 1):
        values = records[:, t]
        left = values >= np.logaddexp.reduce(values) - np.log(4) + np.log(0.1)
        weights = np.where(left, np.exp(values - values.max()), 0.0)
        loss = {
            "bayes": np.where(left, excess @ weights, np.inf),
            "minimax": np.where(left, np.max(np.where(left[None, :], excess, -np.inf), axis=1), np.inf),
            "optimistic": np.where(left, J, np.inf),
        }[plan]
        np.testing.assert_array_equal(told.plausible[t], left)
        chosen = int(told.acts_on[t, 0])
        assert loss[chosen] <= np.min(loss) + 1e-9 * np.max(J)
        if plan == "minimax":
            rate = min(RUIN * np.max(J), float(told.figures["excess rate"][t]))
            np.testing.assert_allclose(rate, min(loss), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("given", [False, True])
def test_an_alarm_during_the_warm_up_hands_over_control(given):
    plants = [lg.LQG([[0.7]], [[gain]], [[1.0]]) for gain in (0.5, 1.0, 1.5)]
    constants = VTRConstants(num_warmup=STEPS, sigma_u=100.0)
    fallback = StationaryLQG(plants[1]) if given else None
    learner = LQGVTR(lg.stack(plants), constants=constants, fallback=fallback)
    loud = tuple(5 * part for part in random_noise(0, plants[0]))
    u, _, told = stream(learner, plants[0], loud, jax.random.key(0))
    alarmed = np.asarray(told.status) == MISFIT
    assert np.sum(alarmed) > 10
    assert np.median(np.abs(u[alarmed])) < 0.3 * constants.sigma_u
    assert np.all(np.isinf(told.figures["excess rate"]))


def test_a_spike_counts_as_lost():
    plants = [lg.LQG([[0.7]], [[gain]], [[1.0]]) for gain in (0.5, 1.0, 1.5)]
    learner, noise = LQGVTR(lg.stack(plants)), random_noise(0, plants[0])
    w, v = noise
    spoiled, lost = (
        stream(learner, plants[0], (w, v.at[55].set(value)), jax.random.key(0)) for value in (1e4, np.nan)
    )
    np.testing.assert_allclose(spoiled[0], lost[0], rtol=1e-12)


def test_what_can_be_foreseen_is_told():
    wild = [lg.LQG([[1.3]], [[gain]], [[1.0]]) for gain in (1.0, -1.0)]
    learner = LQGVTR(lg.stack(wild), constants=VTRConstants(num_warmup=50))
    text = " ".join(learner.remarks(20))
    assert all(part in text for part in ("does not end within 20", "not stable", "nothing takes over"))
    assert LQGVTR(lg.stack(random_class(5))).remarks(20) == ()


def test_a_bound_on_switches_that_binds_is_told():
    plants = random_class(6)
    constants = VTRConstants(**CONSTANTS, max_switches=1)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS, constants=constants, options=PAPER)
    u, _, told = stream(algorithm, plants[2], random_noise(2, plants[2]), jax.random.key(2))
    assert told.num_changes[-1] == 1
    assert told.status[-1] == CAPPED
    assert np.any(u[-10:-1] != 0)


def test_it_goes_on_unless_the_task_ends():
    algorithm = LQGVTR(lg.stack(random_class(7)))
    assert algorithm.horizon is None
    assert not any(jax.tree.leaves(algorithm.trainable()))


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    plants = lg.stack(random_class(0))
    with pytest.raises(lg.InvalidArgumentError, match="constants is 'printed'"):
        LQGVTR(plants, constants="printed")
    with pytest.raises(lg.InvalidArgumentError, match="horizon"):
        LQGVTR(plants, horizon=0)
    with pytest.raises(lg.InvalidArgumentError, match="horizon is missing"):
        LQGVTR(plants, constants="theory")


def test_a_controller_takes_the_same_steps():
    plants = random_class(7)
    algorithm = LQGVTR(lg.stack(plants), horizon=STEPS)
    u, y, _ = stream(algorithm, plants[0], random_noise(7, plants[0]), jax.random.key(7))
    controller = lg.Controller(algorithm, key=jax.random.key(7), ends=True)
    own = np.asarray([controller(np.asarray(row)) for row in y])
    np.testing.assert_allclose(own, u, rtol=1e-10, atol=1e-12)
