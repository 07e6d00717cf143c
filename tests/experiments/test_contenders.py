import pytest

import lqgap as lg
from lqgap.experiments.contenders import CLASSES, read_classes, read_methods
from lqgap.experiments.methods import METHODS
from lqgap.experiments.methods.thompson import Thompson


def test_methods_have_the_options_that_stand_behind_them():
    found = read_methods(["map", "thompson{lazy = true}"])
    assert found == {"map": METHODS["map"](), "thompson{lazy = true}": Thompson(lazy=True)}
    assert {method.kind for method in read_methods(None).values()} == {"fixed", "trained", "adaptive"}


def test_classes_are_grids_of_a_modest_size_unless_points_are_given():
    found = read_classes(
        [
            "dc_motor",
            "mass_spring_damper{points = 2, stiffness = 1.0, gain = [2.0, 3.0]}",
            "double_integrator{points = 2, delay = {choices = [1, 2]}}",
        ]
    )
    assert [len(each.members) for each in found.values()] == [25, 2, 4]
    assert next(iter(found)) == "dc_motor"
    springs = found["mass_spring_damper{points = 2, stiffness = 1.0, gain = [2.0, 3.0]}"].members
    assert springs.names == ("gain",)
    assert springs.parameters.tolist() == [[2.0], [3.0]]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("x = 1", "methods.bank.x: there is no such key; there are none$"),
        ("x = " + "[" * 999, "are not TOML"),
    ],
)
def test_an_option_that_cannot_be_is_refused(option, says):
    with pytest.raises(lg.InvalidArgumentError, match=says):
        read_methods([f"bank{{{option}}}"])


def test_the_class_of_a_study_is_taken_from_its_file(tmp_path):
    path = tmp_path / "pair.toml"
    path.write_text('[plant]\nfamily = "unknown_sign"\n[grid]\npoints = 2\n')
    (item,) = read_classes([str(path)]).items()
    assert (item[0], len(item[1].members)) == (str(path), 2)


def test_families_and_classes_in_python_are_taken_as_they_are():
    members = lg.plants.unknown_sign().grid(2)
    found = read_classes({"signs": members, "motors": lg.plants.dc_motor()})
    assert found["signs"].members is members
    assert len(found["motors"].members) == 25


@pytest.mark.slow
def test_the_usual_classes_are_eight_and_modest():
    found = read_classes(None)
    assert len(found) == len(CLASSES) == 8
    assert max(len(each.members) for each in found.values()) == 81


def test_limits_of_a_study_are_those_of_its_class_and_refused_with_loads(tmp_path):
    path = tmp_path / "limited.toml"
    path.write_text('[plant]\nfamily = "unknown_sign"\nlimits = 2.0\n')
    (ground,) = read_classes([str(path)]).values()
    assert [float(bound[0]) for bound in ground.limits[:2]] == [-2.0, 2.0]
    path.write_text('[plant]\nfamily = "unknown_sign"\nlimits = 2.0\nloads = {size = 1.0, drift = 0.1}\n')
    with pytest.raises(lg.LqgapError, match="with loads are limited"):
        read_classes([str(path)])
