import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY


@pytest.mark.slow
def test_nearest_finds_parameters_off_the_grid():
    theta, distance = FAMILY.nearest(FAMILY.system([1.2345, 2.2]))
    np.testing.assert_allclose(theta, [1.2345, 2.2], rtol=1e-6)
    assert distance < 1e-7


@pytest.mark.slow
def test_a_random_plant_of_the_same_size_is_at_a_distance():
    _, distance = FAMILY.nearest(random_plant(0, states=2, inputs=1, outputs=1))
    assert distance > 0.1
