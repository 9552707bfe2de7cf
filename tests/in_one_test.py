"""Many small cases in one test: an id of its own costs a case 3 ms, most of it pytest's bookkeeping."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def in_one_test(**axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `parametrize`, but one test that tries every combination of the values and reports each that fails.

    Where all cases skip, the test skips.
    """
    cases = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert cases, "nothing to try"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**given: Any) -> None:
            broken: list[BaseException] = []
            skipped: list[BaseException] = []
            for case in cases:
                try:
                    test(**given, **case)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"case: {case}")
                    broken.append(error)
            if broken:
                raise BaseExceptionGroup(f"{len(broken)} of {len(cases)} cases fail", broken)
            if len(skipped) == len(cases):
                raise skipped[0]

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in axes]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate
