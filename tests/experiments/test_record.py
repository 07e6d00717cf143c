import json
import math

import pydantic
import pytest
from example_record import example_record

from lqgap.experiments.record import FORMAT, Estimate, Gaps, Method, MethodGaps, Plant, Record, Trajectory


def small_record(**changes):
    parts = dict(
        format=FORMAT,
        title="springs",
        study="horizon = 3\n",
        seed=0,
        precision="float64",
        versions={"lqgap": "0"},
        parameters=[],
        warnings=[],
        methods=[
            Method(name="nominal", label="LQG", kind="fixed", description="", history=[], policy_file=None)
        ],
        real=[Plant(name="real 1", parameters={"gain": 2.0}, is_member=True, optimal_cost=10.0)],
        timings={"audit": 0.5},
    )
    return Record(**{**parts, **changes})


def one_gap(value, *, method="nominal", num_plants=1):
    estimate = Estimate(mean=value, stderr=0.0)
    unmeasured = dict(grid_worst=None, grid_mean=None, box_worst=None, box_worst_at=None)
    gaps = MethodGaps(
        method=method, real=[estimate] * num_plants, real_worst=estimate, real_mean=estimate, **unmeasured
    )
    return Gaps(horizon=3, num_rollouts=2, methods=[gaps])


@pytest.mark.parametrize("value", [0.1 + 0.2, math.inf, -math.inf, math.nan])
def test_a_record_is_standard_json_and_comes_back_as_it_was(value):
    record = small_record(gaps=one_gap(value))
    text = record.model_dump_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    back = Record.model_validate_json(text)
    assert back.gaps is not None
    assert repr(back.gaps.methods[0].real_worst.mean) == repr(value)
    assert back.model_dump_json() == text


def test_a_record_from_before_brackets_had_ranges_is_one_of_the_class():
    record = json.loads(example_record().model_dump_json())
    for part, names in {"bracket": ("over", "bounds_class", "reasons"), "horizons": ("over",)}.items():
        for name in names:
            del record[part][name]
    back = Record.model_validate_json(json.dumps(record))
    assert back.bracket.over == back.horizons.over == "class"
    assert back.bracket.reasons == []
    assert back.bracket.bounds_class


def test_records_do_not_change():
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        small_record().seed = 1


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "blue"},
        {"seed": "0"},
        {"format": FORMAT - 1},
        {"recommended": "magic"},
        {"gaps": one_gap(1.0, method="magic")},
        {"gaps": one_gap(1.0, num_plants=2)},
        {"trajectories": [Trajectory(method="nominal", plant="elsewhere", cost=[], u=[], y=[])]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_record_that_contradicts_itself_is_refused(changes):
    with pytest.raises(pydantic.ValidationError):
        small_record(**changes)


def test_records_of_two_runs_differ_in_their_timings_alone():
    one, other = small_record(), small_record(timings={"audit": 0.7})
    assert one != other
    assert one.without_timings() == other.without_timings()


def test_a_method_is_found_by_its_name():
    assert small_record().method("nominal").label == "LQG"
