"""Slow tests: plain `pytest` leaves them out, `pytest -m slow` runs them alone, `pytest -m ""` runs all.

A test is marked `@pytest.mark.slow`. Of a law with costly cases a few stay in the plain run.
"""

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], *plain: Any) -> list[Any]:
    """The cases for `parametrize`, all but the plain ones marked slow."""
    cases = list(cases)
    assert plain and all(case in cases for case in plain)
    return [case if case in plain else pytest.param(case, marks=pytest.mark.slow) for case in cases]
