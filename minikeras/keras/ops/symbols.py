"""Python's operators and functions of `tf` on KerasTensors.

Where Keras has the function, the step of the model is Keras's, so that files of the model go to Keras; else it is a
TensorFunction, which is known here only.
"""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any

from ... import functions, nest
from ...functions.creation import zeros
from ...types import TensorLike
from .. import ops
from ..names import auto_name
from ..symbolic import holds_symbol
from ..symbolic.operation import CLASSES, SAME, Operation
from ..symbolic.trial import cost_of_anything, identities

_PUBLIC = ("", "bitwise", "image", "linalg", "math", "nn", "random", "signal")
"""The public modules of functions of tensors."""

_HARMLESS = """assertions contractions control_flow convolution creation elementwise image indexing linalg nn ordering
    random reductions resizing sampling shaping signal"""
"""The modules of `functions/` that a file may name functions of: they only compute. `tf.print`, for example, writes files."""


def operate_on_symbols(name: str, operands: tuple[Any, ...]) -> Any:
    """Result of an operator of Python for KerasTensors.

    Args:
        name: of the function of `keras.ops` that the operator stands for.
    """
    return getattr(ops, name)(*operands)


def mask_of_symbol(x: TensorLike) -> Any:
    """The mask that a KerasTensor carries, as a KerasTensor."""
    return CarriedMask()(x)


def call_on_symbols(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a function of `tf` on KerasTensors: that of a step of a functional model.

    Keras's function of the same name may give other dtypes, for integers for example; then the step is ours.
    """
    if not holds_symbol((args, options)):
        raise TypeError(
            f"{function.__name__}: a function that it was given uses a KerasTensor from outside. Give the KerasTensor as an "
            "argument, or write the computation as a layer of your own, a subclass of keras.layers.Layer with `call`."
        )
    public = _public_name(function)
    step = TensorFunction(public, name=public.rpartition(".")[2])
    outputs = step(*args, **options)
    signature = inspect.signature(function)
    bound = signature.bind(*args, **options)
    given = bound.arguments.keys() - {"name"}
    bound.apply_defaults()  # Keras's may be others
    same = SAME.get(inspect.unwrap(function))
    if same is not None:
        names = dict(zip(signature.parameters, inspect.signature(same).parameters, strict=False))
        if given <= names.keys():
            keras_outputs = same(**{theirs: bound.arguments[ours] for ours, theirs in names.items() if ours != "name"})
            if _specs(keras_outputs) == _specs(outputs):
                return keras_outputs
    step.name = auto_name(step.name)
    return outputs


def _specs(outputs: Any) -> list[tuple[Any, Any]]:
    return [(one.shape, one.dtype) for one in nest.flatten(outputs)]


def _public_name(function: Callable[..., Any]) -> str:
    """The public name of a function of `tf`, without the `tf.`."""
    return next(
        f"{module}.{name}".lstrip(".")
        for module in _PUBLIC
        for name, found in vars(_namespace(module)).items()
        if found is function
    )


def _namespace(module: str) -> types.ModuleType:
    """A public module of functions of tensors; `tf` itself loads its names late, so ask the file that holds them."""
    return importlib.import_module(f"{__name__.partition('.')[0]}.{module or '_names'}")


class TensorFunction(Operation):
    """A call of a function of `tf` that `keras.ops` has not; Keras cannot load a model with one.

    Args:
        function: its public name without the `tf.`, such as 'linalg.expm'.
        name: of the step; made up from that of the function if None.

    Raises:
        ValueError: if there is no such function of tensors.
    """

    cost = staticmethod(cost_of_anything)

    def __init__(self, function: str, name: str | None = None) -> None:
        module, _, last = function.rpartition(".")
        found: Any = getattr(_namespace(module), last, None) if module in _PUBLIC else None
        home = inspect.unwrap(found).__module__ if inspect.isfunction(found) else ""
        known = home in [f"{functions.__name__}.{one}" for one in _HARMLESS.split()]
        if not known or last.startswith("_") or last == "set_seed":
            raise ValueError(f"TensorFunction: there is no function of tensors tf.{function:.80}.")
        super().__init__(name or auto_name(last))
        self.function, self._call = function, found
        self.measures = function in ("shape", "size")
        self.example = identities if module == "linalg" else zeros

    def call(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"function": self.function, "name": self.name}


class CarriedMask(Operation):
    """The mask that a tensor carries: a step that is known here only."""

    def call(self, x: TensorLike) -> Any:
        return x._keras_mask


CLASSES["symbols"] = {"TensorFunction": TensorFunction, "CarriedMask": CarriedMask}
