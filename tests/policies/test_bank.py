import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from programs import drive, replay
from random_systems import random_plant, random_record, relative_sums

import lqgap as lg
from lqgap.adaptive import FilterBank
from lqgap.batches import take
from lqgap.policies import DualBank, FiniteHorizonLQG, ModelBank, Saturated, StationaryLQG
from lqgap.policies.bank import mix
from lqgap.systems.faults import LEAD
from lqgap.systems.natural import naturalize


@eqx.filter_jit
def propose(bank, memory, y, u_last):
    return bank.propose(memory, y, u_last)


def dense_log_likelihood(plant, y, u):
    """log p(y | u) from the covariance of the whole record: no filter, no recursion."""
    A, B, C = (np.asarray(matrix) for matrix in (plant.A, plant.B, plant.C))
    steps, n = len(y), len(A)
    mean = np.zeros(n)
    means, response = [], np.zeros((steps, n, n * steps))  # x_t = response @ (x_0, w_0, w_1, ..)
    for t in range(steps):
        if t == 0:
            response[0, :, :n] = np.eye(n)
        else:
            mean = A @ mean + B @ u[t - 1]
            response[t] = A @ response[t - 1]
            response[t, :, n * t : n * (t + 1)] += np.eye(n)
        means.append(C @ mean)
    blocks = [np.asarray(plant.S0)] + [np.asarray(plant.W)] * (steps - 1)
    noise = np.zeros((n * steps, n * steps))
    for t, block in enumerate(blocks):
        noise[n * t : n * (t + 1), n * t : n * (t + 1)] = block
    G = np.concatenate([C @ response[t] for t in range(steps)])
    covariance = G @ noise @ G.T + np.kron(np.eye(steps), np.asarray(plant.V))
    return scipy.stats.multivariate_normal(np.concatenate(means), covariance).logpdf(y.ravel())


@pytest.mark.parametrize("mode", ["mixture", "map", "thompson"])
def test_a_bank_of_one_is_the_optimal_controller(mode):
    plant = random_plant(0)
    y, u = random_record(0, plant, steps=9)
    for bank, alone in (
        (ModelBank(lg.stack([plant]), mode=mode), StationaryLQG(plant)),
        (ModelBank(lg.stack([plant]), horizon=8, mode=mode), FiniteHorizonLQG(plant, 8)),
    ):
        np.testing.assert_allclose(replay(bank, y, u)[1], replay(alone, y, u)[1], rtol=1e-12, atol=1e-13)


def test_a_bank_goes_on_as_the_exact_controllers_of_its_members(seed):
    plants = [random_plant(seed), random_plant(seed + 10)]
    y, u = random_record(seed, plants[0], steps=6)
    for bank in (ModelBank(lg.stack(plants)), ModelBank(lg.stack(plants), horizon=9)):
        memory, _ = replay(bank, y, u)
        expected = [dense_log_likelihood(plant, y, u) for plant in plants]
        assert np.ptp(expected) < LEAD
        np.testing.assert_allclose(memory.log_likelihood, expected - np.max(expected), rtol=1e-9, atol=1e-9)
    endless = ModelBank(lg.stack(plants))
    assert endless.horizon is None
    natural = naturalize(lg.stack(plants))
    optima = [lg.solve(take(natural, index)) for index in range(2)]
    np.testing.assert_allclose(endless.K[0], [o.K for o in optima], rtol=1e-9)
    np.testing.assert_allclose(endless.L[-1], [o.L for o in optima], rtol=1e-9, atol=1e-12)


def test_a_bank_can_be_made_under_tracing():
    plant = random_plant(0)
    y, u = random_record(0, plant, steps=9)
    made = jax.jit(lambda systems: ModelBank(systems))(lg.stack([plant]))
    np.testing.assert_allclose(
        replay(made, y, u)[1], replay(ModelBank(lg.stack([plant])), y, u)[1], rtol=1e-9, atol=1e-12
    )


