"""Optimizers over members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Variable
from ..core.stack import current, switch
from .members import Members


class StackedOptimizer:
    """The optimizer that a model under `Members` sees: it gives whole stacks of gradients to the one that holds the slots."""

    needs_loss = False

    def __init__(self, optimizers: Sequence[Any], members: Members, rows: Any) -> None:
        self.inner, self._members = type(optimizers[0]).from_config(optimizers[0].get_config()), members
        self._optimizers, self._rows = list(optimizers), rows

    @property
    def built(self) -> bool:
        return self.inner.built

    @property
    def slot_groups(self) -> Any:
        return self.inner.slot_groups

    @property
    def iterations(self) -> Any:
        return self.inner.iterations

    @property
    def learning_rate(self) -> Any:
        return self.inner.learning_rate

    def scale_loss(self, loss: Any) -> Any:
        return self.inner.scale_loss(loss)

    def prepare(self, variables: Sequence[Variable]) -> None:
        if not self.inner.built:
            self.inner.prepare([self._members.whole_of(variable) for variable in variables])
            self._take_over()

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

    def _take_over(self) -> None:
        if not self._optimizers[0].built:
            return
        for whole, own in self._rows:
            found = self.inner.state.slots.get(whole.key)
            for name, slot in found.slots.items() if found else ():
                rows = [optimizer.slot(variable, name) for optimizer, variable in zip(self._optimizers, own, strict=True)]
                slot._array = np.stack([row._array for row in rows])
                for row in rows:
                    row._array = np.broadcast_to(np.zeros((), row._array.dtype), row._array.shape)
        self.inner.state.iterations._array = self._optimizers[0].state.iterations._array

    def release(self, places: Sequence[int]) -> None:
        for whole, own in self._rows:
            found = self.inner.state.slots.get(whole.key)
            if found is None:
                continue
            for place in places:
                optimizer, variable = self._optimizers[place], own[place]
                optimizer.prepare([variable])
                for name, slot in found.slots.items():
                    optimizer.slot(variable, name)._array = slot._array[place, ...].copy()
                optimizer.state.iterations._array = self.inner.state.iterations._array
