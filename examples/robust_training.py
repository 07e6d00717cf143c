"""Robust training of a bank: the worst gap over the members falls, and the adversary finds the hard ones."""

import os
import sys

import jax
import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

members = lg.plants.mass_spring_damper(stiffness=(0.5, 4.0), gain=(1.0, 5.0)).grid(3)
start = lg.policies.ModelBank(members.systems)
options = lg.training.TrainingOptions(steps=12 if IS_SMALL else 100, validate_every=4, receipt_rollouts=256)
result = lg.train_robust(start, members, horizon=50, ends=False, key=jax.random.key(0), options=options)

figure, (left, right) = plt.subplots(1, 2)
steps = np.cumsum([1] * len(result.history))
left.plot(steps, [look["worst"] for look in result.history], ".-", label="worst")
left.plot(steps, [look["mean"] for look in result.history], ".-", label="mean")
left.set(xlabel="validation", ylabel="gap of the members")
left.legend()
right.scatter(*np.asarray(result.members.parameters).T, s=20 + 800 * result.weights)
right.set(xlabel=members.names[0], ylabel=members.names[1], title="the adversary's weights")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "robust_training.png")
