"""Who wrote a checkpoint: of several programs that save into one folder, none replaces or deletes what is another's."""

from __future__ import annotations

import os
import platform
import secrets
import weakref

from ..files.durable import is_alive


class Writer:
    """What saves: a process, and within it one object."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._name, self._process = secrets.token_hex(8), os.getpid()
        _here[self._name] = self

    @property
    def mark(self) -> str:
        """What the index of a checkpoint says of its writer; another one after a fork."""
        if self._process != os.getpid():
            self._begin()
        return f"{self._process} {self._name} {platform.node()}"

    def renew(self) -> None:
        """Go on as another writer: what a save that failed has left belongs to one that is gone, and may be replaced."""
        _here.pop(self._name, None)
        self._begin()

    def may_replace(self, mark: str) -> bool:
        """Whether a checkpoint with this mark is its own, or that of a writer that is gone."""
        process, _, rest = mark.partition(" ")
        name, _, host = rest.partition(" ")
        if not process or name == self._name:
            return True
        if process == str(os.getpid()) and host == platform.node():
            return name not in _here
        return host == platform.node() and not is_alive(process)  # who can tell on another host

    def may_adopt(self, mark: str) -> bool:
        """Whether a checkpoint with this mark counts as its own: may be replaced, or is of its process, as in a notebook."""
        process, _, rest = mark.partition(" ")
        return self.may_replace(mark) or (process == str(os.getpid()) and rest.endswith(f" {platform.node()}"))


_here: weakref.WeakValueDictionary[str, Writer] = weakref.WeakValueDictionary()
"""Those of this process."""
