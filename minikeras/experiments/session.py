"""A fresh start for every run, with random streams and names that do not depend on runs before it; and failures of runs."""

from __future__ import annotations

import contextlib
import inspect
import random
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..boundary import shown
from ..keras.arguments import plain, whole
from ..keras.names import counted_anew
from ..keras.random import set_random_seed
from ..nn_ops import streams


@contextlib.contextmanager
def fresh_session(seed: int) -> Iterator[None]:
    """Random streams and automatic names as in a new process after `set_random_seed(seed)`; afterwards both are as before."""
    kept = random.getstate(), np.random.get_state(), streams.states()
    with counted_anew():
        try:
            set_random_seed(seed)
            yield
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            streams.set_states(kept[2])


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
