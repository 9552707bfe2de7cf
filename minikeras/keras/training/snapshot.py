"""All or nothing: the state of a model, of its optimizers and of its metrics, to go back to when a step fails. Arrays are never
written while they can be seen, so keeping the old state costs one reference for each Variable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence, ValuesView
from itertools import chain
from typing import Any

from ...compiler import Function
from ...core import Variable
from ...core.effects import clock
from ...core.variable import restore
from ...data.table import RowBatches
from ...module import Named, elements, walk
from ...nn_ops import streams
from ..layers.layer import Layer
from ..layers.weight_discovery import Contents
from ..metrics import Metric
from ..optimizers import Optimizer

_array_of = operator.attrgetter("_array")


class Snapshot:
    """What a step may change: values of all `variables`, `layers` that are not built yet, attributes of `holders` (metrics,
    optimizers and their states, which are re-bound and never changed in place; copies of them may be there already), and
    random streams.
    """

    __slots__ = ("_arrays", "_attributes", "_holders", "_layers", "_streams", "_variables")

    def __init__(
        self,
        variables: Sequence[Variable],
        layers: Iterable[Layer],
        holders: Sequence[Any],
        attributes: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._variables, self._arrays = variables, list(map(_array_of, variables))
        self._layers = [(layer, layer.__dict__.copy()) for layer in layers]
        self._holders, self._attributes = holders, attributes or [holder.__dict__.copy() for holder in holders]
        self._streams: Any = streams.states()

    def restore(self) -> None:
        """Have everything as it was."""
        restore(zip(self._variables, self._arrays, strict=True))
        for layer, attributes in self._layers:
            layer._restore(attributes)
        for holder, attributes in zip(self._holders, self._attributes, strict=True):
            holder.__dict__.clear()
            holder.__dict__.update(attributes)
        streams.set_states(self._streams)
        clock.tick()


class Transaction:
    """Runs steps of a model, each of which happens as a whole or not at all."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._contents: Contents | None = None
        self._variables: list[Variable] = []
        self._unbuilt: list[Layer] = []
        self._holders: list[Any] = []
        self._attributes: list[dict[str, Any]] = []
        """The attributes of each holder when its Variables were looked up."""
        self._now: list[ValuesView[Any]] = []
        self._then: list[Any] = []
        """The values of all these attributes as they are at each time, and as they were."""

    def __call__(self, step: Callable[[Any], Any], data: Any) -> Any:
        """Run a step; if it raises, all state is as it was before."""
        if isinstance(step, Function) and step.whole and (found := step.replay_whole((data,))) is not None:
            return found[0]
        targets, before = self._model._trainer.targets, self.snapshot()
        try:
            return step(data)
        except BaseException:
            before.restore()
            self._model._trainer.targets = targets
            raise

    def replay(self, step: Function, batches: RowBatches) -> Any:
        """Replay a compiled step for each batch; what the last one gives, or None, and nothing was done, without a program.

        If a step raises, all state is as it was after the one before it.
        """
        targets = self._model._trainer.targets
        before: list[Snapshot] = []

        def keep_state() -> None:
            before[:] = [Snapshot(self._variables, self._unbuilt, self._holders) if before else self.snapshot()]

        try:
            found = step.replay_many(batches, (batches.first,), keep_state)
        except BaseException:
            for snapshot in before:
                snapshot.restore()
            self._model._trainer.targets = targets
            raise
        return None if found is None else found[0]

    def snapshot(self) -> Snapshot:
        """The state by now."""
        contents = self._model._collect()
        same = all(map(operator.is_, chain.from_iterable(self._now), self._then))
        if contents is not self._contents or not same or sum(map(len, self._now)) != len(self._then):
            self._look_up(contents)
        return Snapshot(self._variables, self._unbuilt, self._holders, self._attributes)

    def _look_up(self, contents: Contents) -> None:
        """What a step may change. What a holder keeps follows from attributes: its own, and those of holders within it."""
        model = self._model
        optimizers = _held_optimizers(model)
        holders: list[Any] = [*_with_inner(model.metrics), *optimizers]
        self._holders = [*holders, *(optimizer.state for optimizer in optimizers)]
        self._attributes = [holder.__dict__.copy() for holder in self._holders]
        self._now = [holder.__dict__.values() for holder in self._holders]
        self._then = [value for attributes in self._attributes for value in attributes.values()]
        self._contents = contents
        found = [*contents.variables, *(variable for holder in holders for variable in holder.variables)]
        self._variables = list({id(variable): variable for variable in found}.values())
        self._unbuilt = [layer for layer in (model, *contents.sublayers) if not layer._built]


def _with_inner(metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Metrics, and those within them."""
    for metric in metrics:
        yield metric
        yield from _with_inner(metric._metrics())


def _held_optimizers(model: Any) -> list[Optimizer]:
    """The optimizers among the attributes of a model, and those within them."""
    met = walk(*vars(model).items(), children=_of_optimizer, separator=".")
    return [found for _, found, first in met if first is None and isinstance(found, Optimizer)]


def _of_optimizer(value: Any) -> Named:
    """What may be an optimizer, or hold some, in one or in a list or tuple."""
    if isinstance(value, Optimizer):
        return vars(value).items()
    return [(name, one) for name, one in elements(value) if isinstance(one, (Optimizer, tuple))]
