"""The runs of a sweep: every combination of parameters with every seed, each of which starts afresh; and their failures."""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import math
import random
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..boundary import shown
from ..data.pipeline import preserved_streams
from ..errors import kind_of
from ..files import strict_json
from ..keras.arguments import plain, whole
from ..keras.names import counted_anew
from ..nn_ops import streams


class Run(NamedTuple):
    """One run of a sweep before it is carried out; a function that makes its callbacks gets this.

    Attributes:
        number: its place in the sweep, from 0.
        parameters: the arguments of `build`.
        seed: what `set_random_seed` is given.
    """

    number: int
    parameters: dict[str, Any]
    seed: int


def combinations(given: Any) -> list[dict[str, Any]]:
    """The parameters of a grid, the last name varying fastest, or those of a list of dicts in its order.

    >>> combinations({"rate": [0.1, 0.2], "width": [4, 8]})[:3]
    [{'rate': 0.1, 'width': 4}, {'rate': 0.1, 'width': 8}, {'rate': 0.2, 'width': 4}]
    """
    if isinstance(given, Mapping):
        columns = {_named(name): _values(name, values) for name, values in given.items()}
        found = [dict(zip(columns, values, strict=True)) for values in itertools.product(*columns.values())] if columns else []
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        found = [_row(i, row) for i, row in enumerate(given)]
    else:
        raise TypeError(
            f"Sweep: the grid should be a dict of lists, or a list of dicts, found {shown(given)}; "
            "{'rate': [0.1, 0.01], 'width': [16, 32]} gives four combinations."
        )
    if not found:
        raise ValueError(
            f"Sweep: the grid {shown(given)} holds no combination. Give a value for a parameter at least, or [{{}}] for one "
            "model with several seeds."
        )
    return found


def _named(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"Sweep: names of parameters should be texts, found {shown(name)}.")
    return name


def _values(name: str, values: Any) -> list[Any]:
    """The values of one parameter; NumPy's numbers become Python's."""
    values = plain(values)
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        raise TypeError(
            f"Sweep: the values of {name!r} should be a list, found {shown(values)}; for one value give [{values!r}]."
        )
    return [plain(value) for value in values]


def _row(number: int, row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise TypeError(f"Sweep: entry {number} of the list should be a dict of parameters, found {shown(row)}.")
    return {_named(name): plain(value) for name, value in row.items()}


def runs_of(found: Sequence[dict[str, Any]], seeds: Sequence[int]) -> list[Run]:
    """Every combination with each seed, seeds varying fastest."""
    pairs = itertools.product(found, seeds)
    return [Run(number, parameters, seed) for number, (parameters, seed) in enumerate(pairs)]


def check_parameters(build: Callable[..., Any], found: Sequence[dict[str, Any]]) -> None:
    """Refuse a `build` that does not take these parameters, before anything runs."""
    if not callable(build):
        raise TypeError(f"Sweep: build should be a function that returns a compiled model, found {kind_of(build)}.")
    try:
        signature = inspect.signature(build)
    except ValueError:  # a builtin without a signature
        return
    known = [one.name for one in signature.parameters.values() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    for number, parameters in enumerate(found):
        try:
            signature.bind(**parameters)
        except TypeError as error:
            unknown = [name for name in parameters if name not in known]
            asked = f"has no parameter {', '.join(map(repr, unknown))}" if unknown else f"cannot be called so: {error}"
            raise TypeError(
                f"Sweep: build {asked} (combination {number}, {shown(parameters)}); it takes {', '.join(known) or 'nothing'}."
            ) from None


def check_distinct(found: Sequence[dict[str, Any]]) -> None:
    """Refuse a combination that is there twice: its runs would be the same, or would look the same."""
    first: dict[bytes, int] = {}
    for number, parameters in enumerate(found):
        other = first.setdefault(strict_json.dumps(encoded(parameters)), number)
        if other == number:
            continue
        opaque = {
            name: value for name, value in parameters.items() if isinstance(encoded(value), dict) and "named" in encoded(value)
        }
        unlike = [name for name, value in opaque.items() if value is not found[other][name]]  # a file holds their names alone
        if unlike:
            raise ValueError(
                f"Sweep: two values of {unlike[0]!r} are both {as_text(parameters[unlike[0]])} in tables and files. Give "
                "functions names, with def, and objects a repr."
            )
        raise ValueError(
            f"Sweep: combinations {other} and {number} are the same, {shown(parameters)}; leave one out, or give several seeds."
        )


def called(build: Callable[..., Any], parameters: Mapping[str, Any]) -> Any:
    """Call `build`. Objects among the parameters, such as an optimizer, are copied: a model changes them."""
    return build(**copy.deepcopy(dict(parameters)))


# The start of a run, and its failure -----------------------------------------------------------------------------------


@contextlib.contextmanager
def fresh_session(seed: int) -> Iterator[None]:
    """Random streams and automatic names as in a new process after `set_random_seed(seed)`; afterwards both are as before."""
    kept = random.getstate(), np.random.get_state()
    with counted_anew(), preserved_streams(()):
        try:
            random.seed(seed)
            np.random.seed(seed % 2**32)
            streams.set_states({"": (seed, 0)})  # of ranks, no seed that the user has set
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])


