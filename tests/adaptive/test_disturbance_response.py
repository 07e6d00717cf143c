import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_identified import MEMORY, STEPS, loss_rows, record, require_taps, responses, spring, told

import lqgap as lg
from lqgap.adaptive import DisturbanceResponse, IdentifiedDisturbanceResponse, UnknownPlant, run_many
from lqgap.identification import innovation_form
from lqgap.policies import StationaryLQG


@pytest.mark.parametrize("feature", ["innovations", "nature"])
def test_newtons_inputs_are_those_of_the_regularised_leader_recomputed_from_the_record(feature):
    plant = spring()
    seen = record(DisturbanceResponse(plant, memory=MEMORY, feature=feature))
    form = innovation_form(lg.solve(plant), plant)
    matrices = tuple(np.asarray(part) for part in (form.A, form.B, form.C, form.F))
    natural, f, v = responses(matrices, seen.y, seen.u, memory=MEMORY, feature=feature)
    losses = [
        loss_rows(natural[t], f(t), v(t), Q=np.asarray(plant.Q), R=np.asarray(plant.R)) for t in range(STEPS)
    ]
    first = MEMORY + 20  # steps that set the scale
    np.testing.assert_array_equal(seen.u[:first], 0)
    scale = np.mean([np.sum(rows**2) for rows, _ in losses[MEMORY:first]])
    gram, right = 5 * scale / MEMORY * np.eye(MEMORY), np.zeros(MEMORY)
    for t in range(first, STEPS):
        rows, r = losses[t]
        gram, right = gram + rows.T @ rows, right + rows.T @ r
        seen.require(t, -np.linalg.solve(gram, right) @ np.concatenate(f(t)))


@pytest.mark.parametrize("update", ["gradient", "strong gradient"])
def test_gradient_inputs_are_those_of_steps_recomputed_from_the_record(update):
    plant = spring()
    seen = record(DisturbanceResponse(plant, memory=MEMORY, update=update))
    form = innovation_form(lg.solve(plant), plant)
    matrices = tuple(np.asarray(part) for part in (form.A, form.B, form.C, form.F))
    natural, f, v = responses(matrices, seen.y, seen.u, memory=MEMORY)
    taps, mean = np.zeros(MEMORY), 0.0
    for t in range(MEMORY, STEPS):
        rows, r = loss_rows(natural[t], f(t), v(t), Q=np.asarray(plant.Q), R=np.asarray(plant.R))
        size, since = 2 * np.sum(rows**2), t + 1 - MEMORY
        if since > 20:
            number = since - 20
            eta = 1 / (size + mean * (np.sqrt(number) if update == "gradient" else 1 + number / 50))
            taps = taps - 2 * eta * rows.T @ (r + rows @ taps)
            seen.require(t, taps @ np.concatenate(f(t)))
        mean += (size - mean) / since


def test_lost_samples_are_not_learned_from_and_inputs_stay_sound():
    seen = record(DisturbanceResponse(spring(), memory=MEMORY), share=0.2)
    assert np.all(np.isfinite(seen.u))
    assert np.sqrt(np.mean(seen.y[-100:] ** 2)) < 4


@eqx.filter_jit
def follow(learner, ys):
    """Inputs along given observations, and which of them counted as lost."""

    def step(carry, y):
        memory, u = learner.step(carry[0], y, carry[1])
        return (memory, u), (u, learner.snapshot(memory).is_fault)

    return jax.lax.scan(step, (learner.init(jax.random.key(0)), jnp.zeros(1)), ys)[1]


def test_a_fault_of_the_sensor_counts_as_lost_and_a_first_state_far_off_does_not():
    learner = DisturbanceResponse(spring(), memory=MEMORY)
    y = np.random.default_rng(0).normal(size=(STEPS, 1))
    wild, lost, far = y.copy(), y.copy(), y + 1e4 * 0.8 ** np.arange(STEPS)[:, None]
    wild[120], lost[120] = 1e4, np.nan
    (u, is_fault), (u_lost, _) = follow(learner, wild), follow(learner, lost)
    np.testing.assert_array_equal(np.flatnonzero(is_fault), [120])
    np.testing.assert_allclose(u, u_lost, rtol=1e-9, atol=1e-12)
    assert not np.any(follow(learner, far)[1])


def test_inputs_with_an_identified_operator_are_those_of_a_recomputation_from_the_record():
    """One model, at 4d; the operator stays."""
    seen = record(IdentifiedDisturbanceResponse(told(), horizon=STEPS, memory=MEMORY))
    assert seen.made == [64]
    require_taps(seen)


@pytest.mark.slow
def test_taps_approach_those_of_the_optimal_controller_and_excess_fades():
    plant = spring()
    traces = run_many(
        DisturbanceResponse(plant, memory=10),
        plant,
        horizon=10_000,
        keys=jax.random.split(jax.random.key(0), 8),
    )
    J = float(lg.solve(plant).J)
    assert np.mean([trace.excess[-1] for trace in traces]) < 0.03 * J * 10_000
    assert np.mean([trace.figures["taps"][-1] for trace in traces]) == pytest.approx(1.08, abs=0.05)


@pytest.mark.slow
def test_a_stabiliser_inside_saves_a_slow_plant_from_its_first_inputs():
    plant = lg.plants.boeing_747(measured="speed_and_attitude").nominal()
    other = lg.plants.boeing_747(measured="speed_and_attitude").grid(2)[0]
    inside = StationaryLQG(other, filters="steady")
    excess = []
    for stabilizer in (None, inside):
        learner = DisturbanceResponse(plant, memory=10, stabilizer=stabilizer)
        traces = run_many(learner, plant, horizon=1_000, keys=jax.random.split(jax.random.key(0), 8))
        excess.append(np.mean([trace.excess[-1] for trace in traces]))
    assert excess[1] < 0.05 * excess[0]


@pytest.mark.slow
def test_an_identified_operator_explores_and_then_learns():
    plant = spring()
    learner = IdentifiedDisturbanceResponse(UnknownPlant.like(plant), horizon=2_000)
    assert learner.first_fit == 159
    traces = run_many(learner, plant, horizon=2_000, keys=jax.random.split(jax.random.key(0), 8))
    for trace in traces:
        assert trace.switches[0].step == 159
        assert trace.figures["taps"][-1] > 0.3


@pytest.mark.usefixtures("as_users_run_it")
def test_bad_arguments_are_named():
    unstable = lg.plants.laplacian().nominal()
    with pytest.raises(lg.InvalidArgumentError, match="stabilizer"):
        DisturbanceResponse(unstable)
    DisturbanceResponse(unstable, stabilizer=StationaryLQG(unstable, filters="steady"))
    for name, value in (("memory", 0), ("update", "adam"), ("feature", "y"), ("regularization", -1.0)):
        with pytest.raises(lg.InvalidArgumentError, match=name):
            DisturbanceResponse(spring(), **{name: value})
    with pytest.raises(lg.InvalidSystemError, match="plant is a Finite"):
        DisturbanceResponse(lg.Finite(lg.stack([spring()])))
