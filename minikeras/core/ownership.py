"""What else refers to an array: CPython counts references, and this is the only module that asks for the count.

Memory is written again only if no other reference could show the change. A Tensor, a tape, a view and an export hold one each.
"""

from __future__ import annotations

import sys
from typing import Any

from ..types import Array


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
        """Whether anything else refers to one of them: a Variable, a Tensor, a view."""
        return sum(map(sys.getrefcount, self.arrays)) != self._own

    def is_shared_by(self, count: int) -> bool:
        """Whether there are so many other references, all together."""
        return sum(map(sys.getrefcount, self.arrays)) == self._own + count


def is_only_reference(owner: Any, attribute: str) -> bool:
    """Whether nothing but this attribute refers to its value.

    >>> from types import SimpleNamespace
    >>> cell = SimpleNamespace(value=[1])
    >>> is_only_reference(cell, "value")
    True
    >>> other = cell.value
    >>> is_only_reference(cell, "value")
    False
    """
    return sys.getrefcount(getattr(owner, attribute)) == _ALONE


class _Cell:
    def __init__(self) -> None:
        self.value: list[int] = []


_cell = _Cell()
_ALONE = sys.getrefcount(getattr(_cell, "value"))  # noqa: B009 (as it is asked above)
