"""Warnings about how a tape is used, through the package's logger, a limited number from each line of the user's code."""

from __future__ import annotations

import collections
import logging
import sys

logger = logging.getLogger("minikeras")


def get_logger() -> logging.Logger:
    """The logger through which this package warns.

    >>> tf.get_logger().name
    'minikeras'
    """
    return logger


_told: collections.Counter[tuple[str, int, str]] = collections.Counter()


def call_site(*others: str) -> tuple[str, int]:
    """File and line of the innermost code outside this package and the others named."""
    frame, passed = sys._getframe(1), {__package__.partition(".")[0], *others}
    while frame.f_globals.get("__name__", "").partition(".")[0] in passed and frame.f_back:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def call_place(*others: str) -> str:
    """The call site as 'file:line'; of a notebook's cell 'In[5]:2', as tracebacks name it."""
    file, line = call_site(*others)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return f"{name[1] if name else file}:{line}"


def warn(limit: int, message: str, *details: object) -> None:
    """Log a warning, at most `limit` times for one line of the user's code."""
    place = (*call_site(), message)
    _told[place] += 1
    if _told[place] <= limit:
        logger.warning(message, *details)
