import jax
import numpy as np
import pytest
from naive_vtr import CONSTANTS, random_class

import lqgap as lg
from lqgap.adaptive import LQGVTR, VTRConstants, VTROptions, run


@pytest.mark.parametrize("limits", [None, (-0.3, 0.3)])
def test_a_lazy_run_is_the_eager_one(limits):
    """Also where inputs are clipped, so that samples are formed again."""
    plants = random_class(6)
    lazy, eager = (
        run(
            LQGVTR(
                lg.stack(plants),
                constants=VTRConstants(**CONSTANTS),
                options=VTROptions.as_in_the_paper(buffer_size=size),
            ),
            plants[2],
            key=jax.random.key(2),
            horizon=100,
            limits=limits,
        )
        for size in (16, 0)
    )
    assert len(lazy.switches) > 2
    assert [(s.step, s.theta) for s in lazy.switches] == [(s.step, s.theta) for s in eager.switches]
    np.testing.assert_allclose(lazy.regret, eager.regret, rtol=1e-9, atol=1e-9)
