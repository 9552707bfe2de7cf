"""Results of a sweep: one for each run, tables of them, the best one, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import hdf5, limits
from ..keras.callbacks import History
from ..keras.saving.model_files import load_tree
from .grid import Named, Run, called, cell, encoded, fresh_session
from .journal import Journal
from .runs import Outcome
from .structure import need_compiled
from .table import Table, shown

if TYPE_CHECKING:
    from ..keras.models import Model


class RunResult:
    """The result of one run.

    Attributes:
        number, parameters, seed: as in `Run`.
        history: the values of each epoch, by name.
        metrics: the last value of each name.
        error: None, or the error that ended the run, in a line; `traceback` says where it was raised.
        seconds: how long it took.
        directions: 'min' or 'max' for each value, where it is known whether less or more is better.

    >>> def build(rate):
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile(tf.keras.optimizers.SGD(rate), "mse")
    ...     return model
    >>> results = tf.experiments.Sweep(build, {"rate": [0.5, 0.1]}).fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=9, verbose=0)
    >>> run = results[0]
    >>> run.parameters, run.seed, len(run.history["loss"]), sorted(run.metrics), run.error
    ({'rate': 0.5}, 0, 9, ['loss'], None)
    """

    def __init__(
        self, run: Run, outcome: Outcome, build: Callable[..., Any] | None = None, journal: Journal | None = None
    ) -> None:
        self.number, self.parameters, self.seed = run
        self.history, self.logged_at, self.seconds = outcome.history, outcome.logged_at, outcome.seconds
        self.directions = outcome.directions
        self.metrics = {name: values[-1] for name, values in outcome.history.items() if values}
        failure = outcome.failure
        self.error = None if failure is None else failure.message
        self.traceback = None if failure is None else failure.traceback
        self._outcome, self._build, self._journal = outcome, build, journal

    @property
    def scalars(self) -> dict[str, float]:
        """The metrics that are single numbers."""
        return {name: value for name, value in self.metrics.items() if isinstance(value, (int, float))}

    def model(self, build: Callable[..., Any] | None = None) -> Model:
        """The model of this run, as `fit` left it: made by `build`, with the weights and the state of the optimizer put in.

        Args:
            build: as given to the sweep; needed for results that `Sweep.load` has read.

        Raises:
            ValueError: if the run failed, or no weights were kept.
        """
        if self.error is not None:
            raise ValueError(f"run {self.number} has no model, it failed: {self.error}")
        content = self._outcome.weights if self._journal is None else self._journal.weights(self.number)
        build = build or self._build
        if content is None:
            raise ValueError(f"run {self.number}: no weights were kept; fit with keep_weights=True, or train it again.")
        if build is None:
            raise ValueError(f"run {self.number}: results from a folder need what made the models: model(build).")
        named = [name for name, value in self.parameters.items() if isinstance(value, Named)]
        if named:
            raise ValueError(
                f"run {self.number}: a folder holds numbers, texts and lists, but no objects such as {named[0]}="
                f"{self.parameters[named[0]]}. Make the model with build(...), and read its weights with load_weights."
            )
        with fresh_session(self.seed):
            made = need_compiled(called(build, self.parameters))
            if not made.built and self._outcome.built_for is not None:
                with limits.loading(limits.Budget.of_file(len(content), len(content), None)):
                    made.build_from_config(self._outcome.built_for)
        file = Path(f"{self.number:05d}.weights.h5")
        load_tree(made, hdf5.read(bytearray(content), file), file)
        return made

    def __repr__(self) -> str:
        found = self.error or ", ".join(f"{name}={value:.4g}" for name, value in self.scalars.items())
        told = ", ".join([*(f"{name}={cell(value)}" for name, value in self.parameters.items()), f"seed={self.seed}"])
        return f"<run {self.number}: {told}: {found}>"


class SweepResults(Sequence[RunResult]):
    """The results of a sweep, run by run in its order; printed, a table of them with the best one first.

    Attributes:
        objective: the value of the logs by which runs are compared; the one after the last epoch counts.
        mode: 'min' or 'max', what is better.

    >>> def build(rate):
    ...     model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    ...     model.compile(tf.keras.optimizers.SGD(rate), "mse")
    ...     return model
    >>> results = tf.experiments.Sweep(build, {"rate": [0.5, 0.1]}).fit([[0.0], [1.0]], [[1.0], [3.0]], epochs=9, verbose=0)
    >>> [run.parameters for run in results], results.best.parameters
    ([{'rate': 0.5}, {'rate': 0.1}], {'rate': 0.5})
    """

    def __init__(self, name: str, results: Sequence[RunResult], objective: str, mode: str) -> None:
        self.name, self.objective = name, objective
        self._results = list(results)
        self.mode = self._direction(objective) if mode == "auto" else mode

    def __len__(self) -> int:
        return len(self._results)

    def __getitem__(self, index: Any) -> Any:
        return self._results[index]

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def failed(self) -> list[RunResult]:
        """The runs that ended with an error."""
        return [one for one in self._results if one.error is not None]

    @property
    def best(self) -> RunResult:
        """The run with the best objective.

        Raises:
            ValueError: if every run failed, or none has ended.
        """
        if not self._results:
            raise ValueError(f"{self.name}: no run has ended yet.")
        found = [one for one in self.ordered() if one.error is None]
        if not found:
            raise ValueError(f"{self.name}: all {len(self)} runs failed, the first with {self._results[0].error}")
        return found[0]

    def ordered(self, by: str | None = None) -> list[RunResult]:
        """The results, the best first and those that failed last; equal ones in the order of the sweep."""
        rank = self._rank(by)
        return sorted(self._results, key=lambda one: (one.error is not None, rank(one.metrics), one.number))

    def history(self, run: int | RunResult) -> History:
        """The logs of a run as `fit` returned them, which can be drawn.

        Args:
            run: its number, or the result.
        """
        found = run if isinstance(run, RunResult) else self._results[run]
        history = History()
        history.history, history.logged_at = dict(found.history), dict(found.logged_at)
        history.epoch = sorted({epoch for epochs in found.logged_at.values() for epoch in epochs})
        return history

    # Tables ----------------------------------------------------------------------------------------------------------------

    def table(self, over: str | Sequence[str] = (), by: str | None = None) -> Table:
        """The runs as a table, the best first: parameters, seed, and the last value of each metric.

        Args:
            over: 'seed' for a row for each combination instead, with mean and deviation (±) over the seeds; or the name of a
                parameter, or several names.
            by: the metric that decides, instead of the objective.

        Raises:
            ValueError: for a name that is not there.
        """
        names = [over] if isinstance(over, str) else list(over)
        unknown = [name for name in names if name != "seed" and name not in self._parameters]
        if unknown:
            raise ValueError(f"table: there is no {unknown[0]!r} to take a mean over, but {['seed', *self._parameters]}.")
        return self._means(names, by) if names else Table(self._row(one) for one in self.ordered(by))

    def to_pandas(self, over: str | Sequence[str] = (), by: str | None = None) -> Any:
        """The table as a `pandas.DataFrame`.

        Raises:
            MissingExtraError: without pandas.
        """
        return self.table(over, by).to_pandas()

    def _row(self, one: RunResult) -> dict[str, Any]:
        found = one.scalars if one.error is None else {}
        row = {"run": one.number, **self._given(one.parameters), "seed": one.seed}
        row |= {name: found.get(name) for name in self.metric_names}
        return row | {"error": one.error or ""} if self.failed else row

    def _means(self, over: Sequence[str], by: str | None) -> Table:
        """A row for each combination of the parameters that are not averaged over."""

        def kept(one: RunResult) -> Any:
            left = {name: value for name, value in one.parameters.items() if name not in over}
            return encoded(left), None if "seed" in over else one.seed

        return Table(sorted((self._mean(group, over) for group in _grouped(self, kept)), key=self._rank(by)))

    def _mean(self, group: Sequence[RunResult], over: Sequence[str]) -> dict[str, Any]:
        first, good = group[0], [one for one in group if one.error is None]
        row = self._given({name: value for name, value in first.parameters.items() if name not in over})
        row |= {} if "seed" in over else {"seed": first.seed}
        row |= {"runs": len(good)} | ({"failed": len(group) - len(good)} if self.failed else {})
        for name in self.metric_names:
            values = [one.scalars[name] for one in good if name in one.scalars]
            row[name] = float(np.mean(values)) if values else None
            row[f"± {name}"] = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return row

    def _given(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Parameters as cells; one with the name of a metric gets another name."""
        taken = {"run", "seed", "runs", "failed", "error", *self.metric_names}
        return {f"build: {name}" if name in taken else name: cell(value) for name, value in parameters.items()}

    @property
    def metric_names(self) -> list[str]:
        """The names of the numbers in the logs, the objective first."""
        names = dict.fromkeys(name for one in self._results if one.error is None for name in one.scalars)
        return sorted(names, key=lambda name: name != self.objective)

    @property
    def _parameters(self) -> list[str]:
        return list(dict.fromkeys(name for one in self._results for name in one.parameters))

    def _rank(self, by: str | None) -> Callable[[Mapping[str, Any]], float]:
        """The rank of values by name, lower for better ones; a value that is no number comes last."""
        name, better = (self.objective, self.mode) if by is None else (by, self._direction(by))
        if by is not None and name not in self.metric_names:
            raise ValueError(f"there is no {name!r} to sort by, but {self.metric_names}.")

        def rank(values: Mapping[str, Any]) -> float:
            value = values.get(name)
            if not isinstance(value, (int, float)) or value != value:
                return np.inf
            return -value if better == "max" else value

        return rank

    def _direction(self, name: str) -> str:
        """'min' or 'max', as the metric says; 'min', as for a loss, for a name that says nothing."""
        return next((one.directions[name] for one in self._results if name in one.directions), "min")

    # Pictures --------------------------------------------------------------------------------------------------------------

    def plot(self, kind: str = "curves", names: Sequence[str] | None = None, **options: Any) -> Any:
        """A picture of the sweep, drawn by matplotlib.

        Args:
            kind: 'curves', the mean over seeds against epochs for each combination, in a band of one deviation on each side;
                'parallel', a line for each run through the values of its parameters to its objective.
            names: for 'curves' the values to draw, a panel for each; the objective by default.
            options: `title` and `axes` as in `keras.utils.plot_history`; for 'curves' `most`, how many combinations, the best
                ones, get a colour and a name.

        Returns:
            The matplotlib Figure.

        Raises:
            MissingExtraError: without matplotlib.
            ValueError: for a name that is not there.
        """
        if kind not in ("curves", "parallel"):
            raise ValueError(f"plot: kind must be 'curves' or 'parallel', found {kind!r}.")
        if kind == "parallel":
            return _parallel(self, **options)
        return _curves(self, [self.objective] if names is None else names, **options)


