"""Variables with Keras's names; Weight: one that belongs to a layer, with its path."""

from __future__ import annotations

from typing import Any

from ..core import Tensor, Variable, clock, device
from ..core.ops.arithmetic import cast
from .calls import context

AGGREGATIONS = (None, "none", "mean", "sum", "only_first_replica")


class KerasVariable(Variable):
    """A Variable whose name is what it was given, without TensorFlow's ':0': state of layers, metrics and optimizers. `path`
    are the names around it and its own, joined by '/'.

    `aggregation` says what becomes of it where ranks or shards compute parts of a batch: 'sum' adds up by how much each has
    changed it, 'mean' takes the mean of these changes weighted by rows, as 'none' does, and 'only_first_replica' the first one.

    Raises:
        ValueError: for another aggregation.
    """

    __slots__ = ("aggregation", "path")

    def __init__(self, *arguments: Any, aggregation: str | None = "none", path: str | None = None, **options: Any) -> None:
        if aggregation not in AGGREGATIONS:
            raise ValueError(
                "Invalid value for argument `aggregation`. Expected one of `None`, 'none', 'mean', 'sum', "
                f"'only_first_replica'. Received: aggregation={aggregation!r}."
            )
        super().__init__(*arguments, **options)
        self.aggregation = aggregation or "none"
        self.path = context.path(self._name) if path is None else path

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self._name

    @property
    def value(self) -> Tensor:  # type: ignore[override]
        """The value at this moment, a Tensor; what is made by `tf.Variable` has TensorFlow's method of this name."""
        return self.read_value()

    def __repr__(self) -> str:
        return f"<Variable path={self.path}, shape={self.shape}, dtype={self.dtype.name}, value={self.numpy()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), (None, {"aggregation": self.aggregation, "path": self.path}))


class CarriedState(KerasVariable):
    """State that a layer carries from batch to batch: it is put back and resumed, but is no weight, so no file has it."""

    __slots__ = ()


class HostVariable(KerasVariable):
    """A Variable in host memory whatever the device, so that reading it never waits for a GPU; copies too."""

    __slots__ = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        with device("CPU"):
            super().__init__(*arguments, **options)


class Weight(KerasVariable):
    """A Variable made by `Layer.add_weight`: `regularizer` is a function of the value that is added to the losses, or None;
    `learns` says whether it is trained unless its layer is frozen.
    """

    __slots__ = ("learns", "regularizer")

    def __init__(
        self,
        value: Any,
        name: str,
        path: str,
        trainable: bool,
        regularizer: Any,
        constraint: Any,
        aggregation: str | None = "none",
    ) -> None:
        super().__init__(value, trainable=trainable, name=name, constraint=constraint, aggregation=aggregation, path=path)
        self.regularizer = regularizer
        self.learns = bool(trainable)

    def freeze(self, frozen: bool) -> None:
        """Stop or resume training it, if it is trainable by its nature."""
        self._trainable = self.learns and not frozen
        clock.tick()

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.numpy(), self._name, self.path, self._trainable, self.regularizer, self.constraint
        return type(self), given, (None, {"aggregation": self.aggregation})


class CastWeight(Weight):
    """A Weight that is read in the compute dtype of the layer that is being called."""

    __slots__ = ()

    def read_value(self) -> Tensor:
        """The value, in the dtype of the call that reads it."""
        value = super().read_value()
        caller = context.caller
        if caller is None or not caller.autocast or value.array.dtype == caller._array_dtype:
            return value
        return cast(value, dtype=caller.compute_dtype)


Weight.__name__ = CastWeight.__name__ = "Variable"
