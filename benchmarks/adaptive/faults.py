"""What faults of a sensor cost policies and learners over a class, and how soon they follow a change."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.timing import PAGE, put, table
from lqgap.adaptive import LQGVTR, CertaintyEquivalence, FilterBank, ThompsonSampling
from lqgap.batches import take
from lqgap.policies import DualBank, ModelBank, ProbingBank, Saturated
from lqgap.simulators import Finite
from lqgap.states import strongly_typed

START, WAIT, RUNS = 1_000, 500, 8
LENGTHS, SIZES, PERIODS = (2, 3, 4, 6, 10, 20), (10, 100, 1e3, 1e4, 1e6), (10, 25, 49, 51, 100)
STEPS = START + max(LENGTHS) + WAIT + 50
POLICIES = {
    "mixture": lambda members: ModelBank(members.systems),
    "mixture, limited": lambda members: Saturated(ModelBank(members.systems), (-3.0, 4.0, 1.5)),
    "likeliest": lambda members: ModelBank(members.systems, mode="map"),
    "dual": lambda members: DualBank(members.systems),
    "probing": lambda members: ProbingBank(members.systems),
    "hysteresis": lambda members: FilterBank(members, "hysteresis"),
    "certainty equivalence": CertaintyEquivalence,
    "Thompson sampling": ThompsonSampling,
    "LQG-VTR": LQGVTR,
}


def run() -> str:
    return bursts() + "\n" + changes()


def bursts() -> str:
    """The cost after bursts, and with spikes that go on, over that of the same noise without."""
    now, rows = np.arange(STEPS), []
    where = [(now >= START) & (now < START + n) for n in LENGTHS]
    where += [(now >= START) & (now % period == 0) for period in PERIODS]
    faults = np.stack([now < 0, *(size * each for each in where for size in SIZES)]).astype(float)
    spring = lg.plants.mass_spring_damper(mass=1.0, gain=2.0, stiffness=(0.5, 4.0))
    for name, members in ("spring", spring.grid(5)), ("unknown_sign", lg.plants.unknown_sign().grid(2)):
        plants = take(members.systems, np.full(2, len(members) // 2))
        for label, make in POLICIES.items():
            cost, _ = simulate(make(members), plants, STEPS, faults)
            after, during = cost[:, :, -100:].mean(axis=2), cost[:, :, START:].mean(axis=2)
            first = 1 + len(LENGTHS) * len(SIZES)
            rows.append([name, label, _shown(after[1:first] / after[0]), _shown(during[first:] / during[0])])
    note = (
        f"Added to y: bursts of {LENGTHS} samples, and spikes every {PERIODS} samples that go on, of size "
        f"{', '.join(f'{size:g}' for size in SIZES)}. After a burst the cost of a step, a mean of 100 about "
        f"{WAIT} steps later, over that of the same noise without it; during spikes, a mean of "
        f"{STEPS - START}. Mean, median and worst of {RUNS} runs of each, and the share above two."
    )
    return table("Faults of a sensor", note, ["class", "policy", "after bursts", "during spikes"], rows)


def changes() -> str:
    """Steps until the belief has turned to the member that has become true."""
    mass = lg.plants.mass_spring_damper(mass=(1.0, 4.0), stiffness=1.0, gain=2.0)
    spring = lg.plants.mass_spring_damper(mass=1.0, stiffness=(0.5, 4.0), gain=2.0)
    valve = Finite([lg.LQG([[0.95]], [[gain]], [[1.0]]) for gain in (0.1, 0.4, 0.7, 1.0)])
    sign = Finite([lg.LQG([[1.05]], [[gain]], [[1.0]]) for gain in (1.0, -1.0)])
    cases = {"gain 1 to .1": (valve, 3, 0), "mass 1 to 4": (mass.grid(4), 0, 3)}
    cases |= {"stiffness .5 to 4": (spring.grid(5), 0, 4), "gain 1 to -1": (sign, 0, 1)}
    rows = []
    for name, (members, old, new) in cases.items():
        plants = take(members.systems, np.asarray([old, new]))
        for label in ("mixture", "likeliest", "dual", "certainty equivalence", "LQG-VTR"):
            rows.append([name, label])
            for before in (1_000, 10_000, 100_000):
                _, beliefs = simulate(POLICIES[label](members), plants, before, np.zeros((1, before + 1_500)))
                wrong = beliefs[0, :, before:] != new
                calm = [np.flatnonzero(np.convolve(each, np.ones(50), "valid") == 0) for each in wrong]
                rows[-1].append(f"{np.median([each[0] if len(each) else np.inf for each in calm]):.0f}")
    note = (
        f"Steps from a change of the plant until the new member stays the likeliest: median of {RUNS} runs."
    )
    return table("Changes of the plant", note, ["change", "policy", "1,000", "10,000", "100,000"], rows)


def simulate(policy, plants, switch, faults):
    """Costs and likeliest members, by fault, run and step; the second plant is true from a step on."""
    keys = jax.random.split(jax.random.key(0), RUNS)
    found = _simulate(policy, plants, jnp.asarray(switch), jnp.asarray(faults), keys)
    return tuple(np.asarray(part) for part in found)


@eqx.filter_jit
def _simulate(policy, plants, switch, faults, keys):
    n, roots = plants.A.shape[-1], [jax.vmap(lg.linalg.sqrt_psd)(each) for each in (plants.W, plants.V)]

    def step(carry, now):
        (memory, x, u, time), (fault, z) = carry, now
        plant, W, V = take((plants, *roots), jnp.where(time >= switch, 1, 0))
        y = plant.C @ x + V @ z[n:]
        memory, u = policy.step(memory, y + fault, u)
        believes = lambda part: hasattr(part, "log_likelihood")  # noqa: E731
        told = next(filter(believes, jax.tree.leaves(memory, is_leaf=believes)))
        cost = y @ plant.Q @ y + u @ plant.R @ u
        return (memory, plant.A @ x + plant.B @ u + W @ z[:n], u, time + 1), (
            cost,
            told.log_likelihood.argmax(),
        )

    def loop(fault, key):
        z = jax.random.normal(key, (len(fault), n + plants.C.shape[-2]))
        start = strongly_typed(policy.init(key)), jnp.zeros(n), jnp.zeros(policy.num_inputs), jnp.asarray(0)
        return jax.lax.scan(step, start, (fault, z))[1]

    return jax.vmap(lambda fault: jax.vmap(lambda key: loop(fault, key))(keys))(faults)


def _shown(ratios):
    parts = (np.mean(ratios), np.median(ratios), np.max(ratios))
    return f"{', '.join(f'{part:.3g}' for part in parts)}; {100 * np.mean(~(ratios <= 2)):.1f} %"


if __name__ == "__main__":
    lg.enable_x64()
    put(PAGE, run())
