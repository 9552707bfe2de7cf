"""Groups of runs carried out: here in turn, or by joblib in processes of this machine or on the cluster that it was told."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from typing import Any

from ..arrays import threads
from ..errors import MissingExtraError

ATTEMPTS = 3
"""How often groups are handed out after workers have died before a group is taken for the cause."""

_group_at_a_time = threading.Lock()
"""Held while a group is trained: random streams and names belong to the process, and a worker may have several threads."""


def carry_out(work: Callable[..., Any], groups: Mapping[int, tuple[Any, ...]], n_jobs: int | None) -> Iterator[tuple[int, Any]]:
    """`work(*arguments)` for each group, with its number, in the order in which they end.

    Args:
        work: a function that can be sent to a worker, as its arguments.
        groups: the arguments of each group by its number.
        n_jobs: 1 for this process; otherwise as joblib takes it, None being what `joblib.parallel_config` says.

    Raises:
        MissingExtraError: without joblib, if `n_jobs` is not 1.
        RuntimeError: if workers die again and again.
    """
    if n_jobs == 1:
        for number, arguments in groups.items():
            with _group_at_a_time:
                found = work(*arguments)
            yield number, found
        return
    left, attempts = dict(groups), 0
    while left:
        try:
            for number, found in _by_joblib(work, left, n_jobs):
                del left[number]
                yield number, found
        except BrokenExecutor as error:
            attempts += 1
            if attempts == ATTEMPTS:
                raise RuntimeError(
                    f"Sweep: workers have died {attempts} times, and {len(left)} groups of runs are not done: {error} If "
                    "memory is what they lack, give a lower n_jobs. With a `directory`, call fit again to go on."
                ) from error


def _by_joblib(work: Callable[..., Any], groups: Mapping[int, tuple[Any, ...]], n_jobs: int | None) -> Iterator[Any]:
    try:
        from joblib import Parallel, delayed, effective_n_jobs
    except ImportError as error:
        raise MissingExtraError(
            "a sweep with n_jobs other than 1 needs joblib: pip install 'minikeras[experiments]', or joblib alone."
        ) from error
    share = max(1, threads.thread_count() // max(1, effective_n_jobs(n_jobs)))
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    tasks = (delayed(in_worker)(os.getpid(), share, work, number, *arguments) for number, arguments in list(groups.items()))
    return iter(parallel(tasks))


def in_worker(parent: int, share: int, work: Callable[..., Any], number: int, *arguments: Any) -> tuple[int, Any]:
    """A group in a worker, which computes with its share of the processors if it is a process of its own."""
    with _group_at_a_time:
        if os.getpid() != parent:
            threads.set_intra_op_parallelism_threads(share)
        return number, work(*arguments)
