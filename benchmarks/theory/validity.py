"""The sharpest test of a bound over ranges: no policy's mean gap under the bound's own prior is below it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.adaptive import LQGVTR, calibrate
from lqgap.errors import LqgapError
from lqgap.policies import AbstractPolicy, ModelBank, StationaryLQG
from lqgap.simulators.family import AbstractFamily
from lqgap.theory.lower_bounds.van_trees.bound import VanTrees, van_trees_bound

HORIZON = 30
ITERATIONS = 10
POINTS = {1: 13, 2: 5, 3: 3, 4: 2}  # of banks, along each parameter
NUM_PLANTS, NUM_ROLLOUTS = 128, 256
RUNS_OF_VTR = 16


def run(names: tuple[str, ...] | None = None) -> str:
    """One table; of some families only, if names are given."""
    rows = [row for name in lg.plants.FAMILIES if names is None or name in names for row in _rows(name)]
    note = (
        f"H = {HORIZON}, tasks that go on, {ITERATIONS} steps of the search. Mean gaps of {NUM_PLANTS} plants"
        " that are drawn from the bound's own prior, with standard errors. The bank of the prior has its"
        " density as weights, and is close to the Bayes policy. A margin, (mean - bound) / error, far below"
        " zero would refute the bound."
    )
    header = ["family", "policy", "bound", "mean under the prior", "bound / mean", "margin in errors"]
    return table("Theory: bounds under their own priors", note, header, rows)


def _rows(name: str) -> list[list[str]]:
    family = lg.plants.FAMILIES[name]()
    try:
        bound = van_trees_bound(family, horizon=HORIZON, ends=False, iterations=ITERATIONS)
    except LqgapError as error:
        return [[name, "", f"none: {str(error).split(',')[0]}", "", "", ""]]
    rows = []
    for label, policy in policies(family, bound).items():
        runs = RUNS_OF_VTR if isinstance(policy, LQGVTR) else NUM_ROLLOUTS
        mean, error = mean_under_prior(policy, family, bound, horizon=HORIZON, num_rollouts=runs)
        rows.append(
            [
                name,
                label,
                f"{bound.value:.3g}",
                f"{mean:.3g} +- {error:.1g}",
                f"{bound.value / mean:.2f}",
                f"{(mean - bound.value) / error:.0f}" if np.isfinite(mean) else "",
            ]
        )
    return rows


def policies(family: AbstractFamily, bound: VanTrees) -> dict[str, AbstractPolicy]:
    """Banks over the box of the bound with equal weights and with its prior's; LQG-VTR; nominal LQG."""
    box = bound.box
    z = np.linspace(-1, 1, POINTS[len(box.low)])
    z = np.stack(np.meshgrid(*[z] * len(box.low), indexing="ij"), axis=-1).reshape(-1, len(box.low))
    members = family.members(parameters_at(bound, z))
    bank = ModelBank(members.systems)
    log_prior = jax.vmap(bound.choice.prior.log_density)(jnp.asarray(z))
    return {
        "bank": bank,
        "bank of the prior": eqx.tree_at(lambda bank: bank.log_prior, bank, log_prior),
        "LQG-VTR": LQGVTR(members, horizon=HORIZON, constants=calibrate(members)),
        "nominal LQG": StationaryLQG(family.nominal()),
    }


def parameters_at(bound: VanTrees, z: np.ndarray) -> np.ndarray:
    """Parameters at coordinates in [-1, 1] of a bound's box, the others held."""
    low, high, held = (np.asarray(each) for each in (bound.box.low, bound.box.high, bound.box.held))
    theta = np.tile(held, (len(z), 1))
    theta[:, np.asarray(bound.box.free)] = low + (high - low) * (z + 1) / 2
    return theta


def mean_under_prior(
    policy: AbstractPolicy,
    family: AbstractFamily,
    bound: VanTrees,
    *,
    horizon: int,
    num_rollouts: int = NUM_ROLLOUTS,
) -> tuple[float, float]:
    """The mean gap of a policy over plants drawn from a bound's own prior, and its standard error."""
    random = np.random.default_rng(0)
    z = random.uniform(-1, 1, size=(20_000, len(bound.box.low)))
    weight = np.exp(np.asarray(jax.vmap(bound.choice.prior.log_density)(jnp.asarray(z))))
    drawn = z[random.choice(len(z), size=NUM_PLANTS, p=weight / weight.sum())]
    members = family.members(parameters_at(bound, drawn))
    gaps = lg.gap(
        policy, members, horizon=horizon, key=jax.random.key(2), num_rollouts=num_rollouts, ends=False
    )
    # Noise is common to all plants, so that its error does not shrink with their number.
    error = np.hypot(np.std(gaps.mean) / np.sqrt(len(drawn)), np.mean(gaps.stderr))
    return float(np.mean(gaps.mean)), float(error)
