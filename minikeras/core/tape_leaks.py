"""A warning for persistent tapes that pile up in a loop, found as idle ones that were entered on the same line."""

from __future__ import annotations

import collections
import threading
import weakref
from typing import Any

from .warnings import call_site, warn

BYTES = 64 * 2**20
"""What the tapes of a loop may hold together before the warning comes."""

ITERATIONS = 4
"""How many times a loop goes round before its tapes are looked at, and then after twice as many, and so on."""

OUTLIVED = (
    "%d recordings of persistent tapes that were entered on this line are still alive and hold %d MiB. Entering a persistent "
    "tape again adds to its recording: make a tape for each iteration, and let it go (`del tape`) when it is done."
)

_tapes_by_line: collections.defaultdict[tuple[int, str, int], list[weakref.ref[Any]]] = collections.defaultdict(list)


def tell_of_tapes_that_outlive(tape: Any) -> None:
    """Note that a persistent tape is entered, and warn once for its line if earlier ones pile up there."""
    place = (threading.get_ident(), *call_site())
    held = [reference for reference in _tapes_by_line[place] if reference() is not None]
    held.append(weakref.ref(tape))
    _tapes_by_line[place] = held
    count = len(held)
    if count < ITERATIONS or count & (count - 1):
        return
    idle = {id(one): one for one in (reference() for reference in held) if one is not None and not one._active}
    size = sum(one.memory() for one in idle.values())
    if size > BYTES:
        warn(1, OUTLIVED, count - 1, size // 2**20)
