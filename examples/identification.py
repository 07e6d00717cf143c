"""From a record of inputs and outputs to a plant: Markov parameters, a realisation, and its controller."""

import os
import sys

import jax
import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

plant = lg.plants.mass_spring_damper().nominal()
probe = lg.policies.RandomProbe(20_000, lg.policies.Zero(num_inputs=1, num_outputs=1), scale=2.0)
record = lg.rollout(probe, plant, horizon=1_000 if IS_SMALL else 10_000, key=jax.random.key(0))

estimate = lg.identification.estimate_markov(record.y, record.u)
realization = lg.identification.realize(estimate)
exact = lg.identification.exact_markov(lg.solve(plant), plant, length=15)
found = realization.markov(length=15)

plt.plot(np.asarray(exact.of_inputs)[:, 0, 0], "k-", label="exact")
plt.plot(np.asarray(estimate.parameters.of_inputs)[:15, 0, 0], ".", label="regression on the record")
plt.plot(np.asarray(found.of_inputs)[:, 0, 0], "x", label=f"realisation of order {realization.order}")
plt.xlabel("lag")
plt.ylabel("Markov parameters of the predictor")
controller = realization.controller(Q=plant.Q, R=plant.R)
cost, best = lg.exact_average_cost(controller, plant), lg.solve(plant).J
plt.title(f"its controller costs {cost:.4g} a step, the optimal one {best:.4g}", fontsize=9)
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "identification.png")
