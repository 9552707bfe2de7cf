"""Groups of runs, trained: the seam between a sweep, which knows runs and files, and the way in which models are trained."""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import nest
from ..data import Dataset
from ..data.pipeline import preserved_streams
from ..errors import NotFiniteError
from ..keras.batches import is_iterable_of_batches
from ..keras.callbacks import Callback, History, ProgressBar
from ..keras.callbacks.callback import in_notebook, readable
from ..keras.models import Model
from ..keras.saving import model_files
from .ensemble import Ensemble
from .grid import Failure, Run, called, fresh_session
from .members import EnsembleMember
from .structure import need_compiled

Logs = Callable[[], Any]
"""A function that gives the numbers to show; not called if there is no bar."""


class RunsProgress(ProgressBar):
    """A bar with the number of runs that have ended, or none. Used in `with`, leaving the block closes it.

    Args:
        label: the name of what runs.
        runs: their number.
        verbose: as in `Model.fit`.
    """

    def __init__(self, label: str, runs: int, verbose: int | str) -> None:
        super().__init__(1 if verbose == "auto" else int(verbose))
        self._tells = verbose not in (0, False)
        self.set_params({"steps": runs})
        self.begin(label)

    def __enter__(self) -> RunsProgress:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, done: int, logs: Logs = dict) -> None:
        """Show how many runs have ended."""
        if self._tells and done > self._seen:
            self.advance(done - 1, logs())

    def conclude(self, logs: Logs = dict) -> None:
        """Show the last line, which stays."""
        if self._tells:
            self.end()
            seconds, runs = time.perf_counter() - self._started, f"{self._seen} run{'' if self._seen == 1 else 's'}"
            line = ", ".join(filter(None, [f"{self._label}: {runs} in {seconds:.1f} s", readable(logs())]))
            print(f"{line}\n", end="", file=sys.stdout if in_notebook() else sys.stderr, flush=True)


_logger = logging.getLogger("minikeras")

Build = Callable[..., Any]
Makes = Callable[[Run], Any]
DATA = ("x", "y", "sample_weight", "validation_data")
"""The arguments of `fit` that hold data."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    Attributes:
        history, logged_at: as in `keras.callbacks.History`; plain numbers.
        directions: 'min' or 'max' for each value, where it is known whether less or more is better.
        seconds: the time it took.
        failure: the reason why it failed, or None.
        weights: the bytes of a `.weights.h5` file, if they are kept.
        built_for: the argument of `Model.build_from_config` that makes the weights again.
    """

    history: dict[str, list[Any]] = field(default_factory=dict)
    logged_at: dict[str, list[int]] = field(default_factory=dict)
    directions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    failure: Failure | None = None
    weights: bytes | None = None
    built_for: dict[str, Any] | None = None


@dataclass(frozen=True)
class Training:
    """The training of a sweep's runs.

    Attributes:
        arguments: of `Model.fit`, without callbacks.
        objective: the value of the logs that has to stay finite, beside the loss.
        keep_weights: whether outcomes have weights.
    """

    arguments: Mapping[str, Any]
    objective: str
    keep_weights: bool

    def __sizeof__(self) -> int:
        """The size with the arrays: Dask sends a large object to a worker once, and not with each group."""
        data = [self.arguments.get(name) for name in DATA]
        return object.__sizeof__(self) + sum(getattr(leaf, "nbytes", 0) for leaf in nest.flatten(data))

    def outcome(self, model: Model | None, seconds: float, failure: Failure | None = None) -> Outcome:
        """The outcome of a model that was trained, or was to be."""
        if model is None:
            return Outcome(seconds=seconds, failure=failure)
        logs = History() if model.history is None else model.history
        history = {name: [np.asarray(value).tolist() for value in values] for name, values in logs.history.items()}
        directions = {name: model.metric_direction(name.removeprefix("val_")) for name in history}
        kept = self.keep_weights and failure is None
        return Outcome(
            history,
            {name: list(epochs) for name, epochs in logs.logged_at.items()},
            {name: direction for name, direction in directions.items() if direction is not None},
            seconds,
            failure,
            model_files.encode(model) if kept else None,
            model.get_build_config() if kept else None,
        )


