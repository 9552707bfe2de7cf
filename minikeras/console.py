"""The part that the programs `python -m minikeras...` share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def exit_status(program: Callable[[], int | None]) -> int:
    """The status of a program that prints; where its reader has gone, as `head` goes after some lines, 1 and no traceback.

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
