import numpy as np
import pytest

import lqgap as lg
from lqgap.experiments.family import make_family, signals_of
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.policies import Zero
from lqgap.simulators import Ball, Finite

REST = "\n[real]\ncount = 1\n"


def family_of(plant, tmp_path, *, trust=False, more=""):
    study, source = parse_study(f"[plant]\n{plant}\n{more}{REST}", name="study.toml", folder=tmp_path)
    return make_family(study, source, trust=trust)


def test_a_built_in_family_has_the_ranges_of_the_study(tmp_path):
    family = family_of('family = "mass_spring_damper"\ngain = [2, 3]\nmass = 1.5\nstiffness = 1', tmp_path)
    expected = lg.plants.mass_spring_damper(gain=(2, 3), mass=1.5, stiffness=1.0)
    assert family.parameters == expected.parameters
    np.testing.assert_array_equal(family.nominal().A, expected.nominal().A)


def test_choices_are_choices(tmp_path):
    family = family_of('family = "unknown_sign"\nsign = {choices = [-1, 1]}', tmp_path)
    assert sorted(np.asarray(family.grid(3).parameters).ravel()) == [-1, 1]


MATRICES = """
A = [[0.9, "drift"], ["-drift", 0.8]]
B = [[0], ["push"]]
C = [[1, 0]]
R = [[0.5]]
parameters = {drift = [0.1, 0.3], push = 2}
"""


def test_a_name_in_a_matrix_is_a_parameter_and_may_be_negated(tmp_path):
    plant = family_of(MATRICES, tmp_path).system({"drift": 0.2})
    np.testing.assert_array_equal(plant.A, [[0.9, 0.2], [-0.2, 0.8]])
    np.testing.assert_array_equal(plant.B, [[0.0], [2.0]])
    np.testing.assert_array_equal(plant.R, [[0.5]])
    np.testing.assert_array_equal(plant.Q, [[1.0]])


def test_states_may_be_weighed_and_noises_correlated(tmp_path):
    more = 'Qx = [[1, 0], [0, "push"]]\nN = [[0], [0.1]]\nG = [[0.1], ["drift"]]\n'
    plant = family_of(more + MATRICES, tmp_path).system({"drift": 0.2})
    weights = {"R": [[0.5]], "Qx": np.diag([1.0, 2.0]), "N": [[0.0], [0.1]]}
    plain = lg.LQG([[0.9, 0.2], [-0.2, 0.8]], [[0.0], [2.0]], [[1.0, 0.0]], **weights)
    for name, matrix in lg.correlate_noise(plain, [[0.1], [0.2]]).matrices().items():
        np.testing.assert_allclose(getattr(plant, name), matrix, atol=1e-15)
    weighed = family_of(MATRICES, tmp_path, more="[cost]\nQx = [[2, 0], [0, 0]]\n")
    np.testing.assert_array_equal(weighed.nominal().Qx, np.diag([2.0, 0.0]))


def test_a_mat_file_has_a_class_or_one_plant_and_a_radius(tmp_path):
    family = lg.plants.mass_spring_damper()
    lg.interop.save_mat(tmp_path / "class.mat", family.grid(2), sampling_time=0.3)
    lg.interop.save_mat(tmp_path / "one.mat", family.nominal(), sampling_time=0.3)
    members = family_of('file = "class.mat"', tmp_path)
    assert isinstance(members, Finite)
    assert len(members) == 4
    near = family_of('file = "one.mat"\nradius = 0.1', tmp_path)
    assert isinstance(near, Ball)
    np.testing.assert_allclose(near.nominal().A, family.nominal().A)


MODULE = """
import pathlib
pathlib.Path(__file__).with_name("ran").write_text("")
import lqgap as lg
def make():
    return lg.plants.unknown_sign()
def wrong():
    return 3
def broken():
    raise RuntimeError("oops")
"""


def test_python_runs_only_if_it_is_trusted(tmp_path):
    (tmp_path / "module_of_this_test.py").write_text(MODULE)
    with pytest.raises(lg.InvalidStudyError, match=r"line 2: plant.python: .*--trust"):
        family_of('python = "module_of_this_test:make"', tmp_path)
    assert not (tmp_path / "ran").exists()
    family = family_of('python = "module_of_this_test:make"', tmp_path, trust=True)
    assert family.names == ("sign",)
    with pytest.raises(lg.InvalidStudyError, match="returned a int"):
        family_of('python = "module_of_this_test:wrong"', tmp_path, trust=True)
    with pytest.raises(lg.InvalidStudyError, match="RuntimeError: oops"):
        family_of('python = "module_of_this_test:broken"', tmp_path, trust=True)