def seeds_of(name: str, given: Any) -> list[int]:
    """0 to n - 1 for a number n, or the seeds of a list; `name` says in errors what they are for."""
    given = plain(given)
    if isinstance(given, int) and not isinstance(given, bool):
        whole(f"{name}: seeds", given, 1)
        return list(range(given))
    return checked_seeds(name, given)


def checked_seeds(name: str, given: Any) -> list[int]:
    """The seeds of a list."""
    seeds = [plain(one) for one in given] if isinstance(given, Iterable) else []
    are_seeds = all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63 for one in seeds)
    if not seeds or not are_seeds or len(set(seeds)) < len(seeds):
        raise ValueError(f"{name}: seeds must be a list of different integers from 0 to 2**63 - 1, found {shown(given)}.")
    return seeds


def built_with(build: Callable[..., Any], seed: int) -> Any:
    """The result of `build`, which is given the seed if its first parameter has no default."""
    try:
        first = next(iter(inspect.signature(build).parameters.values()), None)
    except (TypeError, ValueError):
        first = None
    return build() if first is None or first.kind not in (0, 1) or first.default is not inspect.Parameter.empty else build(seed)


@dataclass(frozen=True)
class Failure:
    """The reason why a run has no result: the error in a line, and where it was raised."""

    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """The failure for an exception."""
        lines = "".join(traceback.format_exception(error))
        return cls(" ".join(f"{type(error).__name__}: {error}".split()), lines)


# As files hold them -----------------------------------------------------------------------------------------------------


class Named(str):
    """The text that stands for a parameter which a file cannot hold: a function, a class, an object."""

    __slots__ = ()


def as_text(value: Any) -> str:
    """A parameter that is no plain value as a text that is the same in every process."""
    name = value if isinstance(value, Named) else getattr(value, "__qualname__", None)
    return str(name) if name is not None else re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))[:1000]


def encoded(value: Any) -> Any:
    """A parameter as JSON: plain values as they are, all others as {kind: content}.

    >>> encoded((1, float("inf"), len))
    {'tuple': [1, {'float': 'inf'}, {'named': 'len'}]}
    >>> decoded(encoded((1, float("inf"), len)))
    (1, inf, 'len')
    """
    value = plain(value)
    if value is None or type(value) in (bool, str) or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in (list, tuple):
        found = [encoded(one) for one in value]
        return found if type(value) is list else {"tuple": found}
    if type(value) is dict and all(type(name) is str for name in value):
        return {"dict": {name: encoded(one) for name, one in value.items()}}
    return {"named": as_text(value)}


def decoded(value: Any) -> Any:
    """The inverse of `encoded`; a `Named` stands for what was no plain value."""
    if isinstance(value, list):
        return [decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if kind == "tuple" and isinstance(content, list):
        return tuple(decoded(one) for one in content)
    if kind == "dict" and isinstance(content, dict):
        return {name: decoded(one) for name, one in content.items()}
    if kind == "named" and isinstance(content, str):
        return Named(content)
    raise ValueError(f"expected a parameter, found {kind!r}")


def cell(value: Any) -> Any:
    """A parameter as a table shows it: the same for the value and for what a file gives back."""
    value = decoded(encoded(value))
    return str(value) if isinstance(value, dict) else value
