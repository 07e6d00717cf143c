"""Gain, phase and delay margins of one controller over a family: where it is nearest to failing."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
family = lg.plants.mass_spring_damper(stiffness=2.0, gain=(0.5, 6.0))
members = family.grid(24)
policies = {
    "nominal LQG": lg.policies.StationaryLQG(family.nominal()),
    "robust linear controller": lg.find_stabilizer(family.grid(4)),
}
gains = np.asarray(members.parameters)[:, 0]
figure, axes = plt.subplots(1, 3)
for name, policy in policies.items():
    margins = lg.margins(policy, members)
    for ax, kind in zip(axes, ("gain_high", "phase", "delay"), strict=True):
        ax.plot(gains, np.asarray(getattr(margins, kind)).ravel(), label=name)
for ax, label in zip(
    axes, ("factor of the gain it bears", "phase margin [°]", "delay margin [steps]"), strict=True
):
    ax.set(xlabel="gain of the plant", ylabel=label)
axes[0].set(ylim=(0, 12))
axes[0].legend(fontsize=7)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "margins.png")
