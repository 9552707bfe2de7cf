"""Slow tests: plain `pytest` leaves them out, `pytest -m slow` runs them alone, `pytest -m ""` runs all.

They need more packages: `pip install -e '.[test,slow]'`.

A test is marked `@pytest.mark.slow`. Of a law with costly cases a few stay in the plain run.
"""

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings


def mostly_slow(cases: Iterable[Any], *plain: Any) -> list[Any]:
    """The cases for `parametrize`, all but the plain ones marked slow."""
    cases = list(cases)
    assert plain and all(case in cases for case in plain)
    return [case if case in plain else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases for `parametrize`: one in so many of those that are not slow yet stays in the plain run."""
    found, plain = [], 0
    for case in cases:
        given = case if isinstance(case, type(pytest.param())) else pytest.param(case)
        is_slow = any(mark.name == "slow" for mark in given.marks)
        found.append(
            pytest.param(*given.values, marks=[*given.marks, pytest.mark.slow], id=given.id) if plain % every else case
        )
        plain += not is_slow
    return found


def diagonal(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """All pairs for `parametrize`: the plain run takes each of the first with one of the second, in turn."""
    others = list(second)
    pairs = itertools.product(enumerate(first), enumerate(others))
    return [pytest.param(one, other, marks=[] if i % len(others) == j else pytest.mark.slow) for (i, one), (j, other) in pairs]


def drawn(few: int, many: int, *strategies: Any, **named: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a law of drawn cases a test: of a few in the plain run, of many in the slow one. Shrinking would take minutes.

    What the law asks for beside is a fixture, or a parameter of the test.
    """

    def of_cases(law: Callable[..., None]) -> Callable[..., None]:
        def test(examples: int, **others: Any) -> None:
            settings(max_examples=examples, phases=[Phase.explicit, Phase.generate])(given(*strategies, **named)(law))(**others)

        others = inspect.signature(given(*strategies, **named)(law)).parameters.values()
        first = inspect.Parameter("examples", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([first, *others])  # type: ignore[attr-defined]
        test.__doc__, test.__module__ = law.__doc__, law.__module__
        return pytest.mark.parametrize("examples", mostly_slow([few, many], few))(test)

    return of_cases
