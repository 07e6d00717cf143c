import numpy as np
import pytest
from heating import heat, rooms

import lqgap as lg
from lqgap.experiments.family import make_family
from lqgap.experiments.matrices import family_of_matrices
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import make_members
from lqgap.experiments.transfer import transfer
from lqgap.policies import Integrated


def family_of(plant, tmp_path):
    study, source = parse_study(f"[plant]\n{plant}", name="study.toml", folder=tmp_path)
    return family_of_matrices(study.plant, source)


CONTINUOUS = """
dt = 0.1
A = [[0, 1], ["-stiffness/mass", "-0.5/mass"]]
B = [[0], ["1/mass"]]
C = [[1, 0]]
W = [[0, 0], [0, "0.2/mass**2"]]
V = [["1e-3/dt"]]
parameters = {stiffness = [1, 4], mass = [1, 2], lag = [0.02, 0.25]}
delay = "lag"
"""


def test_a_plant_in_continuous_time_is_sampled_with_its_delay(tmp_path):
    family = family_of(CONTINUOUS, tmp_path)
    A, B = [[0, 1], [-2, -1 / 3]], [[0], [1 / 1.5]]
    written = lg.LQG(A, B, [[1, 0]], W=np.diag([0, 0.2 / 1.5**2]), V=[[1e-2]])
    sampled = lg.discretize(written, dt=0.1, delay=0.13, longest=0.25)
    plant = family.system({"stiffness": 3.0, "mass": 1.5, "lag": 0.13})
    assert plant.num_states == 2 + 3
    for name, matrix in plant.matrices().items():
        np.testing.assert_allclose(matrix, getattr(sampled, name), rtol=1e-12, atol=1e-14)
    assert family.is_traceable
    assert family.signals.dt == 0.1
    assert np.all(np.isfinite(family.grid(3).systems.A))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"lag"', '"lag - 0.1"', "plant.delay: it is negative"),
        ('"lag"', '"lug"', "plant.delay: there is no parameter 'lug'"),
        ('"lag"', '[0.1, "lug"]', "plant.delay.1: there is no parameter 'lug'"),
        ('"lag"', '["lag", 0.1, 0.2]', "delay is .*expected a time"),
        ("1e-3/dt", "1e-3/rate", "plant.V.0.0: there is no parameter 'rate'"),
        ("dt = 0.1", "dt = 1e12", "dt is 1e.12, too long"),
    ],
)
def test_an_error_of_a_plant_in_continuous_time_names_its_key(tmp_path, old, new, says):
    with pytest.raises(lg.InvalidArgumentError, match=says):
        family_of(CONTINUOUS.replace(old, new), tmp_path).nominal()


def test_each_input_may_have_its_delay_and_choices_may_decide_it(tmp_path):
    text = """
dt = 0.1
A = [["-pole"]]
B = [[1, 2]]
C = [[1]]
delay = [0.05, "0.1*steps"]
parameters = {pole = [1, 2], steps = {choices = [0, 1, 2]}}
"""
    family = family_of(text, tmp_path)
    for steps in (0, 1, 2):
        plant = family.system({"pole": 1.5, "steps": steps})
        written = lg.LQG([[-1.5]], [[1, 2]], [[1]])
        expected = lg.discretize(written, dt=0.1, delay=[0.05, 0.1 * steps], longest=0.2)
        np.testing.assert_allclose(plant.A, expected.A, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(plant.B, expected.B, rtol=1e-12, atol=1e-14)


def test_large_integers_are_numbers_like_others(tmp_path):
    text = 'A = [["a/b**2"]]\nB = [["c"]]\nC = [[1]]\nparameters = {a = 100000000000000000000, b = 10000000000, c = [1, 2]}'
    assert float(family_of(text, tmp_path).nominal().A[0, 0]) == 1.0


ROOMS = """
dt = 0.25
time_unit = "h"
A = [["-(1/wall + 0.2)/capacity", "0.2/capacity"], ["0.2/capacity", "-(1/wall + 0.2)/capacity"]]
B = [["1/capacity", 0], [0, "1/capacity"]]
C = [[1, 0], [0, 1]]
E = [["1/(wall*capacity)"], ["1/(wall*capacity)"]]
measured = {size = 10.0, noise = 0.05, decay = 0.999}
R = [[0.1, 0], [0, 0.1]]
W = [[4e-3, 0], [0, 4e-3]]
V = [[2.5e-3, 0], [0, 2.5e-3]]
parameters = {capacity = [0.5, 1.5], wall = [5, 15], late = {choices = [0, 1, 2, 3]}}
delay = "late*dt"
inputs = ["heater 1 [kW]", "heater 2 [kW]"]
outputs = ["room 1 [K]", "room 2 [K]", "outside [K]"]
"""


def test_a_measured_disturbance_is_held_over_a_step_and_is_the_last_output(tmp_path):
    plant = family_of(ROOMS, tmp_path).system({"capacity": 0.8, "wall": 8.0, "late": 2})
    A, B = map(np.asarray, rooms(0.8, 8.0))
    np.testing.assert_allclose(plant.A[:2, :2], A, rtol=1e-12)
    np.testing.assert_allclose(plant.A[:2, -1:], B[:, 2:], rtol=1e-12)
    np.testing.assert_allclose(plant.A[-1], [0] * (plant.num_states - 1) + [0.999])
    np.testing.assert_allclose(plant.C[-1], [0] * (plant.num_states - 1) + [1])
    assert plant.Q[2, 2] == 0
    reached = np.linalg.matrix_power(plant.A, 2) @ plant.B  # two steps later an input has not passed yet
    assert not np.any(plant.C @ plant.A @ plant.B)
    np.testing.assert_allclose(plant.C[:2] @ reached, B[:, :2], rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("measured = {size = 10.0, noise = 0.05, decay = 0.999}\n", "", "belong together"),
        ("decay = 0.999", "decay = 1.0", "measured.decay"),
        ("E = [[", "G = [[0, 0], [0, 0]]\nE = [[", "give one of them"),
        ("E = [[", "E = [[0.1], [0.1], [", r"plant\.E: it has 4 rows, expected 2"),
    ],
)
def test_a_measured_disturbance_that_is_not_complete_is_refused(tmp_path, old, new, says):
    with pytest.raises(lg.InvalidStudyError, match=says):
        family_of(ROOMS.replace(old, new), tmp_path)


