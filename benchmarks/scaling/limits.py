"""Where growth ends, by trying: one huge batch, too many steps, single precision; and what then."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.scaling.curves import show_megabytes, show_seconds, time_of
from benchmarks.scaling.members import draw_members
from benchmarks.scaling.memory import in_a_process, peak
from benchmarks.timing import seconds, table
from lqgap.evaluation.long_run import excess_in_the_long_run
from lqgap.policies import ModelBank, StationaryLQG

WHOLE = 1_000  # members of a bank that is judged on all of them
LONG, MANY = 1_000_000, 100_000
CHECKED = (1_000, 30_000, 1_000_000)  # steps after which inputs of both precisions are compared
NUM_RUNS, RUN_STEPS = 4_096, 200


def run() -> str:
    """One table."""
    rows = [*huge_batch(), *one_program(), *long_horizon(), *single(), *devices()]
    note = (
        "Everything was tried where this table was made; memory is the peak of a fresh process above what it "
        "had before, as in the section on memory."
    )
    return table("Growth: where it ends, and what then", note, ["limit", "tried", "measured"], rows)


def huge_batch() -> list[list[str]]:
    """A bank of all members on all of them needs memory for all pairs."""
    members = draw_members(WHOLE)
    bank = ModelBank(members.systems, filters="steady")
    how = dict(horizon=9, num_rollouts=2, key=jax.random.key(1))
    few = [lg.gap(bank, members.subset(rows), **how).mean for rows in np.split(np.arange(200), 2)]
    apart = np.max(np.abs(np.concatenate(few) / lg.gap(bank, members.subset(range(200)), **how).mean - 1))
    whole, chunked = (peak(name, WHOLE) for name in ("gap of a bank on all, members", "the same in chunks"))
    return [
        [
            "memory, one huge batch",
            f"a bank of {WHOLE:,} members, its gap on all of them",
            show_megabytes(whole),
        ],
        ["", "the same on 100 members at a time, with the same key", show_megabytes(chunked)],
        ["", "largest relative difference of gaps, 200 members", f"{apart:.1g}"],
    ]


def one_program() -> list[list[str]]:
    """All members by one mapped program, against programs of fixed size in turn."""
    return [
        [
            "memory, one program for all",
            f"`jit(vmap(solve))` of {MANY:,} plants",
            show_megabytes(peak("`solve`, all at once", MANY)),
        ],
        ["", "`optima`, 1,024 at a time", show_megabytes(peak("`optima`, members", MANY))],
    ]


def long_horizon() -> list[list[str]]:
    """References have a gain for every step."""
    members = lg.plants.mass_spring_damper().grid(5)
    bank, key = ModelBank(members.systems), jax.random.key(0)
    try:
        lg.gap(bank, members, horizon=LONG, num_rollouts=2, key=key)
        refused = "not refused"
    except lg.InvalidArgumentError as error:
        refused = f"refused: {error}"

    def parts() -> Any:
        how = dict(horizon=999, num_horizons=20, num_rollouts=2, key=key)
        return excess_in_the_long_run(bank, members, **how)

    took = time_of(parts) / 20_000
    return [
        ["steps", f"`gap` of a bank of 25 on all of them over {LONG:,} steps", refused],
        [
            "",
            "`excess_in_the_long_run`, 1,000 steps at a time",
            f"{show_seconds(took)} a step of 50 rollouts",
        ],
    ]


def single() -> list[list[str]]:
    """Inputs of one rollout in both precisions, on the same noise."""
    members = lg.plants.mass_spring_damper().grid(20)
    policies = {"`StationaryLQG`": StationaryLQG(members[210]), "bank of 400": ModelBank(members.systems)}
    rows = []
    for name, policy in policies.items():
        horizons = CHECKED if name.startswith("`") else CHECKED[:2]
        far = [f"{_apart(policy, members[210], steps):.1g} after {steps:,}" for steps in horizons]
        rows.append(["", f"float32 against float64, {name}", f"inputs differ by {', '.join(far)}"])
    rows[0][0] = "precision"
    plant = members[210]
    times = {
        precision: time_of(lambda precision=precision: _costs(plant, precision))
        for precision in ("float64", "float32")
    }
    ratio = times["float64"] / times["float32"]
    rows.append(["time", f"{NUM_RUNS:,} rollouts of {RUN_STEPS} steps in float32", f"{ratio:.2f}x as fast"])
    return rows


def devices() -> list[list[str]]:
    """Rollouts shared among devices; here, the processors of one machine."""
    flags = "--xla_force_host_platform_device_count="
    module = "benchmarks.scaling.limits"
    one, two = (float(in_a_process(module, XLA_FLAGS=f"{flags}{count}")) for count in (1, 2))
    tried = f"the same rollouts by `shard_map` over 2 devices (`{flags}2`)"
    return [["", tried, f"{1e3 * two:.0f} ms on the clock, {1e3 * one:.0f} ms on one"]]


def _apart(policy: Any, plant: lg.LQG, steps: int) -> float:
    """The largest difference in the last tenth, in standard deviations of the input."""
    runs = [
        lg.rollout(policy, plant, horizon=steps, key=jax.random.key(0), precision=precision).u
        for precision in ("float64", "float32")
    ]
    double, single = (np.asarray(u, dtype=float)[-steps // 10 :] for u in runs)
    return float(np.max(np.abs(double - single)) / np.std(double))


def _costs(plant: lg.LQG, precision: str) -> jax.Array:
    return _mapped(StationaryLQG(plant), plant, jax.random.split(jax.random.key(0), NUM_RUNS), precision)


@eqx.filter_jit
def _mapped(policy: Any, plant: lg.LQG, keys: jax.Array, precision: str) -> jax.Array:
    def cost(key: jax.Array) -> jax.Array:
        return jnp.sum(lg.rollout(policy, plant, horizon=RUN_STEPS, key=key, precision=precision).cost)

    return jax.vmap(cost)(keys)


def _sharded() -> float:
    """Seconds on the clock, keys sharded over all devices."""
    mesh, parts = jax.sharding.Mesh(np.asarray(jax.devices()), ("key",)), jax.sharding.PartitionSpec("key")
    keys = jax.random.split(jax.random.key(0), NUM_RUNS)
    keys = jax.device_put(keys, jax.sharding.NamedSharding(mesh, parts))
    plant = lg.plants.mass_spring_damper().nominal()
    policy = StationaryLQG(plant)

    def on_one(keys: jax.Array) -> jax.Array:
        return _mapped(policy, plant, keys, "float64")

    costs = jax.jit(jax.shard_map(on_one, mesh=mesh, in_specs=parts, out_specs=parts, check_vma=False))
    jax.block_until_ready(costs(keys))
    return seconds(lambda: costs(keys), rounds=20)


if __name__ == "__main__":
    lg.enable_x64()
    print(_sharded())
