"""What rank 0 does before the others, such as a download that all of them need."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from ..errors import DatasetUnavailableError
from .communicator import Communicator
from .world import joined

P = ParamSpec("P")
R = TypeVar("R")
_REASON_BYTES = 4096


def rank_0_first(function: Callable[P, R]) -> Callable[P, R]:
    """A function that the other ranks call when rank 0 has done so, and find what it has left. It fails on all or on none.

    This holds once the program has joined its ranks. All of them have to call it then.

    Raises:
        DatasetUnavailableError: on the ranks where it did not fail, with the reason of one where it did.
    """

    @functools.wraps(function)
    def in_turn(*args: P.args, **options: P.kwargs) -> R:
        ranks = joined()
        if ranks is None or ranks.size == 1:
            return function(*args, **options)
        for turn in (True, False):
            failure: Exception | None = None
            if (ranks.rank == 0) is turn:
                try:
                    result = function(*args, **options)
                except Exception as error:
                    failure = error
            _check(ranks, failure)
        return result

    return in_turn


def _check(ranks: Communicator, failure: Exception | None) -> None:
    """Raise if there is a failure on any rank."""
    reason = f"{type(failure).__name__}: {failure}" if failure else ""
    sent = np.frombuffer(reason.encode()[:_REASON_BYTES].ljust(_REASON_BYTES, b"\0"), np.uint8)
    found = [bytes(one).rstrip(b"\0").decode(errors="replace") for one in ranks.all_gather(sent)]
    if failure is not None:
        raise failure
    for rank, text in enumerate(found):
        if text:
            raise DatasetUnavailableError(f"on rank {rank}, {text}")
