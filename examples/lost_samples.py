"""A controller through lost samples: it goes on by what its filter predicts."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
plant = lg.plants.mass_spring_damper().nominal()
A, B, C = (np.asarray(matrix) for matrix in (plant.A, plant.B, plant.C))
random = np.random.default_rng(3)
is_lost = random.random(120) < 0.4

controller = lg.Controller(lg.policies.StationaryLQG(plant))
x, seen, true = np.array([8.0, 0.0]), [], []
for lost in is_lost:
    y = C @ x + random.multivariate_normal(np.zeros(len(C)), plant.V)
    u = controller(None if lost else y)
    true.append(C @ x)
    seen.append(np.full_like(y, np.nan) if lost else y)
    x = A @ x + B @ u + random.multivariate_normal(np.zeros(len(A)), plant.W)

plt.plot(np.array(true)[:, 0], label="output")
plt.plot(np.array(seen)[:, 0], ".", label=f"what was seen of it: {1 - is_lost.mean():.0%}")
plt.axhline(0, color="k", lw=0.5)
plt.xlabel("step")
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "lost_samples.png")