def train_group(build: Build, runs: Sequence[Run], callbacks: Makes | None, training: Training) -> list[Outcome]:
    """Train runs whose models have one structure: together if that can be, and otherwise in turn.

    Args:
        build, callbacks: functions that make the compiled model of a run from its parameters, and its callbacks.
        runs: with their seeds.
        training: the same for all.
    """
    found = train_together(build, runs, callbacks, training) if len(runs) > 1 else None
    return found or [train(build, run, callbacks, training) for run in runs]


def train_together(build: Build, runs: Sequence[Run], callbacks: Makes | None, training: Training) -> list[Outcome] | None:
    """Train runs as members of an ensemble; None if one of them raises: trained in turn, the others have results."""
    began, guards = time.perf_counter(), [StopAtNonFinite(training.objective) for _ in runs]
    try:
        with fresh_session(runs[0].seed), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Member .* ends in epoch")  # it is a row with that error
            member = lambda run: EnsembleMember.built(lambda: need_compiled(called(build, run.parameters)), run.seed)
            ensemble = Ensemble.of(list(map(member, runs)))
            with own_data(training.arguments) as arguments:
                own = lambda place: [*_made(callbacks, runs[place]), guards[place]]
                ensemble.fit(**arguments, callbacks=own, verbose=0)
    except Exception as error:
        _logger.warning("Sweep: %d runs are trained in turn, not together: %s", len(runs), Failure.of(error).message)
        return None
    seconds = (time.perf_counter() - began) / len(runs)
    return [training.outcome(model, seconds, guard.failure) for model, guard in zip(ensemble, guards, strict=True)]


def train(build: Build, run: Run, callbacks: Makes | None, training: Training) -> Outcome:
    """A run by itself: `set_random_seed(seed)`, `build()` and `fit`, as it would be written by hand."""
    began, model, failure = time.perf_counter(), None, None
    guard = StopAtNonFinite(training.objective)
    with fresh_session(run.seed):
        try:
            model = need_compiled(called(build, run.parameters))
            with own_data(training.arguments) as arguments:
                model.fit(**arguments, callbacks=[*_made(callbacks, run), guard], verbose=0)
        except Exception as error:
            failure = Failure.of(error)
        return training.outcome(model, time.perf_counter() - began, failure or guard.failure)


def _made(callbacks: Makes | None, run: Run) -> list[Any]:
    """The callbacks of a run."""
    found = [] if callbacks is None else callbacks(run)
    return list(found) if isinstance(found, (list, tuple)) else [found]


@contextlib.contextmanager
def own_data(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of `fit` for one run, with data in the state that they had before any other run.

    Arrays are only read. The orders of a Dataset start from their old state, and anything else that gives batches is copied.
    """

    def own(value: Any) -> Any:
        return copy.deepcopy(value) if is_iterable_of_batches(value) and not isinstance(value, Dataset) else value

    found = {name: own(value) if name in DATA else value for name, value in arguments.items()}
    orders = [stream for name in DATA for stream in getattr(found.get(name), "random_streams", ())]
    with preserved_streams(orders):
        yield found


class StopAtNonFinite(Callback):
    """Ends a run whose loss or objective is NaN or infinite after an epoch: it would not come back. `failure` says so then."""

    def __init__(self, objective: str) -> None:
        self.watched = tuple(dict.fromkeys(("loss", objective)))
        self.failure: Failure | None = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        for name in self.watched:
            value = (logs or {}).get(name, 0.0)
            if self.failure is None and np.ndim(value) == 0 and not math.isfinite(value):
                told = f"{name} is {float(value)} after epoch {epoch + 1}; try a lower learning rate, or clip gradients."
                self.failure, self.model.stop_training = Failure.of(NotFiniteError(told)), True
