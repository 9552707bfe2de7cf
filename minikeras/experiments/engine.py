"""Execution of groups of runs: here in turn, or by joblib in processes of this machine or on the cluster it is set up for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any

from ..core.locks import ForkSafeLock
from ..extras import imported
from ..parallel import get_intra_op_parallelism_threads, set_intra_op_parallelism_threads, thread_count

ATTEMPTS = 3
"""Deaths of workers without the end of a group between them, until each group is trained alone; and attempts for each then."""

_DEATHS = ("KilledWorker", "ActorDiedError", "WorkerCrashedError")
"""The names in Dask and Ray of the death of a worker; they are not imported here."""

_group_at_a_time = ForkSafeLock()
"""Held while a group is trained: random streams and names belong to the process, and a worker may have several threads."""


def carry_out(work: Callable[..., Any], groups: Mapping[int, tuple[Any, ...]], n_jobs: int | None) -> Iterator[tuple[int, Any]]:
    """`work(*arguments)` for each group, with its number, in the order in which they end.

    Args:
        work: a function that can be sent to a worker, as its arguments.
        groups: the arguments of each group by its number.
        n_jobs: 1 for this process; otherwise as joblib takes it, None being what `joblib.parallel_config` says.

    Raises:
        MissingExtraError: without joblib, if `n_jobs` is not 1.

    A group that was lost with its worker is handed out again. If its workers keep dying, its result is a `WorkerDied`.
    """
    if n_jobs == 1:
        for number, arguments in groups.items():
            with _group_at_a_time:
                found = work(*arguments)
            yield number, found
        return
    left, deaths = dict(groups), 0
    while left:
        alone = deaths >= ATTEMPTS  # the death of a worker is then that of its group
        some = dict([next(iter(left.items()))]) if alone else left
        try:
            for number, found in _by_joblib(work, some, n_jobs):
                del left[number]
                deaths = ATTEMPTS if alone else 0
                yield number, found
        except Exception as error:
            if not _is_death(error):
                raise
            deaths += 1
            if deaths == 2 * ATTEMPTS:
                (number,), deaths, said = some, ATTEMPTS, str(error).partition(".")[0]
                del left[number]
                yield number, WorkerDied(f"the worker died in each of {ATTEMPTS} attempts ({said}); it may lack memory.")


def _is_death(error: Exception) -> bool:
    """True if a worker died. Dask itself hands out its work again, unless data died with it, or the next workers died too."""
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__name__ in _DEATHS


class WorkerDied(RuntimeError):
    """The result of a group whose workers died."""


def workers(n_jobs: int | None) -> int:
    """The number of groups that are trained at the same time."""
    return 1 if n_jobs == 1 else int(_joblib().effective_n_jobs(n_jobs))


def _joblib() -> Any:
    return imported("joblib", "a sweep with n_jobs other than 1 needs joblib")


def _by_joblib(work: Callable[..., Any], groups: Mapping[int, tuple[Any, ...]], n_jobs: int | None) -> Iterator[Any]:
    joblib = _joblib()
    share = max(1, thread_count() // max(1, workers(n_jobs)))
    tasks = [joblib.delayed(in_worker)(os.getpid(), share, work, number, *arguments) for number, arguments in groups.items()]
    try:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # a backend such as Ray's, which returns all at once: it gets one group for each worker at a time
        parallel, size = joblib.Parallel(n_jobs=n_jobs, batch_size=1), workers(n_jobs)
        rounds = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        return (found for some in rounds for found in parallel(some))
    return iter(parallel(tasks))


def in_worker(parent: int, share: int, work: Callable[..., Any], number: int, *arguments: Any) -> tuple[int, Any]:
    """A group in a worker, which computes with its share of the processors if it is a process of its own."""
    with _group_at_a_time:
        if os.getpid() == parent:
            return number, work(*arguments)
        before = get_intra_op_parallelism_threads()
        set_intra_op_parallelism_threads(share)
        try:
            return number, work(*arguments)
        finally:
            set_intra_op_parallelism_threads(before)
