"""Many small cases in one test: an id of its own costs a case 3 ms, most of it pytest's bookkeeping."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def try_all(cases: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Carry out each case, given with its description, and report all that fail. Where all skip, the test skips."""
    count, broken, skipped = 0, list[BaseException](), list[BaseException]()
    for description, case in cases:
        count += 1
        try:
            case()
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(description)
            broken.append(error)
    if broken:
        raise BaseExceptionGroup(f"{len(broken)} of {count} cases fail", broken)
    if count and len(skipped) == count:
        raise skipped[0]


def in_one_test(one_in: int = 1, /, **axes: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like `parametrize`, but one test that tries every combination of the values and reports each that fails.

    Args:
        one_in: the plain run tries one case in so many, the slow one all; a test may ask for the number of its run.
        axes: the values of each parameter.
    """
    cases = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    assert cases, "nothing to try"
    sizes = [1] if one_in == 1 else [one_in, pytest.param(1, marks=pytest.mark.slow)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(one_in: int = 1, **given: Any) -> None:
            given |= {"one_in": one_in} if "one_in" in signature.parameters else {}
            try_all((f"case: {case}", functools.partial(test, **given, **case)) for case in cases[::one_in])

        kept = [parameter for name, parameter in signature.parameters.items() if name not in (*axes, "one_in")]
        if one_in == 1:
            run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
            return run
        first = inspect.Parameter("one_in", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = signature.replace(parameters=[first, *kept])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("one_in", sizes)(run)

    return decorate
