"""All or nothing: the state of a model, of its optimizers and of its metrics, to go back to when a step fails.

Key idea: arrays are never written while anybody can see them, so keeping the old state costs one reference for each Variable.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        optimizers: whose slots to keep.
    """

    def __init__(self, variables: Iterable[Variable], layers: Iterable[Layer], optimizers: Iterable[Optimizer]) -> None:
        self._arrays = [(variable, variable._array) for variable in variables]
        self._unbuilt = [(layer, dict(layer.__dict__)) for layer in layers if not layer._built]
        self._slots = [(optimizer, dict(optimizer._slots)) for optimizer in optimizers]
        self._stream: Any = streams.global_stream().state

    def restore(self) -> None:
        """Have everything as it was."""
        for variable, array in self._arrays:
            variable._array, variable._spare = array, None
        for layer, attributes in self._unbuilt:
            layer._restore(attributes)
        for optimizer, slots in self._slots:
            optimizer._slots = slots
        streams.global_stream().state = self._stream
