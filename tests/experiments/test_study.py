import json
import re
import tomllib
from pathlib import Path

import pydantic
import pytest

from lqgap.experiments.methods import METHODS
from lqgap.experiments.parsing import default_study, example_text, parse_study
from lqgap.experiments.plant_tables import PLANTS, Choices, OperatingPoint, which_plant
from lqgap.experiments.study import Cost, Methods, Study, schema


def test_the_example_is_what_the_tables_have_by_default():
    study, _ = default_study()
    bare = Study.model_validate({"title": study.title, "plant": tomllib.loads(example_text())["plant"]})
    assert bare == study


def test_the_example_shows_every_table():
    table = tomllib.loads(example_text())
    assert set(table) | {"cost", "response"} == set(Study.model_fields)
    left_out = re.findall(r"^# (?:\[methods\.)?(\w+)(?: = {|\])", example_text(), re.MULTILINE)
    assert (
        {*table["methods"], *left_out} - {"parameters", "operating_point", "loads"}
        == set(Methods.model_fields)
        == set(METHODS)
    )


@pytest.mark.parametrize(
    "plant",
    [
        {"family": "mass_spring_damper", "stiffness": [0.5, 4], "dt": 0.3, "gain": {"choices": [1.0, -1.0]}},
        {"A": [[0.5, "a"], [0, 1]], "B": [["-b"], [1]], "C": [[1, 0]], "parameters": {"a": [0, 1], "b": 2}},
        {"file": "plant.mat", "radius": 0.1},
        {"python": "package.module:function"},
    ],
)
def test_a_study_resolved_to_toml_is_the_same_study(plant, tmp_path):
    study = Study.model_validate({"plant": plant, "cost": {"R": [[2.0]]}, "real": {"plants": [{"a": 0.1}]}})
    assert parse_study(study.to_toml(), name="x", folder=tmp_path)[0] == study
    assert which_plant(study.plant) == which_plant(plant)


def test_the_example_explains_every_option_of_a_method():
    table = tomllib.loads(re.sub(r"^# (\w+ = |\[methods)", r"\1", example_text(), flags=re.MULTILINE))[
        "methods"
    ]
    for name, method in METHODS.items():
        assert table[name].keys() == method.model_fields.keys()
        assert method.model_validate(table[name])


def test_the_reference_lists_every_key():
    text = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    tables = [Study, *PLANTS.values(), OperatingPoint]
    keys = {key for table in tables for key in table.model_fields} - {
        "plant",
        "cost",
        "grid",
        "methods",
        "real",
        "evaluation",
    }
    assert {key for key in keys if not re.search(rf"\b{key}\b", text)} == set()
    for name in ("cost", "grid", "real", "evaluation"):
        table = type(getattr(default_study()[0], name) or Cost())
        rows = re.findall(rf"^\| `\[{name}\] .*$", text, re.MULTILINE)
        assert all(any(f"{key}`" in row for row in rows) for key in table.model_fields), name


def test_choices_stay_choices():
    study = Study.model_validate({"plant": {"family": "unknown_sign", "sign": {"choices": [1, -1]}}})
    assert study.plant.model_extra == {"sign": Choices(choices=[1.0, -1.0])}


@pytest.mark.parametrize(
    "change",
    [
        {"horizon": True},
        {"horizon": 0},
        {"seed": -1},
        {"plant": {"family": "x", "gain": [2, 1]}},
        {"plant": {"family": "x", "gain": 10**400}},
        {"plant": {"family": "x", "gain": [1, 2, 3]}},
        {"plant": {"family": "x", "gain": True}},
        {"plant": {"A": [[1]], "B": [[1]], "C": [[1]], "parameters": {}}},
        {"cost": {"Q": [[float("nan")]]}},
        {"cost": {"Q": [[10**400]]}},
        {"methods": {}},
        {"real": {"count": 0}},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    with pytest.raises(pydantic.ValidationError):
        Study.model_validate({"plant": {"family": "mass_spring_damper"}, **change})


def test_the_schema_names_every_table():
    text = json.dumps(schema())
    assert all(name in text for name in (*Study.model_fields, *Methods.model_fields))


def test_a_quick_look_leaves_out_what_takes_long(tmp_path):
    study = parse_study(
        '[plant]\nfamily = "dc_motor"\n[evaluation]\nrollouts = 300\n', name="s", folder=tmp_path
    )[0]
    quick = study.quick()
    assert set(quick.methods.chosen) == {"nominal", "linear", "bank"}
    assert not quick.evaluation.bounds
    assert quick.evaluation.horizons == []
    assert quick.evaluation.rollouts == 300
    assert quick.plant == study.plant
