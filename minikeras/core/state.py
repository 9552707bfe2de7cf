"""What Variables hold, to go back to. Arrays are not written while anything refers to them, so a copy costs one reference each.

One that comes back was seen by others, so the spare memory beside it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ..types import Array
from .variable import Variable

Snapshot = list[tuple[Variable, Array]]
"""Variables, each with the array that it held."""


def snapshot(variables: Iterable[Variable]) -> Snapshot:
    """What Variables hold now.

    >>> v = tf.Variable(1.0)
    >>> before = snapshot([v])
    >>> _ = v.assign(2.0)
    >>> restore(before)
    >>> float(v)
    1.0
    """
    return [(variable, variable._array) for variable in variables]


def are_held(arrays: Iterable[Array], variables: Sequence[Variable]) -> bool:
    """Whether Variables hold these very arrays."""
    for variable, array in zip(variables, arrays, strict=False):  # noqa: SIM110 (0.39 us for 12; `all` takes 0.58)
        if variable._array is not array:
            return False
    return True


def drop_spares(variables: Iterable[Variable]) -> None:
    """Drop the memory beside Variables that their next values could be written into."""
    for variable in variables:
        variable._spare = None


def restore(state: Iterable[tuple[Variable, Array]]) -> None:
    """Have Variables hold these arrays."""
    for variable, array in state:
        variable._array, variable._spare = array, None


@contextmanager
def preserved(variables: Iterable[Variable]) -> Iterator[None]:
    """Within the block Variables may change; if it raises, they have what they held before."""
    before = snapshot(variables)
    try:
        yield
    except BaseException:
        restore(before)
        raise
