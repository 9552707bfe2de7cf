"""One step that all ranks take together: each computes on its rows, and one exchange makes of it the step on the whole batch.

With the gradient g of the mean loss of n rows, that of all rows is the sum of n g, divided by the sum of n. What metrics
gather is added up, what layers keep (moving statistics) becomes the mean over rows. Clipping, accumulation and the optimizer
come after that, so all ranks have the same bits again.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from ...arrays import namespace
from ...core import Tensor, Variable, convert_to_tensor
from ...distribute.functions import combine
from ...distribute.replica import BatchPart, computing_on
from ...distribute.strategy import Split
from ..batches import cut
from . import steps
from .steps import Logs

if TYPE_CHECKING:
    from ..models import Model


def shared_step(model: Model, name: str, split: Split, data: Any) -> Logs:
    """The step `name` of a model, on a batch of which `data` are the rows of this rank."""
    state = _State(model)
    parts = [_run_part(model, name, split, part, data, state) for part in split.parts]
    first = parts[0]
    given = [[*part.present, *part.changes, *part.extra.values(), *part.gathered] for part in parts]
    weighted = len(given[0]) - len(first.gathered)
    sums = iter(combine(given, split.shares, weighted, split.pairs))
    present = iter(list(islice(sums, len(first.present))))
    if first.variables:
        gradients = [None if g is None else next(present) for g in first.gradients]
        model.optimizer.apply_gradients(zip(gradients, first.variables, strict=True))
    state.change(list(islice(sums, len(first.changes))))
    extra = dict(zip(first.extra, islice(sums, len(first.extra)), strict=True))
    state.gather(list(sums))
    results = model.get_metrics_result()
    return {key: extra[key] if key in extra else results[key] for key in first.logs}


class _Part:
    """What a step on some rows gives."""

    def __init__(self, gradients: list[Any], variables: list[Variable], logs: Logs, extra: Logs, state: _State) -> None:
        self.gradients, self.variables, self.logs, self.extra = gradients, variables, logs, extra
        self.present = [convert_to_tensor(g) for g in gradients if g is not None]
        self.changes, self.gathered = state.changes(), [one.read_value() for one in state.metrics]


def _run_part(model: Model, name: str, split: Split, part: BatchPart, data: Any, state: _State) -> _Part:
    state.begin()
    start = split.rows.start
    rows = data if len(split.parts) == 1 else cut(data, slice(part.first - start, part.first - start + part.rows))
    gradients: list[Any] = []
    variables: list[Variable] = []
    with computing_on(part):
        if name == "train_step":
            gradients, variables, predicted = steps.gradients_of(model, rows)
            logs = predicted.measure(model)
        else:
            logs = getattr(model, name)(rows)
    results = model.get_metrics_result()
    extra = {key: convert_to_tensor(value) for key, value in logs.items() if key not in results}
    return _Part(gradients, variables, logs, extra, state)


class _State:
    """What a step changes beside weights: each part of a batch begins with the same.

    Attributes:
        metrics: Variables to which a batch adds; each part begins with zeros.
        kept: other Variables of floats, such as moving statistics.
    """

    def __init__(self, model: Model) -> None:
        found = {variable.key: variable for metric in model.metrics for variable in metric.variables}
        others = [one for one in model._collect().variables if one.key not in found and not getattr(one, "learns", False)]
        self.metrics = list(found.values())
        self.kept = [one for one in others if one.dtype.is_floating]
        self._others = [one for one in others if not one.dtype.is_floating]
        self._before = [(one, one.read_value()) for one in (*self.metrics, *self.kept, *self._others)]
        self._is_first = True

    def begin(self) -> None:
        """Have what the next part begins with."""
        count = len(self.metrics)
        for variable, value in self._before[:count]:
            variable.assign(Tensor(namespace(value._array).zeros_like(value._array)))
        if not self._is_first:
            for variable, value in self._before[count:]:
                variable.assign(value)
        self._is_first = False

    def changes(self) -> list[Any]:
        """By how much the part that has just ended changed statistics: nothing keeps its bits so."""
        start = len(self.metrics)
        before = self._before[start : start + len(self.kept)]
        return [variable.read_value() - value for variable, value in before]

    def change(self, by: list[Any]) -> None:
        """Change statistics by the mean over all rows."""
        start = len(self.metrics)
        for (variable, value), change in zip(self._before[start:], by, strict=False):
            variable.assign(value + change)

    def gather(self, sums: list[Any]) -> None:
        """Add to metrics what all rows give."""
        for (variable, value), gathered in zip(self._before, sums, strict=False):
            variable.assign(value + gathered)
