import json
import os
import pathlib

import pytest
from example_record import heavy, measured

import lqgap as lg
from lqgap.cli.session import Progress
from lqgap.cli.transfer import print_record, run_transfer
from lqgap.experiments.record import FORMAT, Bracket, Gaps, LeftOut, Method, MethodGaps, Record
from lqgap.report.answer import answer
from lqgap.report.numbers import explain_ranges

QUIET = Progress(verbose=False, quiet=True)
TINY = """
horizon = 4
[plant]
family = "overactuated"
[methods]
bank = {}
[real]
count = 1
[evaluation]
rollouts = 4
horizons = []
trajectories = 0
"""


def record(label="Robust training"):
    worst = measured(22.09, 1.5)
    gaps = MethodGaps(
        method="robust",
        grid_worst=worst,
        grid_mean=worst,
        box_worst=worst,
        box_worst_at={"gain": 1.0},
        real=[],
        real_worst=worst,
        real_mean=worst,
    )
    bracket = Bracket(
        method="robust",
        horizon=100,
        num_members=16,
        lower=0.244,
        kind="bayes",
        set_by=[],
        worst=worst,
        upper=25.0,
        confidence=0.95,
        factor=102.0,
    )
    return Record(
        format=FORMAT,
        title="[red]springs[/]",
        study="",
        seed=0,
        precision="float64",
        versions={},
        parameters=[],
        warnings=["beware of [bold]this[/]"],
        methods=[
            Method(
                name="robust",
                label=label,
                kind="trained",
                description="",
                history=[],
                policy_file="policies/a.safetensors",
            )
        ],
        real=[],
        recommended="robust",
        gaps=Gaps(horizon=100, num_rollouts=2, methods=[gaps]),
        bracket=bracket,
        timings={},
    )


def test_the_answer_is_that_of_the_page_and_says_where_the_policy_is(capsys):
    print_record(record(), pathlib.Path("out"))
    out = capsys.readouterr().out
    assert answer(record()).text in out
    assert "Policy: out/policies/a.safetensors" in out
    print_record(record().model_copy(update={"recommended": None}), pathlib.Path("out"))
    out = capsys.readouterr().out
    assert "No controller is recommended" in out
    assert "Policy" not in out


def finds(found):
    """A transfer that shows this record, without bounds at first."""

    def transfer(*_, show, **__):
        show(found.model_copy(update={"bracket": None}), False)
        show(found, True)
        return found

    return transfer


def test_a_page_that_cannot_be_written_is_an_error_only_where_it_could_be(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lqgap.cli.transfer.transfer", finds(record()))
    (tmp_path / "report.html").mkdir()
    loud = Progress(verbose=False, quiet=False)
    options = dict(seed=None, trust=False, as_json=False, figures=True, progress=loud)
    with pytest.raises(lg.InvalidArgumentError, match="cannot be written"):
        run_transfer(None, tmp_path, **options)
    out, err = capsys.readouterr()
    assert out.count("Robust training") >= 2  # without bounds, and with them
    assert err == "note: the bounds are still to come; then the table is printed once more\n"
    assert (tmp_path / "figures").exists() == options["figures"]
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    run_transfer(None, tmp_path, **options)
    out, err = capsys.readouterr()
    assert "Robust training" in out
    assert "Report: " not in out
    assert err.endswith("cannot be written to: there is no new page\n")


def test_without_a_method_that_holds_the_sentence_is_an_error_and_the_record_is_printed(
    tmp_path, monkeypatch, capsys
):
    method = (
        record().methods[0].model_copy(update={"unfit": "it diverges on 1 of 9 plants, such as gain = 1"})
    )
    none = record().model_copy(update={"recommended": None, "methods": [method], "bracket": None})
    monkeypatch.setattr("lqgap.cli.transfer.transfer", finds(none))
    options = dict(seed=None, trust=False, figures=False, progress=QUIET)
    for as_json in (False, True):
        with pytest.raises(lg.NotConvergedError, match=r"No controller is fit .* such as gain = 1"):
            run_transfer(None, tmp_path, as_json=as_json, **options)
        out = capsys.readouterr().out
        assert json.loads(out)["recommended"] is None if as_json else answer(none).text in out
    assert (tmp_path / "report.html").exists()


def test_methods_that_are_unfit_or_left_out_are_marked_in_the_table(capsys):
    unfit = record().methods[0].model_copy(update={"unfit": "reason"})
    left_out = LeftOut(name="vtr", label="LQG-VTR", reason="it failed")
    print_record(
        record().model_copy(update={"methods": [unfit], "left_out": [left_out]}), pathlib.Path("out")
    )
    out = capsys.readouterr().out
    assert "(unfit)" in out
    assert "LQG-VTR" in out
    assert "left out" in out


def test_ranges_in_place_of_means_are_explained(capsys):
    print_record(record(), pathlib.Path("out"))
    assert "a … b" not in capsys.readouterr().out
    found = record()
    [gaps] = found.gaps.methods
    runs = gaps.model_copy(update={"real_worst": heavy(10.0)})
    methods = found.gaps.model_copy(update={"methods": [runs]})
    print_record(found.model_copy(update={"gaps": methods}), pathlib.Path("out"))
    out = capsys.readouterr().out
    assert explain_ranges(found.gaps.num_rollouts) in out
    assert "5.00 … 30.0" in out


def test_names_with_markup_stay_text(capsys):
    print_record(record(label="<b>[red]x"), pathlib.Path("out"))
    out = capsys.readouterr().out
    assert "[red]springs[/]" in out
    assert "<b>[red]x" in out
    assert "beware of [bold]this[/]" in out


@pytest.mark.slow
def test_a_run_prints_its_record_and_a_second_one_the_same(tmp_path, capsys):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    options = dict(seed=None, trust=False, figures=False, progress=QUIET)
    run_transfer(path, tmp_path / "out", as_json=True, **options)
    first = json.loads(capsys.readouterr().out)
    assert first["recommended"] == "bank"
    run_transfer(path, tmp_path / "out", as_json=True, **options)
    assert json.loads(capsys.readouterr().out) == first
    run_transfer(path, tmp_path / "out", as_json=False, **options)
    assert "Untrained bank" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("study", "store", "code", "says"),
    [
        ("horizn = 3", None, 3, "did you mean horizon"),
        ('[plant]\npython = "os:getcwd"', None, 3, "--trust"),
        (TINY, b"damaged" * 1000, 5, "store.sqlite"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(command, tmp_path, study, store, code, says):
    (tmp_path / "study.toml").write_text(study)
    if store is not None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "store.sqlite").write_bytes(store)
    done = command("transfer", tmp_path / "study.toml", "-o", tmp_path / "out")
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_quick_look_has_a_page_and_no_bounds(tmp_path, capsys):
    path = tmp_path / "study.toml"
    path.write_text(TINY)
    run_transfer(
        path,
        tmp_path / "out",
        seed=None,
        trust=False,
        as_json=True,
        figures=False,
        progress=QUIET,
        quick=True,
    )
    found = json.loads(capsys.readouterr().out)
    assert [method["name"] for method in found["methods"]] == ["nominal", "linear", "bank"]
    assert found["bracket"] is None
    assert found["bounds"] is None
    assert (tmp_path / "out" / "report.html").exists()
