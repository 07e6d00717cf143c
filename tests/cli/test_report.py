import subprocess
import sys

import pytest
from example_record import example_record

from lqgap.cli.report import run_report
from lqgap.report.page import render


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "record.json").write_text(example_record(num_plants=3, horizon=5).model_dump_json())
    return tmp_path


def test_the_page_is_written_beside_the_record(folder, capsys):
    (folder / "report.html").write_text("old")
    run_report(folder, figures=False)
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    assert (folder / "report.html").read_text() == render(example_record(num_plants=3, horizon=5))
    assert sorted(path.name for path in folder.iterdir()) == ["record.json", "report.html"]


def test_figures_are_written_when_asked_for(command, folder):
    absent = dict.fromkeys(("heat_map", "trajectories", "adaptations", "horizons", "gaps"))
    few = example_record(**absent, responses=[])
    (folder / "record.json").write_text(few.model_dump_json())
    result = command("report", folder, "--figures")
    assert result.returncode == 0
    names = [f"{name}.{kind}" for name in ("bracket", "training") for kind in ("png", "svg")]
    assert result.stdout.split() == [
        str(folder / "report.html"),
        *(str(folder / "figures" / name) for name in names),
    ]


def test_a_full_disk_is_a_line_for_the_page_and_one_for_the_figures(command, folder, full_disk):
    with full_disk("report.html", ".png"):
        result = command("report", folder, "--figures")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert [line.startswith("error: ") for line in lines] == [True, True]
    assert "report.html cannot be written" in lines[0]
    assert ".png cannot be written" in lines[1]


def test_reports_need_neither_jax_nor_matplotlib(folder):
    code = (
        "import pathlib, sys; from lqgap.cli.report import run_report; "
        f"run_report(pathlib.Path({str(folder)!r}), figures=False); "
        "assert not {'jax', 'matplotlib', 'plotly'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("text", "code"), [(None, 3), ("{}", 5)])
def test_what_is_wrong_with_a_folder_is_one_line_and_an_exit_code(tmp_path, text, code):
    if text is not None:
        (tmp_path / "record.json").write_text(text)
    command = [sys.executable, "-m", "lqgap", "report", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == code
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
