"""Operators of KerasTensors as parts of a functional model: `x + y` is a call of an `Add`. An Operation is a named function
without weights or configuration, with the class name that Keras gives it in files.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...core.registry import register
from ...module import snake_case
from ..names import auto_name
from .keras_tensor import holds_symbol
from .trial import call_symbolically


class Operation:
    """A function as part of a functional model."""

    function: Callable[..., Any]
    built, trainable = True, False

    def __init__(self, name: str | None = None) -> None:
        self.name = name or auto_name(snake_case(type(self).__name__))

    def __call__(self, *operands: Any) -> Any:
        if not holds_symbol(operands):
            return self.function(*operands)
        return call_symbolically(self, operands, {})

    def get_config(self) -> dict[str, Any]:
        """The name."""
        return {"name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Operation:
        """An operation from `get_config`."""
        return cls(**config)

    def __repr__(self) -> str:
        return f"<Operation {type(self).__name__} name={self.name}>"


def _get_item(x: Any, key: Any) -> Any:
    """x[key]; a tuple is a list in files."""
    return x[tuple(key) if isinstance(key, list) else key]


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Absolute": operator.abs,
    "Add": operator.add,
    "Divide": operator.truediv,
    "Equal": operator.eq,
    "FloorDivide": operator.floordiv,
    "GetItem": _get_item,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
    "Less": operator.lt,
    "LessEqual": operator.le,
    "LogicalAnd": operator.and_,
    "LogicalNot": operator.invert,
    "LogicalOr": operator.or_,
    "LogicalXor": operator.xor,
    "Matmul": operator.matmul,
    "Mod": operator.mod,
    "Multiply": operator.mul,
    "Negative": operator.neg,
    "NotEqual": operator.ne,
    "Power": operator.pow,
    "Subtract": operator.sub,
    "TrueDivide": operator.truediv,
}

CLASSES: dict[str, type[Operation]] = {
    name: type(name, (Operation,), {"function": staticmethod(function), "__module__": __name__})
    for name, function in _FUNCTIONS.items()
}
"""By the names that Keras gives them in its module `keras.src.ops.numpy`."""
globals().update(CLASSES)  # where pickle looks for a class

register("symbolic_operator", lambda name, operands: CLASSES[name]()(*operands))
