"""Computing without NumPy's warnings about infinities and NaN, where those are legitimate results.

Key idea: NumPy keeps its error state in a context variable, so a function can be run in a context of its own. A copy of a
context is cheap, and costs half of what `numpy.errstate` does.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import numpy as np

_context = contextvars.Context()
_context.run(np.seterr, all="ignore")


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, run with NumPy's floating-point warnings off.

    >>> float(quiet(np.log)(0.0))
    -inf
    """

    def run(*arguments: Any, **options: Any) -> Any:
        return _context.copy().run(function, *arguments, **options)

    return run
