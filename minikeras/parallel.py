"""The number of threads, and work shared among them: long arrays by threads of our own, products by those and BLAS.

The calling thread takes a part, and takes back what no other thread has begun: a thread that does not wake is not waited for.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import logging
import operator
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .core.locks import ForkSafeLock, importing
from .core.ops.contractions import LONG
from .errors import kind_of
from .types import Array

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

WORTHWHILE = 1 << 18
"""Fewest elements of a part for which a second thread pays, for several passes of NumPy over float32, in calls of `CALL`."""

CALL = 1 << 17
"""Elements in one call of NumPy within a part: enough for threads to run in parallel, and the arrays still fit a cache.

Python's lock passes between the threads at each call: with 32,768 elements, 5 us, two threads are no faster than one.
"""

Work = Callable[[int, int], Any]

_logger = logging.getLogger("minikeras")
_inside = contextvars.ContextVar("inside", default=False)
"""True within a part of some shared work."""

_intra_op, _inter_op = 0, 0
_blas_at_first: dict[str, int] = {}
"""Threads of each BLAS library, by the path of its file, before it was first set here."""
_lock = ForkSafeLock()
_pool: ThreadPoolExecutor | None = None


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Set the number of threads of one operation: products (BLAS), passes over long arrays, and kernels of compiled steps.

    BLAS libraries that are loaded by now are told, through `threadpoolctl` where it is installed. The number may be changed at
    any time, and holds for the whole process. As long as neither it nor the environment says anything about BLAS, it has one
    thread for each product of this package, and long products are shared among threads that do not wait actively.

    Args:
        num_threads: 1 or more; 0 is automatic: a thread for each processor that this process may run on, and for BLAS the
            number that it began with, which its environment variable decides, such as OPENBLAS_NUM_THREADS.

    Raises:
        TypeError: if `num_threads` is no integer.
        ValueError: if it is negative.

    A warning is logged if no BLAS library can be controlled.

    >>> tf.config.threading.set_intra_op_parallelism_threads(1)
    >>> tf.config.threading.get_intra_op_parallelism_threads()
    1
    >>> tf.config.threading.set_intra_op_parallelism_threads(0)
    """
    global _intra_op, _pool
    _intra_op = _number("set_intra_op_parallelism_threads", num_threads)
    with _lock:
        _pool = None  # its threads end with the last reference to it
    _set_blas(_intra_op)


