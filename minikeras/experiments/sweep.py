"""Sweep: a model for each combination of parameters and each seed, trained, compared, and kept on disk as each run ends.

Groups of runs are trained here in turn, or by joblib in processes of this machine or on the cluster it is set up for.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any

from ..boundary import shown
from ..core.locks import ForkSafeLock
from ..errors import kind_of
from ..extras import imported
from ..keras.batches import is_iterable_of_batches
from ..keras.models import Model
from ..keras.training.trainer import COUNTS, check_counts
from ..parallel import get_intra_op_parallelism_threads, set_intra_op_parallelism_threads, thread_count
from . import grid, structure
from .grid import Failure, Run, seeds_of
from .journal import MODEL, Journal, SweepPlan, fingerprint
from .results import RunResult, SweepResults
from .runs import DATA, Makes, Outcome, RunsProgress, Training, train_group

_OURS = ("self", "callbacks", "verbose")
FIT_ARGUMENTS = {name: one.default for name, one in inspect.signature(Model.fit).parameters.items() if name not in _OURS}
"""The arguments that are handed on to `Model.fit`, with their default values."""

ATTEMPTS = 3
"""Deaths of workers without the end of a group between them, until each group is trained alone; and attempts for each then."""

_DEATHS = ("KilledWorker", "ActorDiedError", "WorkerCrashedError")
"""The names in Dask and Ray of the death of a worker; they are not imported here."""

_group_at_a_time = ForkSafeLock()
"""Held while a group is trained: random streams and names belong to the process, and a worker may have several threads."""


class Sweep:
    """Many runs of a model: every combination of parameters, with every seed.

    A run is what one would write by hand, and has the same numbers, to rounding:

        keras.utils.set_random_seed(seed)
        model = build(**parameters)
        model.fit(x, y, ...)

    Runs whose models differ in weights and in numbers of the optimizer only are trained together, as an `Ensemble`.

    Args:
        build: a function that takes parameters by name and returns a compiled model.
        grid_or_list: a dict from the names of parameters to lists of values, which are all combined, the last name varying
            fastest; or a list of dicts, the combinations themselves.
        seeds: how many seeds each combination is run with, 0, 1, 2 and so on; or a list of seeds. They vary faster than
            parameters.
        name: of the sweep, for its progress bar.

    Attributes:
        runs: all runs in their order, each with `number`, `parameters` and `seed`.
        results: what `fit` returned last; None before.

    Raises:
        TypeError, ValueError: for parameters that `build` does not take, for an empty grid, and for what is there twice.

    >>> def build(rate):
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile(tf.keras.optimizers.SGD(rate), "mse")
    ...     return model
    >>> sweep = tf.experiments.Sweep(build, {"rate": [0.5, 0.1]}, seeds=2)
    >>> results = sweep.fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=100, verbose=0)
    >>> len(results), results.best.parameters, results.table(over="seed").columns["rate"]
    (4, {'rate': 0.5}, [0.5, 0.1])
    """

    def __init__(self, build: Callable[..., Any], grid_or_list: Any, seeds: Any = 1, name: str = "sweep") -> None:
        found = grid.combinations(grid_or_list)
        grid.check_parameters(build, found)
        grid.check_distinct(found)
        if not isinstance(name, str):
            raise TypeError(f"Sweep: name should be a text, found {shown(name)}.")
        self.build, self.name = build, name
        self._seeds = seeds_of("Sweep", seeds)
        self.runs = grid.runs_of(found, self._seeds)
        self.results: SweepResults | None = None

    def __len__(self) -> int:
        return len(self.runs)

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        *,
        directory: Any = None,
        n_jobs: int | None = 1,
        objective: str | None = None,
        mode: str = "auto",
        keep_weights: bool = True,
        callbacks: Callable[[Run], list[Any]] | None = None,
        verbose: int | str = "auto",
        **arguments: Any,
    ) -> SweepResults:
        """Train all runs. One that raises, or whose loss is not finite, is a result with its error, and the others go on.

        Args:
            x, y: as in `Model.fit`, the same for all runs. A generator can be used up only once, and is refused.
            directory: a folder in which the plan and each finished run are kept. The same call on the same folder goes on
                where another ended, killed or not, and gives the same numbers bit for bit. A folder of another sweep is
                refused, as far as data, parameters, models and arguments tell; functions such as callbacks tell nothing.
            n_jobs: how many groups of runs are trained at the same time. 1 is in this process. Any other number is given to
                joblib, whose processes share the processors; -1 is one for each. None is what `joblib.parallel_config` says,
                by which a cluster is used: `with joblib.parallel_config(backend="dask")`. The numbers are the same to rounding.
            objective: the value of the logs by which runs are compared, after the last epoch; 'val_loss' if there are
                validation data, otherwise 'loss'.
            mode: 'min', 'max', or 'auto' to ask the metric.
            keep_weights: whether the weights of each run are kept, in the folder or else in memory, for `result.model()`.
            callbacks: a function that is given the run, with `number`, `parameters` and `seed`, and returns new callbacks.
            verbose: 0 silent; 1 or 'auto' one progress bar over all runs; 2 a line at the end.
            arguments: the others of `Model.fit`: `epochs`, `batch_size`, `validation_data`, ...

        Raises:
            TypeError, ValueError: for what cannot be meant, before anything runs: arguments that `Model.fit` does not take,
                models that are not compiled, a folder of another sweep. For an objective that is not logged, after a run.
            MissingExtraError: without joblib, for `n_jobs` other than 1.
            CheckpointBusyError: if another process writes to the folder.
        """
        given = {name: value for name, value in {"x": x, "y": y, **arguments}.items() if value is not None}
        _check(given, n_jobs, objective, mode, callbacks)
        validated = given.get("validation_data") is not None or bool(given.get("validation_split"))
        objective = objective or ("val_loss" if validated else "loss")
        if objective.startswith("val_") and not validated:
            raise ValueError(f"Sweep.fit: objective={objective!r} needs validation_data or validation_split.")
        training = Training(given, objective, bool(keep_weights))
        kinds = self._structures()
        plan = SweepPlan(self.name, objective, mode, self.runs, self._groups(kinds, given, workers(n_jobs)), {})
        with contextlib.ExitStack() as stack:
            journal = None if directory is None else Journal(directory)
            if journal is not None:
                stack.enter_context(journal.opened())
                plan = journal.begin(plan._replace(identity=self._identity(given, kinds)))
            progress = stack.enter_context(RunsProgress(plan.name, len(plan.runs), verbose))
            results: dict[int, RunResult] = {}
            for results in self._carry_out(plan, training, callbacks, n_jobs, journal):
                _check_objective(results, plan)
                progress.show(len(results), functools.partial(_best, plan, results))
            progress.conclude(functools.partial(_best, plan, results))
        self.results = SweepResults(plan.name, [results[run.number] for run in self.runs], plan.objective, plan.mode)
        return self.results

    @staticmethod
    def load(directory: Any, build: Callable[..., Any] | None = None) -> SweepResults:
        """The results in the folder of a sweep, of those runs that have ended; it may be going on.

        Args:
            directory: as given to `fit`.
            build: as given to the sweep, for `result.model()`.

        Raises:
            NotFoundError: if no sweep was kept there.
            LoadError: if a file is damaged.
        """
        journal = Journal(directory)
        plan = journal.plan()
        found = ((run, journal.read(run.number)) for run in plan.runs)
        results = [RunResult(run, outcome, build, journal) for run, outcome in found if outcome is not None]
        return SweepResults(plan.name, results, plan.objective, plan.mode)

    # Before -------------------------------------------------------------------------------------------------------------------

    def _structures(self) -> list[structure.ModelKind]:
        """The structure of the model of each combination, for all its runs."""
        each = [run for run in self.runs if run.seed == self._seeds[0]]
        found = [structure.structure_of(functools.partial(grid.called, self.build, run.parameters), run.seed) for run in each]
        return [one for one in found for _ in self._seeds]

    def _groups(self, kinds: list[structure.ModelKind], given: Mapping[str, Any], workers: int) -> list[list[int]]:
        """Group the runs that are trained together: models without a description only with those of the same combination, and
        no more than leaves work for all workers.
        """
        alike = [kind.alike or run.number // len(self._seeds) for run, kind in zip(self.runs, kinds, strict=True)]
        ordered = is_iterable_of_batches(given["x"])  # the order may be random, and each run has its own
        share = 1 if ordered else -(-len(self.runs) // workers)
        return structure.groups_of(alike, [min(kind.most, share) for kind in kinds])

    def _identity(self, given: Mapping[str, Any], kinds: list[structure.ModelKind]) -> dict[str, str]:
        """The texts, by name, that tell this sweep from another."""
        pairs = list(zip(self.runs, kinds, strict=True))[:: len(self._seeds)]
        found = {f"{MODEL} {run.number}": kind.digest for run, kind in pairs if kind.digest is not None}
        for name, value in given.items():
            if name in DATA:
                found[name] = fingerprint(value)
            elif type(value) is not type(FIT_ARGUMENTS[name]) or value != FIT_ARGUMENTS[name]:
                found[name] = repr(grid.encoded(value))
        return found

    # Runs ---------------------------------------------------------------------------------------------------------------------

    def _carry_out(
        self, plan: SweepPlan, training: Training, callbacks: Makes | None, n_jobs: int | None, journal: Journal | None
    ) -> Iterator[dict[int, RunResult]]:
        """Train the runs that are not in the journal yet; after each group yield all results so far, by number."""
        kept = {} if journal is None else {run.number: journal.read(run.number) for run in self.runs}
        done = {number: outcome for number, outcome in kept.items() if outcome is not None}
        results = {number: RunResult(self.runs[number], outcome, self.build, journal) for number, outcome in done.items()}
        yield results
        left = {i: group for i, group in enumerate(plan.groups) if not done.keys() >= set(group)}
        tasks = {i: (self.build, [self.runs[number] for number in left[i]], callbacks, training) for i in left}
        for i, found in carry_out(train_group, tasks, n_jobs):
            died = isinstance(found, WorkerDied)
            outcomes = [Outcome(failure=Failure.of(found))] * len(left[i]) if died else found
            new = {number: one for number, one in zip(left[i], outcomes, strict=True) if number not in done}
            if journal is not None and not died:  # the next attempt may succeed
                journal.write(new)
            results |= {number: RunResult(self.runs[number], outcome, self.build, journal) for number, outcome in new.items()}
            yield results


def _check(given: Mapping[str, Any], n_jobs: Any, objective: Any, mode: Any, callbacks: Any) -> None:
    """Refuse arguments of `fit` that mean nothing, before anything runs."""
    unknown = [name for name in given if name not in FIT_ARGUMENTS]
    if unknown:
        raise TypeError(f"Sweep.fit: Model.fit takes no {', '.join(map(repr, unknown))}, but {', '.join(FIT_ARGUMENTS)}.")
    if n_jobs is not None and (not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"Sweep.fit: n_jobs should be an int other than 0, or None, found {n_jobs!r}; -1 is all processors.")
    if mode not in ("auto", "min", "max"):
        raise ValueError(f"Sweep.fit: mode must be 'auto', 'min' or 'max', found {mode!r}.")
    if objective is not None and not isinstance(objective, str):
        raise TypeError(f"Sweep.fit: objective should be a name of the logs, found {shown(objective)}.")
    check_counts("Sweep.fit", 1, **{name: given[name] for name in ("epochs", *COUNTS) if name in given})
    if callbacks is not None and not callable(callbacks):
        raise TypeError(
            f"Sweep.fit: callbacks should be a function of the run, for they remember their run; found {shown(callbacks)}. "
            "Write callbacks=lambda run: [EarlyStopping(...)]."
        )
    if "x" not in given:
        raise ValueError("Sweep.fit: there are no data; give x, and y as the loss needs it.")
    for name in DATA:
        if isinstance(given.get(name), Iterator):
            raise TypeError(
                f"Sweep.fit: {name} is {kind_of(given[name])}, which can be used up only once, and each run needs the data. "
                "Give arrays, a Dataset or a PyDataset."
            )


def _check_objective(results: Mapping[int, RunResult], plan: SweepPlan) -> None:
    """Refuse an objective by which nothing can be compared, as soon as a run shows it."""
    good = [one for one in results.values() if one.error is None]
    if not good:
        return
    name, first = plan.objective, good[0]
    if not isinstance(first.metrics.get(name), (int, float)):
        numbers = [one for one, value in first.metrics.items() if isinstance(value, (int, float))]
        raise ValueError(f"Sweep.fit: objective={name!r} is no number in the logs of run {first.number}, which have {numbers}.")
    if plan.mode == "auto" and name not in first.directions:
        raise ValueError(f"Sweep.fit: {name!r} does not say whether more or less is better: give mode='min' or mode='max'.")


def _best(plan: SweepPlan, results: Mapping[int, RunResult]) -> dict[str, float]:
    """The best objective so far, for the progress bar."""
    found = SweepResults(plan.name, list(results.values()), plan.objective, plan.mode)
    good = any(one.error is None for one in results.values())
    return {f"best {plan.objective}": found.best.metrics[plan.objective]} if good else {}


# Groups of runs, here or in workers -----------------------------------------------------------------------------------


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
