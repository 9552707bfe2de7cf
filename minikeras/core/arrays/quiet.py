"""Computing without NumPy's warnings about infinities and NaN, where those are legitimate results.

NumPy keeps its error state in a context variable, so a function can run in a context of its own: 0.03 us, `errstate` 0.7.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import numpy as np

_context = contextvars.Context()
_context.run(np.seterr, all="ignore")

quiet_context = _context.copy
"""`quiet_context().run(function, *arguments)` runs it with NumPy's floating-point warnings off."""


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, run with NumPy's floating-point warnings off.

    >>> float(quiet(np.log)(0.0))
    -inf
    """
    return lambda *arguments, **options: quiet_context().run(function, *arguments, **options)
