"""compare: the same model, from the same weights and with the same batches, trained by several optimizers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..core.locks import cached_property
from ..errors import kind_of
from ..keras import optimizers as keras_optimizers
from ..keras.arguments import whole
from ..keras.models import Model
from ..keras.optimizers import Every, Optimizer
from .grid import Failure, fresh_session, seeds_of
from .problem import Problem, TimedSteps
from .runs import RunsProgress, own_data
from .table import Table

Array = np.ndarray[Any, Any]
_NUMBER = (int, float, np.number)
DEFAULT_STEPS = 100
FULL_BATCH_GROWTH, MINI_BATCH_GROWTH = 0.01, 0.1
"""The next measurement of the loss follows after this fraction of the steps taken so far, by default."""
MANY = 1_000_000
"""Number of planned steps where only time ends a run."""


@dataclass
class OptimizerRun:
    """One training: an optimizer from the weights of a seed.

    Attributes:
        optimizer, seed: its name in the comparison, and the seed.
        steps, seconds: the points at which the loss was measured, from 0 on. The seconds count training steps alone.
        logs: by name, 'loss' first, a value for each of these points.
        first_step: the seconds of a first step beforehand, with recording and compiling, which are in no other number.
        evaluations: of loss and gradient; None if the optimizer does not say.
        failure: the error that ended the run, or None.
    """

    optimizer: str
    seed: int
    steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    logs: dict[str, list[float]] = field(default_factory=dict)
    first_step: float | None = None
    evaluations: int | None = None
    failure: Failure | None = None

    @property
    def diverged(self) -> bool:
        """True if the loss was NaN or infinite at the end."""
        return bool(self.steps) and not math.isfinite(self.logs["loss"][-1])

    def note(self, timed: TimedSteps, measured: Mapping[str, float]) -> None:
        """Add a point."""
        self.steps.append(timed.steps)
        self.seconds.append(timed.seconds)
        self.evaluations = timed.evaluations
        for name, value in measured.items():
            self.logs.setdefault(name, []).append(value)

    def reached(self, threshold: float) -> int | None:
        """The number of the first point at which the loss is not above a threshold."""
        return next((i for i, loss in enumerate(self.logs.get("loss", ())) if loss <= threshold), None)


class Curve(NamedTuple):
    """The runs of one optimizer, side by side.

    Attributes:
        steps: the points at which the loss was measured, (points,).
        seconds: of training until then, (points, seeds); NaN after the end of a run, as below.
        logs: by name the values, (points, seeds).
    """

    steps: Array
    seconds: Array
    logs: dict[str, Array]

    @property
    def loss(self) -> Array:
        """The loss, (points, seeds)."""
        return self.logs["loss"]

    @classmethod
    def of(cls, runs: Sequence[OptimizerRun]) -> Curve:
        """The curve of runs that measured at the same steps, each as far as it came."""
        steps = max((run.steps for run in runs), key=len)

        def side_by_side(columns: list[list[float]]) -> Array:
            return np.array([[*column, *[math.nan] * (len(steps) - len(column))] for column in columns], float).T

        names = dict.fromkeys(name for run in runs for name in run.logs)
        logs = {name: side_by_side([run.logs.get(name, []) for run in runs]) for name in names}
        return cls(np.array(steps), side_by_side([run.seconds for run in runs]), logs)


class Comparison:
    """The result of `compare`. Printed, and shown by a notebook, it is its table.

    Attributes:
        runs: an `OptimizerRun` for each seed and optimizer, with whole curves, errors and their tracebacks.
        curves: by the name of an optimizer its runs side by side: `.steps`, `.seconds`, `.loss` and `.logs`, as arrays.
        threshold: the loss to reach: what was given, else the lowest one that every optimizer reached, rounded up to two
            digits; None if there is none.

    >>> def line():
    ...     return tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    >>> problem = tf.experiments.Problem(line, [[0.0], [1.0]], [[1.0], [3.0]], loss="mse")
    >>> comparison = tf.experiments.compare({"SGD": "sgd", "Adam": "adam"}, problem, steps=5, verbose=0)
    >>> sorted(comparison.curves), len(comparison.runs)
    (['Adam', 'SGD'], 2)
    """

    def __init__(self, runs: Sequence[OptimizerRun], threshold: float | None, about: str) -> None:
        self.runs = list(runs)
        self.threshold = _reached_by_all(self._by_optimizer().values()) if threshold is None else threshold
        self._given, self._about = threshold is not None, about

    def _by_optimizer(self) -> dict[str, list[OptimizerRun]]:
        found: dict[str, list[OptimizerRun]] = {}
        for run in self.runs:
            found.setdefault(run.optimizer, []).append(run)
        return found

    @cached_property
    def curves(self) -> dict[str, Curve]:
        """By the name of an optimizer its runs side by side; those without any point are left out."""
        return {name: Curve.of(runs) for name, runs in self._by_optimizer().items() if any(run.steps for run in runs)}

    def table(self) -> Table:
        """A row for each optimizer, in the order in which they were given.

        With several seeds a number is the median, and 'loss min' and 'loss max' say how far the losses lie apart. Columns:

        * 'steps to reach', 'seconds to reach': the threshold; empty if half of the runs did not.
        * 'loss' and other values that were measured: at the end.
        * 'steps', 'seconds': taken in all, training steps alone. 'first step': the seconds of one with recording and compiling.
        * 'evaluations': of loss and gradient; empty if the optimizer does not count them. Not there if all need one a step.
        * 'outcome': that runs diverged or failed, and with which error.
        """
        rows = [self._row(name, runs) for name, runs in self._by_optimizer().items()]
        to_reach = "" if self.threshold is None else f"; to reach: loss {self.threshold:.4g}"
        named = "" if self._given or self.threshold is None else ", the lowest that all have reached"
        idle = {name for name in dict.fromkeys(n for row in rows for n in row) if all(row.get(name) is None for row in rows)}
        if all(row["evaluations"] in (None, row["steps"]) for row in rows):
            idle.add("evaluations")
        rows = [{name: value for name, value in row.items() if name not in idle} for row in rows]
        return Table(rows, f"{self._about}{to_reach}{named}")

    def _row(self, name: str, runs: list[OptimizerRun]) -> dict[str, Any]:
        ended = [run for run in runs if run.steps]
        points = [None if self.threshold is None else run.reached(self.threshold) for run in runs]
        missed: list[float] = [math.inf] * points.count(None)
        hits = [(run.steps[i], run.seconds[i]) for run, i in zip(runs, points, strict=True) if i is not None]
        row: dict[str, Any] = {"optimizer": name}
        row["steps to reach"] = _median([*(steps for steps, _ in hits), *missed])
        row["seconds to reach"] = _median([*(seconds for _, seconds in hits), *missed])
        for key in dict.fromkeys(key for run in ended for key in run.logs):
            last = [run.logs[key][-1] for run in ended if math.isfinite(run.logs[key][-1])]
            row[key] = float(np.median(last)) if last else math.nan
            if key == "loss" and len(runs) > 1:
                row |= {"loss min": min(last, default=math.nan), "loss max": max(last, default=math.nan)}
        row["steps"] = _median([run.steps[-1] for run in ended])
        row["seconds"] = _median([run.seconds[-1] for run in ended])
        row["evaluations"] = _median([run.evaluations for run in ended if run.evaluations is not None])
        row["first step"] = _median([run.first_step for run in ended if run.first_step is not None])
        return {**row, "outcome": _outcome(runs)}

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        return self.table().to_pandas()

    def plot(self, name: str = "loss", *, title: str | None = None, axes: Any = None) -> Any:
        """Draw the loss, or another value that was measured, against steps and against seconds of training.

        Args:
            name: such as 'val_loss'.
            title: above both panels; by default what was compared.
            axes: two Axes to draw into instead of a new figure.

        Returns:
            The matplotlib Figure. Of several seeds a line is the median, and a band reaches from the lowest to the highest.

        Raises:
            MissingExtraError: without matplotlib.
            ValueError: if nothing of this name was measured.
        """
        from ..figures import plot_comparison

        threshold = self.threshold if self._given and name == "loss" else None
        return plot_comparison(self.curves, name, threshold=threshold, title=title or self._about, axes=axes)

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def compare(
    optimizers: Mapping[str, Any],
    problem: Problem,
    *,
    steps: int | Mapping[str, int] | None = None,
    epochs: int | None = None,
    seconds: float | None = None,
    threshold: float | None = None,
    seeds: int | Sequence[int] = 1,
    every: int | None = None,
    verbose: int | str = "auto",
) -> Comparison:
    """Train the same model from the same weights, on the same batches in the same order, with each of several optimizers.

    Args:
        optimizers: by the name to show, what `compile` takes: a name, an object, a class, or rules by layer as of `PerLayer`.
            Or a function of the model that returns one of these, for rules whose keys are its layers. Objects are not trained:
            each run has an optimizer of its own with the same configuration.
        problem: a `Problem`: model, data, loss and size of batches.
        steps: how many each takes, or a dict from every name to a number. 100 if nothing else ends the runs.
        epochs: the same as passes over the data.
        seconds: a run ends once its training steps have taken so long, when the loss is measured next. With `steps` or
            `epochs`, at whichever comes first.
        threshold: the loss to reach; see `Comparison.threshold`.
        seeds: how many times to compare, with seeds 0, 1, ...; or a list of seeds. A seed decides on weights, the order of
            batches and dropout, the same for all optimizers.
        every: measure the loss after each such number of steps. By default after every step at first, and then whenever there
            are one in a hundred more; for mini-batches one in ten.
        verbose: 0 silent, 1 or 'auto' a progress bar over all runs, 2 a line at the end.

    Returns:
        A `Comparison`: `print` shows it as a table, `.plot()` draws loss against steps and against seconds, and `.curves` has
        the numbers.

    The loss is that of all rows and without dropout, measured between steps; the clock stands still meanwhile. A few steps are
    taken beforehand, so that recording and compiling are done, and taken back, bit for bit. Optimizers take turns within a
    seed. A run whose loss is NaN or infinite ends; an optimizer that fails is a row with its error, and the others go on.

    Raises:
        TypeError: for what is no dict of optimizers or no `Problem`.
        ValueError: for unknown names, numbers that make no sense, and a loss that is not finite before the first step. Errors
            of the model or the data are raised before any optimizer is tried.

    >>> x = tf.linspace(-1.0, 1.0, 50)[:, None]
    >>> def network():
    ...     return tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(1)])
    >>> problem = tf.experiments.Problem(network, x, x**2, loss="mse")
    >>> found = tf.experiments.compare({"Adam": "adam", "Newton's": "levenbergmarquardt"}, problem, steps=20)
    >>> rows = found.table().columns
    >>> rows["optimizer"], rows["steps to reach"][1] < rows["steps to reach"][0]
    (['Adam', "Newton's"], True)
    >>> found.curves["Adam"].loss.shape
    (21, 1)
    """
    _check(optimizers, problem)
    planned = _planned(list(optimizers), problem, steps, epochs, seconds)
    numbers = seeds_of("compare", seeds)
    whole("compare: every", every, 1, optional=True)
    if threshold is not None and not (isinstance(threshold, _NUMBER) and math.isfinite(threshold)):
        raise ValueError(f"compare: threshold should be a finite number, found {threshold!r}.")
    runs: list[OptimizerRun] = []
    about = ""
    with RunsProgress("compare", len(numbers) * len(optimizers), verbose) as progress:
        for seed in numbers:
            weights, about = _start(problem, seed)
            for name, given in optimizers.items():
                run = OptimizerRun(name, seed)
                runs.append(run)
                with fresh_session(seed), own_data(problem.data):
                    _train(run, given, problem, weights, planned[name], seconds, every)
                progress.show(len(runs))
        progress.conclude()
    return Comparison(runs, threshold, about)


def milestones(steps: int | None, every: int | None, growth: float) -> Iterator[int]:
    """The steps after which the loss is measured: each `every` steps, or after that fraction of the steps taken so far."""
    point = 0
    while steps is None or point < steps:
        point += every or max(1, int(growth * point))
        yield point if steps is None else min(point, steps)


def _start(problem: Problem, seed: int) -> tuple[list[Any], str]:
    """The weights from which all optimizers start, and a line about the problem. Errors that it raises are the problem's."""
    with fresh_session(seed):
        model = _built(problem, seed)
        loss = problem.measure(model)["loss"]
        if not math.isfinite(loss):
            raise ValueError(
                f"compare: the loss is {loss} before the first step, with seed {seed}; there is nothing to compare."
            )
        return model.get_weights(), f"{model.count_params():,} parameters, {problem.rows()}"


