"""ModelStack: the steps of many models as steps of one, for the loops and the compiler that train a single model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import nest
from ..core import Variable
from ..core.batch import BatchedTensor
from ..core.stack import current, switch
from ..functions.publish import tensor
from ..keras.layers.weight_discovery import Contents
from .members import Members


class StackedOptimizer:
    """The optimizer that a model under `Members` sees: it gives whole stacks of gradients to the one that holds the slots."""

    needs_loss = False

    def __init__(self, optimizer: Any, members: Members) -> None:
        self.inner, self._members = optimizer, members

    @property
    def iterations(self) -> Any:
        return self.inner.iterations

    @property
    def learning_rate(self) -> Any:
        return self.inner.learning_rate

    def scale_loss(self, loss: Any) -> Any:
        return self.inner.scale_loss(loss)

    def prepare(self, variables: Sequence[Variable]) -> None:
        self.inner.prepare([self._members.whole_of(variable) for variable in variables])

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        grads, variables = zip(*grads_and_vars, strict=True)
        return self.apply(grads, variables)

    def apply(self, grads: Sequence[Any], variables: Sequence[Variable]) -> Any:
        members, outer = self._members, current()
        switch(outer.without(members))
        try:
            whole = [None if g is None else members.stack_of(g) for g in grads]
            return self.inner.apply(whole, [members.whole_of(variable) for variable in variables])
        finally:
            switch(outer)


class ModelStack:
    """What is trained: a model that stands for all members, under `Members`."""

    _built = True

    def __init__(self, model: Any, members: Members) -> None:
        self.model, self.members = model, members
        self.name = model.name
        self.run_eagerly, self.jit_compile = model.run_eagerly, model.jit_compile
        self.optimizer = model.optimizer
        model.optimizer = StackedOptimizer(self.optimizer, members)
        self._contents = Contents([], [], [])
        self._of: Any = None

    @property
    def _trainer(self) -> Any:
        return self.model._trainer

    @property
    def metrics(self) -> list[Any]:
        return self.model.metrics

    def _collect(self) -> Contents:
        found, stacks = self.model._collect(), self.members.stacks
        if self._of is None or self._of[0] is not found or self._of[1] is not stacks:
            wholes = [whole for _, whole in stacks.values()]
            self._contents = Contents([*found.variables, *wholes], found.sublayers, found.metrics)
            self._of = found, stacks
        return self._contents

    def reset_metrics(self) -> None:
        with self.members:
            self.model.reset_metrics()

    def train_step(self, data: Any) -> Any:
        return self._step(self.model.train_step, data)

    def train_step_own(self, data: Any) -> Any:
        return self._step(self.model.train_step, self._own(data))

    def test_step(self, data: Any) -> Any:
        return self._step(self.model.test_step, data)

    def predict_step(self, data: Any) -> Any:
        return self._step(self.model.predict_step, data)

    def _own(self, data: Any) -> Any:
        return nest.map_structure(lambda leaf: None if leaf is None else BatchedTensor(leaf, self.members), data)

    def _step(self, step: Any, data: Any) -> Any:
        with self.members:
            results = step(data)
            return nest.map_structure(lambda leaf: self.members.stack_of(tensor(leaf)), results)