def test_the_modes_do_what_they_say():
    plants = [random_plant(0), random_plant(1)]
    y, u = random_record(5, plants[0], steps=1)
    bank = ModelBank(lg.stack(plants), horizon=3)
    memory, inputs = propose(bank, bank.init(jax.random.key(0)), jnp.asarray(y[0]), jnp.zeros(2))
    weights = np.exp(memory.log_likelihood) / np.exp(memory.log_likelihood).sum()
    np.testing.assert_allclose(replay(bank, y, u)[1][0], weights @ inputs, rtol=1e-12)
    likeliest = replay(ModelBank(lg.stack(plants), horizon=3, mode="map"), y, u)[1][0]
    np.testing.assert_allclose(likeliest, inputs[np.argmax(weights)], rtol=1e-12)

    thompson = ModelBank(lg.stack(plants), horizon=3, mode="thompson")

    @jax.jit
    @jax.vmap
    def draw(key):
        return thompson.step(thompson.init(key), jnp.asarray(y[0]), jnp.zeros(2))[1]

    drawn = draw(jax.random.split(jax.random.key(1), 4000))
    share = np.mean(np.all(np.abs(drawn - inputs[:1]) < 1e-9, axis=1))
    # Four standard errors of a share of 4000 draws.
    assert abs(share - weights[0]) < 4 * np.sqrt(weights[0] * weights[1] / 4000)


def test_prior_temperature_and_shaping_enter_as_documented():
    plants = [random_plant(0), random_plant(1)]
    y, _ = random_record(5, plants[0], steps=1)
    bank = ModelBank(lg.stack(plants))
    changed = jax.tree.map(lambda x: x, bank)
    object.__setattr__(changed, "log_prior", jnp.asarray([0.3, -0.2]))
    object.__setattr__(changed, "log_temperature", jnp.log(2.0))
    object.__setattr__(changed, "shaping", jnp.stack([jnp.eye(3), jnp.zeros((3, 3))]))
    memory, inputs = propose(bank, bank.init(jax.random.key(0)), jnp.asarray(y[0]), jnp.zeros(2))
    _, shaped = propose(changed, bank.init(jax.random.key(0)), jnp.asarray(y[0]), jnp.zeros(2))
    expected = np.asarray([0.3, -0.2]) + np.asarray(memory.log_likelihood) / 2
    np.testing.assert_allclose(changed.log_posterior(memory), expected, rtol=1e-12)
    weights = np.exp(expected) / np.sum(np.exp(expected))
    doubt = 2 * (1 - np.sum(weights**2))
    np.testing.assert_allclose(shaped, inputs * np.asarray([[1 + 0.2 * doubt], [1.0]]), rtol=1e-12)


def test_a_member_that_is_certain_is_acted_on_as_if_untrained_and_one_alone_keeps_its_shaping():
    bank = ModelBank(lg.stack([random_plant(0), random_plant(1)]))
    likelihoods = jnp.asarray([[0.0, 0.0], [400.0, 0.0]])  # nothing known, the first certain
    start = bank.init(jax.random.key(0))
    doubts = [float(bank.doubt(eqx.tree_at(lambda m: m.log_likelihood, start, each))) for each in likelihoods]
    np.testing.assert_allclose(doubts, [1.0, 0.0], atol=1e-12)
    alone = ModelBank(lg.stack([random_plant(0)]))
    assert float(alone.doubt(alone.init(jax.random.key(0)))) == 1.0


@pytest.mark.parametrize("horizon", [None, 49])
def test_a_bank_is_exact_through_losses(seed, horizon):
    plants = list(lg.Finite(naturalize(lg.stack([random_plant(seed), random_plant(seed + 10)]))))
    y, u = random_record(seed, plants[0], steps=50)
    rng = np.random.default_rng(seed)
    y[rng.random(y.shape) < 0.3] = np.nan
    y[rng.random(len(y)) < 0.2] = np.nan
    memory, _ = replay(ModelBank(lg.stack(plants), horizon=horizon), y, u)
    records = [lg.systems.filter_record(plant, y, u) for plant in plants]
    for xhat, record in zip(memory.xhat, records, strict=True):
        np.testing.assert_allclose(xhat, record.belief.mean[-1], rtol=1e-8, atol=1e-9)
    expected = relative_sums([record.log_likelihood for record in records])
    np.testing.assert_allclose(memory.log_likelihood, expected, rtol=1e-8, atol=1e-8)


