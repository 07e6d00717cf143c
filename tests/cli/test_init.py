import json

import pytest

from lqgap.cli.init import write_example
from lqgap.errors import InvalidArgumentError, StorageError
from lqgap.experiments.parsing import default_study, read_study


def test_the_example_is_the_default_study_and_nothing_is_overwritten(tmp_path):
    path = tmp_path / "study.toml"
    write_example(path, as_schema=False)
    assert read_study(path)[0] == default_study()[0]
    with pytest.raises(InvalidArgumentError, match="exists already"):
        write_example(path, as_schema=False)
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        write_example(path / "study.toml", as_schema=False)


def test_a_full_disk_leaves_no_half_of_a_file(tmp_path, full_disk):
    path = tmp_path / "study.toml"
    with full_disk("study.toml"), pytest.raises(StorageError, match="No space left"):
        write_example(path, as_schema=False)
    assert not list(tmp_path.iterdir())
    write_example(path, as_schema=False)
    assert read_study(path)[0] == default_study()[0]


def test_the_schema_is_json(tmp_path):
    write_example(tmp_path / "schema.json", as_schema=True)
    assert "horizon" in json.loads((tmp_path / "schema.json").read_text())["properties"]
