"""All or nothing: the state of a model, of its optimizers and of its metrics, to go back to when a step fails.

Key idea: arrays are never written while anybody can see them, so keeping the old state costs one reference for each Variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...arrays import random as streams
from ...core import Variable
from ..layers.layer import Layer
from ..optimizers import Optimizer


class Snapshot:
    """What a step may change: values of Variables, slots that it may add, layers that it may build, random streams.

    Args:
        variables: all Variables whose values to keep.
        layers: those that are not built yet are kept as they are.
        holders: optimizers and metrics whose attributes to keep; they re-bind their state and never change it in place.
    """

    def __init__(self, variables: Iterable[Variable], layers: Iterable[Layer], holders: Iterable[Any]) -> None:
        self._arrays = [(variable, variable._array) for variable in variables]
        self._unbuilt = [(layer, dict(layer.__dict__)) for layer in layers if not layer._built]
        self._holders = [(holder, dict(holder.__dict__)) for holder in holders]
        self._streams: Any = streams.states()

    def restore(self) -> None:
        """Have everything as it was."""
        for variable, array in self._arrays:
            variable._array, variable._spare = array, None
        for layer, attributes in self._unbuilt:
            layer._restore(attributes)
        for holder, attributes in self._holders:
            holder.__dict__.clear()
            holder.__dict__.update(attributes)
        streams.set_states(self._streams)


class Transaction:
    """Runs steps of a model, each of which happens as a whole or not at all.

    Args:
        model: its optimizers are those among its attributes by now.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._optimizers = _held_optimizers(model)

    def __call__(self, step: Callable[[Any], Any], data: Any) -> Any:
        """Run a step; if it raises, all state is as it was before."""
        targets, before = self._model._targets, self.snapshot()
        try:
            return step(data)
        except BaseException:
            before.restore()
            self._model._targets = targets
            raise

    def snapshot(self) -> Snapshot:
        """The state by now."""
        model = self._model
        variables, holders = list(model.variables), (*model.metrics, *self._optimizers)
        for holder in holders:
            variables += holder.variables
        return Snapshot(variables, (model, *model._collect().sublayers), holders)


def _held_optimizers(owner: Any) -> list[Optimizer]:
    """The optimizers among the attributes of a model, and those within them."""
    found: list[Optimizer] = []
    waiting = list(vars(owner).values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, (list, tuple)):
            waiting.extend(one for one in value if isinstance(one, Optimizer))
        elif isinstance(value, Optimizer) and not any(value is other for other in found):
            found.append(value)
            waiting.extend(vars(value).values())
    return found
