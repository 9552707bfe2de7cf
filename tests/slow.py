"""Slow tests: plain `pytest` leaves them out, `pytest -m slow` runs them alone, `pytest -m ""` runs all.

A test is marked `@pytest.mark.slow`. Of a law with costly cases a few stay in the plain run.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings


def mostly_slow(cases: Iterable[Any], *plain: Any) -> list[Any]:
    """The cases for `parametrize`, all but the plain ones marked slow."""
    cases = list(cases)
    assert plain and all(case in cases for case in plain)
    return [case if case in plain else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def drawn(few: int, many: int, *strategies: Any) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """Makes a law of drawn cases a test: of a few in the plain run, of many in the slow one. Shrinking would take minutes."""

    def of_cases(law: Callable[..., None]) -> Callable[[int], None]:
        def test(examples: int) -> None:
            settings(max_examples=examples, phases=[Phase.explicit, Phase.generate])(given(*strategies)(law))()

        test.__doc__, test.__module__ = law.__doc__, law.__module__
        return pytest.mark.parametrize("examples", mostly_slow([few, many], few))(test)

    return of_cases
