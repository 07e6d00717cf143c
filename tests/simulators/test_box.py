import numpy as np
import pytest

import lqgap
from lqgap.errors import InvalidArgumentError
from lqgap.simulators import ParameterBox


def build(k):
    return lqgap.LQG([[k]], [[1.0]], [[1.0]])


BAD = {
    "no function": (dict(build="build", parameters={"k": (0, 1)}), "build is a str, expected a function"),
    "no parameters": (dict(build=build, parameters={}), "expected a mapping"),
    "a list": (dict(build=build, parameters=[("k", 0, 1)]), "expected a mapping"),
    "inverted": (
        dict(build=build, parameters={"k": (1, 0)}),
        "parameter k has the interval .* wrong way round",
    ),
    "unknown unit": (dict(build=build, parameters={"k": (0, 1)}, units={"kk": "m"}), "did you mean k"),
}


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("name", sorted(BAD))
def test_a_malformed_box_raises(name):
    arguments, message = BAD[name]
    with pytest.raises(InvalidArgumentError, match=message):
        ParameterBox(**arguments)


def test_every_point_of_the_box_is_inside():
    family = ParameterBox(build, {"k": (0.1, 0.9)}, units={"k": "1/s"})
    assert family.units == ("1/s",)
    assert family.is_inside(np.asarray(family.grid(3).parameters)).all()
