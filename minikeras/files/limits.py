"""A budget for what is made while a file is loaded.

Key idea: a configuration of a few bytes can ask for a weight of many gigabytes. Whoever makes weights for a file first says how
many bytes the file holds for them; `spend` then refuses the weight that is too much before it is allocated.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Iterator, Sequence

from ..errors import LoadError

_left: contextvars.ContextVar[list[int] | None] = contextvars.ContextVar("bytes_left", default=None)


@contextlib.contextmanager
def budget(total: int) -> Iterator[None]:
    """Within the block weights of at most `total` bytes may be made."""
    token = _left.set([total])
    try:
        yield
    finally:
        _left.reset(token)


def spend(shape: Sequence[int], itemsize: int, what: str) -> None:
    """Account for a weight that is about to be made; outside of a budget nothing happens.

    Raises:
        LoadError: if there is not so much left.
    """
    left = _left.get()
    if left is None:
        return
    wanted = math.prod(shape) * itemsize
    if wanted > left[0]:
        raise LoadError(
            f"the configuration asks for {what} of shape {tuple(shape)}, {wanted} bytes; the file has weights for {left[0]}"
        )
    left[0] -= wanted
