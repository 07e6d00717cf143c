import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.methods.nominal import Nominal


def test_the_nominal_controller_is_that_of_the_middle(setting, members):
    policy = Nominal().make(setting()).policy
    np.testing.assert_array_equal(policy.A, lg.plants.mass_spring_damper().nominal().A)
    assert policy.num_transient > 0  # its filter starts as those of the banks do
    of_class = Nominal().make(setting(family=members)).policy
    np.testing.assert_array_equal(of_class.A, members[2].A)


def test_a_middle_that_cannot_be_held_is_named(setting):
    family = lg.ParameterBox(lambda push: lg.LQG(A=[[1.1]], B=[[push]], C=[[1.0]]), {"push": (-1.0, 1.0)})
    with pytest.raises(lg.LqgapError, match="the plant in the middle, push = 0: "):
        Nominal().make(setting(family=family))
