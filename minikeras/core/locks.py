"""Locks across `os.fork`, and those of updates: one thread at a time reads old values of Variables and binds the new ones.

A forked process has one thread, and what other threads held would stay held there. A fork waits for locks, a second at most for
all, so that what they guard is whole in the child. A lock that is held even then is a new one there.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any, TypeVar
from weakref import ReferenceType, WeakValueDictionary, ref

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
    _waiting.clear()
    for lock in _alive():
        if id(lock) not in free:
            lock.renew()
    bars = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    if bars is not None:  # their lock is held while one is drawn
        bars.set_lock(threading.RLock())


# Updates ---------------------------------------------------------------------------------------------------------------
#
# A Variable belongs to the lock of the first optimizer that took it; one that shares it takes that lock too.

_next_update = itertools.count(1).__next__
_PAUSE = 0.05
"""Seconds of waiting after which a thread checks whether it is in a deadlock cycle."""


class UpdateLock(ForkSafeLock):
    """A reentrant lock with a place in the order in which several are taken; a copy is another one.

    Attributes:
        number: its place; a step that needs several locks takes them in ascending order.
        owner: the thread whose step holds it; 0 for none.
    """

    __slots__ = ("owner",)

    def __init__(self) -> None:
        super().__init__(_next_update())

    def renew(self) -> None:
        """Be free, whichever thread held it."""
        super().renew()
        self.owner = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return UpdateLock, ()


class UpdateLocks:
    """All the locks that a step of one optimizer holds.

    Attributes:
        own: the lock of the optimizer.
        all: `own` and the locks of Variables that another optimizer took first, in the order in which they are taken.
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
            if not hasattr(variable, "update_lock"):
                continue
            if variable.update_lock is None:
                with HeldLocks((_shared,)):  # no thread is in the middle of an update of a Variable that no optimizer has taken
                    variable.update_lock = variable.update_lock or self.own
            found.add(variable.update_lock)
        self.include(found)

    def include(self, locks: Iterable[UpdateLock]) -> None:
        """Steps from now on hold these locks too."""
        more = set(locks).difference(self.all)
        if more:
            with HeldLocks((_shared,)):  # two threads that include locks at once lose none
                self.all = tuple(sorted(more.union(self.all), key=lambda lock: lock.number))


class HeldLocks:
    """Holds locks, given in order, within a block; the same thread may hold some of them already.

    Raises:
        RuntimeError: if threads wait for each other, as when the loss of each one's step takes a step of the other's optimizer.
            Of each circle one thread raises, and the others go on.
    """

    __slots__ = ("_locks", "_taken")

    def __init__(self, locks: Iterable[UpdateLock]) -> None:
        self._locks = locks

    def __enter__(self) -> None:
        thread = get_ident()
        self._taken: list[UpdateLock] = []
        try:
            for lock in self._locks:
                if lock.owner != thread:
                    if not lock.acquire(False):
                        _wait_for(lock)
                    lock.owner = thread
                    self._taken.append(lock)
                    if _watching:
                        _tell(lock)
        except BaseException:  # an interrupt, or a circle
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for lock in self._taken:
            lock.owner = 0
            lock.release()


_shared = UpdateLock()
"""The lock of all Variables that no optimizer has taken. A thread that holds it waits for no other lock."""
_waiting: dict[int, UpdateLock] = {}
"""The lock that each waiting thread waits for."""


def acquired(variable: Any) -> UpdateLock:
    """The lock of a Variable, held; it is to be released, and no other is to be taken meanwhile."""
    while True:
        lock: UpdateLock = variable.update_lock or _shared
        if not lock.acquire(False):
            _wait_for(lock)
        if (variable.update_lock or _shared) is lock:
            if _watching:
                _tell(lock, variable)
            return lock
        lock.release()  # an optimizer took the Variable while this thread was waiting


class Before(dict[int, tuple[Any, Any]]):
    """Variables, by their keys, with what they held before a thread changed them: it may put that back.

    A Variable is noted with its lock held, so that no other thread is in the middle of an update.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread, self._torn = get_ident(), False
        _watching.append(ref(self, _watching.remove))

    def put_back(self) -> bool:
        """Have the Variables hold it again; False, and nothing was done, if another thread has updated one of them since."""
        locks = self._locks()
        with HeldLocks(sorted(locks, key=lambda lock: lock.number)), HeldLocks((_shared,)):
            if self._torn or locks != self._locks():
                return False
            for variable, array in self.values():
                variable.array = array
        return True

    def _locks(self) -> set[UpdateLock]:
        return {variable.update_lock for variable, _ in list(self.values()) if variable.update_lock is not None}

    def tell(self, lock: UpdateLock, variable: Any) -> None:
        """Note that this thread updates a Variable or, if that is None, the Variables of a lock."""
        if get_ident() != self._thread and (lock in self._locks() if variable is None else variable.key in self):
            self._torn = True


_watching: list[ReferenceType[Before]] = []


def _tell(lock: UpdateLock, variable: Any = None) -> None:
    for reference in list(_watching):
        if (before := reference()) is not None:
            before.tell(lock, variable)


def _wait_for(lock: UpdateLock) -> None:
    """Acquire a lock that another thread holds."""
    thread = get_ident()
    _waiting[thread] = lock
    try:
        while not lock.acquire(timeout=_PAUSE):
            if _closes_circle(thread) and _closes_circle(thread):  # the first look may mix two moments, the second cannot
                raise RuntimeError(
                    "Two threads wait for each other: each is in the middle of an optimizer's step, whose loss, constraint or "
                    "learning rate updates Variables of the other's. Update them before or after the step."
                )
    finally:
        del _waiting[thread]


def _closes_circle(thread: int) -> bool:
    """True if a waiting thread is in a deadlock cycle and is the one that gives up."""
    circle = [thread]
    while (lock := _waiting.get(circle[-1])) is not None:
        owner = lock.owner
        if owner == thread:
            return thread == max(circle)
        if not owner or owner in circle:
            return False
        circle.append(owner)
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_in_child)
