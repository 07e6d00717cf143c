"""How the gap grows with the horizon: a fixed controller pays for ever, a bank only until it has learned."""

import os
import sys

import jax
import matplotlib.pyplot as plt

import lqgap as lg

lg.enable_x64()
IS_SMALL = os.environ.get("EXAMPLE_SIZE") == "small"

members = lg.plants.mass_spring_damper(stiffness=2.0, gain=(1.0, 5.0)).grid(5)
horizons = [5, 20, 80] if IS_SMALL else [5, 10, 20, 50, 100, 200, 400]
policies = {
    "robust linear controller": lg.find_stabilizer(members),
    "bank of models": lg.policies.ModelBank(members.systems),
}
for name, policy in policies.items():
    key = jax.random.key(0)
    estimates = lg.evaluation.gap_by_horizon(policy, members, horizons=horizons, key=key, ends=False)
    plt.loglog(horizons, [estimate.worst for estimate in estimates], ".-", label=name)
bounds = [lg.minimax_lower_bound(members, horizon=h, kinds=["two-point"], ends=False).value for h in horizons]
plt.loglog(horizons, bounds, "k:", label="no controller has less")
plt.xlabel("horizon")
plt.ylabel("worst gap of the members")
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "gap_against_horizon.png")
