import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from naive_identified import loss_rows, responses

import lqgap as lg
from lqgap.adaptive import DisturbanceResponse
from lqgap.adaptive.identified.response import close_inside
from lqgap.identification import innovation_form
from lqgap.policies import StationaryLQG, Zero


@functools.cache
def plant_of(name):
    how = {"measured": "speed_and_attitude"} if name == "boeing_747" else {}
    return getattr(lg.plants, name)(**how).nominal()


@eqx.filter_jit
def features_of(learner, y, u_last):
    """Features of all steps along a record."""
    start = learner.response.at_rest(len(learner.loop.A))

    def step(seen, now):
        seen = learner.response.advance(learner.loop, seen, *now)
        return seen, seen

    return jax.lax.scan(step, start, (y, u_last))[1]


@pytest.mark.parametrize("feature", ["innovations", "nature"])
def test_the_loss_is_that_of_replaying_all_past_inputs(feature):
    """And so its derivative has the cost of outputs in it."""
    plant = plant_of("web_server")
    learner = DisturbanceResponse(plant, memory=3, feature=feature)
    draws = np.random.default_rng(0)
    y, u = draws.normal(size=(12, 2)), draws.normal(size=(12, 2))
    seen = features_of(learner, jnp.asarray(y), jnp.concatenate([jnp.zeros((1, 2)), u[:-1]]))
    last = jax.tree.map(lambda leaf: leaf[-1], seen)
    form = innovation_form(lg.solve(plant), plant)
    matrices = tuple(np.asarray(part) for part in (form.A, form.B, form.C, form.F))
    natural, f, v = responses(matrices, y, u, memory=3, feature=feature)
    rows, without = loss_rows(natural[11], f(11), v(11), Q=np.asarray(plant.Q), R=np.asarray(plant.R))
    taps = draws.normal(size=(3, 2, 2))
    found_rows, found = learner.response.residual(jnp.asarray(taps), last)
    expected = without + rows @ taps.ravel()
    np.testing.assert_allclose(found @ found, expected @ expected, rtol=1e-9)
    np.testing.assert_allclose(found_rows.T @ found, rows.T @ expected, rtol=1e-8, atol=1e-10)
    # By hand: the replayed inputs, and the output that they would have made.
    A, B, C, _ = matrices
    played = [sum(taps[k] @ f(t)[k] for k in range(3)) for t in range(12)]
    x = np.zeros(2)
    for w in played[:-1]:
        x = A @ x + B @ w
    output = natural[11] + C @ x
    cost = output @ np.asarray(plant.Q) @ output + played[11] @ np.asarray(plant.R) @ played[11]
    np.testing.assert_allclose(found @ found, cost, rtol=1e-9)


@pytest.mark.parametrize("update", ["newton", "gradient"])
def test_with_past_inputs_held_as_they_were_played_nothing_is_ever_learned(update):
    """The loss then has the cost of inputs alone: from zero taps its gradient is zero, and they stay there."""
    plant = plant_of("mass_spring_damper")
    learner, draws = DisturbanceResponse(plant, memory=3, update=update), np.random.default_rng(0)
    y, u = draws.normal(size=(60, 1)), np.zeros((60, 1))
    seen = features_of(learner, jnp.asarray(y), jnp.asarray(u))
    learn = jax.jit(
        lambda seen: jax.lax.scan(lambda law, now: (learner.response.learn(law, now), None), start, seen)[0]
    )
    start = learner.response.nothing_learned()
    held = eqx.tree_at(lambda tree: tree.v, seen, jnp.zeros_like(seen.v))
    np.testing.assert_array_equal(learn(held).taps, 0)
    assert np.linalg.norm(learn(seen).taps) > 0.01


