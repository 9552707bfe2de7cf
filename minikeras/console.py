"""The part that the programs `python -m minikeras...` share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def exit_status(program: Callable[[], int | None]) -> int:
    """The exit status of a program; 1, without a traceback, if the reader of its output is gone, as `head` is after some lines.

    >>> exit_status(lambda: None)
    0
    """
    try:
        status = program() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it flushes at its end
        return 1
    return status
