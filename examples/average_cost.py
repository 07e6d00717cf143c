"""The optimal average cost over a family, and its derivative by a parameter of the plant."""

import sys

import jax
import matplotlib.pyplot as plt

import lqgap as lg

lg.enable_x64()


def mass_on_a_spring(stiffness):
    A, B = lg.systems.zero_order_hold([[0.0, 1.0], [-stiffness, -0.5]], [[0.0], [3.0]], dt=0.3)
    return lg.LQG(A, B, C=[[1.0, 0.0]], Q=[[1.0]], R=[[0.1]])


def cost(stiffness):
    return lg.solve(mass_on_a_spring(stiffness)).J


stiffness = jax.numpy.linspace(0.5, 4, 50)
costs, slopes = jax.jit(jax.vmap(jax.value_and_grad(cost)))(stiffness)  # 50 Riccati equations at once
plt.plot(stiffness, costs, label="optimal average cost J")
for k in (8, 24, 40):
    near = stiffness[k - 7 : k + 8]
    plt.plot(
        near, costs[k] + slopes[k] * (near - stiffness[k]), "C1", label="dJ/dstiffness" if k == 8 else None
    )
plt.xlabel("stiffness")
plt.ylabel("cost of a step")
plt.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "average_cost.png")
