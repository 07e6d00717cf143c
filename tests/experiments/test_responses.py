from pathlib import Path

import numpy as np
import pytest

import lqgap as lg
from lqgap.errors import InvalidStudyError
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.plants import Plants
from lqgap.experiments.responses import UNABLE, make_schedule, respond_to_steps
from lqgap.experiments.transfer import transfer
from lqgap.experiments.units import Workspace
from lqgap.policies import Integrated, StationaryLQG, Zero
from lqgap.report.page import render

SERVO = (Path(__file__).parents[2] / "docs" / "servo.toml").read_text()
COUNT = 2 * np.pi / 2000  # of the encoder

STUDY = """
horizon = 5
[plant]
A = [["pole"]]
B = [[1.0]]
C = [[1.0]]
parameters = {pole = [0.5, 0.9]}
operating_point = {u0 = [7.0], y0 = [20.0]}
[grid]
points = 2
[real]
count = 2
[response]
reference = 22.0
load = 0.5
horizon = 60
"""
FEW = """
methods = {nominal = {}, linear = {}}
evaluation = {rollouts = 16, horizons = [], trajectories = 0, map_points = 3, bounds = false}
"""
LOADS = STUDY.replace("operating_point", "loads = {size = 1.0, drift = 0.5}\noperating_point")


def make_workspace(tmp_path, text=STUDY):
    study, source = parse_study(text, name="study.toml", folder=tmp_path)
    plants = Plants(study, source, trust=False)
    return Workspace(plants, range(len(plants.members)), tmp_path)


def test_the_reference_steps_a_load_joins_and_the_reference_steps_back(tmp_path):
    schedule = make_schedule(make_workspace(tmp_path).plants)
    third = np.arange(61) * 3 // 61
    np.testing.assert_array_equal(schedule.references[:, 0], np.where(third < 2, 2.0, 0.0))
    np.testing.assert_array_equal(schedule.loads[:, 0], np.where(third >= 1, 0.5, 0.0))
    for number, part in enumerate(schedule.thirds):
        np.testing.assert_array_equal(third[part], number)
        assert part.stop - part.start == np.sum(third == number)


def test_signals_are_real_ones_and_figures_those_of_the_curves(tmp_path):
    workspace = make_workspace(tmp_path)
    policy = StationaryLQG(workspace.plants.family.nominal())
    found = respond_to_steps(workspace, "nominal", policy).response
    assert found.plants == ["the middle", "pole = 0.5", "pole = 0.9", "real 1", "real 2"]
    y, u, schedule = np.array(found.y)[..., 0], np.array(found.u)[..., 0], make_schedule(workspace.plants)
    first, load, back = schedule.thirds
    np.testing.assert_allclose(y[0, first.stop - 1], 22.0, atol=1e-6)  # the middle is what the policy knows
    np.testing.assert_allclose(u[0, first.stop - 1], 7.0 + 2.0 * (1 - 0.7), atol=1e-6)
    figures = {figure.kind: figure for figure in found.figures}
    assert figures["overshoot"].value == pytest.approx(max(0.0, (y[:, first].max() - 22) / 2))
    assert figures["overshoot back"].value == pytest.approx(max(0.0, (20 - y[:, back].min()) / 2))
    assert figures["under load"].value == pytest.approx(np.abs(y[:, load] - 22).max() / 2)
    assert figures["error left"].value == pytest.approx(np.abs(y[:, load.stop - 1] - 22).max() / 2)
    assert figures["error left"].plant == "pole = 0.9"  # on which a load weighs most


def test_settling_is_the_step_from_which_outputs_stay_near(tmp_path):
    workspace = make_workspace(tmp_path, LOADS)
    policy = StationaryLQG(workspace.plants.family.nominal())
    found = respond_to_steps(workspace, "nominal", policy).response
    [settling] = [figure for figure in found.figures if figure.kind == "settling"]
    y = np.array(found.y)[found.plants.index(settling.plant), :21, 0]
    late = int(settling.value)
    assert np.all(np.abs(y[late:] - 22) <= 0.1)
    assert abs(y[late - 1] - 22) > 0.1


def test_with_loads_no_error_is_left_and_inputs_are_inputs(tmp_path):
    workspace = make_workspace(tmp_path, LOADS)
    policy = StationaryLQG(workspace.plants.family.nominal())
    found = respond_to_steps(workspace, "nominal", policy).response
    [left] = [figure for figure in found.figures if figure.kind == "error left"]
    assert left.value < 1e-2
    np.testing.assert_allclose(np.array(found.u)[0, 40, 0], 7.0 + 2 * (1 - 0.7) - 0.5, atol=1e-2)


def test_a_long_response_is_kept_where_something_happens(tmp_path):
    workspace = make_workspace(tmp_path, STUDY.replace("horizon = 60", "horizon = 2000"))
    policy = StationaryLQG(workspace.plants.family.nominal())
    found = respond_to_steps(workspace, "nominal", policy).response
    assert len(found.steps) <= 300
    assert {0, 1, 2, 667, 668, 1334, 1335, 2000} <= set(found.steps)