def test_a_horizon_of_zero_is_a_horizon():
    assert ModelBank(lg.stack([random_plant(0)]), horizon=0).horizon == 0


def test_an_observation_that_was_lost_whole_leaves_the_posterior_alone():
    plants = [random_plant(0), random_plant(1)]
    bank = ModelBank(lg.stack(plants))
    memory, _ = propose(bank, bank.init(jax.random.key(0)), jnp.full(2, jnp.nan), jnp.zeros(2))
    np.testing.assert_array_equal(memory.log_likelihood, 0)


@eqx.filter_jit
def watch(bank, y, u):
    """The memory after every step of a record."""

    def step(memory, now):
        memory, _ = bank.propose(memory, *now)
        return memory, memory

    u_last = jnp.concatenate([jnp.zeros((1, u.shape[1])), u[:-1]])
    return jax.lax.scan(step, bank.init(jax.random.key(0)), (y, u_last))[1]


def calm_record(steps=160):
    """A run of a plant, whose samples no member finds absurd, and the bank of it and another."""
    plants = [random_plant(0), random_plant(1)]
    run = lg.rollout(StationaryLQG(plants[0]), plants[0], horizon=steps - 1, key=jax.random.key(0))
    return ModelBank(lg.stack(plants)), np.array(run.y), np.array(run.u)