def get_intra_op_parallelism_threads() -> int:
    """The number that `set_intra_op_parallelism_threads` was given last; 0, which is automatic, if it was not called.

    >>> get_intra_op_parallelism_threads()
    0
    """
    return _intra_op


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Accepted and kept, so that programs written for TensorFlow run; operations follow one another here, never side by side.

    Args:
        num_threads: 0 or more.

    Raises:
        TypeError: if `num_threads` is no integer.
        ValueError: if it is negative.

    >>> set_inter_op_parallelism_threads(2)
    >>> get_inter_op_parallelism_threads()
    2
    >>> set_inter_op_parallelism_threads(0)
    """
    global _inter_op
    _inter_op = _number("set_inter_op_parallelism_threads", num_threads)


def get_inter_op_parallelism_threads() -> int:
    """The number that `set_inter_op_parallelism_threads` was given last; 0 if it was not called.

    >>> get_inter_op_parallelism_threads()
    0
    """
    return _inter_op


def thread_count() -> int:
    """The number of threads of an operation: the number that was set, or that of the processors this process may run on.

    >>> thread_count() >= 1
    True
    """
    return _intra_op or len(processors())


@functools.cache
def processors() -> set[int]:
    """The processors that this process may run on, asked for once."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def in_parallel(work: Work, count: int, least: int = WORTHWHILE, align: int = 16) -> None:
    """Carries out `work(start, stop)` for parts that together are range(count), on up to `thread_count()` threads.

    All parts have ended, or never begun, when this returns or raises. A part sees the context of the caller, such as
    `np.errstate`. Work begun within a part stays in the thread of that part.

    Args:
        work: gets the bounds of a part. Parts run at the same time, so it must write to nothing but its own part.
        count: number of elements, 0 or more.
        least: no part has fewer elements; below twice this number `work(0, count)` is called and nothing else.
        align: all parts but the first start at a multiple of this number, so that they share no line of the cache.

    Raises:
        BaseException: the first one, in the order of the parts, that `work` raised.

    >>> import numpy as np
    >>> x, y = np.arange(1000.0), np.empty(1000)
    >>> in_parallel(lambda start, stop: np.sqrt(x[start:stop], out=y[start:stop]), 1000, least=100)
    >>> bool((y == np.sqrt(x)).all())
    True
    """
    number = count // (-(-least // align) * align)
    if number > 1:
        number = 1 if _inside.get() else min(number, thread_count())
    if number < 2:
        work(0, count)
        return
    bounds = [count * part // number // align * align for part in range(number)] + [count]
    parts = [_Part(work, start, stop) for start, stop in itertools.pairwise(bounds)]
    _carry_out(parts)
    failure = next((part.failure for part in parts if part.failure is not None), None)
    for part in parts:
        part.failure = None  # an error knows the frames it passed, and they know the part: a circle
    try:
        if failure is not None:
            raise failure
    finally:
        del failure


class _Part:
    """A part of some work, to be carried out in a copy of the caller's context, and the error that it ended with."""

    __slots__ = ("bounds", "context", "failure", "work")

    def __init__(self, work: Work, start: int, stop: int) -> None:
        self.work, self.bounds, self.context = work, (start, stop), contextvars.copy_context()
        self.context.run(_inside.set, True)
        self.failure: BaseException | None = None

    def __call__(self) -> None:
        try:
            self.context.run(self.work, *self.bounds)
        except BaseException as error:
            self.failure = error


def _carry_out(parts: list[_Part]) -> None:
    """Carry out the first part here, the others in whichever thread is free; the part handed over last is taken back first."""
    handed = [(part, _handed_over(part)) for part in parts[1:]]
    parts[0]()
    for part, future in reversed(handed):
        if future.cancel():
            part()
    for _, future in handed:
        if not future.cancelled():
            future.result()


def _handed_over(part: _Part) -> Future[None]:
    """The part, waiting for a thread; no thread will begin it where no thread can be started, as when Python ends."""
    global _pool
    with _lock:
        try:
            _pool = _pool or _new_pool()
            return _pool.submit(part)
        except RuntimeError:
            from concurrent.futures import Future

            return Future()


def _new_pool() -> ThreadPoolExecutor:
    """Threads beside the caller's; they start when they are needed."""
    from concurrent.futures import ThreadPoolExecutor  # not at import: only work on long arrays needs it

    return ThreadPoolExecutor(max(1, thread_count() - 1), "minikeras-blocks")


def _after_fork() -> None:
    """A child process has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _number(name: str, num_threads: int) -> int:
    try:
        number = operator.index(num_threads)
    except TypeError:
        raise TypeError(f"{name}: num_threads is {num_threads!r}, {kind_of(num_threads)}; give an integer.") from None
    if number < 0:
        raise ValueError(f"{name}: num_threads is {number}; give 0, which is automatic, or a number from 1.")
    return number


def _set_blas(number: int) -> None:
    """Give each BLAS library that is loaded its number of threads; 0 is the number that it had."""
    found = libraries()
    for library in found:
        first = _blas_at_first.setdefault(library.filepath, library.get_num_threads())
        library.set_num_threads(number or first)
    if not found:
        _logger.warning(
            "set_intra_op_parallelism_threads(%d): matrix products keep their own number of threads, because no BLAS library "
            "is known that can be told; pip install 'minikeras[threads]', which knows more of them, or set the environment "
            "variable of your BLAS, such as OPENBLAS_NUM_THREADS, before NumPy is imported. Passes over long arrays use the "
            "number.",
            number,
        )


# The BLAS libraries that are loaded, and the number of threads that they have for a product.


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
    """Keeps the BLAS of a package, which is loaded by now, on one thread; None if it cannot be controlled."""
    found = _of_wheel(package)  # whose own calls take a tenth of the time of `threadpoolctl`
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
    """True if the environment gives BLAS a number of threads."""
    return any(os.environ.get(f"{name}_NUM_THREADS") for name in ("OPENBLAS", "GOTO", "OMP", "MKL", "BLIS"))


# Products of matrices by BLAS, long ones in parts for several threads.
#
# A BLAS library shares a product among threads that wait actively for one another: where another process wants a processor too,
# a product takes ten times as long. So the library has one thread for a product here, and a long one is cut in parts for
# threads that do not wait, unless the user has set a number. Other calls of the library keep its own number of threads.


PART = 1 << 23
"""Multiplications of a part for which another thread pays: to hand it over takes 60 us, the part 250."""


def chosen_by_user() -> bool:
    """True if the user has set the number of BLAS threads, by the environment or `tf.config.threading`."""
    return set_by_environment() or get_intra_op_parallelism_threads() > 0


def quiet_blas() -> contextlib.AbstractContextManager[Any]:
    """A block in which BLAS has one thread, unless the user has set a number, or it cannot be controlled."""
    return contextlib.nullcontext() if chosen_by_user() else on_one_thread() or contextlib.nullcontext()


def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """`numpy.matmul` of matrices or stacks of them.

    The bits of a long product depend on the number of threads, as those of a BLAS library do, and on nothing else.
    """
    count = max(a.size * b.shape[-1], b.size * a.shape[-2])
    if count < LONG or chosen_by_user() or (one_thread := on_one_thread()) is None:
        return np.matmul(a, b, out=out)
    with one_thread:
        if count < 2 * PART or a.ndim > 2 or b.ndim > 2:
            return np.matmul(a, b, out=out)
        rows = len(a)
        whole = np.empty((rows, b.shape[1]), np.result_type(a, b)) if out is None else out

        def multiply(start: int, stop: int) -> None:
            np.matmul(a[start:stop], b, out=whole[start:stop])

        in_parallel(multiply, rows, -(-rows * PART // count))
        return whole
