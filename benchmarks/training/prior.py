"""Domain randomisation under a wrong prior: what the real plant pays for being thought unlikely."""

import pathlib

import jax
import matplotlib
import numpy as np

import lqgap as lg
from benchmarks.timing import table
from lqgap.policies import ModelBank

matplotlib.use("agg")
from matplotlib import pyplot

HORIZON = 200
MASSES = (1 / 25, 1e-2, 1e-3, 1e-4)
TRUTH = 4  # the softest spring with the strongest push
FAR = 0.6  # of the range of some parameter: where the rest of the prior lies
FIGURE = pathlib.Path(__file__).parents[2] / "docs" / "figures" / "wrong_prior.svg"


def run() -> str:
    """A table and a figure."""
    members = lg.plants.mass_spring_damper().grid(5)
    bank = ModelBank(members.systems, horizon=HORIZON)
    parameters = np.asarray(members.parameters)
    distance = np.max(np.abs(parameters - parameters[TRUTH]) / np.ptp(parameters, axis=0), axis=1)
    is_far = distance > FAR

    def gaps(policy: object) -> np.ndarray:
        fresh = jax.random.key(99)
        return lg.gap(policy, members, horizon=HORIZON, key=fresh, num_rollouts=1024).mean

    key = jax.random.key(0)
    robust = gaps(lg.train_robust(bank, members, horizon=HORIZON, key=key).policy)
    curve = []
    for mass in MASSES:
        prior = np.where(is_far, (1 - mass) / is_far.sum(), 0.0)
        prior[TRUTH] = mass
        result = lg.train_randomized(bank, members, horizon=HORIZON, key=key, weights=prior)
        curve.append(gaps(result.policy)[TRUTH])
    _draw(curve, robust)
    rows = [
        [f"{mass:.4g}", f"{at_truth:.1f}", f"{robust[TRUTH]:.1f}", f"{at_truth / robust[TRUTH]:.1f}"]
        for mass, at_truth in zip(MASSES, curve, strict=True)
    ]
    note = (
        f"A bank of 25 models of a mass on a spring, trained under a prior that gives the real plant "
        f"({members.describe(TRUTH)}) little mass and the rest to {is_far.sum()} members far from it. "
        "Wanted: a gap at the real plant of at least 3 times that of robust training. "
        "The curve is docs/figures/wrong_prior.svg."
    )
    header = ["mass at the real plant", "randomisation, gap there", "robust training, gap there", "ratio"]
    return table("Training: a wrong prior", note, header, rows)


def _draw(curve: list[float], robust: np.ndarray) -> None:
    figure, axes = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    axes.loglog(MASSES, curve, "o-", label="domain randomisation")
    axes.axhline(float(robust[TRUTH]), color="C1", label="robust training")
    axes.axhline(float(robust.max()), color="C1", linestyle=":", label="robust training, worst member")
    axes.set(xlabel="prior mass at the real plant", ylabel="gap at the real plant")
    axes.invert_xaxis()
    axes.legend()
    FIGURE.parent.mkdir(exist_ok=True)
    matplotlib.rcParams["svg.hashsalt"] = "lqgap"
    figure.savefig(FIGURE, metadata={"Date": None})
    pyplot.close(figure)
