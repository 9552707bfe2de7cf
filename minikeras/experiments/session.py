"""What every run begins with, so that it does not depend on those before it: random streams, names; and why a run failed."""

from __future__ import annotations

import contextlib
import inspect
import random
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import random as streams
from ..keras.names import counted_anew
from ..keras.seeds import set_random_seed


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


def takes_seed(build: Callable[..., Any]) -> bool:
    """Whether a function that builds a model is to be given the seed: its first parameter has no default."""
    try:
        parameters = list(inspect.signature(build).parameters.values())
    except (TypeError, ValueError):
        return False
    return bool(parameters) and parameters[0].kind in (0, 1) and parameters[0].default is inspect.Parameter.empty


@dataclass(frozen=True)
class Failure:
    """Why a run has no result: the error in a line, and where it was raised."""

    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Of an exception."""
        lines = "".join(traceback.format_exception(error))
        return cls(" ".join(f"{type(error).__name__}: {error}".split()), lines)
