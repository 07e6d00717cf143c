import json
import subprocess
import sys

import numpy as np
import pytest

import lqgap
from lqgap.cli.solve import mass_on_a_spring, print_optimum, read_plant
from lqgap.errors import InvalidArgumentError, InvalidSystemError

PLANT = "A = [[0.9]]\nB = [[1]]\nC = [[1]]\n"


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "plant.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_plant_file_is_solved(write, capsys):
    print_optimum(write(PLANT), horizon=50, dt=None, as_json=True)
    record = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(record["J"], 2.9128735930062413, rtol=1e-12)
    np.testing.assert_allclose(record["value"], 147.2477851987892, rtol=1e-12)


def test_the_built_in_plant_is_printed_as_tables(capsys):
    print_optimum(None, horizon=200, dt=None, as_json=False)
    printed = capsys.readouterr().out
    assert "3.91515" in printed
    assert f"{float(lqgap.solve_finite(mass_on_a_spring(), horizon=200).value):.6g}" in printed


@pytest.mark.parametrize("width", [60, 80])
def test_no_word_is_broken_on_a_narrow_screen(width, capsys, monkeypatch, tmp_path):
    path = tmp_path / "plant.toml"
    path.write_text(
        f"A = {np.diag(np.linspace(0.1, 0.9, 9)).tolist()}\nB = {[[1.5]] * 9}\nC = {[[1.25] * 9]}\n"
    )
    monkeypatch.setenv("COLUMNS", str(width))
    print_optimum(path, horizon=5, dt=None, as_json=False)
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= width
    gain = np.asarray(lqgap.solve(read_plant(path)).K)
    words = {"measurement", "relative", "predicted)", *np.array2string(gain, precision=6).strip("[]").split()}
    assert words <= set(text.replace("\u2502", " ").replace("[", " ").replace("]", " ").split())


BAD_FILES = {
    "unknown key": (PLANT + "SO = [[1]]", InvalidArgumentError, "did you mean S0"),
    "missing matrix": ("A = [[0.9]]\nB = [[1]]", InvalidArgumentError, "no matrix C"),
    "no toml": ("A = [[0.9", InvalidArgumentError, "not a TOML file: Unclosed array"),
    "no text": (b"\xff\xfe", InvalidArgumentError, "not a TOML file"),
    "wrong size": (PLANT + "Q = [[1, 0], [0, 1]]", InvalidSystemError, r"Q has shape \(2, 2\)"),
    "not a number": ('A = "x"\nB = [[1]]\nC = [[1]]', InvalidSystemError, "A holds"),
}


@pytest.mark.parametrize("name", sorted(BAD_FILES))
def test_a_bad_file_raises(write, name):
    text, error, message = BAD_FILES[name]
    with pytest.raises(error, match=message):
        read_plant(write(text))


def test_a_missing_file_raises(tmp_path):
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        read_plant(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (PLANT.replace("0.9", "nan"), 3, "error: A has entries that are NaN"),
        ("A = [[2]]\nB = [[0]]\nC = [[1]]", 3, "error: (A, B) is not stabilisable"),
        ("A = [[1e250]]\nB = [[1]]\nC = [[1]]", 4, "error: the Riccati equations were not solved"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(command, write, text, code, message):
    finished = command("solve", write(text))
    assert finished.returncode == code
    assert finished.stdout == ""
    assert finished.stderr.startswith(message)
    assert finished.stderr.count("\n") == 1


def test_a_file_with_a_byte_order_mark_and_brackets_in_its_name_is_read(tmp_path, capsys):
    path = tmp_path / "[bold]plant.toml"
    path.write_bytes(b"\xef\xbb\xbf" + PLANT.encode())
    print_optimum(path, horizon=1, dt=None, as_json=False)
    assert "[bold]plant.toml" in capsys.readouterr().out


def test_small_gains_are_not_printed_as_zero(write, capsys):
    print_optimum(write("A = [[0.9]]\nB = [[1e-8]]\nC = [[1]]"), horizon=1, dt=None, as_json=False)
    assert "e-08" in capsys.readouterr().out


def test_a_full_disk_is_one_line(write):
    command = f"{sys.executable} -m lqgap solve {write(PLANT)} --json > /dev/full"
    finished = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert finished.returncode == 1
    assert "Traceback" not in finished.stderr


def test_a_process_ends_with_the_exit_code_of_its_error(write):
    arguments = [sys.executable, "-m", "lqgap", "solve", write("A = [[1e250]]\nB = [[1]]\nC = [[1]]")]
    finished = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert finished.returncode == 4
    assert finished.stdout == ""
    assert finished.stderr.startswith("error: the Riccati equations were not solved")
    assert finished.stderr.count("\n") == 1


def test_a_plant_in_continuous_time_is_sampled(write, capsys):
    print_optimum(write(PLANT + "W = [[0.3]]\n"), horizon=5, dt=0.2, as_json=True)
    plant = lqgap.discretize(lqgap.LQG([[0.9]], [[1.0]], [[1.0]], W=[[0.3]]), dt=0.2)
    np.testing.assert_allclose(json.loads(capsys.readouterr().out)["J"], lqgap.solve(plant).J, rtol=1e-12)
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        print_optimum(None, horizon=5, dt=0.2, as_json=True)
