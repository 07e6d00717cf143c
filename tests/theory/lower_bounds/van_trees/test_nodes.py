import equinox as eqx
import jax.numpy as jnp
import numpy as np
from varied_plants import varied_branch

import lqgap as lg
from lqgap.theory.lower_bounds.van_trees.nodes import box_of, make_nodes
from lqgap.theory.lower_bounds.van_trees.sensitivity import sensitivity_of


def test_the_ends_of_a_box_are_those_of_the_ranges_and_points_are_held():
    family = lg.ParameterBox(
        lambda a, b, c: lg.LQG([[a]], [[b]], [[c]]), {"a": (0.5, 0.9), "b": (2.0, 2.0), "c": (1.0, 3.0)}
    )
    box = box_of(family.branches[0])
    for z, expected in ((-1.0, (0.5, 2.0, 1.0)), (1.0, (0.9, 2.0, 3.0)), (0.0, (0.7, 2.0, 2.0))):
        plant = box.plant(jnp.full(2, z))
        np.testing.assert_allclose([plant.A[0, 0], plant.B[0, 0], plant.C[0, 0]], expected)


def test_nodes_have_the_systems_of_their_plants_and_one_unit_of_inputs():
    box = box_of(varied_branch(2, 1))
    z = jnp.array([[0.2, -0.5], [-0.9, 0.4], [0.0, 0.0]])
    nodes = make_nodes(box, z, jnp.ones(3), horizon=2, ends=False, length=2)
    for row in range(3):
        alone = eqx.filter_jit(sensitivity_of)(box.plant, z[row], horizon=2, ends=False)
        for name in ("F", "N", "E", "Y", "root"):
            np.testing.assert_allclose(
                getattr(nodes.system, name)[row], getattr(alone, name), rtol=1e-9, atol=1e-11
            )
    units = nodes.system.root.mT @ nodes.turn  # of coefficients: must not depend on the parameters
    np.testing.assert_allclose(units, np.broadcast_to(units[2], units.shape), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(nodes.turn[2], np.broadcast_to(np.eye(2), (3, 2, 2)), atol=1e-11)
