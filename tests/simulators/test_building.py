import numpy as np
import pytest

import lqgap
from lqgap.errors import InvalidArgumentError, InvalidSystemError
from lqgap.simulators import ParameterBox
from lqgap.systems import delay_input


def test_a_build_is_compiled_once():
    traces = 0

    def build(pole):
        nonlocal traces
        traces += 1
        return lqgap.LQG([[pole]], [[1.0]], [[1.0]])

    family = ParameterBox(build, {"pole": (0.1, 0.9)})
    for points in (2, 5, 60):
        family.grid(points)
    assert traces == 1


def test_a_build_of_varying_size_is_refused_with_the_parameters():
    family = ParameterBox(
        lambda gain, delay: delay_input(lqgap.LQG([[0.9]], [[gain]], [[1.0]]), delay),
        {"gain": (0.5, 1.5), "delay": [0, 1]},
    )
    with pytest.raises(InvalidSystemError, match=r"= \(2, 1, 1\) at gain = .*, delay = 1 and \(1, 1, 1\)"):
        family.grid(2)


def test_an_error_of_a_plain_build_names_the_parameters():
    family = ParameterBox(lambda r: lqgap.LQG([[0.5]], [[1.0]], [[1.0]], R=[[float(r)]]), {"r": (-1.0, 1.0)})
    with pytest.raises(InvalidSystemError, match=r"R is not positive definite.*member r = -1"):
        family.grid(3)


def test_an_error_of_a_traced_build_names_the_parameters():
    family = ParameterBox(lambda r: lqgap.LQG([[0.5]], [[1.0]], [[1.0]], R=[[r]]), {"r": (-1.0, 1.0)})
    with pytest.raises(InvalidSystemError, match=r"R of member 0 \(r = -1\) is not positive definite"):
        family.grid(3)


@pytest.mark.parametrize("name", ["Q", "V", "W", "S0"])
def test_a_matrix_that_tracing_showed_not_to_be_symmetric_is_named_with_the_parameters(name):
    def build(r):
        return lqgap.LQG(0.5 * np.eye(2), np.ones((2, 1)), np.eye(2), **{name: [[1.0, r], [0.0, 1.0]]})

    family = ParameterBox(build, {"r": (0.0, 0.1)})
    assert family.is_traceable
    with pytest.raises(InvalidSystemError, match=rf"^{name} is not symmetric.* up to 0.1 \(member r = 0.1\)"):
        family.grid(2)


@pytest.mark.usefixtures("as_users_run_it")
def test_a_build_must_return_a_plant():
    with pytest.raises(InvalidSystemError, match="build returned a dict"):
        ParameterBox(lambda k: {"k": k}, {"k": (0, 1)}).grid(2)


def test_a_build_that_fills_a_numpy_array_is_run_one_by_one():
    def build(k):
        A = 0.5 * np.eye(2)
        A[0, 1] = k
        return lqgap.LQG(A, np.ones((2, 1)), np.ones((1, 2)))

    family = ParameterBox(build, {"k": (0.1, 0.3)})
    assert not family.is_traceable
    np.testing.assert_allclose(family.grid(3).systems.A[:, 0, 1], [0.1, 0.2, 0.3])


def test_whatever_a_build_raises_comes_with_the_parameters():
    family = ParameterBox(lambda k: lqgap.LQG([[1 / float(k - 1)]], [[1.0]], [[1.0]]), {"k": (1.0, 3.0)})
    with pytest.raises(InvalidSystemError, match="build failed at k = 1: ZeroDivisionError"):
        family.grid(3)
    with pytest.raises(InvalidSystemError, match="build failed at k = 1: TypeError"):
        ParameterBox(lambda stiffness: None, {"k": (1.0, 3.0)}).grid(3)


def test_a_plain_build_of_varying_size_names_the_parameters():
    family = ParameterBox(
        lambda k: lqgap.LQG(
            0.5 * np.eye(round(float(k))), np.ones((round(float(k)), 1)), np.ones((1, round(float(k))))
        ),
        {"k": (1.0, 2.0)},
    )
    with pytest.raises(InvalidSystemError, match=r"at k = 2"):
        family.grid(2)


def test_values_that_are_no_choice_are_refused():
    family = ParameterBox(lambda c: lqgap.LQG([[0.5]], [[c]], [[1.0]]), {"c": [1e-13, 2e-13]})
    assert len(family.grid(1)) == 2
    with pytest.raises(InvalidArgumentError, match="none of its choices"):
        family.members([[1.5]])
    with pytest.raises(InvalidArgumentError, match="each value may be chosen once"):
        ParameterBox(lambda c: None, {"c": [1.0, 1.0]})
