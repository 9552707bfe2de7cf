"""References to an array: CPython counts them, and this is the only module that asks for the count.

A buffer is overwritten only if no other reference could show the change. A Tensor, a tape, a view and an export hold one each.
The interpreter's lock keeps other threads from a Variable's buffer between the count and the write. A Python without that lock
never overwrites it on the CPU: new values go into another buffer, which only programs know.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..types import Array

IS_LOCKED = bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""True if the threads of this Python take turns: it has a global interpreter lock."""


class Owned:
    """Arrays in a list that this object takes over, to be written again when only their owner's attributes refer to them.

    The references at first are counted, so nothing depends on what a version of Python counts.

    >>> import numpy as np
    >>> owned = Owned([np.zeros(2), np.zeros(3)])
    >>> view = owned.arrays[1][:1]
    >>> owned.is_shared
    True
    >>> del view
    >>> owned.is_shared
    False
    """

    __slots__ = ("_own", "arrays")

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self._own = sum(map(sys.getrefcount, self.arrays))

    @property
    def is_shared(self) -> bool:
        """True if anything else refers to one of the arrays: a Variable, a Tensor, a view."""
        return sum(map(sys.getrefcount, self.arrays)) != self._own

    def is_shared_by(self, count: int) -> bool:
        """True if there are exactly `count` other references to all arrays together."""
        return sum(map(sys.getrefcount, self.arrays)) == self._own + count


def called_with_others(function: Callable[[Any, int], Any], argument: Any, owned: Sequence[tuple[Owned, int]]) -> Any:
    """Call `function(argument, others)`: `others` is the number of references to all `Owned` together beside the known ones.

    Python's other threads get no turn between the count and the call: all is one chain of calls in C.

    >>> import numpy as np
    >>> owned = Owned([np.zeros(2)])
    >>> variable = owned.arrays[0]
    >>> called_with_others(max, 0, [(owned, 0)]), called_with_others(max, 0, [(owned, 1)])
    (1, 0)
    """
    if len(owned) == 1:  # as usual: 1.5 us of a step less than below
        ((one, count),) = owned
        return next(map(function, (argument,), map(sum, (map(sys.getrefcount, one.arrays),), (-one._own - count,))))
    arrays = itertools.chain.from_iterable([one.arrays for one, _ in owned])
    known = sum([one._own + count for one, count in owned])
    return next(map(function, (argument,), map(sum, (map(sys.getrefcount, arrays),), (-known,))))