def _grouped(runs: Iterable[RunResult], kind: Callable[[RunResult], Any]) -> list[list[RunResult]]:
    """The runs of each kind, in their order."""
    groups: dict[str, list[RunResult]] = {}
    for one in runs:
        groups.setdefault(repr(kind(one)), []).append(one)
    return list(groups.values())


# Pictures ----------------------------------------------------------------------------------------------------------------

MOST = 8
"""Number of combinations with a colour of their own: more could not be told apart."""


def _curves(results: SweepResults, names: str | Sequence[str], most: int = MOST, **options: Any) -> Any:
    """Mean and deviation over seeds of each combination, the best ones named."""
    chosen = [names] if isinstance(names, str) else list(names)
    good = [one for one in results.ordered() if one.error is None]
    if not good:
        raise _nothing_to_draw(results)
    sign, groups = -1.0 if results.mode == "max" else 1.0, _grouped(good, lambda one: encoded(one.parameters))
    groups.sort(key=lambda group: sign * float(np.mean([one.metrics[results.objective] for one in group])))
    known = {name for group in groups for one in group for name in one.scalars}
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise ValueError(
            f"plot: there is no {', '.join(unknown) or 'name'} among the numbers in the logs, but {sorted(known)}."
        )
    varied = _varied(results)
    labels: list[str | None] = []
    for one, *_ in groups:
        named = [f"{name}={shown([cell(one.parameters[name])])[0]}" for name in varied if name in one.parameters]
        labels.append((", ".join(named) or "all runs") if len(labels) < most else None)
    from ..figures import Band, plot_bands

    panels = {
        name: [Band.of(label, group, name) for label, group in zip(labels, groups, strict=True) if name in group[0].history]
        for name in chosen
    }
    return plot_bands(panels, **options)


def _parallel(results: SweepResults, **options: Any) -> Any:
    """Parameters that vary, the seed if there are several, and the objective."""
    good = [one for one in results if one.error is None]
    if not good:
        raise _nothing_to_draw(results)
    columns: dict[str, list[Any]] = {name: [cell(one.parameters.get(name)) for one in good] for name in _varied(results)}
    if len({one.seed for one in good}) > 1 and len(columns) == 0:
        columns["seed"] = [one.seed for one in good]
    from ..figures import plot_parallel

    return plot_parallel(columns, results.objective, [one.metrics[results.objective] for one in good], results.mode, **options)


def _nothing_to_draw(results: SweepResults) -> ValueError:
    told = f"all {len(results)} runs failed" if len(results) else "no run has ended yet"
    return ValueError(f"plot: {told}, so there is nothing to draw.")


def _varied(results: SweepResults) -> list[str]:
    """The parameters that are not the same in all runs."""
    names = dict.fromkeys(name for one in results for name in one.parameters)
    return [name for name in names if len({repr(encoded(one.parameters.get(name))) for one in results}) > 1]
