"""The rows of a rank: its parts of a batch that all ranks compute on, and the step that these take together.

Each rank computes on its rows, and one exchange makes of it the step on the whole batch. With the gradient g of the mean loss
of n rows, that of all rows is the sum of n g, divided by the sum of n. What metrics gather is added up, what layers keep
(moving statistics) becomes the mean over rows. Clipping, accumulation and the optimizer come after that, so all ranks have
the same bits again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from ..core import Tensor, Variable, convert_to_tensor, namespace
from ..errors import InvalidArgumentError, ShapeError
from ..functions import cast, concat, stack, unstack, zeros
from ..keras.batches import cut
from ..keras.metrics.metric import noted_results, result_of
from ..keras.training import steps
from ..keras.training.state import Logs, ModelLike
from ..nn_ops.streams import global_stream
from ..ranks import Rows, computing_on
from .functions import all_reduce, all_reduce_together, combine


@dataclass(frozen=True)
class OwnRows(Rows):
    """A batch of this rank, whose optimizers step by the sum of the gradients of all ranks: `run` of a strategy."""

    def exchange(self, grads: Sequence[Any]) -> list[Any]:
        """The sums over all ranks."""
        return all_reduce_together(grads)

    def need_all(self, what: str) -> None:
        self._refuse(what, "", "its own")

    def _refuse(self, what: str, total: str, known: str) -> None:
        raise RuntimeError(
            f"{what} asks for the loss of all{total} rows several times in a step, of which this rank knows {known}. Use an "
            "optimizer of gradients, such as Adam, or train in one process."
        )


@dataclass(frozen=True)
class BatchPart(OwnRows):
    """The rows from `first` to `first + rows` of a global batch of `total` rows.

    Attributes:
        first, rows, total: see above.
        shards: the parts that a rank computes one after another; above 1 they cannot exchange sums with each other.
    """

    first: int = 0
    rows: int = 0
    total: int = 0
    shards: int = 1

    @property
    def share(self) -> float:
        """The share of these rows in the global batch: the weight of their results in the global mean."""
        return self.rows / self.total if self.total else 0.0

    def check_exchange(self, what: str) -> None:
        """As in `Rows`.

        Raises:
            RuntimeError: for one of several shards, which a rank computes one after another: none can wait for the next.
        """
        if self.shards > 1:
            raise RuntimeError(
                f"{what} needs sums over all ranks within a step, but each rank computes {self.shards} virtual shards one "
                "after another. Use virtual_shards=None, or as many as there are ranks."
            )

    def exchange(self, grads: Sequence[Any]) -> list[Any]:
        """The mean of gradients over all parts, weighted by their rows."""
        self.check_exchange("a step of an optimizer")
        return all_reduce_together([None if one is None else self.weigh(convert_to_tensor(one)) for one in grads])

    def need_all(self, what: str) -> None:
        if self.rows < self.total:
            self._refuse(what, f" {self.total}", str(self.rows))

    def draw(self, shape: Sequence[int], exactly: bool = False) -> dict[str, int]:
        if not self.rows or not shape or shape[0] % self.rows or (exactly and shape[0] != self.rows):
            return {}
        start = self.first * (math.prod(shape) // self.rows)
        return {"start": start} if start else {}

    def all(self, x: Any) -> Any:
        tensor = convert_to_tensor(x)
        self.check_exchange("an operation on the rows of a whole batch")
        own, others = tensor[: self.rows], tuple(tensor.shape[1:])
        if own.shape[0] != self.rows:
            raise ShapeError(
                f"a rank computes on {self.rows} rows of {self.total}, but its part of them has shape {tensor.shape}."
            )
        sizes = self.first, self.total - self.first - self.rows
        before, after = (zeros((rows, *others), tensor.dtype) for rows in sizes)
        return all_reduce(concat([before, own, after], 0))

    def sums(self, found: Sequence[Any]) -> Sequence[Any]:
        self.check_exchange("a sum over a whole batch")
        whole: Tensor = stack([convert_to_tensor(one) for one in found])
        return unstack(all_reduce(whole if self.rows else whole * 0))

    def weigh(self, x: Any) -> Any:
        return x * self.share

    def spread(self, total: Any) -> Any:
        return total * (self.total / max(self.rows, 1))


# Steps ----------------------------------------------------------------------------------------------------------------


class BatchSplit(NamedTuple):
    """The part of a batch that this rank computes.

    Attributes:
        parts: rows of the whole batch, which are computed one after another.
        pairs: whether sums over parts are taken in pairs.
    """

    parts: tuple[BatchPart, ...]
    pairs: bool

    @property
    def rows(self) -> slice:
        """The slice of the whole batch that all these parts cover."""
        return slice(self.parts[0].first, self.parts[-1].first + self.parts[-1].rows)

    @property
    def shares(self) -> list[float]:
        """The share of each part in the rows of the whole batch."""
        return [part.share for part in self.parts]

    def step(self, model: ModelLike, name: str, data: Any) -> Logs:
        """The step `name` of a model, on a batch of which `data` are the rows of this rank."""
        state, drawn, built = _State(model), global_stream().position, model.built
        parts = [_Part(model, name, part, self._rows_of(part, data), state) for part in self.parts]
        if self.pairs and built and global_stream().position != drawn:
            raise InvalidArgumentError(
                f"model '{model.name}': with virtual_shards a step cannot draw from the stream of tf.random, whose numbers "
                "would depend on how many ranks there are. Draw with keras.random and a keras.random.SeedGenerator that the "
                "layer holds."
            )
        first = parts[0]
        given = [[*part.present, *part.plain.values(), *part.changes, *part.sums] for part in parts]
        weighted = len(given[0]) - len(first.sums)
        sums = iter(combine(given, self.shares, weighted, self.pairs))
        present = iter(list(islice(sums, len(first.present))))
        if first.variables:
            gradients = [None if g is None else next(present) for g in first.gradients]
            model.optimizer.apply_gradients(zip(gradients, first.variables, strict=True))
        plain = dict(zip(first.plain, islice(sums, len(first.plain)), strict=True))
        state.change(list(sums))
        return {key: plain[key] if key in plain else result_of(first.measured[key]) for key in first.logs}

    def _rows_of(self, part: BatchPart, data: Any) -> Any:
        start = part.first - self.rows.start
        return data if len(self.parts) == 1 else cut(data, slice(start, start + part.rows))


class _Part:
    """The results of a step on some rows.

    Attributes:
        gradients, variables: for the optimizer, once they cover all rows; none if the step has called the optimizer itself.
        logs: as the step gave them: `measured` are results of metrics, `plain` the others, which become means over rows.
        changes, sums: the changes of `means` and `sums`, see `_State`.
    """

    def __init__(self, model: ModelLike, name: str, part: BatchPart, rows: Any, state: _State) -> None:
        state.begin(part)
        self.gradients: list[Any] = []
        self.variables: list[Variable] = []
        with computing_on(part), noted_results() as known:
            if name == "train_step" and not model.is_overridden(name):
                self.gradients, self.variables, predicted = steps.gradients_of(model, rows)
                self.logs = predicted.measure(model)
            else:
                self.logs = getattr(model, name)(rows)
        self.measured = {key: known[value.key] for key, value in self.logs.items() if getattr(value, "key", None) in known}
        self.present = [convert_to_tensor(g) for g in self.gradients if g is not None]
        plain = {key: convert_to_tensor(value) for key, value in self.logs.items() if key not in self.measured}
        self.plain = {key: one if one.dtype.is_floating else cast(one, "float32") for key, one in plain.items()}
        self.changes, self.sums = state.changes()


class _Kept(NamedTuple):
    """A Variable that a step changes beside weights.

    Attributes:
        before: what it holds before the step.
        start: what it holds when a part of the batch begins; for sums of metrics that is 0.
        rule: how the changes by parts become one: 'sum', 'mean' over rows, 'only_first_replica', or 'none'.
    """

    variable: Variable
    before: Tensor
    start: Tensor
    rule: str


class _State:
    """The state that a step changes beside weights: each part of a batch begins with the same."""

    def __init__(self, model: ModelLike) -> None:
        self._model = model
        self._part: BatchPart | None = None
        self._kept: dict[int, _Kept] = {}
        for variable in _variables_of_metrics(model):
            self._keep(variable, True, variable.read_value())
        for variable in model.collect_contents().variables:
            if not getattr(variable, "learns", variable.trainable):
                self._keep(variable, False, variable.read_value())

    def _keep(self, variable: Variable, gathers: bool, before: Tensor) -> None:
        """Remember what a Variable holds, and how the changes by parts become one; metrics gather."""
        rule = getattr(variable, "aggregation", "sum" if gathers else "none")
        start = _zeros(before) if gathers and rule == "sum" else before
        if rule not in ("sum", "only_first_replica"):
            rule = "mean" if variable.dtype.is_floating else "none"
        self._kept.setdefault(variable.key, _Kept(variable, before, start, rule))

    def _changed(self, *rules: str) -> list[_Kept]:
        return [kept for kept in self._kept.values() if kept.rule in rules]

    def begin(self, part: BatchPart) -> None:
        """Assign the values with which this part begins."""
        for kept in self._kept.values():
            if self._part is not None or kept.start is not kept.before:
                kept.variable.assign(kept.start)
        self._part = part

    def changes(self) -> tuple[list[Any], list[Any]]:
        """The changes by the part that has just ended, means and sums; those of a part without effect are 0, so bits stay."""
        for variable in _variables_of_metrics(self._model):
            if variable.key not in self._kept:  # made for the first batch
                self._keep(variable, True, _zeros(variable.read_value()))
        means, sums = self._changed("mean"), self._changed("sum", "only_first_replica")
        return [self._change(kept) for kept in means], [self._change(kept) for kept in sums]

    def _change(self, kept: _Kept) -> Any:
        value = kept.variable.read_value()
        if kept.start is not kept.before:
            return value
        is_first = self._part is None or self._part.first == 0
        return value - kept.before if is_first or kept.rule != "only_first_replica" else _zeros(kept.before)

    def change(self, by: list[Any]) -> None:
        """Change means and sums by what all parts give."""
        changed = self._changed("mean") + self._changed("sum", "only_first_replica")
        for kept, change in zip(changed, by, strict=True):
            kept.variable.assign(kept.before + change)


def _variables_of_metrics(model: ModelLike) -> list[Variable]:
    return [variable for metric in model.metrics for variable in metric.variables]


def _zeros(value: Tensor) -> Tensor:
    return Tensor(namespace(value.array).zeros_like(value.array))
