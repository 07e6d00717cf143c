import pytest

import lqgap as lg
from lqgap.errors import InvalidStudyError, LqgapWarning
from lqgap.experiments.parsing import parse_study

CONTINUOUS = """
horizon = {horizon}
[plant]
A = [["-rate"]]
B = [[1]]
C = [[1]]
parameters = {{rate = [1, 2]}}
{more}
"""


def study_of(tmp_path, *, horizon="50", more="dt = 0.02", end=""):
    text = CONTINUOUS.format(horizon=horizon, more=more) + end
    return parse_study(text, name="study.toml", folder=tmp_path)[0]


@pytest.mark.parametrize(
    ("horizon", "more", "steps"),
    [
        ('"2 s"', "dt = 0.02", 100),
        ('"2s"', "dt = 0.02", 100),
        ('"500 ms"', "dt = 0.02", 25),
        ('"1.5 min"', "dt = 0.5", 180),
        ('"2 h"', 'dt = 0.25\ntime_unit = "h"', 8),
        ("70", "", 70),
    ],
)
def test_a_horizon_is_a_number_of_steps_or_a_time(tmp_path, horizon, more, steps):
    study = study_of(tmp_path, horizon=horizon, more=more)
    assert study.horizon == steps
    assert parse_study(study.to_toml(), name="again", folder=tmp_path)[0] == study


def test_horizons_of_the_evaluation_may_be_times_too(tmp_path):
    study = study_of(tmp_path, end='[evaluation]\nhorizons = ["0.2 s", 20, "1 s"]')
    assert study.evaluation.horizons == [10, 20, 50]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"horizon": '"2 s"', "more": ""},
            "line 2: horizon: expected a number of steps: how long a step is say matrices with dt",
        ),
        ({"horizon": '"2 weeks"'}, "line 2: horizon: expected a number of steps, or a time"),
        ({"horizon": '"0 ms"'}, "line 2: horizon: expected greater than or equal to 1"),
        ({"end": '[evaluation]\nhorizons = ["soon"]'}, "evaluation: expected a number of steps, or a time"),
        ({"more": "dt = 0"}, "plant.dt: expected greater than 0"),
        ({"more": 'delay = "rate"'}, "plant: delay is a time, and there is no dt"),
        ({"more": 'dt = 0.1\ndelay = "rate +"'}, "plant.delay: character 7: expected a number"),
        ({"more": 'dt = 0.1\nlimits = "many"'}, "plant.limits: expected a valid number"),
        ({"more": "dt = 0.1\nlimit = 3"}, "plant.limit: there is no such key; did you mean limits"),
        ({"more": "dt = 0.1\noperating_point = {u1 = [0]}"}, "there is no such key; did you mean u0"),
    ],
)
def test_an_error_names_the_key(tmp_path, changes, message):
    with pytest.raises(lg.InvalidStudyError, match=message):
        study_of(tmp_path, **changes)


def test_the_time_of_a_step_is_no_parameter(tmp_path):
    with pytest.raises(lg.InvalidStudyError, match="dt is the time of a step"):
        parse_study(
            CONTINUOUS.format(horizon=5, more="dt = 0.1").replace("[1, 2]", "[1, 2], dt = 0.1"),
            name="x",
            folder=tmp_path,
        )


def test_a_time_that_is_no_whole_number_of_steps_is_rounded_up_and_said(tmp_path):
    with pytest.warns(LqgapWarning, match=r"0\.05 s are 2\.5 steps of 0\.02 s: 3 are taken"):
        assert study_of(tmp_path, horizon='"0.05 s"').horizon == 3
    assert study_of(tmp_path, horizon='"0.3 s"', more="dt = 0.1").horizon == 3  # 0.3 / 0.1 is below three


@pytest.mark.parametrize(
    ("family", "horizon", "steps"),
    [('"mass_spring_damper"\ndt = 0.5', "0.1 min", 12), ('"thermal_zones"', "2.5e-1 h", 1)],
)
def test_a_built_in_family_knows_how_long_a_step_is(tmp_path, family, horizon, steps):
    text = f'horizon = "{horizon}"\n[plant]\nfamily = {family}'
    assert parse_study(text, name="study.toml", folder=tmp_path)[0].horizon == steps


def test_a_time_without_end_is_refused(tmp_path):
    with pytest.raises(InvalidStudyError, match=r"line 1: horizon: more steps than can be counted"):
        parse_study('horizon = "1e400 s"\n[plant]\nfamily = "dc_motor"', name="study.toml", folder=tmp_path)


def test_a_built_in_family_whose_steps_differ_has_no_times(tmp_path):
    text = 'horizon = "1 s"\n[plant]\nfamily = "mass_spring_damper"\ndt = [0.1, 0.2]'
    with pytest.raises(InvalidStudyError, match="built-in families with one dt"):
        parse_study(text, name="study.toml", folder=tmp_path)


@pytest.mark.parametrize("drift", ["0", "[0.1, -1]", '"2*stiffness"', "[]", "true"])
def test_loads_are_positive_numbers_or_a_formula_of_dt(tmp_path, drift):
    with pytest.raises(InvalidStudyError, match="a formula of dt"):
        study_of(tmp_path, more=f"dt = 0.1\nloads = {{size = 1.0, drift = {drift}}}")
