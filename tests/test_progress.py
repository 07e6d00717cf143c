import io
import sys
import time

import jax
import pytest

import lqgap as lg
from lqgap import progress
from lqgap.progress import REPORTER, is_cut, is_spent, read_time, time_budget, track


@pytest.fixture(autouse=True)
def every_moment(monkeypatch):
    monkeypatch.setattr(progress, "IN_A_FILE", 0.01)
    monkeypatch.setattr(progress, "ON_A_TERMINAL", 0.01)
    monkeypatch.setattr(REPORTER, "is_silent", False)


def wait_for(text, told):
    """Until a line is there; a test that waits in vain ends by its own timeout."""
    while text not in told():
        time.sleep(0.005)


def test_short_work_is_silent(capsys, monkeypatch):
    monkeypatch.setattr(progress, "IN_A_FILE", 60.0)
    with track("work", total=3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_long_work_is_told_in_a_file_while_it_says_nothing_itself(monkeypatch):
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    with track("train robust"), track("descend", total=60) as advance:
        advance(20, "worst 4.3")
        wait_for("  train robust: descend 20 of 60 worst 4.3 (0 s)\n", told.getvalue)
    time.sleep(0.05)  # a line may be on its way
    before = told.getvalue()
    time.sleep(0.05)
    assert told.getvalue() == before
    assert "\r" not in before


def test_a_line_on_a_terminal_is_overwritten_and_taken_away(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with track("work", total=3):
        wait_for("work 0 of 3", terminal.getvalue)
    assert "\n" not in terminal.getvalue()
    REPORTER.write("done")
    assert terminal.getvalue().endswith("\r\x1b[2Kdone\n")


def test_who_wants_quiet_is_told_nothing(capsys, monkeypatch):
    monkeypatch.setattr(REPORTER, "is_silent", True)
    with track("work"):
        time.sleep(0.05)
    REPORTER.write("done")
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_is_gone_stops_no_work(monkeypatch):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    REPORTER.write("line")


def test_work_without_a_budget_is_never_cut():
    assert not is_spent(0.0)
    assert not is_cut()


def test_a_budget_that_has_passed_cuts_whoever_asks_and_remembers_it():
    with time_budget("1 h") as outer, time_budget(1e-9) as inner:
        assert not inner.is_cut
        assert is_spent()
        assert inner.is_cut
        assert outer.is_cut
        assert is_cut()
    with time_budget("1 h") as long:
        assert not is_spent()
        assert is_spent(0.0)
    assert long.is_cut


@pytest.mark.parametrize("wrong", ["soon", "2 weeks", "-1 s", 0, -1.0, float("nan"), None])
def test_a_time_that_is_none_is_an_error(wrong, as_users_run_it):  # noqa: ARG001
    with pytest.raises(lg.InvalidArgumentError, match="time is"), time_budget(wrong):
        pass


@pytest.mark.parametrize(
    ("text", "read"), [("2 min", (2.0, "min")), (" 0.5s ", (0.5, "s")), ("1e3 ms", (1e3, "ms")), ("2", None)]
)
def test_times_are_read_with_their_units(text, read):
    assert read_time(text) == read


def test_memory_is_given_back_and_programs_only_if_asked(monkeypatch):
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(1))
    progress.release_memory()
    assert not cleared
    progress.release_memory(programs=True)
    assert cleared == [1]
    monkeypatch.setattr(progress.ctypes, "CDLL", lambda _: None)  # a system without glibc
    progress.release_memory()
