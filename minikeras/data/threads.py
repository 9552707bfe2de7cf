"""Work done ahead of its use in other threads, results in order: prefetching, parallel `map`, the workers of `PyDataset`."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from ..core.arrays import current_device, device


def in_order(function: Callable[[Any], Any], items: Iterable[Any], workers: int, ahead: int) -> Generator[Any]:
    """`function(item)` for each item, computed by `workers` threads, at most `ahead` before they are asked for.

    Raises:
        RuntimeError: in a forked process that goes on with it: the threads are its parent's.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    name, process = current_device(), os.getpid()

    def run(item: Any) -> Any:
        with device(name):  # the device is a choice of each thread
            return function(item)

    def oldest() -> Any:
        if os.getpid() != process:
            raise RuntimeError(
                "Dataset: a forked process cannot go on with data that its parent's threads prepare; iterate anew."
            )
        return waiting.popleft().result()

    waiting: deque[Future[Any]] = deque()
    executor = ThreadPoolExecutor(workers, "minikeras-data")
    try:
        for item in items:
            waiting.append(executor.submit(run, item))
            if len(waiting) > ahead:
                yield oldest()
        while waiting:
            yield oldest()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


_END = object()


def prefetched(elements: Iterator[Any], ahead: int) -> Iterator[Any]:
    """The elements of an iterator, asked for in a thread of their own up to `ahead` early."""
    found = in_order(lambda _: next(elements, _END), itertools.repeat(None), 1, ahead)
    try:
        for element in found:
            if element is _END:
                return
            yield element
    finally:
        found.close()  # the thread ends with it
