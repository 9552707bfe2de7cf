"""Layer: a function with weights. The base of every layer and model.

Key idea: `__init__` keeps the configuration, `build` makes the weights once the input's shape is known, `call` holds only
mathematics. Weights and sublayers are found by walking the attributes; nothing is registered. Next: `core.py`.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import nest
from ...core import Tensor, convert_to_tensor
from ...core.operand import Operand
from ...functions.elementwise import cast
from ...functions.publish import static_shape
from ...module import snake_case
from ...types import as_dtype
from .. import constraints, initializers, regularizers
from ..config import floatx
from ..names import auto_name
from ..weight import Weight
from .contents import Holder, locked


class _CallContext(threading.local):
    """What the calls around the present one have settled."""

    training: bool | None = None
    caller: Layer | None = None


_context = _CallContext()


def _within_scope(build: Callable[..., None]) -> Callable[..., None]:
    """`build` within the name scope of its layer; afterwards the layer is built, or as it was if `build` raised."""

    @functools.wraps(build)
    def building(self: Layer, input_shape: Any) -> None:
        if self._building:  # `super().build()` within the `build` of a subclass
            return build(self, input_shape)
        before = dict(self.__dict__)
        caller = _context.caller
        if caller is not None:
            self._scope = (*caller._scope, caller.name)
        self._building = True
        _context.caller = self
        try:
            build(self, input_shape)
        except BaseException:
            self._restore(before)
            raise
        finally:
            _context.caller = caller
        self._building, self._built, self._build_shape = False, True, input_shape

    return building


class Layer(Holder):
    """Base class of layers.

    Args:
        activity_regularizer: a penalty on the output, divided by the batch size and added to the losses.
        trainable: whether its weights are trained.
        dtype: of its weights and computations; the default float dtype if None.
        autocast: whether float inputs are cast to that dtype.
        name: made up from the class name if None.

    Raises:
        ValueError: for keyword arguments that it does not know.

    >>> import minikeras as tf
    >>> class Scale(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight(shape=(), initializer="ones", name="factor")
    ...     def call(self, x):
    ...         return x * self.factor
    >>> Scale()([2.0]).numpy()
    array([2.], dtype=float32)
    """

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        shape = unknown.pop("input_shape", None)
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {unknown}")
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(f"{type(self).__name__}: name must be a string without '/', found {name!r}.")
        self._built = self._building = False
        super().__init__(name or auto_name(snake_case(type(self).__name__)), trainable)
        self._dtype = as_dtype(dtype or floatx()).name
        self._array_dtype = as_dtype(self._dtype).numpy
        self._autocast = autocast
        self._losses: list[Any] = []
        self._input_shape_given = shape
        self._build_shape: Any = None
        self._scope: tuple[str, ...] = ()
        self.activity_regularizer = regularizers.get(activity_regularizer)

    # Configuration -----------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """Whether the weights exist."""
        return self._built

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    @property
    def dtype(self) -> str:
        """The dtype of weights and computations."""
        return self._dtype

    compute_dtype = variable_dtype = dtype

    @property
    def path(self) -> str:
        """The names of the layers around it and its own, joined by '/'."""
        return "/".join((*self._scope, self.name))

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values."""
        config: dict[str, Any] = {"name": self.name, "trainable": self._trainable, "dtype": self._dtype}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = described(self.activity_regularizer)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer, with new weights, from `get_config`."""
        return cls(**config)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "build" in cls.__dict__:
            cls.build = _within_scope(cls.build)  # type: ignore[method-assign]
        if "call" in cls.__dict__:
            training = inspect.signature(cls.call).parameters.get("training")
            cls._takes_training = training is not None
            default = None if training is None else training.default
            cls._training_default = None if default is inspect.Parameter.empty else default

    # Weights -----------------------------------------------------------------------------------------------------------

    def add_weight(
        self,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Weight:
        """A new weight of this layer; keep it in an attribute.

        Args:
            shape: its shape; () by default.
            initializer: by name or object; Glorot's uniform distribution for floats and zeros for others by default.
            dtype: the layer's by default.
            trainable: whether an optimizer changes it.
            autocast, aggregation, overwrite_with_gradient: accepted for compatibility.
            regularizer: penalty added to the losses while it is trained.
            constraint: projection after each step.
            name: within the layer; 'variable' with a number by default.

        Raises:
            ValueError: if a name is given where the shape belongs, or the layer is built.
        """
        if self._built:
            raise ValueError(locked(self, f"weight {name!r}"))
        if isinstance(shape, str):
            raise ValueError(f"add_weight: the first argument is the shape, found {shape!r}. Write name={shape!r}.")
        kind = as_dtype(dtype or self._dtype)
        if initializer is None:
            initializer = "glorot_uniform" if kind.is_floating else "zeros"
        make = initializers.get(initializer)
        value = make(static_shape(shape if shape is not None else ()), dtype=kind.name)
        name = name or auto_name("variable")
        weight = Weight(
            value,
            name,
            f"{self.path}/{name}",
            trainable,
            regularizers.get(regularizer),
            constraints.get(constraint),
        )
        weight.freeze(not self._trainable)
        return weight

    add_variable = add_weight

    _not_walked: tuple[str, ...] = ("_losses", "_collected", "_build_shape", "_scope", "_input_shape_given")

    # Losses --------------------------------------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add a scalar, computed in `call`, to the losses of this call."""
        self._losses.extend(nest.flatten(loss))

    @property
    def losses(self) -> list[Any]:
        """What `add_loss` added in the last outermost call, and the penalties of the weights that are trained."""
        contents = self._collect()
        added = [loss for layer in (self, *contents.sublayers) for loss in layer._losses]
        return added + [
            variable.regularizer(variable)
            for variable in contents.variables
            if isinstance(variable, Weight) and variable.regularizer is not None and variable._trainable
        ]

    # Calling -------------------------------------------------------------------------------------------------------------

    _takes_training = False
    _training_default: bool | None = None

    @_within_scope
    def build(self, input_shape: Any) -> None:
        """Make the weights. Override it; the default makes none."""

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Override it."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """The mask of the output; the input's by default."""
        return previous_mask

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args:
            args = self._converted(args)
        if kwargs:
            kwargs = {name: self._tensor(value) if _is_data(value) else value for name, value in kwargs.items()}
        if not self._built:
            self._build_on_call(args, kwargs)
        context = _context
        outer, caller = context.training, context.caller
        training = kwargs.pop("training", None)
        if training is None:
            training = self._training_default if outer is None else outer
        if self._takes_training:
            kwargs["training"] = training
        if caller is None:
            for layer in (self, *self._collect().sublayers):
                if layer._losses:
                    layer._losses.clear()
        context.training, context.caller = training, self
        try:
            outputs = self.call(*args, **kwargs)
        finally:
            context.training, context.caller = outer, caller
        if self.activity_regularizer is not None:
            for output in nest.flatten(outputs):
                self.add_loss(self.activity_regularizer(output) / float(max(output.shape[0], 1)))
        return outputs

    def _build_on_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Build for the inputs of the first call."""
        self.build(shapes(args, kwargs))

    def _converted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments as Tensors, floats in the dtype of the layer."""
        first = args[0]
        if type(first) is Tensor and len(args) == 1:
            kind = first._array.dtype
            if kind is self._array_dtype or kind.kind != "f" or not self._autocast:
                return args
            return (cast(first, self._dtype),)
        for extra in args[1:]:
            if any(isinstance(leaf, (bool, str)) for leaf in nest.flatten(extra)):
                raise ValueError(
                    f"Only input tensors may be passed as positional arguments to {type(self).__name__} ('{self.name}'); "
                    f"{extra!r} should be passed as a keyword argument, for example training={extra!r}."
                )
        return tuple(None if argument is None else self._tensors(argument) for argument in args)

    def _tensors(self, argument: Any) -> Any:
        """One argument, or nest of them, as Tensors."""
        if not hasattr(argument, "shape") and _is_numbers(argument):
            return self._tensor(argument)
        return nest.map_structure(self._tensor, argument)

    def _tensor(self, value: Any) -> Any:
        if value is None:
            return None
        result = convert_to_tensor(value)
        return cast(result, self._dtype) if self._autocast and result.dtype.is_floating else result

    def __repr__(self) -> str:
        if "_name" not in self.__dict__:
            return f"<{type(self).__name__}, whose __init__ did not call super().__init__()>"
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def _is_data(value: Any) -> bool:
    """True for Tensors, Variables and arrays."""
    return isinstance(value, Operand) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The shapes of the first argument: what `build` is told."""
    inputs = args[0] if args else next((value for value in kwargs.values() if _is_data(value)), None)
    return nest.map_structure(lambda leaf: None if leaf is None else tuple(leaf.shape), inputs)


def _is_numbers(argument: Any) -> bool:
    """True for a number or nested lists of numbers: one tensor rather than a nest of them."""
    if isinstance(argument, (int, float, complex, np.generic)):
        return True
    if not isinstance(argument, (list, tuple)) or not argument:
        return False
    return all(_is_numbers(element) for element in argument)


def described(value: Any) -> Any:
    """An initializer, regularizer or constraint as class name and configuration; names and None as they are."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    return getattr(value, "__name__", repr(value))
