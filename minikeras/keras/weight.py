"""Weight: a Variable that belongs to a layer, with Keras's name and path."""

from __future__ import annotations

from typing import Any

from ..core import Variable


class Weight(Variable):
    """A Variable made by `Layer.add_weight`.

    Attributes:
        path: the names of the layers around it and its own, joined by '/'.
        regularizer: a function of the value that is added to the losses, or None.
        learns: whether it is trainable by its nature; `trainable` is that, unless its layer is frozen.
    """

    __slots__ = ("learns", "path", "regularizer")

    def __init__(self, value: Any, name: str, path: str, trainable: bool, regularizer: Any, constraint: Any) -> None:
        super().__init__(value, trainable=trainable, name=name, constraint=constraint)
        self.path = path
        self.regularizer = regularizer
        self.learns = bool(trainable)

    @property
    def name(self) -> str:
        """The name within its layer."""
        return self._name

    def freeze(self, frozen: bool) -> None:
        """Stop or resume training it, if it is trainable by its nature."""
        self._trainable = self.learns and not frozen

    def __repr__(self) -> str:
        return f"<Variable path={self.path}, shape={self.shape}, dtype={self.dtype.name}, value={self.numpy()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Weight, (self.numpy(), self._name, self.path, self._trainable, self.regularizer, self.constraint)


Weight.__name__ = "Variable"
