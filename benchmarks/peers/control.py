"""python-control's LQG design, simulation and realisation (ERA) against ours: same plants, noise, data."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.peers import peer
from benchmarks.peers.identification import record
from lqgap.evaluation.rollout import draw_noise
from lqgap.identification import MarkovParameters, Realization, estimate_markov, exact_markov, realize
from lqgap.policies import LinearDynamic, StationaryLQG

HORIZON = 200
NUM_PARAMETERS = 20
PROBING = 3.0  # standard deviation of the inputs that a record is made with


def run(*, points: int = 5, num_runs: int = 200, num_steps: int = 2000) -> str:
    """Three topics, one table."""
    topics: dict[str, Callable[[], list[list[str]]]] = {
        "LQG design": partial(design, points),
        "closed loop": partial(simulation, num_runs),
        "ERA": partial(realization, num_steps),
    }
    name, reason = peer.name("control"), peer.absence("control")
    if reason:
        rows = [[topic, name, reason] for topic in topics]
    else:
        rows = [[what, name, *cells] for measure in topics.values() for what, *cells in measure()]
    return peer.section(
        "control",
        "python-control",
        "Design: `dlqr` and `dlqe`, gains agree. Simulation: `forced_response` of the closed loop and its "
        f"cost, the noise being given; ours draws it as well; {HORIZON + 1} steps, costs agree. "
        f"Realisation: `eigensys_realization` and `realize` of the same {NUM_PARAMETERS} Markov parameters "
        f"of the predictor; those estimated are of a record of {num_steps} steps, of which our weighted way "
        "sees the moments too. Ours as it is called, where `jit` is not said.",
        ["what", "peer", "its figure", "ours", "ratio"],
        rows,
    )


def design(points: int) -> list[list[str]]:
    """Both gains of one plant, and of a class."""
    families = {"mass_spring_damper": lg.plants.mass_spring_damper(), "boeing_747": lg.plants.boeing_747()}
    rows = []
    for name, family in families.items():
        plant = family.nominal()
        K, F = _design(plant)
        optimum = lg.solve(plant)
        np.testing.assert_allclose(K, optimum.K, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(F, optimum.F, rtol=1e-6, atol=1e-9)
        compiled = jax.jit(lg.solve)
        theirs = peer.seconds(lambda plant=plant: _design(plant))
        what = f"LQG design, {name}, n = {plant.num_states}"
        rows.append(_times(what, theirs, peer.seconds(lambda plant=plant: lg.solve(plant))))
        rows.append(
            _times(f"{what}, `jit`", theirs, peer.seconds(lambda plant=plant, solve=compiled: solve(plant)))
        )
    members = lg.plants.mass_spring_damper().grid(points)
    plants, batched = list(members), jax.jit(jax.vmap(lg.solve))
    theirs = peer.seconds(lambda: [_design(plant) for plant in plants])
    ours = peer.seconds(lambda: batched(members.systems))
    return [*rows, _times(f"LQG design, {len(plants)} plants of mass_spring_damper", theirs, ours)]


def simulation(num_runs: int) -> list[list[str]]:
    """One run of the optimal controller on its plant, and many."""
    import control

    plant = lg.plants.mass_spring_damper().nominal()
    matrices = StationaryLQG(plant, filters="steady").at(0)
    policy = LinearDynamic(matrices.Ac, matrices.Bc, matrices.Cc, matrices.Dc)
    A, B, C, Ac, Bc, Cc, Dc, Q, R = (
        np.asarray(X)
        for X in (plant.A, plant.B, plant.C, policy.Ac, policy.Bc, policy.Cc, policy.Dc, plant.Q, plant.R)
    )
    W, V, S0 = (np.linalg.cholesky(np.asarray(X)) for X in (plant.W, plant.V, plant.S0))
    n, p = len(A), len(C)
    loop = control.ss(
        np.block([[A + B @ Dc @ C, B @ Cc], [Bc @ C, Ac]]),
        np.block([[W, B @ Dc @ V], [np.zeros((len(Ac), n)), Bc @ V]]),
        np.block([[C, np.zeros((p, len(Ac)))], [Dc @ C, Cc]]),
        np.block([[np.zeros((p, n)), V], [np.zeros((len(R), n)), Dc @ V]]),
        True,
    )
    keys = jax.random.split(jax.random.key(0), num_runs)
    noise = [np.asarray(draw_noise(plant, jax.random.split(key)[0], num_steps=HORIZON + 1)) for key in keys]

    def their_cost(normal: np.ndarray) -> float:
        start = np.concatenate([S0 @ normal[0, :n], np.zeros(len(Ac))])
        response = control.forced_response(loop, np.arange(HORIZON + 1), normal[1:].T, start, squeeze=False)
        y, u = np.split(response.outputs, [p])
        return float(np.sum(y * (Q @ y)) + np.sum(u * (R @ u)))

    def our_cost(key: jax.Array) -> jax.Array:
        return jnp.sum(lg.rollout(policy, plant, horizon=HORIZON, key=key).cost)

    batched = jax.jit(jax.vmap(our_cost))
    np.testing.assert_allclose(
        [their_cost(each) for each in noise], batched(keys), rtol=1e-6
    )  # noise is rounded to single
    one, many = (
        peer.seconds(lambda: their_cost(noise[0])),
        peer.seconds(lambda: [their_cost(each) for each in noise]),
    )
    compiled = jax.jit(our_cost)
    return [
        _times("closed loop, one run", one, peer.seconds(lambda: our_cost(keys[0]))),
        _times("closed loop, one run, `jit`", one, peer.seconds(lambda: compiled(keys[0]))),
        _times(f"closed loop, {num_runs} runs", many, peer.seconds(lambda: batched(keys))),
    ]


def realization(num_steps: int) -> list[list[str]]:
    """Of exact Markov parameters the time and what they lose; of estimated ones the error."""
    rows = []
    for name in ("mass_spring_damper", "boeing_747"):
        plant = getattr(lg.plants, name)().nominal()
        n = plant.num_states
        exact = exact_markov(lg.solve(plant), plant, length=NUM_PARAMETERS)
        rows.append(
            _times(
                f"ERA, {name}, exact parameters: time",
                peer.seconds(lambda exact=exact, n=n: _era(exact, n)),
                peer.seconds(lambda exact=exact, n=n: realize(exact, order=n)),
            )
        )
        theirs, ours = (error_of(model, exact) for model in (_era(exact, n), realize(exact, order=n)))
        assert max(theirs, ours) < 1e-6
        estimate = estimate_markov(*record(plant, PROBING, num_steps, seed=1), length=NUM_PARAMETERS)
        peers = error_of(_era(estimate.parameters, n), exact)
        for weighting in ("plain", "canonical"):
            ours = error_of(realize(estimate, order=n, weighting=weighting), exact)
            what = f"ERA, {name}, estimated parameters: error, ours {weighting}"
            rows.append([what, f"{peers:.3g}", f"{ours:.3g}", peer.ratio(peers, ours)])
    return rows


def error_of(model: Realization, exact: MarkovParameters) -> float:
    """Of all Markov parameters, relative."""
    found, wanted = model.markov(length=exact.length).matrix(), exact.matrix()
    return float(jnp.linalg.norm(found - wanted) / jnp.linalg.norm(wanted))


def _times(what: str, theirs: float, ours: float) -> list[str]:
    return [what, peer.duration(theirs), peer.duration(ours), peer.ratio(theirs, ours)]


def _design(plant: lg.LQG) -> tuple[np.ndarray, np.ndarray]:
    import control

    A, B, C, R, W, V = (np.asarray(X) for X in (plant.A, plant.B, plant.C, plant.R, plant.W, plant.V))
    return (
        control.dlqr(A, B, np.asarray(plant.state_weight), R)[0],
        control.dlqe(A, np.eye(len(A)), C, W, V)[0],
    )


def _era(markov: MarkovParameters, order: int) -> Realization:
    """Of Abar, [F, B] and C: the first of the peer's parameters is a feedthrough, which is zero."""
    import control

    blocks = np.concatenate([np.asarray(markov.of_outputs), np.asarray(markov.of_inputs)], axis=2)
    p = blocks.shape[1]
    data = np.concatenate([np.zeros_like(blocks[:1]), blocks]).transpose(1, 2, 0)
    system, _ = control.eigensys_realization(data, order)
    F, B = system.B[:, :p], system.B[:, p:]
    return Realization(*map(jnp.asarray, (system.A + F @ system.C, B, system.C, F)), markov.S)
