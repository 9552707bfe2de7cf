"""BLAS as SciPy brings it: the addresses of its products, and the number of threads that it uses itself."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.machinery
import importlib.util
import os
import pathlib
import sys
from typing import Any

import numpy as np

from ....core.forks import ForkSafeLock, importing


@functools.cache
def gemm(dtype: np.dtype[Any]) -> int:
    """The address of `sgemm` or `dgemm`, which take the addresses of their operands, as Fortran does."""
    with importing:
        capsule = _cython_blas().__pyx_capi__["sgemm" if dtype == np.float32 else "dgemm"]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = ctypes.py_object, ctypes.c_char_p
    return int(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))


@functools.cache
def _cython_blas() -> Any:
    """The module `scipy.linalg.cython_blas`, without the package around it, which takes 90 ms and 20 MiB more."""
    name = "scipy.linalg.cython_blas"
    if name in sys.modules:
        return sys.modules[name]
    import scipy  # which finds its libraries

    spec = importlib.machinery.PathFinder.find_spec(name, [str(pathlib.Path(scipy.__file__).parent / "linalg")])
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class OneThread(contextlib.ContextDecorator):
    """While it is entered, by any number of threads, BLAS uses one thread for each product; then as many as before.

    Args:
        libraries: controllers of `threadpoolctl`.
    """

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
def on_one_thread() -> OneThread | None:
    """What keeps SciPy's BLAS on one thread; None if it cannot be told, and then shares products among its own."""
    gemm(np.dtype(np.float32))  # the library is loaded by now
    try:
        with importing:
            from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [one for one in libraries if any(part.startswith("scipy") for part in pathlib.Path(one.filepath).parts[:-1])]
    if not libraries:
        return None
    found = OneThread(own or libraries)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=found.leave)
    return found
