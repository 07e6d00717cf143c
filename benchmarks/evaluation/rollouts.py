"""Closed-loop rollouts against a vectorised NumPy loop and Gymnasium; the variance of the gap identity."""

import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.timing import seconds, table
from lqgap.evaluation.rollout import draw_noise
from lqgap.interop import LQGEnv
from lqgap.policies import FiniteHorizonLQG, LinearDynamic, ModelBank, StationaryLQG

HORIZON = 200
SIZES = (1024, 2048, 4096, 8192)


def run() -> str:
    """Three sections."""
    return "\n".join([speed(), variance(), control()])


def speed() -> str:
    plant = lg.plants.mass_spring_damper().nominal()
    matrices = StationaryLQG(plant, filters="steady").at(0)
    policy = LinearDynamic(matrices.Ac, matrices.Bc, matrices.Cc, matrices.Dc)  # as in the NumPy loop

    def cost(key, precision):
        return jnp.sum(lg.rollout(policy, plant, horizon=HORIZON, key=key, precision=precision).cost)

    def draw(key):
        return jnp.sum(draw_noise(plant, key, num_steps=HORIZON + 1))

    own, double = best_step(jax.vmap(lambda key: cost(key, "float64")))
    in_single, _ = best_step(jax.vmap(lambda key: cost(key, "float32")))
    drawing, _ = best_step(jax.vmap(draw), sizes=(double,))
    rng = np.random.default_rng(0)
    with_numpy = {
        size: seconds(lambda size=size: numpy_rollouts(plant, rng, size)) / size / (HORIZON + 1)
        for size in SIZES
    }
    numpy_size = min(with_numpy, key=with_numpy.__getitem__)
    peers = {
        f"vectorised NumPy, {numpy_size} at a time": (with_numpy[numpy_size], "1.3x"),
        "Gymnasium SyncVectorEnv": (gymnasium_step(plant), "100x"),
    }
    rows = [
        [f"lqgap, float64, {double} at a time", f"{own * 1e9:.0f} ns", "1", ""],
        ["of which drawing noise", f"{drawing * 1e9:.0f} ns", f"{drawing / own:.0%} of the time", ""],
        ["lqgap, float32", f"{in_single * 1e9:.0f} ns", f"{in_single / own:.2f}", ""],
        *([name, f"{t * 1e9:.0f} ns", f"{t / own:.3g}x", wanted] for name, (t, wanted) in peers.items()),
    ]
    note = (
        f"Rollouts of {HORIZON + 1} steps, mass on a spring under its optimal controller: time of one step "
        f"of one rollout, with controller and cost, after compilation; each at the best of {SIZES} at a time."
    )
    return table("Closed-loop rollouts", note, ["", "a step", "against lqgap", "wanted"], rows)


def best_step(function, *, sizes=None) -> tuple[float, int]:
    """The shortest time of a step over numbers of rollouts at a time, and that number."""
    times = {}
    for size in sizes or SIZES:
        keys = jax.random.split(jax.random.key(0), size)
        compiled = jax.jit(function)
        jax.block_until_ready(compiled(keys))
        times[size] = seconds(lambda compiled=compiled, keys=keys: compiled(keys)) / size / (HORIZON + 1)
    best = min(times, key=times.__getitem__)
    return times[best], best