def test_a_policy_that_cannot_follow_has_no_response_and_is_unfit(tmp_path):
    found = respond_to_steps(make_workspace(tmp_path), "zero", Zero(num_inputs=1, num_outputs=1))
    assert found.response is None
    assert found.unfit == "it cannot follow the set-point of [response]"


def test_a_method_that_cannot_follow_is_recommended_only_where_no_set_point_is_asked_for(tmp_path):
    """The linear controller is the best by its gap."""
    regulate = FEW + STUDY.partition("[response]")[0].replace("[0.5, 0.9]", "[0.2, 1.1]")
    follow = regulate + "[response]" + STUDY.partition("[response]")[2]
    found = {
        text: transfer(*parse_study(text, name="study.toml", folder=tmp_path), tmp_path / f"run {len(text)}")
        for text in (regulate, follow)
    }
    assert [record.recommended for record in found.values()] == ["linear", "nominal"]
    assert [found[text].method("linear").unfit for text in found] == [None, UNABLE]
    assert "Robust linear controller is unfit: it cannot follow the set-point" in found[follow].warnings[-1]
    assert "it cannot follow the set-point of [response]" in render(found[follow])


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "reference = 22.0",
            "reference = [22.0, 1.0]",
            "response.reference: it is .22.0, 1.0.: there are 1 outputs",
        ),
        ("reference = 22.0", "reference = 20.0", "response.reference: it is the operating point"),
        ("load = 0.5", "load = [1.0, 2.0]", "response.load: .*1 inputs"),
        ("horizon = 5\n", "horizon = 5\nends = true\n", r"line \d+: response: it asks .* controllers stop$"),
        ("horizon = 60", 'horizon = "2 s"', "how long a step is say matrices"),
        ("C = [[1.0]]", "C = [[0.0]]", "cannot rest"),
    ],
)
def test_a_response_that_cannot_be_asked_for_is_refused_with_its_place(tmp_path, old, new, error):
    with pytest.raises(InvalidStudyError, match=error):
        make_schedule(make_workspace(tmp_path, STUDY.replace(old, new)).plants)


def motor(inertia, friction, dt):
    """(angle, speed, current, voltage, torque) one sample later, by many small steps of Runge and Kutta."""
    J, b, k, inductance, resistance = 1e-4 * inertia, 1e-4 * friction, 0.05, 5e-4, 1.0
    change = np.zeros((5, 5))
    change[0, 1] = 1
    change[1] = [0, -b / J, k / J, 0, -1 / J]
    change[2] = [0, -k / inductance, -resistance / inductance, 1 / inductance, 0]
    I, h, count = np.eye(5), change * 2e-5, round(dt / 2e-5)  # noqa: E741
    return np.linalg.matrix_power(I + h @ (I + h / 2 @ (I + h / 3 @ (I + h / 4))), count)


def hold(policy, plant, *, dt, seconds):
    """The angle beyond the reference, 1 and -1 rad in turn for 5 s each; a torque of 50 mNm from 1 s on."""
    controller = lg.Controller(Integrated(policy), limits=(-24, 24), follow=[0])
    move, x, beyond, per_step = motor(*plant, dt), np.zeros(3), [], round(5 / dt)
    for t in range(round(seconds / dt)):
        reference = (-1.0) ** (t // per_step)
        u = controller(np.round(x[:1] / COUNT) * COUNT, reference=reference)
        x = (move @ [*x, u[0], 0.05 * (t * dt >= 1)])[:3]
        beyond.append((x[0] - reference) * reference)
    return np.array(beyond).reshape(-1, per_step)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # 300,000 steps of controllers at 1 kHz
@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_a_study_of_a_servo_ends_with_a_policy_that_holds_it(tmp_path, dt):
    """One file for 100 Hz and 1 kHz; its physics is another program's, its encoder has counts."""
    text = SERVO.replace("dt = 0.01\n", f"dt = {dt}\n")
    record = transfer(*parse_study(text, name="servo.toml", folder=tmp_path), tmp_path / "run")
    assert "Step responses" in render(record)
    files = {method.name: tmp_path / "run" / method.policy_file for method in record.methods}
    policies = {name: lg.load_policy(files[name]) for name in (record.recommended, "nominal")}
    assert record.recommended != "nominal"
    for plant in [(0.5, 0.1), (2.0, 1.0), (0.8, 0.3), (1.1, 0.4)]:
        beyond = hold(policies[record.recommended], plant, dt=dt, seconds=60)
        of_nominal = hold(policies["nominal"], plant, dt=dt, seconds=15)
        assert np.sqrt(np.mean(beyond[:, -round(0.5 / dt) :] ** 2)) < 3e-3
        assert beyond.max() <= 1.2 * of_nominal.max()
