import numpy as np
import pytest
from random_systems import random_plant
from springs import FAMILY

from lqgap.errors import InvalidArgumentError
from lqgap.simulators import Finite, union


def test_parts_keep_their_parameters():
    other = Finite([random_plant(0, states=2, inputs=1, outputs=1)], [[3.0]], names=["seed"])
    both = union([FAMILY.grid(2), other])
    assert both.names == ("part", "stiffness", "gain", "seed")
    np.testing.assert_array_equal(both.parameters[-1], [1, np.nan, np.nan, 3])
    np.testing.assert_allclose(both[4].A, other[0].A)


def test_parts_must_be_of_one_size():
    with pytest.raises(InvalidArgumentError, match="expected one size"):
        union([FAMILY.grid(2), Finite([random_plant(0)])])
    with pytest.raises(InvalidArgumentError, match="classes is empty"):
        union([])


def test_units_must_agree_and_unions_do_not_nest():
    plant = random_plant(0)
    newton, kilo = (Finite([plant], [[1.0]], names=["force"], units=[unit]) for unit in ("N", "kN"))
    with pytest.raises(InvalidArgumentError, match="parameter force has the units 'N' and 'kN'"):
        union([newton, kilo])
    with pytest.raises(InvalidArgumentError, match="a union already"):
        union([union([newton]), newton])