def variance() -> str:
    rows = []
    for name in (
        "mass_spring_damper",
        "unknown_sign",
        "web_server",
        "boeing_747",
        "two_mass_spring",
        "thermal_zones",
    ):
        plant = getattr(lg.plants, name)().nominal()
        near = StationaryLQG(
            lg.LQG(
                plant.A * 0.98,
                plant.B * 0.9,
                plant.C,
                Q=plant.Q,
                R=plant.R,
                W=plant.W,
                V=plant.V,
                S0=plant.S0,
            )
        )
        keys = jax.random.split(jax.random.key(0), 4096)
        best = FiniteHorizonLQG(plant, HORIZON)

        def totals(key, near=near, best=best, plant=plant):
            costs = [jnp.sum(lg.rollout(p, plant, horizon=HORIZON, key=key).cost) for p in (near, best)]
            return costs[0], costs[0] - costs[1]

        costs, differences = (np.asarray(part) for part in jax.jit(jax.vmap(totals))(keys))
        estimate = lg.gap(near, plant, horizon=HORIZON, key=jax.random.key(1), num_rollouts=4096)
        spread = estimate.stderr[0] ** 2 * 4096
        exact = float(lg.exact_gap(near, plant, horizon=HORIZON))
        rows.append(
            [
                name,
                f"{exact:.4g}",
                f"{estimate.mean[0]:.4g} +- {estimate.stderr[0]:.2g}",
                f"{costs.mean() - estimate.value[0]:.4g} +- {costs.std() / 64:.2g}",
                f"{costs.var() / spread:.0f}x",
                "30x",
                f"{differences.var() / spread:.0f}x",
            ]
        )
    note = (
        "The optimal controller of a plant 2 % more damped, with a gain 10 % smaller, on the nominal plant, "
        "4096 rollouts: the gap by its identity, against the costs less the optimal cost, which is known. "
        "Ratios are of variances; the last one is against differences of cost to the optimal controller on "
        "the same noise."
    )
    header = ["plant", "exact gap", "identity", "cost - V*", "ratio", "wanted", "ratio, common noise"]
    return table("Variance of the gap", note, header, rows)


def control() -> str:
    members = lg.plants.mass_spring_damper().grid(5)
    matrices = StationaryLQG(members[0], filters="steady").at(0)
    rows = []
    for name, policy, wanted in (
        ("LinearDynamic", LinearDynamic(matrices.Ac, matrices.Bc, matrices.Cc, matrices.Dc), "60 us"),
        ("StationaryLQG", StationaryLQG(members[0]), "60 us"),
        ("ModelBank of 25", ModelBank(members.systems), "150 us"),
    ):
        controller = lg.Controller(policy)
        times = []
        for step in range(2000):
            start = time.perf_counter()
            controller(np.sin(step))
            times.append(time.perf_counter() - start)
        low, middle, high = np.percentile(times, [5, 50, 99]) * 1e6
        rows.append([name, f"{low:.0f} us", f"{middle:.0f} us", f"{high:.0f} us", wanted])
    note = "Time of one call of a `Controller`, over 2000 calls; what is wanted is wanted of the median."
    return table("A step of a real loop", note, ["policy", "5 %", "median", "99 %", "wanted"], rows)


def numpy_rollouts(plant: lg.LQG, rng: np.random.Generator, count: int) -> np.ndarray:
    """What one would write in NumPy: all rollouts side by side, step by step."""
    controller = StationaryLQG(plant, filters="steady").at(0)
    A, B, C, Q, R = (np.asarray(getattr(plant, name)) for name in ("A", "B", "C", "Q", "R"))
    Ac, Bc, Cc, Dc = (np.asarray(getattr(controller, name)) for name in ("Ac", "Bc", "Cc", "Dc"))
    x, xi, total = rng.standard_normal((count, len(A))), np.zeros((count, len(Ac))), np.zeros(count)
    for _ in range(HORIZON + 1):
        y = x @ C.T + rng.standard_normal((count, len(C)))
        u = xi @ Cc.T + y @ Dc.T
        total += np.sum(y @ Q * y, axis=1) + np.sum(u @ R * u, axis=1)
        xi = xi @ Ac.T + y @ Bc.T
        x = x @ A.T + u @ B.T + rng.standard_normal((count, len(A)))
    return total


def gymnasium_step(plant: lg.LQG, *, num_envs: int = 16, steps: int = 200) -> float:
    """The time of one step of one environment, with the same controller beside it."""
    controller = StationaryLQG(plant, filters="steady").at(0)
    Ac, Bc, Cc, Dc = (np.asarray(getattr(controller, name)) for name in ("Ac", "Bc", "Cc", "Dc"))
    environments = gymnasium.vector.SyncVectorEnv(
        [lambda: LQGEnv(plant, horizon=HORIZON) for _ in range(num_envs)]
    )
    y, _ = environments.reset(seed=0)
    xi = np.zeros((num_envs, len(Ac)))
    start = time.perf_counter()
    for _ in range(steps):
        u = xi @ Cc.T + y @ Dc.T
        xi = xi @ Ac.T + y @ Bc.T
        y, *_ = environments.step(u)
    elapsed = time.perf_counter() - start
    environments.close()
    return elapsed / (steps * num_envs)