@pytest.mark.parametrize("plant", ['family = "mass_spring_damper"', MATRICES.strip()])
def test_the_cost_of_the_study_takes_the_place_of_the_familys(tmp_path, plant):
    own = family_of(plant, tmp_path)
    family = family_of(plant, tmp_path, more="[cost]\nR = [[7.0]]")
    assert family.parameters == own.parameters
    np.testing.assert_array_equal(family.nominal().R, [[7.0]])
    np.testing.assert_array_equal(family.nominal().Q, own.nominal().Q)
    np.testing.assert_array_equal(family.nominal().A, own.nominal().A)


def test_the_cost_of_a_class_in_a_file_is_changed_alike(tmp_path):
    lg.interop.save_mat(tmp_path / "class.mat", lg.plants.mass_spring_damper().grid(2), sampling_time=0.3)
    members = family_of('file = "class.mat"', tmp_path, more="[cost]\nQ = [[3.0]]")
    np.testing.assert_array_equal(members.systems.Q, np.full((4, 1, 1), 3.0))


@pytest.mark.parametrize(
    ("plant", "more", "says"),
    [
        ('family = "mas_spring_damper"', "", r"line 2: plant.family: .*did you mean mass_spring_damper"),
        ('family = "mass_spring_damper"\ngian = 3', "", r"line 3: plant.gian: .*did you mean gain"),
        ('family = "mass_spring_damper"\nmass = [-1, 2]', "", r"line 1: plant: mass is .*positive"),
        ('family = "mass_spring_damper"\ngain = 1\nstiffness = 1', "", "no family"),
        (MATRICES.replace("push =", "psh ="), "", r"plant.B.1.0: there is no parameter 'push'.*psh"),
        (MATRICES.replace("0.3]", "0.3], x = 1"), "", r"parameters.x: nothing depends"),
        (MATRICES.replace("[0.1, 0.3]", "0.1"), "", "there is no family"),
        (MATRICES.replace("[0], [", "[0, 1], ["), "", "plant.B: its rows differ"),
        ('file = "nowhere.mat"', "", "cannot be read"),
        ('family = "mass_spring_damper"', "[cost]\nR = [[-1]]", r"line 3: cost: R is not positive definite"),
        ('family = "mass_spring_damper"', "[cost]\nR = [[1, 0], [0, 1]]", "cost: R has shape"),
    ],
)
def test_an_error_names_the_line(tmp_path, plant, more, says):
    with pytest.raises(lg.InvalidStudyError, match=says):
        family_of(plant, tmp_path, more=more)


def test_damaged_mat_files_are_damaged_files(tmp_path):
    (tmp_path / "plant.mat").write_bytes(b"MATLAB" + bytes(200))
    with pytest.raises(
        lg.CorruptFileError, match=r"line \d+: plant\.file: .*plant\.mat is damaged, or no MAT file$"
    ):
        family_of('file = "plant.mat"', tmp_path)


CONTINUOUS = 'dt = 0.1\nA = [["-pole"]]\nB = [[1]]\nC = [[1]]\nparameters = {pole = [1, 2]}\n'
LIMITED = """
import lqgap as lg

def family():
    signals = lg.Signals(dt=0.1, limits=%s)
    return lg.ParameterBox(lambda pole: lg.LQG([[pole]], [[1]], [[1]]), {"pole": (0.1, 0.9)}, signals=signals)
"""


def signals_in(plant, tmp_path, **how):
    study, source = parse_study(f"[plant]\n{plant}\n{REST}", name="study.toml", folder=tmp_path)
    return signals_of(study, make_family(study, source, **how), source)


def test_what_a_study_says_of_signals_comes_before_what_its_family_says(tmp_path):
    found = signals_in('family = "mass_spring_damper"\ninputs = ["valve [%]"]\nlimits = 3', tmp_path)
    assert found == lg.Signals(dt=0.3, inputs=["valve [%]"], outputs=["position [m]"], limits=[[-3.0, 3.0]])
    more = (
        'limits = [[0, 9]]\nrate_limits = 5\noperating_point = {u0 = [4], y0 = [20]}\noutputs = ["level [m]"]'
    )
    found = signals_in(CONTINUOUS + more, tmp_path)
    assert (found.dt, found.u0, found.y0, found.outputs) == (0.1, (4,), (20,), ("level [m]",))
    np.testing.assert_allclose(found.bounds(num_inputs=1), [[-4], [5], [0.5]])
    lg.interop.save_mat(tmp_path / "class.mat", lg.plants.mass_spring_damper().grid(2), sampling_time=0.3)
    assert signals_in('file = "class.mat"', tmp_path).dt == 0.3


def test_signals_that_do_not_fit_the_plant_are_refused_with_the_line(tmp_path):
    with pytest.raises(lg.InvalidStudyError, match=r"line 3: plant\.inputs: inputs is .*expected 1"):
        signals_in('family = "mass_spring_damper"\ninputs = ["a", "b"]', tmp_path)
    with pytest.raises(lg.InvalidStudyError, match=r"line 3: plant\.limits: .*low < high"):
        signals_in('family = "mass_spring_damper"\nlimits = [1, -1]', tmp_path)
    with pytest.raises(lg.InvalidStudyError, match=r"line 3: plant\.operating_point: u0 is"):
        signals_in('family = "mass_spring_damper"\noperating_point = {u0 = [1, 2]}', tmp_path)


