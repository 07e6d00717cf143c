import io
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import lqgap
from lqgap.cli import main


def test_version_and_help():
    runner = CliRunner()
    assert runner.invoke(main.app, ["--version"]).output == f"lqgap {lqgap.__version__}\n"
    assert "solve" in runner.invoke(main.app, ["--help"]).output


def test_a_usage_error_exits_with_two():
    assert CliRunner().invoke(main.app, ["slove"]).exit_code == 2


def test_every_error_has_an_exit_code(monkeypatch):
    for kind, code in main.EXIT_CODES.items():

        def fail(kind=kind):
            raise kind("reason")

        monkeypatch.setattr(main, "app", fail)
        with pytest.raises(SystemExit) as stopped:
            main.main()
        assert stopped.value.code == code


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "error: there is not enough memory\n"),
        (OSError(28, "No space left", "file"), "error: [Errno 28] No space left: 'file'\n"),
        (lqgap.StorageError("full"), "error: full\n"),
        (lqgap.LqgapError("a\x1b]0;evil\x07\nb"), "error: a ]0;evil  b\n"),
    ],
)
def test_an_error_is_one_line_that_steers_no_terminal(monkeypatch, capsys, error, says):
    def fail():
        raise error

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        main.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == says


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("command", ["transfer", "train", "sweep"])
def test_an_empty_output_is_a_usage_error(command):
    result = CliRunner().invoke(main.app, [command, "-o", ""])
    assert result.exit_code == 2
    assert "it is empty" in result.output


@pytest.mark.parametrize(
    ("encoding", "printed"), [("latin-1", "1.2·10^-5 ± 3 ... ? é"), ("ascii", "1.2*10^-5 +- 3 ... ? ?")]
)
def test_letters_that_an_output_does_not_have_are_written_otherwise(monkeypatch, encoding, printed):
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(main, "app", lambda: output.write("1.2·10⁻⁵ ± 3 … 語 é"))
    main.main()
    output.flush()
    assert output.buffer.getvalue().decode(encoding) == printed


def test_an_error_does_not_repeat_all_of_a_long_text(monkeypatch, capsys):
    def fail():
        raise lqgap.LqgapError("x" * 100_000)

    monkeypatch.setattr(main, "app", fail)
    with pytest.raises(SystemExit):
        main.main()
    assert len(capsys.readouterr().err) < 2_000


def test_it_runs_as_a_module():
    finished = subprocess.run(
        [sys.executable, "-m", "lqgap", "--version"], capture_output=True, text=True, check=True
    )
    assert finished.stdout.startswith("lqgap ")
