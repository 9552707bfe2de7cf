"""Locks of updates: one thread at a time reads the old values of Variables and binds the new ones.

An optimizer changes many Variables at once under one lock, its own. A Variable belongs to the lock of the first optimizer that
took it, for good; an optimizer that shares it takes that lock too, so any two that share a Variable have a lock in common.
Variables that no optimizer has taken share one. Whoever needs several takes the oldest first, so nobody waits in a circle.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from typing import Any

_next_number = itertools.count().__next__


class UpdateLock:
    """A reentrant lock with a place in the order in which several are taken; a copy is another one."""

    __slots__ = ("acquire", "number", "release")

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release, self.number = lock.acquire, lock.release, _next_number()

    def __reduce__(self) -> tuple[Any, ...]:
        return UpdateLock, ()


class UpdateLocks:
    """All the locks that a step of one optimizer holds.

    Attributes:
        own: the lock of the optimizer.
        all: it and those of Variables that another optimizer took first, in the order in which they are taken.
    """

    __slots__ = ("all", "own")

    def __init__(self, own: UpdateLock | None = None) -> None:
        self.own = own or UpdateLock()
        self.all: tuple[UpdateLock, ...] = (self.own,)

    def __reduce__(self) -> tuple[Any, ...]:
        return UpdateLocks, (self.own,)  # copies of locks have an order of their own

    def join(self, variables: Iterable[Any]) -> None:
        """Steps from now on update these Variables too; what is no Variable is left to later checks."""
        found = set()
        for variable in variables:
            if not hasattr(variable, "_update_lock"):
                continue
            if variable._update_lock is None:
                with Held((_shared,)):  # nobody is in the middle of an update of a Variable that no optimizer has taken
                    variable._update_lock = variable._update_lock or self.own
            found.add(variable._update_lock)
        self.include(found)

    def include(self, locks: Iterable[UpdateLock]) -> None:
        """Steps from now on hold these locks too."""
        more = set(locks).difference(self.all)
        if more:
            self.all = in_order(more.union(self.all))


def in_order(locks: Iterable[UpdateLock]) -> tuple[UpdateLock, ...]:
    """Each of the locks once, the oldest first: the order in which all who need several take them."""
    return tuple(sorted(set(locks), key=lambda lock: lock.number))


class Held:
    """Holds locks, given in order, within a block; the same thread may hold some of them already."""

    __slots__ = ("_locks",)

    def __init__(self, locks: Iterable[UpdateLock]) -> None:
        self._locks = locks

    def __enter__(self) -> None:
        taken = []
        try:
            for lock in self._locks:
                lock.acquire()
                taken.append(lock)
        except BaseException:  # an interrupt while waiting
            for lock in taken:
                lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.release()


_shared = UpdateLock()
"""Of all Variables that no optimizer has taken. Who holds it waits for no other lock."""


def acquired(variable: Any) -> UpdateLock:
    """The lock of a Variable, held; it is to be released."""
    while True:
        lock: UpdateLock = variable._update_lock or _shared
        lock.acquire()
        if (variable._update_lock or _shared) is lock:
            return lock
        lock.release()  # an optimizer took the Variable while this thread was waiting