@pytest.mark.parametrize("spike", [1e2, 1e4, 1e8, 1e200])
def test_an_absurd_sample_counts_as_lost(spike):
    bank, y, u = calm_record()
    assert not np.any(watch(bank, y, u).gate.is_lost)
    wild, lost = y.copy(), y.copy()
    wild[60, 1] += spike
    lost[60] = np.nan
    seen, expected = watch(bank, wild, u), watch(bank, lost, u)
    np.testing.assert_array_equal(np.flatnonzero(seen.gate.is_lost), [60])
    np.testing.assert_allclose(seen.xhat, expected.xhat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(seen.log_likelihood, expected.log_likelihood, rtol=1e-9)


def test_what_goes_on_is_no_fault_of_the_sensor():
    """A jump: three samples are lost, then all are taken in. A first state far off: none is lost."""
    bank, y, u = calm_record()
    jumped = np.concatenate([y, y + 1e3])
    assert np.flatnonzero(watch(bank, jumped, np.concatenate([u, u])).gate.is_lost).tolist() == [
        160,
        161,
        162,
    ]
    assert not np.any(watch(bank, y + 1e3, u).gate.is_lost)


def test_what_is_absurd_does_not_depend_on_units():
    bank, y, u = calm_record()
    y[60] *= 25  # near the limit for some seeds, beyond it for others
    y[120] += 40
    units = np.asarray([100.0, 0.01])
    plants = [random_plant(0), random_plant(1)]
    scaled = [
        lg.LQG(p.A, p.B, units[:, None] * p.C, Q=p.Q, R=p.R, W=p.W, V=np.outer(units, units) * p.V, S0=p.S0)
        for p in plants
    ]
    other = watch(ModelBank(lg.stack(scaled)), y * units, u)
    plain = watch(bank, y, u)
    assert np.any(plain.gate.is_lost)
    np.testing.assert_array_equal(plain.gate.is_lost, other.gate.is_lost)
    difference = plain.log_likelihood - other.log_likelihood
    np.testing.assert_allclose(difference[:, 0], difference[:, 1], atol=1e-6)


def test_a_spike_leaves_derivatives_finite():
    bank, y, u = calm_record()
    y[60] += 1e200

    @jax.grad
    def slope(temperature):
        hot = eqx.tree_at(lambda b: b.log_temperature, bank, temperature)
        return jnp.sum(hot.weights(jax.tree.map(lambda leaf: leaf[-1], watch(hot, y, u))) ** 2)

    assert np.isfinite(slope(jnp.asarray(0.1)))


def test_where_inputs_cancel_the_likeliest_member_acts():
    """Members of opposite gains, equally likely: without input they would stay so for ever."""
    signs = lg.stack([lg.LQG([[1.05]], [[gain]], [[1.0]]) for gain in (1.0, -1.0)])
    y = np.linspace(1, 2, 5)[:, None]
    for policy in (ModelBank(signs), FilterBank(signs)):
        _, u = drive(policy, y)
        assert np.all(u != 0)
    inputs = jnp.asarray([[1.0, -2.0], [-1.0, 2.0]])
    np.testing.assert_array_equal(mix(jnp.asarray([0.5, 0.5]), inputs), inputs[0])
    np.testing.assert_allclose(mix(jnp.asarray([0.4, 0.6]), inputs), 0.2 * inputs[1])


def faults_of(num, *, size, steps):
    """None, and this many wild samples in a row from step 100 on."""
    now = np.arange(steps)
    return 0.0 * now, np.where((now >= 100) & (now < 100 + num), size, 0.0)


def test_a_burst_locks_no_bank_into_a_wrong_member():
    """Without bounds it paid ten times as much for ever, as the wrong member's own controller does."""
    family = lg.plants.mass_spring_damper(mass=1.0, gain=2.0, stiffness=(0.5, 4.0))
    members = family.grid(5)
    policy, keys = Saturated(ModelBank(members.systems), (-3, 4, 1.5)), jax.random.split(jax.random.key(1), 8)
    for num, size in ((4, 1e4), (10, 1e2)):
        calm, struck = (
            _loops(policy, members[2], keys, fault) for fault in faults_of(num, size=size, steps=1_000)
        )
        assert np.all(np.mean(struck[:, 600:], axis=1) < 1.5 * np.mean(calm[:, 600:], axis=1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ModelBank, DualBank])
def test_the_cost_of_a_loop_is_as_before_twenty_steps_after_a_spike(kind):
    family = lg.plants.mass_spring_damper(stiffness=(0.5, 4.0), gain=(1.0, 5.0))
    policy = kind(family.grid(4).systems)
    keys = jax.random.split(jax.random.key(1), 50)
    for truth in ([0.5, 1.0], [4.0, 5.0], [2.1, 2.2], [0.9, 4.4]):
        plant = family.system(truth)
        calm, struck = (
            _loops(policy, plant, keys, fault)[:, 120:] for fault in faults_of(1, size=1e4, steps=300)
        )
        # The same noise in both: what is left of the spike is the difference.
        assert np.mean(struck) < 1.1 * np.mean(calm)
        assert np.max(np.mean(struck, axis=1) / np.mean(calm, axis=1)) < 1.1


@eqx.filter_jit
@functools.partial(eqx.filter_vmap, in_axes=(None, None, 0, None))
def _loops(policy, plant, key, fault):
    """The cost of every step of a loop whose sensor has faults."""
    noise = jax.random.normal(key, (len(fault), 3))

    def step(carry, now):
        memory, x, u = carry
        wrong, z = now
        y = plant.C @ x + jnp.linalg.cholesky(plant.V) @ z[2:]
        memory, u = policy.step(memory, y + wrong, u)
        x = plant.A @ x + plant.B @ u + lg.linalg.sqrt_psd(plant.W) @ z[:2]
        return (memory, x, u), y @ plant.Q @ y + u @ plant.R @ u

    start = (policy.init(key), jnp.zeros(2), jnp.zeros(1))
    return jax.lax.scan(step, start, (fault, noise))[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(mode="best"), "mode is 'best'"),
        (dict(filters="exact"), "filters is 'exact'"),
        (dict(horizon=-1), "horizon is -1"),
    ],
)
@pytest.mark.usefixtures("as_users_run_it")
def test_unknown_choices_are_named(arguments, message):
    with pytest.raises(lg.InvalidArgumentError, match=message):
        ModelBank(lg.stack([random_plant(0)]), **arguments)


@pytest.mark.usefixtures("as_users_run_it")
def test_what_is_not_a_batch_is_refused_with_advice():
    with pytest.raises(lg.InvalidArgumentError, match="StationaryLQG"):
        ModelBank(random_plant(0))
    with pytest.raises(lg.InvalidArgumentError, match="systems is a Finite, expected an lqgap"):
        ModelBank(lg.simulators.Finite([random_plant(0)]))
    with pytest.raises(lg.NotConvergedError, match="no optimal controller"):
        ModelBank(lg.stack([lg.LQG([[1.1]], [[0.0]], [[1.0]])]))
