import operator
import os
import signal
import subprocess
import sys
import time

import pytest

from lqgap.experiments.workers import MAPS, MAX_MAPS, attempt, run_all


def test_every_item_has_one_outcome_and_what_fails_says_why():
    outcomes = list(run_all(operator.neg, [1, 2, "x", 4], processes=2))
    assert sorted(o.index for o in outcomes) == [0, 1, 2, 3]
    by_index = {o.index: o for o in outcomes}
    assert [by_index[i].answer for i in (0, 1, 3)] == [-1, -2, -4]
    assert by_index[2].error.startswith("TypeError: bad operand")
    assert list(run_all(operator.neg, [], processes=2)) == []


def test_an_attempt_keeps_what_goes_wrong_on_one_line():
    assert attempt(operator.neg, 2) == (-2, None)
    answer, error = attempt(int, "a\nb")
    assert answer is None
    assert "\n" not in error


def test_an_interrupt_reaches_no_process_that_works_from_its_start_on():
    mask = "__import__('signal').pthread_sigmask(0, ())"
    (outcome,) = run_all(eval, [f"2 in {mask}"], processes=1)
    assert outcome.answer is True
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.slow
def test_a_process_that_dies_costs_only_its_own_piece():
    outcomes = {
        o.index: o for o in run_all(eval, ["1 + 1", "__import__('os')._exit(3)", "2 + 2"], processes=2)
    }
    assert (outcomes[0].answer, outcomes[2].answer) == (2, 4)
    assert outcomes[1].error == "its process died 3 times (at last with code 3)"


@pytest.mark.skipif(not MAPS.exists(), reason="the system does not tell")
def test_a_process_with_too_many_pieces_of_memory_is_replaced():
    me = "__import__('os').getpid()"
    fill = f"(globals().setdefault('kept', [__import__('mmap').mmap(-1, 1) for _ in range({MAX_MAPS})]), {me})[1]"
    first, full, after = (outcome.answer for outcome in run_all(eval, [me, fill, me], processes=1))
    assert first == full != after


@pytest.mark.slow
def test_a_piece_whose_process_was_killed_once_is_done(tmp_path):
    mark = tmp_path / "killed"
    code = f"__import__('pathlib').Path({str(mark)!r}).exists() or (open({str(mark)!r}, 'w'), __import__('os').kill(__import__('os').getpid(), 9))"
    (outcome,) = run_all(eval, [code], processes=1)
    assert outcome.answer is True
    assert outcome.error is None


ORPHANS = """
import sys, time
from lqgap.experiments.workers import run_all
if __name__ == "__main__":
    list(run_all(eval, ["open(sys_argv, 'a').write(str(__import__('os').getpid()) + ' ') and __import__('time').sleep(60)".replace("sys_argv", repr(sys.argv[1]))] * 2, processes=2))
"""


@pytest.mark.slow
def test_processes_end_when_the_one_that_started_them_is_killed(tmp_path):
    script, pids = tmp_path / "script.py", tmp_path / "pids"
    script.write_text(ORPHANS)
    parent = subprocess.Popen([sys.executable, script, pids])
    deadline = time.monotonic() + 60
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    children = [int(pid) for pid in pids.read_text().split()]
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:  # a zombie waits for whoever adopted it
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"
