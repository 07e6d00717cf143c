"""The likelihood of a long record, by our Kalman filter and by those of statsmodels, dynamax and filterpy.

All get the same matrices, prior, record and inputs, and must agree on the number before they are timed. The
bank is a class whose members are each given the whole record: what a deployed bank of models computes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.peers import peer

AGREEMENT = 1e-8
FAMILIES = {
    "mass_spring_damper": lambda: lg.plants.mass_spring_damper().grid(5),
    "boeing_747, two outputs": lambda: lg.plants.boeing_747(measured="speed_and_attitude").grid(2),
}

Likelihood = Callable[[], float]


def run(*, num_steps: int = 10_000, names: Sequence[str] = tuple(FAMILIES)) -> str:
    """One filter and a bank, on two families."""
    rows = [row for name in names for row in _rows(name, num_steps)]
    return peer.section(
        "filters",
        "filters and likelihoods",
        f"Log-likelihood of a record of {num_steps} steps under one plant, and under every plant of a "
        f"class: exact Kalman filter, after compilation. Peers' numbers agree with ours to {AGREEMENT:g}. "
        "statsmodels stops updating covariances once they have settled; filterpy runs in Python, and is "
        "timed on 2 % of the record. Ours: `log_likelihood`, and a `ModelBank`, whose gains are planned "
        "beforehand and which also forms every plant's input.",
        ["class", "plants", "peer", "its time", "ours", "ratio", "ours in a bank", "ratio", "difference"],
        rows,
    )


def _rows(name: str, num_steps: int) -> list[list[str]]:
    rows = [[name, "", distribution, reason] for distribution, reason in peer.absences(PEERS).items()]
    if len(rows) == len(PEERS):
        return rows
    plants = list(FAMILIES[name]())
    y, u = _record(plants[0], num_steps)

    def likelihood(plant: lg.LQG) -> jax.Array:
        return lg.log_likelihood(plant, y, u)

    one, many = jax.jit(likelihood), jax.jit(jax.vmap(likelihood))
    for count, filtered in ((1, partial(one, plants[0])), (len(plants), partial(many, lg.stack(plants)))):
        bank = lg.policies.ModelBank(lg.stack(plants[:count]))
        ours = filtered, jax.jit(partial(_bank_likelihood, bank, y, u))
        exact = np.atleast_2d(ours[0]())
        np.testing.assert_allclose(ours[1](), exact[:, -1], rtol=AGREEMENT)
        times = [peer.seconds(each) for each in ours]
        for distribution in sorted(PEERS.keys() - peer.absences(PEERS)):
            compute, share = PEERS[distribution](plants[:count], y, u)
            difference = np.max(np.abs(np.asarray(compute()) / exact[:, int(share * num_steps) - 1] - 1))
            assert difference < AGREEMENT
            theirs = peer.seconds(compute, rounds=3) / share
            compared = [cell for time in times for cell in (peer.duration(time), peer.ratio(theirs, time))]
            cells = [name, str(count), peer.name(distribution), peer.duration(theirs)]
            rows.append([*cells, *compared, f"{difference:.0e}"])
    return rows


def _bank_likelihood(bank: lg.policies.ModelBank, y: np.ndarray, u: np.ndarray) -> jax.Array:
    def step(memory: Any, record: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
        return bank.propose(memory, *record)[0], None

    before = jnp.concatenate([jnp.zeros_like(u[:1]), u[:-1]])
    return jax.lax.scan(step, bank.init(jax.random.key(0)), (y, before))[0].log_likelihood


def _record(plant: lg.LQG, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The plant under its own optimal controller."""
    policy = lg.policies.StationaryLQG(plant)
    record = lg.rollout(policy, plant, horizon=num_steps - 1, key=jax.random.key(0))
    return np.asarray(record.y), np.asarray(record.u)


def _statsmodels(plants: list[lg.LQG], y: np.ndarray, u: np.ndarray) -> tuple[Callable[[], Any], float]:
    from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

    models = []
    for plant in plants:
        model = KalmanFilter(k_endog=plant.num_outputs, k_states=plant.num_states)
        model.bind(y.copy())
        parts = {"design": plant.C, "transition": plant.A, "obs_cov": plant.V, "state_cov": plant.W}
        for part, matrix in parts.items():
            model[part] = np.array(matrix)
        model["selection"] = np.eye(plant.num_states)
        model["state_intercept"] = np.array(plant.B) @ u.T
        model.initialize_known(np.zeros(plant.num_states), np.array(plant.S0))
        models.append(model)
    return lambda: [model.loglike() for model in models], 1.0


def _dynamax(plants: list[lg.LQG], y: np.ndarray, u: np.ndarray) -> tuple[Callable[[], Any], float]:
    from dynamax.linear_gaussian_ssm import inference

    before = jnp.concatenate([jnp.zeros_like(u[:1]), u[:-1]])  # the input that acts on the step to t

    def likelihood(plant: lg.LQG) -> jax.Array:
        n, m, p = plant.num_states, plant.num_inputs, plant.num_outputs
        params = inference.ParamsLGSSM(
            initial=inference.ParamsLGSSMInitial(mean=jnp.zeros(n), cov=plant.S0),
            dynamics=inference.ParamsLGSSMDynamics(
                weights=plant.A, bias=jnp.zeros(n), input_weights=plant.B, cov=plant.W
            ),
            emissions=inference.ParamsLGSSMEmissions(
                weights=plant.C, bias=jnp.zeros(p), input_weights=jnp.zeros((p, m)), cov=plant.V
            ),
        )
        return inference.lgssm_filter(params, jnp.asarray(y), before).marginal_loglik

    if len(plants) == 1:
        compiled = jax.jit(likelihood)
        return lambda: compiled(plants[0]), 1.0
    together, compiled = lg.stack(plants), jax.jit(jax.vmap(likelihood))
    return lambda: compiled(together), 1.0


def _filterpy(plants: list[lg.LQG], y: np.ndarray, u: np.ndarray) -> tuple[Callable[[], Any], float]:
    from filterpy.kalman import KalmanFilter

    share = 0.02

    def likelihood(plant: lg.LQG) -> float:
        model = KalmanFilter(dim_x=plant.num_states, dim_z=plant.num_outputs, dim_u=plant.num_inputs)
        model.x, model.P = np.zeros((plant.num_states, 1)), np.array(plant.S0)
        model.F, model.B, model.H, model.Q, model.R = (
            np.array(X) for X in (plant.A, plant.B, plant.C, plant.W, plant.V)
        )
        total = 0.0
        for observed, applied in zip(y[: int(share * len(y))], u, strict=False):
            model.update(observed[:, None])
            total += model.log_likelihood
            model.predict(u=applied[:, None])
        return total

    return lambda: [likelihood(plant) for plant in plants], share


PEERS = {"statsmodels": _statsmodels, "dynamax": _dynamax, "filterpy": _filterpy}