def _built(problem: Problem, seed: int) -> Model:
    """A new model that has its weights, and some optimizer."""
    model = problem.model(seed)
    problem.compile(model, "sgd")
    if not model.built:
        problem.measure(model)
    return model


def _train(
    run: OptimizerRun, given: Any, problem: Problem, start: list[Any], steps: int | None, limit: float | None, every: int | None
) -> None:
    """Fill a run: points until its steps are taken, or the first one beyond the limit of its seconds; or an error."""
    try:
        model = _built(problem, run.seed)
        problem.compile(model, _optimizer(given, model))
        problem.measure(model)  # metrics have their Variables then, before anything is recorded
        model.set_weights(start)
        timed = TimedSteps(model, problem, steps or MANY)
        run.first_step = timed.warm_up()
        run.note(timed, problem.measure(model))
        for step in milestones(steps, every, FULL_BATCH_GROWTH if problem.is_full_batch else MINI_BATCH_GROWTH):
            timed.take(step - timed.steps)
            run.note(timed, problem.measure(model))
            if run.diverged or (limit is not None and timed.seconds >= limit):
                break
    except Exception as error:
        run.failure = Failure.of(error)


def _optimizer(given: Any, model: Model | None) -> Any:
    """A new optimizer, or rules that hold new ones, from the argument that `compare` was given for it."""
    if isinstance(given, Optimizer):
        return type(given).from_config(given.get_config())
    if isinstance(given, Every):
        return given._replace(optimizer=_optimizer(given.optimizer, model))
    if isinstance(given, Mapping) and "class_name" not in given:
        return {pattern: _optimizer(rule, model) for pattern, rule in given.items()}
    if callable(given) and not isinstance(given, type):
        return _optimizer(given(model), None)
    return given


