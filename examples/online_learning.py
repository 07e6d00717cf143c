"""LQG-VTR on a motor: which members are still possible, and what learning has cost."""

import os
import sys

import jax
import matplotlib.pyplot as plt

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

members = lg.plants.dc_motor().grid(3)
learner = lg.adaptive.LQGVTR(members)
figure, (top, bottom) = plt.subplots(2, sharex=True)
for truth in (0, 4, 8):
    key, horizon = jax.random.key(truth), 200 if IS_SMALL else 2000
    trace = lg.adaptive.run(learner, members[truth], horizon=horizon, key=key)
    top.step(trace.steps, trace.num_members, label=members.describe(truth))
    bottom.plot(trace.steps, trace.excess)
top.set(ylabel="members left", ylim=(0, None))
top.legend(fontsize=7)
bottom.set(xlabel="step", ylabel="excess so far")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "online_learning.png")
