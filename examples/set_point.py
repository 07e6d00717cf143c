"""A set-point and an unknown load: a controller that knows of no load, and an offset-free one."""

import sys

import matplotlib.pyplot as plt
import numpy as np

import lqgap as lg

lg.enable_x64()
family = lg.ParameterBox(
    lambda lag: lg.LQG([[lag]], [[1 - lag]], [[1.0]], R=[[0.1]], W=[[0.01]], V=[[0.01]]), {"lag": (0.7, 0.95)}
)
without_offset = lg.offset_free(family, load=1.0, drift=0.1)
policies = {
    "a bank": lg.policies.ModelBank(family.grid(4).systems),
    "an offset-free bank": lg.policies.Integrated(lg.policies.ModelBank(without_offset.grid(4).systems)),
}


def run(policy, lag=0.85, steps=200):
    """Steps of the set-point, and a load of 1 from step 100 on."""
    controller, random = lg.Controller(policy, limits=(-4, 4), follow=[0]), np.random.default_rng(0)
    x, outputs = 0.0, []
    for t in range(steps):
        (u,) = controller([x + 0.1 * random.normal()], reference=reference(t))
        x = lag * x + (1 - lag) * (u + (t >= 100)) + 0.1 * random.normal()
        outputs.append(x)
    return outputs


def reference(t):
    return 1.0 if t % 80 < 40 else -1.0


for name, policy in policies.items():
    plt.plot(run(policy), label=name)
plt.plot([reference(t) for t in range(200)], "k--", lw=0.8, label="set-point")
plt.axvline(100, color="C3", lw=0.8, label="a load sets in")
plt.xlabel("step")
plt.legend(fontsize=8)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "set_point.png")
