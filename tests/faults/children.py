"""Child processes that are forked, and that nothing waits for without a limit."""

import os
import signal
import time
import traceback
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which a child counts as hung."""


def forked(work: Callable[[], None]) -> int:
    """Start a child process; it ends with 0 when `work` returns, with 1 when it raises."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def exit_code(child: int, patience: float = PATIENCE) -> int:
    """How a child ended, waiting for it; one that hangs is killed, which gives -9."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
