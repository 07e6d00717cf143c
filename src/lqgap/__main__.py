"""`python -m lqgap` and `lqgap`: the command line in a process of its own, which Ctrl-C ends.

Python raises KeyboardInterrupt when the main thread runs Python code again, which may be after a long
compilation, or where it is lost or does harm: in a callback that cannot raise, or while a library is loaded.
So the signal wakes a thread instead, which ends the process. What is stored survives this, as it does a kill.
"""

import multiprocessing
import os
import signal
import socket
import sys
import threading
from typing import NoReturn


def main() -> None:
    """Run the command line; its imports, too, can be interrupted."""
    end_when_interrupted()
    from lqgap.cli.main import main  # noqa: PLC0415

    main()


def end_when_interrupted() -> None:
    """Let Ctrl-C end this process with code 130, unless it is ignored or handled otherwise."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)


def _watch(woken: socket.socket) -> NoReturn:
    while woken.recv(1)[0] != signal.SIGINT:
        pass
    try:
        for worker in multiprocessing.active_children():
            worker.kill()
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), b"\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
