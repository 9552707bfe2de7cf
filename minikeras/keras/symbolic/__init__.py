"""KerasTensors, which stand for what a layer will give before there is data; calls of layers and functions on them
(`operation.py`), and how shapes of results are found (`trial.py`).

A symbolic call is a `Node`, and a KerasTensor is one output of it. References point from outputs to inputs only, so a graph is
freed with its last tensor; a layer knows its Nodes weakly.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ... import nest
from ...core import Operand, hook
from ...functions.operands import SymbolicOperand
from ...types import Axis, DType
from ..names import auto_name

__all__: list[str] = []  # nothing here is for users

_next_number = itertools.count().__next__


class Spec(NamedTuple):
    """Shape (None for an axis of any size) and dtype of one output, and the number of axes of its mask, if it carries one."""

    shape: tuple[int | None, ...]
    dtype: DType
    mask_rank: int | None = None


class Node:
    """A call of `operation` with KerasTensors among `args` and `kwargs`. Its outputs have `specs`, in flattening order, and
    form the nest `structure`, with their positions as leaves; a Node with a higher `number` was made later. It is `measured` if
    only sizes of tensors decide on its outputs.
    """

    __slots__ = ("__weakref__", "args", "kwargs", "measured", "number", "operation", "specs", "structure")

    def __init__(
        self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], specs: list[Spec], structure: Any
    ) -> None:
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.specs, self.structure = specs, structure
        measures = getattr(operation, "measures", None)  # a layer does not
        self.measured: bool = measures or (measures is False and all(one.node.measured for one in self.inputs))
        self._enter()

    def _enter(self) -> None:
        """Get a number, and be known to what was called."""
        self.number = _next_number()
        _nodes.setdefault(self.operation, weakref.WeakValueDictionary())[self.number] = self

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        """Be a copy: another call."""
        for name, value in state[1].items():
            setattr(self, name, value)
        self._enter()

    @property
    def inputs(self) -> list[KerasTensor]:
        """The KerasTensors among the arguments."""
        return [leaf for leaf in nest.flatten([self.args, self.kwargs]) if isinstance(leaf, KerasTensor)]

    @property
    def outputs(self) -> Any:
        """The results of the call: a KerasTensor or a nest of them; the same objects as long as they are referenced."""
        return nest.map_structure(self._output, self.structure)

    def _output(self, position: int) -> KerasTensor:
        made = _outputs.get((self.number, position))
        return KerasTensor(self, position) if made is None else made


_nodes: weakref.WeakKeyDictionary[Any, weakref.WeakValueDictionary[int, Node]] = weakref.WeakKeyDictionary()
_outputs: weakref.WeakValueDictionary[tuple[int, int], KerasTensor] = weakref.WeakValueDictionary()


def nodes_of(operation: Any) -> list[Node]:
    """The calls of a layer whose results are still referenced, in the order in which they were made."""
    return list(_nodes.get(operation, {}).values())


def _operate(name: str, *operands: Any) -> Any:
    """The result of an operator: that of the function of `keras.ops` of this name."""
    return hook("operate_on_symbols")(name, operands)


def _operator(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """A method for an operator of two operands."""
    return lambda self, other: _operate(name, *((other, self) if swapped else (self, other)))


class Operators:
    """Python's operators as calls of the functions of `keras.ops`, which promote dtypes."""

    __slots__ = ()

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("subtract"), _operator("subtract", swapped=True)
    __mul__, __rmul__ = _operator("multiply"), _operator("multiply", swapped=True)
    __truediv__, __rtruediv__ = _operator("true_divide"), _operator("true_divide", swapped=True)
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _operator("floor_divide", swapped=True)
    __mod__, __rmod__ = _operator("mod"), _operator("mod", swapped=True)
    __pow__, __rpow__ = _operator("power"), _operator("power", swapped=True)
    __matmul__, __rmatmul__ = _operator("matmul"), _operator("matmul", swapped=True)
    __and__, __rand__ = _operator("logical_and"), _operator("logical_and", swapped=True)
    __or__, __ror__ = _operator("logical_or"), _operator("logical_or", swapped=True)
    __xor__, __rxor__ = _operator("logical_xor"), _operator("logical_xor", swapped=True)
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("less", "less_equal", "greater", "greater_equal"))

    def __neg__(self) -> Any:
        return _operate("negative", self)

    def __abs__(self) -> Any:
        return _operate("absolute", self)

    def __invert__(self) -> Any:
        return _operate("logical_not", self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return _operate("round", self, ndigits or 0)


class KerasTensor(Operators):
    """A tensor without values: shape and dtype, and how it will be computed. Made by `keras.Input` and by calling layers on it.

    Python's operators, functions of `tf` and of `keras.ops` work on it and become part of the model.

    Attributes:
        shape: a tuple with None for an axis of any size.
        dtype: of the elements.
        name: of the input, or made up.

    >>> x = tf.keras.Input((3,), name="x")
    >>> y = 2.0 * tf.keras.layers.Dense(5)(x)
    >>> y.shape, y.dtype
    ((None, 5), tf.float32)
    """

    __slots__ = ("__weakref__", "_name", "node", "position")

    def __init__(self, node: Node, position: int = 0, name: str | None = None) -> None:
        self.node, self.position, self._name = node, position, name
        _outputs[self.key] = self

    @property
    def spec(self) -> Spec:
        """Shape and dtype, and whether there is a mask."""
        return self.node.specs[self.position]

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes of the axes, None where any size fits."""
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.spec.dtype

    @property
    def _keras_mask(self) -> KerasTensor | None:
        """The mask that it will carry, to compute with; None if it carries none."""
        return None if self.spec.mask_rank is None else hook("mask_of_symbol")(self)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """The name of the input, else one made up."""
        if self._name is None:
            self._name = auto_name("keras_tensor") if self.node.args or self.node.kwargs else self.node.operation.name
        return self._name

    @property
    def key(self) -> tuple[int, int]:
        """Equal for two objects that stand for the same output of the same call."""
        return self.node.number, self.position

    def reshape(self, newshape: Any) -> KerasTensor:
        """The same elements in another shape, as `keras.ops.reshape` gives it."""
        return _operate("reshape", self, newshape)

    def squeeze(self, axis: Axis = None) -> KerasTensor:
        """Without axes of size 1, as `keras.ops.squeeze` gives it."""
        return _operate("squeeze", self, axis)

    def __repr__(self) -> str:
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype.name}, name={self.name}>"

    # No values --------------------------------------------------------------------------------------------------------

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        raise SymbolicOperand(
            f"A KerasTensor is symbolic: it's a placeholder for a shape and a dtype ({self!r}) and has no values, so NumPy and "
            "Python's conditions and loops cannot take it. Use functions of keras.ops or tf, such as keras.ops.maximum, or "
            "a layer; or put the computation into the `call` of a layer of your own, a subclass of keras.layers.Layer."
        )

    __array__ = __bool__ = __float__ = __int__ = __index__ = __complex__ = __iter__ = numpy = _refuse

    def __len__(self) -> int:
        raise TypeError(f"A KerasTensor has no len(): its first axis may have any size. Its shape is {self.shape}.")

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        """`array * x`, which asks NumPy first, becomes part of the model; other functions of NumPy need values."""
        operator = _OF_NUMPY.get(ufunc.__name__)
        if operator is None or method != "__call__" or options:
            self._refuse()
        return _operate(operator, *operands)

    # Operators --------------------------------------------------------------------------------------------------------

    def __pos__(self) -> KerasTensor:
        return self

    def __hash__(self) -> int:
        return hash(self.key)

    def __getitem__(self, key: Any) -> KerasTensor:
        return _operate("get_item", self, key)

    def __eq__(self, other: object) -> Any:
        """True if both stand for the same output, so that `in` finds it in lists; with numbers and arrays a step of the model.
        An unknown size is equal to None.
        """
        if isinstance(other, KerasTensor):
            return self.key == other.key
        if other is None:
            return self.node.measured
        return _operate("equal", self, other) if is_data(other) or is_numbers(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        symbolic = isinstance(other, KerasTensor) or is_data(other) or is_numbers(other)
        return _operate("not_equal", self, other) if symbolic else NotImplemented


_OF_NUMPY = {
    **{"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "true_divide", "floor_divide": "floor_divide"},
    **{"remainder": "mod", "power": "power", "matmul": "matmul", "negative": "negative", "absolute": "absolute"},
    **{"bitwise_and": "logical_and", "bitwise_or": "logical_or", "bitwise_xor": "logical_xor", "invert": "logical_not"},
    **{"less": "less", "less_equal": "less_equal", "greater": "greater", "greater_equal": "greater_equal"},
    **{"equal": "equal", "not_equal": "not_equal"},
}
"""Functions of NumPy that are operators, and their names in `keras.ops`."""


def holds_symbol(value: object) -> bool:
    """True for a KerasTensor and for a nest with one inside; lists in a list that begins with a number are skipped."""
    if isinstance(value, KerasTensor):
        return True
    if isinstance(value, dict):
        return any(holds_symbol(element) for element in value.values())
    if isinstance(value, list) and value and isinstance(value[0], (int, float)):
        return any(type(element) is KerasTensor for element in value)
    return isinstance(value, (list, tuple)) and any(holds_symbol(element) for element in value)


def get_source_inputs(tensor: KerasTensor) -> list[KerasTensor]:
    """The Inputs that a KerasTensor was computed from, each once.

    >>> x = tf.keras.Input((2,), name="x")
    >>> tf.keras.utils.get_source_inputs(2.0 * x + x)
    [<KerasTensor shape=(None, 2), dtype=float32, name=x>]
    """
    seen: dict[tuple[int, int], KerasTensor] = {}
    waiting = [tensor]
    while waiting:
        x = waiting.pop()
        if x.key not in seen:
            seen[x.key] = x
            waiting += reversed(x.node.inputs)
    return [x for x in seen.values() if not x.node.inputs]


class LayerIO:
    """`layer.input` or `layer.output`: the KerasTensors of its call, unless the layer has an attribute of that name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        if layer is None:
            return self
        nodes = nodes_of(layer)
        if len(nodes) != 1:
            found = "has not been called on a KerasTensor" if not nodes else f"was called {len(nodes)} times"
            raise AttributeError(
                f"Layer '{layer.name}' {found}, so `{self.name}` does not name one tensor. "
                + ("Use it in a functional model, or in a Sequential with an Input." if not nodes else "Keep the results.")
            )
        if self.name == "output":
            return nodes[0].outputs
        inputs = nodes[0].inputs
        if not inputs:
            return nodes[0].outputs
        return inputs[0] if len(inputs) == 1 else inputs


def is_data(value: object) -> bool:
    """True for Tensors, Variables and arrays."""
    return isinstance(value, Operand) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def is_numbers(argument: Any) -> bool:
    """True for a number or nested lists of numbers: one tensor rather than a nest of them."""
    if isinstance(argument, (int, float, complex, np.generic)):
        return True
    if not isinstance(argument, (list, tuple)) or not argument:
        return False
    return all(is_numbers(element) for element in argument)


def shapes_of_first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shapes of the first argument: what `build` is told."""
    inputs = args[0] if args else next((value for value in kwargs.values() if is_data(value)), None)
    return shapes_of(inputs)


def shapes_of(inputs: Any) -> Any:
    """The shape of each tensor in a nest."""
    return nest.map_structure(lambda leaf: None if leaf is None else tuple(leaf.shape), inputs)


def map_shapes(function: Callable[[Any], Any], nested: Any) -> Any:
    """`function(shape)` for each shape in a nest of lists and dicts; a shape is a list or tuple of sizes and None."""
    if isinstance(nested, Mapping):
        return {key: map_shapes(function, one) for key, one in nested.items()}
    if all(size is None or isinstance(size, int) for size in nested):
        return function(nested)
    return [map_shapes(function, one) for one in nested]
