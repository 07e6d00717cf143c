import jax
import numpy as np
from naive_vtr import CONSTANTS, random_class

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants


def test_what_is_remembered_does_not_grow_with_the_horizon():
    sizes = []
    for horizon in (10, 100_000):
        algorithm = LQGVTR(lg.stack(random_class(0)), horizon=horizon, constants=VTRConstants(**CONSTANTS))
        memory = algorithm.init(jax.random.key(0))
        sizes.append(sum(np.size(leaf) for leaf in jax.tree.leaves(memory) if hasattr(leaf, "size")))
    assert sizes[0] == sizes[1]