def test_another_cost_leaves_signals_as_they_are(tmp_path):
    assert family_of('family = "mass_spring_damper"', tmp_path, more="[cost]\nR = [[3]]\n").signals.dt == 0.3


def test_limits_of_a_python_family_are_taken_and_are_part_of_what_results_depend_on(tmp_path):
    study, source = parse_study('[plant]\npython = "limited:family"\n', name="study.toml", folder=tmp_path)
    prints = []
    for limits in (2, 3):
        (tmp_path / "limited.py").write_text(LIMITED % limits)
        plants = Plants(study, source, trust=True)
        np.testing.assert_array_equal(plants.limits[:2], [[-limits], [limits]])
        prints.append(plants.fingerprint)
    assert prints[0] != prints[1]


SERVO_WITH_LOAD = """
A = [[0, 1], [0, "-friction"]]
B = [[0], ["1/inertia"]]
C = [[1, 0]]
dt = 0.1
limits = 24
parameters = {friction = [0.1, 1], inertia = [0.5, 2]}"""
LOADS = "loads = {size = 2.0, drift = 0.1}"


def test_a_study_with_loads_has_the_plants_in_velocity_form(tmp_path):
    family = family_of(f"{SERVO_WITH_LOAD}\n{LOADS}", tmp_path)
    plain = family_of(SERVO_WITH_LOAD, tmp_path)
    expected = lg.offset_free(plain, load=2.0, drift=0.1).nominal()
    for name, matrix in family.nominal().matrices().items():
        np.testing.assert_array_equal(matrix, getattr(expected, name))


def test_a_load_that_cannot_be_seen_is_refused_with_the_line(tmp_path):
    speed = 'A = [[1.0, 0.1], [0.0, "pole"]]\nB = [[0.0], [1.0]]\nC = [[0.0, 1.0]]\nparameters = {pole = [0.8, 0.9]}'
    with pytest.raises(lg.LqgapError, match=r"study.toml, line \d+: plant.loads: constant loads"):
        family_of(f"{speed}\n{LOADS}", tmp_path)


UNSTABLE = 'A = [["pole"]]\nB = [[1]]\nC = [[1]]\nparameters = {pole = [0.5, 1.5]}\n'


@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ('V = [["1 - pole"]]', r"line 6: plant\.V: V of member 2 \(pole = 1\.16667\) is not positive"),
        ('W = [["(1 - pole)**-2"]]', r"line 6: plant\.W: W has entries that are NaN .* \(member pole = 1\)"),
    ],
)
def test_a_plant_that_cannot_be_built_is_blamed_on_its_matrix_with_its_parameters(tmp_path, matrix, error):
    study, source = parse_study(f"[plant]\n{UNSTABLE}{matrix}", name="study.toml", folder=tmp_path)
    plants = Plants(study, source, trust=False)
    with pytest.raises(lg.InvalidStudyError, match=error):
        plants.limited(Zero(num_inputs=1, num_outputs=1))  # which needs all of them


def test_noises_that_are_correlated_too_much_somewhere_are_refused(tmp_path):
    """W - G V^-1 G' = 1 - pole^2, which members of the class have to be positive."""
    study, source = parse_study(f'[plant]\n{UNSTABLE}G = [["pole"]]', name="study.toml", folder=tmp_path)
    with pytest.raises(lg.InvalidStudyError, match=r"line 6: plant\.G: G is too large.*\(member pole = "):
        Plants(study, source, trust=False).limited(Zero(num_inputs=1, num_outputs=1))


def test_drift_may_be_a_formula_of_the_step_of_a_built_in_family_and_of_none_that_is_not_known(tmp_path):
    loads = 'loads = {size = 1.0, drift = "dt"}'
    nominal = family_of(f'family = "mass_spring_damper"\n{loads}', tmp_path).nominal()
    np.testing.assert_allclose(nominal.W[-1, -1], 0.3**2)
    with pytest.raises(lg.InvalidStudyError, match=r"line 6: plant\.loads: drift depends on dt"):
        family_of(f"{UNSTABLE}{loads}", tmp_path)


def test_drift_may_be_a_formula_of_the_time_of_a_step(tmp_path):
    loads = 'dt = 0.04\nloads = {size = 2.0, drift = "3*sqrt(dt)"}'
    nominal = family_of(UNSTABLE + loads, tmp_path).nominal()
    np.testing.assert_allclose(nominal.W[1, 1], (3 * 0.2) ** 2)
    np.testing.assert_allclose(nominal.S0[1, 1], 4)
