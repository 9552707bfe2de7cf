"""Locks across `os.fork`: a child process has one thread, and what other threads held would stay held there.

A fork waits for them, a second at most for all, so that what they guard is whole in the child. A lock that is held even then is
a new one there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

PATIENCE, LONGEST = 1.0, 60.0
"""Seconds for which a fork waits for a lock: as a rule, and for locks that are always released in the end."""

_next_number = itertools.count(1 << 62, -1).__next__


class ForkSafeLock:
    """A reentrant lock that is free in a forked process, unless the thread that forked holds it.

    Args:
        number: its place in the order in which a fork takes all locks, as threads take those that they hold together. By
            default it comes before those that were made earlier, in the modules that the present one imports.
        patience: seconds for which a fork waits for it.
    """

    __slots__ = ("__weakref__", "acquire", "number", "patience", "release")

    def __init__(self, number: int | None = None, patience: float = PATIENCE) -> None:
        self.number, self.patience = _next_number() if number is None else number, patience
        self.renew()
        _all[self.number] = self

    def renew(self) -> None:
        """Be free, whichever thread held it."""
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class cached_property(functools.cached_property[T]):
    """`functools.cached_property` without the lock of Python 3.11, which all objects share."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        super().__init__(function)
        self.lock = contextlib.nullcontext()


_all: WeakValueDictionary[int, ForkSafeLock] = WeakValueDictionary()
importing = ForkSafeLock(patience=LONGEST)
"""Held during imports by code that compiles or draws: Python's own import locks would stay held in a forked child."""
_taken: dict[int, list[ForkSafeLock]] = {}
"""The locks that each forking thread has taken."""


def _alive() -> list[ForkSafeLock]:
    """All locks, in their order."""
    found = [reference() for reference in _all.valuerefs()]
    return sorted([lock for lock in found if lock is not None], key=lambda lock: lock.number)


def _before() -> None:
    began = time.monotonic()
    taken = _taken[get_ident()] = []
    tried: set[int] = set()
    while new := [lock for lock in _alive() if lock.number not in tried]:  # more are made meanwhile, as by an import
        for lock in new:
            tried.add(lock.number)
            if lock.acquire(timeout=max(0.0, began + lock.patience - time.monotonic())):
                taken.append(lock)


def _release() -> list[ForkSafeLock]:
    taken = _taken.pop(get_ident())
    for lock in reversed(taken):
        lock.release()
    return taken


def _in_child() -> None:
    free = set(map(id, _release()))
    _taken.clear()
    for lock in _alive():
        if id(lock) not in free:
            lock.renew()
    bars = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    if bars is not None:  # their lock is held while one is drawn
        bars.set_lock(threading.RLock())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
