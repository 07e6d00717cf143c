"""`python -m lqgap` and `lqgap`: the command line in a process of its own, which Ctrl-C ends.

Python raises KeyboardInterrupt when the main thread runs Python code again, which may be after a long
compilation, or inside of a callback that cannot raise, where it is lost. So the signal also wakes a thread,
which ends the process if it is still there after a moment. What is stored survives this, as it does a kill.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from typing import NoReturn

INTERRUPTED = 130  # the exit code
GRACE = 1.0  # seconds to leave by KeyboardInterrupt, which also cleans up
SHOW_CURSOR = b"\x1b[?25h"  # which bars of progress hide


def main() -> None:
    """Run the command line; its imports, too, can be interrupted."""
    try:
        end_when_interrupted()
        from lqgap.cli.main import main  # noqa: PLC0415

        main()
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(INTERRUPTED)  # Python's own way out may take seconds


def end_when_interrupted() -> None:
    """From now on Ctrl-C ends this process with code 130, unless it is ignored or handled otherwise."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    threading.Thread(target=_watch, args=(woken,), daemon=True).start()
    sys.unraisablehook = lambda lost: lost.exc_type is KeyboardInterrupt or sys.__unraisablehook__(lost)
    signal.set_wakeup_fd(waker.detach(), warn_on_full_buffer=False)


def _watch(woken: socket.socket) -> NoReturn:
    while woken.recv(1)[0] != signal.SIGINT:
        pass
    select.select([woken], [], [], GRACE)  # or until Ctrl-C is pressed again
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), SHOW_CURSOR)
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
