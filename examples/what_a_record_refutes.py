"""Which plants of a family a record leaves possible, after more and more steps."""

import os
import sys

import jax
import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

family = lg.plants.mass_spring_damper(stiffness=(0.5, 4.0), gain=(1.0, 5.0))
truth = {"stiffness": 2.0, "gain": 3.0}
plant = family.build(**truth)
run = lg.rollout(lg.policies.StationaryLQG(plant), plant, horizon=400, key=jax.random.key(1))
candidates = family.grid(15 if IS_SMALL else 40)

figure, axes = plt.subplots(1, 3, sharey=True)
for ax, steps in zip(axes, (20, 100, 400), strict=True):
    left = lg.likelihood_set(candidates, run.y[:steps], run.u[:steps])
    ax.plot(*np.asarray(candidates.parameters).T, ".", color="0.85", ms=3)
    ax.plot(*np.asarray(left.parameters).T, ".", ms=4)
    ax.plot(*truth.values(), "k*", ms=10)
    ax.set(title=f"{steps} steps: {len(left)} of {len(candidates)}", xlabel="stiffness")
axes[0].set_ylabel("gain")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "what_a_record_refutes.png")