# Arguments ---------------------------------------------------------------------------------------------------------------


def _check(optimizers: Any, problem: Any) -> None:
    """Refuse arguments that are no dict of optimizers or no problem, before time is spent."""
    if not isinstance(optimizers, Mapping) or not all(isinstance(name, str) for name in optimizers):
        raise TypeError(f"compare: optimizers should be a dict from names to optimizers, found {optimizers!r:.80}.")
    if not optimizers:
        raise ValueError("compare: there are no optimizers in the dict.")
    if not isinstance(problem, Problem):
        raise TypeError(f"compare: problem should be a tf.experiments.Problem(build, x, y, ...), found {kind_of(problem)}.")
    for name, given in optimizers.items():
        if given is None or (isinstance(given, (str, Mapping, type)) and keras_optimizers.get(given) is None):
            raise ValueError(
                f"compare: {name!r} is None; give an optimizer, its name, rules by layer, or a function of the model."
            )
        if not callable(given) and not isinstance(given, (str, Mapping, Optimizer)):
            raise TypeError(
                f"compare: {name!r} should be an optimizer, its name, rules by layer or a function, found {given!r:.80}."
            )


def _planned(names: Sequence[str], problem: Problem, steps: Any, epochs: Any, seconds: Any) -> dict[str, int | None]:
    """The steps of each optimizer; None where only time ends its runs."""
    if seconds is not None and not (isinstance(seconds, _NUMBER) and 0 < seconds < math.inf):
        raise ValueError(f"compare: seconds should be a positive number, found {seconds!r}.")
    if epochs is not None:
        whole("compare: epochs", epochs, 1)
        if steps is not None:
            raise ValueError("compare: give steps or epochs, not both.")
        if problem.steps_per_epoch is None:
            raise ValueError("compare: how many steps an epoch of these data has is not known; give steps instead of epochs.")
        steps = epochs * problem.steps_per_epoch
    if isinstance(steps, Mapping):
        if set(steps) != set(names):
            raise ValueError(f"compare: steps should have a number for each of {list(names)}, found {list(steps)}.")
        for name, count in steps.items():
            whole(f"compare: steps of {name!r}", count, 1)
        return dict(steps)
    whole("compare: steps", steps, 1, optional=True)
    return dict.fromkeys(names, DEFAULT_STEPS if steps is None and seconds is None else steps)


