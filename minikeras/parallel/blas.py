"""The BLAS libraries that are loaded, and the number of threads that they have for a product."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.forks import ForkSafeLock, importing


class Library(NamedTuple):
    """A BLAS library, as `threadpoolctl` describes one."""

    filepath: str
    get_num_threads: Callable[[], int]
    set_num_threads: Callable[[int], Any]


def libraries() -> list[Any]:
    """The BLAS libraries that are loaded: those that `threadpoolctl` finds, or else those of the wheels of NumPy and SciPy."""
    try:
        with importing:
            from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return [library for package in ("numpy", "scipy") if package in sys.modules for library in _of_wheel(package)]
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _of_wheel(package: str) -> list[Library]:
    import ctypes
    import pathlib

    folder = pathlib.Path(sys.modules[package].__file__ or "").parent
    found = []
    for path in (*folder.parent.glob(f"{package}.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
        loaded = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}"):
            count, change = [getattr(loaded, name.format(call), None) for call in ("get_num_threads", "set_num_threads")]
            if count and change:
                found.append(Library(str(path), count, change))
                break
    return found


class OneThread(contextlib.ContextDecorator):
    """While it is entered, by any number of threads, BLAS uses one thread for each product; then as many as before."""

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries = libraries
        self._lock = ForkSafeLock()
        self._entered = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._before = [library.get_num_threads() for library in self._libraries]
                self._set([1] * len(self._before))
            self._entered += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered:
                self._set(self._before)

    def leave(self) -> None:
        """In a forked process: no other thread is within it."""
        if self._entered:
            self._entered = 0
            self._set(self._before)

    def _set(self, numbers: list[int]) -> None:
        for library, number, before in zip(self._libraries, numbers, self._before, strict=True):
            if before != 1:
                library.set_num_threads(number)


@functools.cache
def on_one_thread(package: str = "numpy") -> OneThread | None:
    """Keeps the BLAS of a package, which is loaded by now, on one thread; None if it cannot be told."""
    found = _of_wheel(package)  # whose own calls take a tenth of the time of those of `threadpoolctl`
    if not found:
        found = libraries()
        own = [one for one in found if any(part.startswith(package) for part in one.filepath.split(os.sep)[:-1])]
        found = own or found
    if not found:
        return None
    keeper = OneThread(found)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=keeper.leave)
    return keeper


@functools.cache
def set_by_environment() -> bool:
    """Whether the environment gave BLAS a number of threads."""
    return any(os.environ.get(f"{name}_NUM_THREADS") for name in ("OPENBLAS", "GOTO", "OMP", "MKL", "BLIS"))
