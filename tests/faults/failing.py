"""A full disk or an I/O error at every call to the system that a save makes: the old file stays, and the error is told."""

import errno
import os
import pathlib
import tempfile
from typing import Any
from unittest import mock

from minikeras.files import durable

from . import kinds
from .report import Row

CHANGING = ("open", "write", "fsync", "close", "replace", "unlink", "mkdir")


class FailingSystem:
    """The module `os`, of which the n-th call that changes files fails, once or from then on."""

    def __init__(self, fail_at: int | None, error: int = errno.EIO, sticky: bool = False) -> None:
        self.calls = 0
        self._fail_at, self._error, self._sticky = fail_at, error, sticky

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CHANGING:
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self._fail_at is not None and (self.calls == self._fail_at or (self._sticky and self.calls > self._fail_at)):
                if name == "close":
                    real(*arguments)
                raise OSError(self._error, os.strerror(self._error))
            return real(*arguments, **options)

        return call


def failing(kind: kinds.Kind, errors: tuple[int, ...] = (errno.ENOSPC, errno.EIO)) -> Row:
    """Let each call of a save over an older one fail, with each error, once and for good."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = kinds.model(value=1.0)
        kind.save(made, folder)
        system = FailingSystem(None)
        with mock.patch.object(durable, "os", system):
            kind.save(made, folder)
        total, bad, tries = system.calls, 0, 0
        for error in errors:
            for sticky in (False, True):
                for number in range(1, total + 1):
                    tries += 1
                    kinds.fill(made, 1.0)
                    kind.save(made, folder)
                    bad += not _survives(kind, made, folder, FailingSystem(number, error, sticky), error)
    names = "/".join(errno.errorcode[error] for error in errors)
    return Row(f"{names} at every call of {kind.name}", tries, bad, f"{total} calls a save")


def _survives(kind: kinds.Kind, made: Any, folder: pathlib.Path, system: FailingSystem, error: int) -> bool:
    """Whether the error is told, or nothing failed that matters, and the old or the new state loads whole."""
    kinds.fill(made, 2.0)
    with mock.patch.object(durable, "os", system):
        try:
            kind.save(made, folder)
        except OSError as caught:
            told = caught.errno == error
        else:
            told = True  # only the deletion of an old file failed; the new one is complete
    other = kinds.model(value=0.0)
    kind.load(other, folder)
    values = {float(value) for weight in other.get_weights() for value in weight.ravel()}
    return told and values in ({1.0}, {2.0})
