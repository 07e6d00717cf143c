import pathlib
import shutil
import subprocess
import sys

import pytest

import lqgap
from lqgap.experiments.family import make_family
from lqgap.experiments.parsing import parse_study
from lqgap.experiments.provenance import checksum, code_hash, files_of, first_changed, is_own, versions
from lqgap.interop.mat import save_mat


def test_versions_name_what_results_depend_on():
    assert versions()["lqgap"] == lqgap.__version__
    assert {"jax", "numpy", "python"} <= versions().keys()


def test_the_hash_of_the_code_changes_with_what_computes_and_not_with_what_shows(tmp_path):
    """In a copy of the package, as an installed one would be."""
    shutil.copytree(
        pathlib.Path(lqgap.__file__).parent, tmp_path / "lqgap", ignore=shutil.ignore_patterns("__pycache__")
    )

    def hash_there():
        code = "from lqgap.experiments.provenance import code_hash; print(code_hash())"
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    before = hash_there()
    assert before == code_hash()
    with (tmp_path / "lqgap" / "report" / "numbers.py").open("a") as file:
        file.write("# another remark\n")
    assert hash_there() == before
    with (tmp_path / "lqgap" / "evaluation" / "gap.py").open("a") as file:
        file.write("# another gap\n")
    assert hash_there() != before


def study_of(plant, folder):
    return parse_study(f"[plant]\n{plant}\n", name="study.toml", folder=folder)


def test_a_study_rests_on_the_files_that_it_names(tmp_path):
    assert files_of(*study_of('family = "mass_spring_damper"', tmp_path)) == {}
    save_mat(tmp_path / "plant.mat", lqgap.plants.mass_spring_damper().nominal(), sampling_time=0.1)
    files = files_of(*study_of('file = "plant.mat"\nradius = 0.1', tmp_path))
    assert files == {"plant.mat": checksum(tmp_path / "plant.mat")}
    assert first_changed(files, tmp_path) is None
    (tmp_path / "plant.mat").write_bytes(b"")
    assert first_changed(files, tmp_path) == "plant.mat"
    assert checksum(tmp_path / "nowhere") is None


MODULE = """
import lqgap as lg
from helpers_of_this_test.deep import LOW
def make():
    import late_helper_of_this_test
    return lg.simulators.ParameterBox(lambda a: lg.LQG([[a]], [[1.0]], [[1.0]]), {"a": (LOW, 0.9)})
"""


@pytest.mark.parametrize("low", [0.1, 0.2])
def test_a_function_rests_on_all_modules_from_its_folder_which_are_read_anew(tmp_path, low):
    (tmp_path / "module_of_this_test.py").write_text(MODULE)
    (tmp_path / "helpers_of_this_test").mkdir()
    (tmp_path / "helpers_of_this_test" / "__init__.py").write_text("")
    (tmp_path / "late_helper_of_this_test.py").write_text("")
    study, source = study_of('python = "module_of_this_test:make"', tmp_path)
    for value in (low, low + 0.5):  # of equal length, within a second
        (tmp_path / "helpers_of_this_test" / "deep.py").write_text(f"LOW = {value}")
        assert make_family(study, source, trust=True).parameters[0].low == value
    assert set(files_of(study, source)) == {
        "module_of_this_test.py",
        "helpers_of_this_test/__init__.py",
        "helpers_of_this_test/deep.py",
        "late_helper_of_this_test.py",
    }
    assert not list(tmp_path.rglob("*.pyc"))


def test_what_lies_below_the_folder_by_chance_is_not_its_own(tmp_path):
    site = tmp_path / ".venv" / "lib" / "numpy" / "__init__.py"
    assert not is_own("numpy", str(site), tmp_path)
    assert is_own("mine", str(tmp_path / "mine.py"), tmp_path)
    assert is_own("mine.inner", str(tmp_path / "mine" / "inner.py"), tmp_path)
    assert not is_own("lqgap.files", str(tmp_path / "lqgap" / "files.py"), tmp_path)