# Results -----------------------------------------------------------------------------------------------------------------


def _reached_by_all(groups: Iterable[list[OptimizerRun]]) -> float | None:
    """The highest of the lowest losses of optimizers, rounded up to two digits; runs that failed or diverged do not count."""
    good = [run for runs in groups for run in runs if run.steps and run.failure is None and not run.diverged]
    if not good:
        return None
    level = max(min(run.logs["loss"]) for run in good)
    places = 1 - math.floor(math.log10(abs(level))) if level else 0
    return round(math.ceil(level * 10.0**places) * 10.0**-places, places)


def _median(values: Sequence[float]) -> float | None:
    """The median, an int if it is whole; None if there is none, or it is infinite."""
    found = float(np.median(values)) if values else math.inf
    if math.isinf(found):
        return None
    return int(found) if found.is_integer() and all(isinstance(value, int) for value in values if value != math.inf) else found


def _outcome(runs: Sequence[OptimizerRun]) -> str | None:
    """The numbers of runs that failed and diverged, as text; None if none did."""
    of_all = f" of {len(runs)}" if len(runs) > 1 else ""
    failed = [run.failure.message for run in runs if run.failure is not None]
    diverged = [run.steps[-1] for run in runs if run.failure is None and run.diverged]
    texts = []
    if failed:
        texts.append(f"{len(failed)}{of_all}: {failed[0]}" if of_all else failed[0])
    if diverged:
        texts.append(f"{len(diverged)}{of_all} diverged" if of_all else f"diverged at step {diverged[0]}")
    return "; ".join(texts) or None
