import io
import sys

from lqgap.progress import track


def test_it_is_silent_where_nobody_watches(capsys):
    with track("work", total=3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def test_it_shows_a_bar_on_a_terminal_and_takes_it_away(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with track("work", total=3) as advance:
        advance(3)
    assert "work" in terminal.getvalue()
