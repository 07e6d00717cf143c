import numpy as np

import lqgap as lg
from lqgap.adaptive.vtr.refinement import MAX_REFINED, refine
from lqgap.simulators import Finite, ParameterBox

FAMILY = ParameterBox(
    lambda gain, pole: lg.LQG([[pole]], [[gain]], [[1.0]]), {"gain": (0.0, 2.0), "pole": (0.5, 1.2)}
)


def test_a_family_becomes_a_finer_grid_of_members_that_have_an_optimum():
    fine = refine(FAMILY, FAMILY.grid(3).subset([1, 2, 4, 5]))
    assert 100 < len(fine) <= MAX_REFINED
    assert np.all(fine.optima().converged)
    assert not np.any((fine.parameters[:, 0] == 0) & (fine.parameters[:, 1] >= 1))


def test_a_class_that_is_finer_stays_as_it_is():
    many = FAMILY.grid({"gain": 15, "pole": 10})
    assert refine(FAMILY, many) is many
    alone = Finite([lg.LQG([[0.5]], [[1.0]], [[1.0]])])
    assert refine(alone, alone) is alone


def test_discrete_parameters_keep_their_values():
    family = ParameterBox(
        lambda gain, delay: lg.LQG([[0.5]], [[gain * delay]], [[1.0]]),
        {"gain": (0.5, 2.0), "delay": [1.0, 2.0]},
    )
    fine = refine(family, family.grid(2))
    assert set(np.asarray(fine.parameters[:, 1]).tolist()) == {1.0, 2.0}
    assert len(fine) == MAX_REFINED
