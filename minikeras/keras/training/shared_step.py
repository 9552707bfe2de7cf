"""One step that all ranks take together: each computes on its rows, and one exchange makes of it the step on the whole batch.

With the gradient g of the mean loss of n rows, that of all rows is the sum of n g, divided by the sum of n. What metrics
gather is added up, what layers keep (moving statistics) becomes the mean over rows. Clipping, accumulation and the optimizer
come after that, so all ranks have the same bits again.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from ...core import Tensor, Variable, convert_to_tensor
from ...core.arrays import namespace
from ...distribute.functions import combine
from ...distribute.replica import BatchPart, computing_on
from ...distribute.strategy import BatchSplit
from ...errors import InvalidArgumentError
from ...functions.elementwise import cast
from ...nn_ops.streams import global_stream
from ..batches import cut
from ..metrics.metric import noted_results, result_of
from . import steps
from .state import Logs, ModelLike


def shared_step(model: ModelLike, name: str, split: BatchSplit, data: Any) -> Logs:
    """The step `name` of a model, on a batch of which `data` are the rows of this rank."""
    state, drawn, built = _State(model), global_stream().position, model.built
    parts = [_run_part(model, name, split, part, data, state) for part in split.parts]
    if split.pairs and built and global_stream().position != drawn:
        raise InvalidArgumentError(
            f"model '{model.name}': with virtual_shards a step cannot draw from the stream of tf.random, whose numbers would "
            "depend on how many ranks there are. Draw with keras.random and a keras.random.SeedGenerator that the layer holds."
        )
    first = parts[0]
    given = [[*part.present, *part.plain.values(), *part.changes, *part.sums] for part in parts]
    weighted = len(given[0]) - len(first.sums)
    sums = iter(combine(given, split.shares, weighted, split.pairs))
    present = iter(list(islice(sums, len(first.present))))
    if first.variables:
        gradients = [None if g is None else next(present) for g in first.gradients]
        model.optimizer.apply_gradients(zip(gradients, first.variables, strict=True))
    plain = dict(zip(first.plain, islice(sums, len(first.plain)), strict=True))
    state.change(list(sums))
    return {key: plain[key] if key in plain else result_of(first.measured[key]) for key in first.logs}


class _Part:
    """The results of a step on some rows.

    Attributes:
        gradients, variables: for the optimizer, once they cover all rows; none if the step has called the optimizer itself.
        logs: as the step gave them: `measured` are results of metrics, `plain` the others, which become means over rows.
        changes, sums: the changes of `means` and `sums`, see `_State`.
    """

    def __init__(self, gradients: list[Any], variables: list[Variable], logs: Logs, measured: Logs, state: _State) -> None:
        self.gradients, self.variables, self.logs, self.measured = gradients, variables, logs, measured
        self.present = [convert_to_tensor(g) for g in gradients if g is not None]
        self.plain = {key: _as_float(value) for key, value in logs.items() if key not in measured}
        self.changes, self.sums = state.changes()


def _as_float(value: Any) -> Tensor:
    found = convert_to_tensor(value)
    return found if found.dtype.is_floating else cast(found, "float32")


def _run_part(model: ModelLike, name: str, split: BatchSplit, part: BatchPart, data: Any, state: _State) -> _Part:
    state.begin(part)
    start = split.rows.start
    rows = data if len(split.parts) == 1 else cut(data, slice(part.first - start, part.first - start + part.rows))
    gradients: list[Any] = []
    variables: list[Variable] = []
    with computing_on(part), noted_results() as known:
        if name == "train_step" and not model.is_overridden(name):
            gradients, variables, predicted = steps.gradients_of(model, rows)
            logs = predicted.measure(model)
        else:
            logs = getattr(model, name)(rows)
    measured = {key: known[value.key] for key, value in logs.items() if getattr(value, "key", None) in known}
    return _Part(gradients, variables, logs, measured, state)


class _State:
    """The state that a step changes beside weights: each part of a batch begins with the same.

    Attributes:
        means: Variables that all parts change by the mean over rows, such as moving statistics.
        sums: Variables to which all parts add, and those that only the first part changes; those of metrics begin with zeros.
    """

    def __init__(self, model: ModelLike) -> None:
        self._model = model
        self.means: list[Variable] = []
        self.sums: list[Variable] = []
        self._others: list[Variable] = []
        self._firsts: set[int] = set()
        self._from_zero: set[int] = set()
        self._before: dict[int, Tensor] = {}
        for variable in _variables_of_metrics(model):
            self._keep(variable, True)
        for variable in model.collect_contents().variables:
            if not getattr(variable, "learns", variable.trainable):
                self._keep(variable, False)
        self._number, self._is_first = 0, True

    def _keep(self, variable: Variable, gathers: bool) -> None:
        """Remember what a Variable holds, and how the changes of parts become one."""
        if variable.key in self._before:
            return
        self._before[variable.key] = variable.read_value()
        rule = getattr(variable, "aggregation", "sum" if gathers else "none")
        if rule == "only_first_replica":
            self._firsts.add(variable.key)
        elif gathers and rule == "sum":
            self._from_zero.add(variable.key)
        is_sum = rule in ("sum", "only_first_replica")
        (self.sums if is_sum else self.means if variable.dtype.is_floating else self._others).append(variable)

    def begin(self, part: BatchPart) -> None:
        """Assign the values with which this part begins."""
        self._is_first = part.first == 0
        for variable in (*self.means, *self.sums, *self._others):
            if self._number or variable.key in self._from_zero:
                variable.assign(self._start(variable))
        self._number += 1

    def _start(self, variable: Variable) -> Tensor:
        before = self._before[variable.key]
        return _zeros(before) if variable.key in self._from_zero else before

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The changes of means and sums by the part that has just ended; those of a part without effect are 0, so bits stay."""
        for variable in _variables_of_metrics(self._model):
            if variable.key not in self._before:  # made for the first batch
                self._keep(variable, True)
                self._before[variable.key] = _zeros(variable.read_value())
        return [self._change(one) for one in self.means], [self._change(one) for one in self.sums]

    def _change(self, variable: Variable) -> Any:
        start, value = self._before[variable.key], variable.read_value()
        if variable.key in self._from_zero:
            return value
        return value - start if self._is_first or variable.key not in self._firsts else _zeros(start)

    def change(self, by: list[Any]) -> None:
        """Change means and sums by what all parts give."""
        for variable, change in zip((*self.means, *self.sums), by, strict=True):
            variable.assign(self._before[variable.key] + change)


def _variables_of_metrics(model: ModelLike) -> list[Variable]:
    return [variable for metric in model.metrics for variable in metric.variables]


def _zeros(value: Tensor) -> Tensor:
    return Tensor(namespace(value.array).zeros_like(value.array))
