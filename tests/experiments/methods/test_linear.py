import jax
import numpy as np

from lqgap.evaluation import closed_loop_radius
from lqgap.experiments.methods.linear import Linear


def test_the_linear_controller_stabilises_all_members(setting, members):
    policy = Linear().make(setting()).policy
    assert np.all(jax.vmap(lambda plant: closed_loop_radius(policy, plant))(members.systems) < 1)
