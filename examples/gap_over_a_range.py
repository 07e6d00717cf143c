"""What the nominal controller and a bank of models cost above the best, for every plant of a range."""

import os
import sys

import jax
import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

family = lg.plants.mass_spring_damper(stiffness=2.0, gain=(0.5, 5.0))
plants = family.grid(15 if IS_SMALL else 40)
policies = {
    "nominal LQG": lg.policies.StationaryLQG(family.nominal()),
    "bank of 5 models": lg.policies.ModelBank(family.grid(5).systems),
}
for name, policy in policies.items():
    estimate = lg.gap(policy, plants, horizon=50, ends=False, key=jax.random.key(0))
    gains, (low, high) = np.asarray(plants.parameters)[:, 0], estimate.interval.T
    plt.plot(gains, estimate.mean, label=f"{name}, worst {estimate.worst:.3g}")
    if estimate.has_light_tail:
        plt.fill_between(gains, low, high, alpha=0.3)
plt.title(f"the best controllers cost {estimate.value.min():.0f} to {estimate.value.max():.0f}", fontsize=9)
plt.xlabel("gain of the plant")
plt.ylabel("gap over 50 steps")
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "gap_over_a_range.png")
