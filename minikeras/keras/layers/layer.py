"""Layer: a function with weights. The base of every layer and model.

Key idea: `__init__` keeps the configuration, `build` makes the weights once the input's shape is known, `call` holds only
mathematics. Weights and sublayers are found by walking the attributes; nothing is registered. Next: `core.py`.
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from ... import nest
from ...boundary import FAILURES, is_failure, shown
from ...core import Tensor, convert_to_tensor
from ...functions.elementwise import cast
from ...module import snake_case
from ...types import as_dtype
from .. import mixed_precision, regularizers
from ..calls import context as _context
from ..names import auto_name
from ..weight import Weight
from . import description, inputs
from .building import Builder
from .description import described
from .inputs import shapes
from .keras_tensor import Side, holds_symbol

__all__ = ["Layer", "SameShape", "described", "shapes"]


class Layer(Builder):
    """Base class of layers.

    Args:
        activity_regularizer: a penalty on the output, divided by the batch size and added to the losses.
        trainable: whether its weights are trained.
        dtype: of its weights and computations, or a policy such as 'mixed_float16'; the global policy if None.
        autocast: whether float inputs, and weights as they are read, are cast to the compute dtype.
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

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        made = super().__new__(cls)
        if cls.get_config is Layer.get_config and not description.is_of_package(cls):
            object.__setattr__(made, "_given", description.recorded(cls, Layer, arguments, options))
        return made

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
        width = unknown.pop("input_dim", None)
        shape = unknown.pop("input_shape", None if width is None else (width,))
        kind = type(self).__name__
        if unknown:
            raise ValueError(f"Unrecognized keyword arguments passed to {kind}: {unknown}")
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(f"{kind}: name must be a string without '/', found {name!r}.")
        if not isinstance(trainable, bool):
            raise ValueError(f"{kind}: expected `trainable` to be a boolean, found {trainable!r}.")
        self._built = self._building = False
        super().__init__(name or auto_name(snake_case(kind)), trainable)
        self._policy = mixed_precision.get(dtype)
        self._dtype = self._policy.compute_dtype
        self._array_dtype = as_dtype(self._dtype).numpy
        self.autocast = bool(autocast)
        self._losses: list[Any] = []
        self._input_shape_given = shape
        self._input_spec: Any = None
        self._accepted: Any = None
        self._build_shape: Any = None
        self._scope: tuple[str, ...] = ()
        self._label = name or snake_case(kind)
        self._stream: int | None = None
        self._labels: dict[str, int] = {}
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if _context.caller is not None and not _context.caller._building:
            self._made_in_call = True

    # Configuration -----------------------------------------------------------------------------------------------------

    @property
    def dtype_policy(self) -> mixed_precision.DTypePolicy:
        """The dtypes of weights and computations."""
        return self._policy

    @property
    def dtype(self) -> str:
        """The dtype of weights as they are kept."""
        return self._policy.variable_dtype

    @property
    def compute_dtype(self) -> str:
        """The dtype of inputs, and of weights as `call` reads them."""
        return self._dtype

    @property
    def input_spec(self) -> Any:
        """What is expected of the inputs: an InputSpec or a list of them, or None."""
        return self._input_spec

    @input_spec.setter
    def input_spec(self, spec: Any) -> None:
        if any(one is not None and not isinstance(one, inputs.InputSpec) for one in nest.flatten(spec)):
            raise TypeError(f"Layer '{self.name}': input_spec must be an InputSpec or a list of them, found {spec!r}.")
        self._input_spec, self._accepted = spec, None

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values: those of a class of one's own as they were given.

        Raises:
            NotImplementedError: if an argument is no plain value and no attribute of its name.
        """
        config: dict[str, Any] = {"name": self.name, "trainable": self._trainable, "dtype": self._policy.name}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = described(self.activity_regularizer)
        return config | description.options(self, Layer)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer, with new weights, from `get_config`."""
        if cls.get_config is not Layer.get_config or description.is_of_package(cls):
            return cls(**config)
        arguments, trainable = description.arguments_of(cls, Layer, config)
        made = cls(**arguments)
        if not trainable:
            made.trainable = False
        return made

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "compute_mask" in cls.__dict__:
            cls.supports_masking = cls._computes_mask = True
        if "call" in cls.__dict__:
            parameters = inspect.signature(cls.call).parameters
            cls._call_names = tuple(parameters)[1:]
            cls._takes_training, cls._takes_mask = "training" in parameters, "mask" in parameters
            cls._named_masks = tuple(name for name in cls._call_names if name.endswith("_mask"))
            default = parameters["training"].default if cls._takes_training else None
            cls._training_default = None if default is inspect.Parameter.empty else default

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

    # Shapes --------------------------------------------------------------------------------------------------------------

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the output for an input of a shape, None for axes of any size; nests of shapes for several.

        Found by a trial on zeros, of which nothing stays: a layer that is not built is not built by it. Layers that know a
        rule override it.

        >>> import minikeras as tf
        >>> tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(8)]).compute_output_shape((None, 2))
        (None, 8)
        """
        from .symbolic import output_shapes

        return output_shapes(self, input_shape)

    # Calling -------------------------------------------------------------------------------------------------------------

    _made_in_call = False

    supports_masking = False
    """Whether a mask of the input is passed on to the output, by `compute_mask`."""

    _takes_one_tensor = False
    """Whether a list of several inputs is a mistake."""

    _computes_mask = _takes_mask = _takes_training = False
    _named_masks: tuple[str, ...] = ()
    _training_default: bool | None = None

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Override it."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """The mask of the output; the input's by default."""
        return previous_mask

    input, output = Side(), Side()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        training = kwargs.pop("training", None) if kwargs else None
        if len(args) == 1 and type(args[0]) is Tensor and not kwargs:
            x = args[0]
            masks = None  # a tensor with a mask is of another type
            if x._array.dtype is not self._array_dtype:
                args = (self._tensor(x),)
            if x._array.shape != self._accepted:
                self._accept(args[0])
        elif holds_symbol((args, kwargs)):
            from .symbolic import call_symbolically

            args = self._single(args) if self._takes_one_tensor else args
            return call_symbolically(self, args, kwargs if training is None else {**kwargs, "training": training})
        else:
            args, masks = self._prepared(args, kwargs)
        if not self._built:
            try:
                self._build_on_call(args, kwargs)
            except FAILURES as error:
                if is_failure(error):
                    raise self._unusable(error, args, kwargs) from error
                raise
            if self._made_in_call and _context.caller is not None:
                _context.caller._notice_unheld(self)
        if masks is not None or self._named_masks:
            self._give_masks(args, kwargs, masks)
        context = _context
        outer, caller = context.training, context.caller
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
        except FAILURES as error:
            if is_failure(error):
                raise self._unusable(error, args, kwargs) from error
            raise
        finally:
            context.training, context.caller = outer, caller
        if masks is not None or self._computes_mask:
            self._pass_masks(args[0] if args else next(iter(kwargs.values())), outputs, masks)
        if self.activity_regularizer is not None:
            for output in nest.flatten(outputs):
                wide = cast(output, self.variable_dtype)
                self.add_loss(self.activity_regularizer(wide) / float(max(output.shape[0] if output.ndim else 1, 1)))
        return outputs

    def _unusable(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
        """What to raise when an operation failed over inputs: an error that names them and the layer."""
        given = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items() if name != "training")]
        said = f"cannot be called on {', '.join(given) or 'nothing'} ({type(error).__name__}: {error})"
        kind = ValueError if isinstance(error, ValueError) else TypeError
        return kind(f"Layer '{self.name}' ({type(self).__name__}) {said}. See help({type(self).__name__}) for what it takes.")

    def _accept(self, x: Any) -> None:
        """Hold the inputs against what is expected; the same shape need not be asked for again."""
        if self._input_spec is not None:
            inputs.check(self, self._input_spec, x)
        if isinstance(x, Tensor) and getattr(self._input_spec, "dtype", None) is None:
            self.__dict__["_accepted"] = x._array.shape

    def _converted(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments as Tensors, floats in the dtype of the layer."""
        for extra in args[1:]:
            if any(isinstance(leaf, (bool, int, float, str)) for leaf in nest.flatten(extra)) and not isinstance(extra, list):
                raise ValueError(
                    f"Only input tensors may be passed as positional arguments to {type(self).__name__} ('{self.name}'); "
                    f"{extra!r} should be passed as a keyword argument, for example training={extra!r}."
                )
        return tuple(None if argument is None else self._tensors(argument) for argument in args)

    def _prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        """The positional arguments as Tensors, and the masks that count; keyword arguments are changed in place."""
        first = self._call_names[0] if self._call_names else ""
        masks = inputs.masks_of(args[0] if args else kwargs.get(first))
        args = self._converted(self._single(args) if self._takes_one_tensor else args)
        for name, value in kwargs.items():
            if inputs.is_data(value) or (name == "mask" and inputs.is_numbers(value)):
                kwargs[name] = self._tensor(value)
        told = kwargs.get("mask")
        self._accept(args[0] if args else kwargs.get(first))
        return args, masks if told is None else told

    def _single(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Positional arguments of a layer of one tensor, taken out of a list or dict of one."""
        if not args or not isinstance(args[0], (list, tuple, dict)) or inputs.is_numbers(args[0]):
            return args
        return inputs.only_tensor(f"Layer '{self.name}' ({type(self).__name__})", args[0]), *args[1:]

    def _tensors(self, argument: Any) -> Any:
        """One argument, or nest of them, as Tensors."""
        if not hasattr(argument, "shape") and inputs.is_numbers(argument):
            return self._tensor(argument)
        return nest.map_structure(self._tensor, argument)

    def _tensor(self, value: Any) -> Any:
        if value is None:
            return None
        result = convert_to_tensor(value)
        if not self.autocast or result._array.dtype == self._array_dtype or not result.dtype.is_floating:
            return result
        wide, result = result, cast(result, self._dtype)
        inputs.attach(inputs.mask_of(wide), result)
        return result

    def _give_masks(self, args: tuple[Any, ...], kwargs: dict[str, Any], masks: Any) -> None:
        """Let `call` have the masks it asks for: `mask` for the first argument, 'query_mask' for one called query."""
        if masks is not None and self._takes_mask and "mask" in self._call_names[len(args) :]:
            kwargs["mask"] = masks
        given = dict(zip(self._call_names, args, strict=False)) | kwargs
        for name in self._named_masks:
            if given.get(name) is None:
                kwargs[name] = inputs.masks_of(given.get(name.removesuffix("_mask")))

    def _pass_masks(self, x: Any, outputs: Any, masks: Any) -> None:
        """Let the outputs carry the masks that `compute_mask` has for them."""
        if self.supports_masking:
            inputs.attach(self.compute_mask(x, masks), outputs)
        elif masks is not None and not self._takes_mask and not self._collect().sublayers:
            warnings.warn(
                f"Layer '{self.name}' ({type(self).__name__}) was given an input that carries a mask, but it does not support "
                "masks, so the layers after it do not see the mask. Set supports_masking = True if it may be passed on.",
                stacklevel=3,
            )

    def __repr__(self) -> str:
        if "_name" not in self.__dict__:
            return f"<{type(self).__name__}, whose __init__ did not call super().__init__()>"
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


class SameShape(Layer):
    """Base of layers whose output has the shape of their input, and its mask."""

    supports_masking = True
    _takes_one_tensor = True

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The input's."""
        return tuple(input_shape)
