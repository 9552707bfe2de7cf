"""UpdateLock: one thread at a time reads the old values of Variables and binds the new ones.

A step of an optimizer changes many Variables at once, so they share one lock with the optimizer; so does everything else that
updates them. Variables that no optimizer has taken share one of their own. Where two optimizers come to share a Variable, their
locks become one.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterable, Iterator
from typing import Any

_next_number = itertools.count().__next__


class UpdateLock:
    """A reentrant lock that others of its kind can become part of; a copy is another one."""

    __slots__ = ("_lock", "_number", "_whole")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._number = _next_number()
        self._whole: UpdateLock | None = None

    def acquire(self) -> Any:
        """Wait until no other thread holds it; what is to be released comes back."""
        whole = self
        while True:
            lock = whole._lock
            lock.acquire()
            if whole._whole is None:
                return lock
            lock.release()  # it is part of another one, perhaps since this thread was waiting
            whole = whole._whole

    def _found(self) -> UpdateLock:
        whole = self
        while whole._whole is not None:
            whole = whole._whole
        return whole

    def join(self, variables: Iterable[Any]) -> None:
        """Let Variables, and the locks that they have already, share this one; what is no Variable is left to later checks."""
        for variable in variables:
            if getattr(variable, "_update_lock", self) is self:
                continue
            with held(_shared):  # nobody is in the middle of an update of a Variable that has no lock yet
                known = variable._update_lock
                if known is None:
                    variable._update_lock = self
            if known is not None:
                self.unite(known)

    def unite(self, other: UpdateLock) -> None:
        """Become one with another lock: the younger becomes part of the older."""
        while len(both := in_order([self, other])) > 1:
            older, younger = both
            with held(older), held(younger):
                if older._whole is None and younger._whole is None:
                    younger._whole = older

    def __reduce__(self) -> tuple[Any, ...]:
        return UpdateLock, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> UpdateLock:
        whole = self._found()
        return memo.setdefault(id(whole), UpdateLock())


_shared = UpdateLock()


def in_order(locks: Iterable[UpdateLock]) -> list[UpdateLock]:
    """Each of the locks once, the oldest first: the order in which all who need several take them."""
    return sorted({lock._found() for lock in locks}, key=lambda one: one._number)


@contextlib.contextmanager
def held(*locks: UpdateLock) -> Iterator[None]:
    """Hold all of the locks within the block; all who hold several take the oldest first."""
    taken: list[Any] = []
    try:
        for lock in in_order(locks):
            taken.append(lock.acquire())
        yield
    finally:
        for lock in taken:
            lock.release()


def acquired(variable: Any) -> Any:
    """The lock of a Variable, held; it is to be released."""
    while True:
        wanted = variable._update_lock or _shared
        lock = wanted.acquire()
        if (variable._update_lock or _shared) is wanted:
            return lock
        lock.release()