def best_taps(learner, plant, steps=300):
    """Taps with the least average loss under white innovations; the loss, and how well that is conditioned."""
    form = innovation_form(lg.solve(plant), plant)
    A, C, F = (np.asarray(part) for part in (form.A, form.C, form.F))
    total = None
    for direction in np.linalg.cholesky(np.asarray(form.S)).T:
        x, ys = F @ direction, [direction]
        for _ in range(steps):
            ys.append(C @ x)
            x = A @ x
        u_last = jnp.zeros((len(ys), plant.num_inputs))
        seen = features_of(learner, jnp.asarray(np.asarray(ys)), u_last)
        rows, r = jax.vmap(lambda each: learner.response.residual(jnp.zeros(learner.response.sizes), each))(
            seen
        )
        z = np.concatenate([np.asarray(rows), np.asarray(r)[:, :, None]], axis=2).reshape(
            -1, rows.shape[2] + 1
        )
        total = z.T @ z if total is None else total + z.T @ z
    taps = -np.linalg.solve(total[:-1, :-1], total[:-1, -1])
    return (
        taps.reshape(learner.response.sizes),
        total[-1, -1] + taps @ total[:-1, -1],
        np.linalg.cond(total[:-1, :-1]),
    )


@pytest.mark.parametrize(
    ("name", "memory", "feature", "excess", "condition"),
    [
        ("mass_spring_damper", 3, "innovations", 3.05, None),
        ("mass_spring_damper", 10, "innovations", 0.002, 59),
        ("mass_spring_damper", 10, "nature", 0.04, 2.2e3),
        ("web_server", 3, "innovations", 0.06, None),
        ("web_server", 10, "nature", 0.0, 24),
        ("dc_motor", 3, "innovations", 2.4, None),
        ("dc_motor", 10, "innovations", 0.002, 14),
        ("dc_motor", 10, "nature", 0.01, 1.3e3),
        pytest.param("boeing_747", 10, "innovations", 1.42, 1.5e3, marks=pytest.mark.slow),
        pytest.param("boeing_747", 10, "nature", 4.3, 5.4e7, marks=pytest.mark.slow),
    ],
)
def test_truncation_and_conditioning_are_as_known(name, memory, feature, excess, condition):
    plant = plant_of(name)
    steps = 1_500 if name == "boeing_747" else 300  # until its slowest mode is forgotten
    learner = DisturbanceResponse(plant, memory=memory, feature=feature)
    _, loss, found = best_taps(learner, plant, steps)
    J = float(lg.solve(plant).J)
    assert 100 * (loss / J - 1) == pytest.approx(excess, abs=0.006, rel=0.02)
    if condition is not None:
        assert found == pytest.approx(condition, rel=0.04)  # to two digits


def test_the_best_taps_are_those_of_the_optimal_controller():
    plant = plant_of("mass_spring_damper")
    optimum = lg.solve(plant)
    taps, *_ = best_taps(DisturbanceResponse(plant, memory=20), plant)
    G = np.linalg.solve(np.asarray(optimum.M), np.asarray(plant.B.T @ optimum.P))
    step = np.asarray(plant.A @ (np.eye(2) - plant.B @ G))
    expected = [-G @ np.linalg.matrix_power(step, k) @ np.asarray(optimum.F) for k in range(20)]
    # What the 20th tap does in place of all later ones: they decay by 0.57 a step.
    np.testing.assert_allclose(taps, expected, atol=5e-5)
    assert np.linalg.norm(expected) == pytest.approx(1.08, abs=0.01)


def test_a_controller_inside_makes_the_loop_of_its_matrices():
    plant = plant_of("boeing_747")
    inside = StationaryLQG(plant, filters="steady")
    step = inside.at(inside.num_transient)
    form = innovation_form(lg.solve(plant), plant)
    loop = close_inside(form, step)
    draws = np.random.default_rng(0)
    state, w, e = draws.normal(size=len(loop.A)), draws.normal(size=2), draws.normal(size=2)
    s, xi = state[:4], state[4:]
    y = np.asarray(form.C) @ s + e
    u = np.asarray(step.Cc) @ xi + np.asarray(step.Dc) @ y
    later = np.concatenate(
        [
            np.asarray(form.A) @ s + np.asarray(form.B) @ (u + w) + np.asarray(form.F) @ e,
            np.asarray(step.Ac) @ xi + np.asarray(step.Bc) @ y,
        ]
    )
    np.testing.assert_allclose(loop.A @ state + loop.B @ w + loop.F @ e, later, rtol=1e-9, atol=1e-9)
    seen = np.asarray(loop.C @ state) + np.concatenate([e, np.asarray(loop.Dc) @ e])
    np.testing.assert_allclose(seen, np.concatenate([y, u]), rtol=1e-9, atol=1e-9)
    alone = close_inside(form, Zero(num_inputs=2, num_outputs=2).at(0))
    np.testing.assert_array_equal(alone.A, form.A)
