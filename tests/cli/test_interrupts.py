import signal
import subprocess
import sys
import threading

import pytest

from lqgap.__main__ import end_when_interrupted

BEGIN = """
import gc, hashlib, os, signal, sys, threading, time, types
import lqgap.__main__ as main
"""
LOST = """
main.end_when_interrupted()

def lose(*_):
    gc.callbacks.remove(lose)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # where Python raises it

gc.callbacks.append(lose)
gc.collect()
time.sleep(60)
"""
IN_C = """
main.end_when_interrupted()
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # takes minutes, and asks for no signal
"""
WORKING = """
import multiprocessing

def run():
    worker = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    worker.start()
    os.kill(os.getpid(), signal.SIGINT)
    worker.join()

sys.modules["lqgap.cli.main"] = types.SimpleNamespace(main=run)
main.main()
"""
IGNORED = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
main.end_when_interrupted()
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.5)
print("goes on")
"""


@pytest.mark.parametrize(
    ("script", "code", "printed"),
    [(LOST, 130, ""), (IN_C, 130, ""), (IGNORED, 0, "goes on\n")],
    ids=["in a callback", "in C", "ignored"],
)
def test_an_interrupt_ends_the_process_wherever_it_is(script, code, printed):
    result = subprocess.run(
        [sys.executable, "-c", BEGIN + script], capture_output=True, text=True, check=False, timeout=50
    )
    assert (result.returncode, result.stdout, result.stderr) == (code, printed, "")


def test_an_interrupt_ends_workers_too():
    result = subprocess.run(
        [sys.executable, "-c", BEGIN + WORKING], capture_output=True, text=True, check=False, timeout=50
    )  # which waits until no process, nor the worker, has these pipes any more
    assert (result.returncode, result.stderr) == (130, "")


def test_in_another_thread_nothing_changes():
    before = signal.getsignal(signal.SIGINT), threading.active_count()
    thread = threading.Thread(target=end_when_interrupted)
    thread.start()
    thread.join()
    assert (signal.getsignal(signal.SIGINT), threading.active_count()) == before
    assert signal.set_wakeup_fd(-1) == -1