@pytest.mark.slow
def test_the_bank_of_a_study_of_two_rooms_holds_their_temperatures(tmp_path):
    """Through delays, weather, which is measured, guests and another set-point; recommended or not."""
    rest = "[grid]\npoints = 3\n[methods]\nnominal = {}\nbank = {}\n[real]\ncount = 2\n"
    rest += "[evaluation]\nrollouts = 64\nhorizons = []\nmap_points = 2\ntrajectories = 1\nbounds = false\n"
    rest += '[response]\nreference = [2.0, 1.0]\nload = [0.3, 0]\nhorizon = "60 h"\n'
    text = f'horizon = "10 h"\n[plant]\n{ROOMS}\nloads = {{size = 1.0, drift = 0.02}}\n{rest}'
    record = transfer(*parse_study(text, name="study.toml", folder=tmp_path), tmp_path / "run")
    [file] = [method.policy_file for method in record.methods if method.name == "bank"]
    policy = Integrated(lg.load_policy(tmp_path / "run" / file))
    for truth in [(0.5, 5.0, 0), (1.5, 15.0, 3), (0.8, 8.0, 2)]:
        assert heat(policy, *truth) < 0.1  # K
    assert len(record.responses) == 2
    assert len(record.responses[0].y[0][0]) == 3


@pytest.mark.parametrize("time", ["", "dt = 0.1\n", "dt = 0.1\ndelay = 0.05\n"])
@pytest.mark.parametrize(
    ("name", "matrix", "message"),
    [
        ("W", "[[0, 1, 0], [0, 0.03, 0], [0, 0, 5e11]]", "W is not symmetric"),
        ("W", "[[0, 1, 0], [1, 0.03, 0], [0, 0, 5e11]]", "W .*is not positive semidefinite"),
        ("W", "[[1, 0, 0], [0, '2 - b', 0], [0, 0, 5e11]]", "W .*is not positive semidefinite"),
        ("V", "[[-1.0]]", "V .*is not positive semidefinite"),
        ("S0", "[[-1, 0, 0], [0, 1, 0], [0, 0, 1e15]]", "S0 .*is not positive semidefinite"),
        ("Q", "[[-1e-9]]", "Q .*is not positive semidefinite"),
        ("R", "[[0.0]]", "R .*is not positive definite"),
    ],
)
def test_a_matrix_that_is_no_covariance_or_weight_is_named_with_its_line(
    tmp_path, time, name, matrix, message
):
    text = (
        "[plant]\nA = [[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]]\nB = [[0], [0], ['b']]\nC = [[1, 0, 0]]\n"
        f"{name} = {matrix}\n{time}parameters = {{b = [1, 3]}}"
    )
    study, source = parse_study(text, name="study.toml", folder=tmp_path)
    with pytest.raises(lg.InvalidStudyError, match=f"line 5: plant.{name}: {message}"):
        make_members(study, make_family(study, source), source)
