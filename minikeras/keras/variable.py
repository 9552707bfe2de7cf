"""`keras.Variable`: a Variable made from an initializer or a value, with Keras's arguments and name."""

from __future__ import annotations

from typing import Any

from ..core import Operand, convert_to_tensor
from ..core.ops.arithmetic import elementwise_equality
from ..types import DTypeLike, ShapeLike, TensorLike
from . import initializers
from .config import floatx
from .names import auto_name
from .promotion import promoted
from .symbolic import Operators, is_data, is_numbers
from .weight import KerasVariable


class Variable(Operators, KerasVariable):
    """A Variable outside of layers. Its operators promote dtypes, as functions of `keras.ops` do.

    Args:
        initializer: a value; or an initializer or its name, which is given the shape and dtype.
        shape: needed for an initializer.
        dtype: that of the value, `floatx()` for an initializer.
        trainable: whether tapes watch it by themselves.
        aggregation: how changes by ranks or shards that compute on parts of a batch become one: 'sum', 'mean' weighted by rows,
            as 'none', or 'only_first_replica'.
        autocast, synchronization, layout: about other backends: unused.
        name: without a slash.

    Attributes:
        path: the names of the scopes around it and its own, joined by '/'.

    Raises:
        ValueError: for an initializer without a shape, or a name with a slash.

    >>> with tf.keras.name_scope("counters"):
    ...     steps = tf.keras.Variable("zeros", shape=(), dtype="int32", trainable=False, name="steps")
    >>> steps.path, int(steps.assign_add(1))
    ('counters/steps', 1)
    """

    __slots__ = ()

    def __init__(
        self,
        initializer: Any,
        shape: ShapeLike = None,
        dtype: DTypeLike = None,
        trainable: bool = True,
        autocast: bool = True,
        aggregation: str = "none",
        synchronization: str = "auto",
        name: str | None = None,
        layout: Any = None,
    ) -> None:
        name = auto_name("variable") if name is None else name
        if not isinstance(name, str) or "/" in name:
            raise ValueError(f"Variable: name must be text without '/', found {name!r}. For a path use keras.name_scope.")
        if isinstance(initializer, str):
            initializer = initializers.get(initializer)
        if callable(initializer) and not isinstance(initializer, Operand):
            if shape is None:
                raise ValueError(f"Variable: the initializer {initializer!r} needs a shape: Variable('zeros', shape=(2, 3)).")
            initializer = initializer(tuple(shape), dtype=floatx() if dtype is None else dtype)
        value = convert_to_tensor(initializer, None if isinstance(initializer, Operand) else dtype)
        super().__init__(value, trainable=trainable, name=name, dtype=dtype, aggregation=aggregation)

    __hash__ = KerasVariable.__hash__

    def __eq__(self, other: object) -> Any:
        return self._compared(other, True)

    def __ne__(self, other: object) -> Any:
        return self._compared(other, False)

    def _compared(self, other: TensorLike, equality: bool) -> Any:
        """The elementwise equality, or inequality, with another operand; in one dtype if that holds numbers."""
        first, second = promoted(self, other) if is_data(other) or is_numbers(other) else (self, other)
        return elementwise_equality(first, second, equality)

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.numpy(), None, None, self._trainable, True, self.aggregation, "auto", self._name
        return Variable, given, (None, {"path": self.path})
