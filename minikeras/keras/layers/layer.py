"""Layer: a function with weights. `__init__` keeps the configuration, `build` makes the weights once the input's shape is
known, `call` holds only mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, MutableMapping
from operator import attrgetter
from typing import Any

from ... import nest
from ...absent import OF_LAYERS
from ...boundary import FAILURES, is_failure
from ...core import Tensor, Variable, clock, convert_to_tensor
from ...functions.elementwise import cast
from ...module import Module, snake_case
from ...types import DTypeLike, ShapeLike, TensorLike, as_dtype
from .. import constraints, regularizers
from ..arguments import made_with_numpy, unrecognized
from ..calls import context as _context
from ..calls import mask_of, without_effects
from ..config import DTypePolicy, policy_of
from ..names import PathMap, auto_name
from ..saving import objects
from ..symbolic import LayerIO, holds_symbol, is_data, is_numbers, shapes_of_first
from ..symbolic.trial import call_symbolically, output_shapes, output_specs
from ..weight import CastWeight, Weight
from . import inputs, layer_weights
from .options import keep, set_options, with_common_words


def _chosen(held: Callable[[Any], list[Any]], trained: bool, doc: str) -> property:
    return property(lambda self: [one for one in held(self) if one._trainable is trained], doc=doc)


def _variables(layer: Layer) -> list[Variable]:
    return layer.collect_contents().variables


class Layer(Module):
    """Base class of layers.

    Args:
        activity_regularizer: a penalty on the output, divided by the batch size and added to the losses.
        trainable: whether its weights are trained.
        dtype: of its weights and computations, a policy such as 'mixed_float16' or a DTypePolicyMap; the global policy if None.
        autocast: whether float inputs, and weights as they are read, are cast to the compute dtype.
        name: made up from the class name if None.

    Raises:
        ValueError: for keyword arguments that it does not know.

    >>> class Scale(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight(shape=(), initializer="ones", name="factor")
    ...     def call(self, x):
    ...         return x * self.factor
    >>> Scale()([2.0]).numpy()
    array([2.], dtype=float32)
    """

    _structure: layer_weights.Structure
    _policy: DTypePolicy
    _is_layer = True
    _open = False
    """True if further state may be added after building."""
    _not_described: tuple[str, ...] = ()
    """Arguments that its configuration leaves out, as Keras's does."""
    is_plain = True
    """True if the class sets attributes as `Layer` does."""
    is_described, _makes_nothing = True, False
    """See `described_kind`; and True if there is nothing to build, neither weights nor sublayers. Each subclass says both."""
    call_spec = inputs.CallSpec()
    added_losses = property(attrgetter("_losses"), doc="The list that `add_loss` adds to, of this layer alone.")
    _unwatched: Collection[str] = ("_accepted", "_layer_place")
    _not_walked: Collection[str] = (
        *("_losses", "_build_shape", "_layer_place", "_layer_state", "_input_shape_given", "_input_spec", "_accepted"),
        "_given",
    )

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        made = super().__new__(cls)
        object.__setattr__(made, "_structure", layer_weights.Structure())
        objects.record(made, Layer, arguments, options)
        return made

    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: DTypeLike = None,
        autocast: bool = True,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        width = unknown.pop("input_dim", None)
        shape = unknown.pop("input_shape", None if width is None else (width,))
        kind = type(self).__name__
        layer_weights.refuse_absent(self, unknown)
        if unknown:
            raise unrecognized(self, unknown, ("name", "dtype", "trainable", "activity_regularizer"))
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(f"{kind}: name must be a string without '/', found {name!r}.")
        if not isinstance(trainable, bool):
            raise ValueError(f"{kind}: expected `trainable` to be a boolean, found {trainable!r}.")
        self._built = False
        super().__init__(name or auto_name(snake_case(kind)))
        self._trainable = trainable
        self._layer_state = layer_weights.LayerState()
        self._layer_place = layer_weights.LayerPlace(name or snake_case(kind))
        self.dtype_policy = dtype
        self.autocast = bool(autocast)
        self._losses: list[Any] = []
        self._input_shape_given = shape
        self._input_spec: Any = None
        self._accepted: Any = None
        self._build_shape: Any = None
        self.activity_regularizer = regularizers.get(activity_regularizer)
        if _context.caller is not None and not _context.is_building:
            self._made_in_call = True
        set_options(self)

    # Configuration -----------------------------------------------------------------------------------------------------

    @property
    def dtype_policy(self) -> DTypePolicy:
        """The dtypes of weights and computations. Of a DTypePolicyMap it is the entry for the path that the layer has then."""
        return self._policy

    @dtype_policy.setter
    def dtype_policy(self, policy: Any) -> None:
        chosen = policy_of(policy[self.path] if isinstance(policy, PathMap) else policy)
        if self._layer_state.added and chosen.name != self._policy.name:
            raise ValueError(f"Layer '{self.name}' has weights already. Set dtype_policy before it is built.")
        self._policy = chosen
        self._compute_in(chosen.compute_dtype)

    def _compute_in(self, dtype: str) -> None:
        """Compute in a dtype from now on, whatever the policy says."""
        self._dtype, self._array_dtype = dtype, as_dtype(dtype).numpy

    @property
    def variable_dtype(self) -> str:
        """The dtype of weights as they are kept."""
        return self._policy.variable_dtype

    dtype = variable_dtype

    @property
    def compute_dtype(self) -> str:
        """The dtype of inputs, and of weights as `call` reads them."""
        return self._dtype

    @property
    def input_spec(self) -> Any:
        """The expected inputs: an InputSpec or a list of them, or None."""
        return self._input_spec

    @input_spec.setter
    def input_spec(self, spec: Any) -> None:
        if any(one is not None and not isinstance(one, inputs.InputSpec) for one in nest.flatten(spec)):
            raise TypeError(f"Layer '{self.name}': input_spec must be an InputSpec or a list of them, found {spec!r}.")
        self._input_spec, self._accepted = spec, None

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, as plain values: those of a user's class as they were given.

        Raises:
            NotImplementedError: if an argument is no plain value and no attribute of its name.
        """
        config: dict[str, Any] = {"name": self.name, "trainable": self._trainable, "dtype": self._policy.name}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = objects.described(self.activity_regularizer)
        config |= objects.options(self, Layer)
        return {name: value for name, value in config.items() if name not in self._not_described}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Layer:
        """A new layer, with new weights, from `get_config`."""
        if cls.get_config is not Layer.get_config or cls.is_described:
            return cls(**config)
        return objects.made_of(cls, Layer, config)

    def __init_subclass__(
        cls,
        described: bool = False,
        makes_nothing: bool = False,
        takes_one_tensor: bool | None = None,
        gives_floats: bool | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if gives_floats is not None:
            cls.gives_floats = gives_floats
        if described:
            made_with_numpy(cls, keep)
            cls.__doc__ = with_common_words(cls, makes_nothing)
        cls.is_described, cls._makes_nothing = described, makes_nothing
        cls.is_plain = cls.__setattr__ is Layer.__setattr__
        if "build" in cls.__dict__:
            cls.build = layer_weights.within_scope(cls.build)  # type: ignore[method-assign]
        if "compute_mask" in cls.__dict__:
            cls.supports_masking = cls.computes_mask = True
        one = cls.call_spec.takes_one_tensor if takes_one_tensor is None else takes_one_tensor
        spec = inputs.CallSpec.of(cls.call) if "call" in cls.__dict__ else cls.call_spec
        cls.call_spec = spec._replace(takes_one_tensor=one)

    # Attributes ----------------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        earlier = self.__dict__.get(name)
        if "_name" in self.__dict__ and name not in self._not_walked and layer_weights.holds_state(value):
            if self._built and not self._open and earlier is not value:
                raise ValueError(layer_weights.locked(self.name, f"attribute '{name}'"))
            if isinstance(value, Variable) and not isinstance(value, Weight) and not self._trainable:
                layer_weights.freeze(self, value)  # a Weight is made frozen, unless the user sets it otherwise
        super().__setattr__(name, value)
        may_hold_state = layer_weights.may_hold_state
        if name not in self._unwatched and (may_hold_state(value) or may_hold_state(earlier)):
            self._structure.changed()

    def __delattr__(self, name: str) -> None:
        gone = self.__dict__.get(name)
        super().__delattr__(name)
        layer_weights.forget(self, gone)

    def __getattr__(self, name: str) -> Any:
        if "_name" not in self.__dict__ and not name.startswith("__"):
            raise RuntimeError(
                f"In layer {type(self).__name__}, you forgot to call `super().__init__()` as the first statement in "
                "`__init__()`. Go add it!"
            )
        try:
            return object.__getattribute__(self, name)  # raises once more, in the words of the property if it is one
        except AttributeError as error:
            is_known = name.startswith("_") or hasattr(type(self), name) or vars(self)["_built"] or self._makes_nothing
            later = "" if is_known else "If it is a weight: the first call, or build(input_shape), makes it."
            if not (advice := OF_LAYERS.get(name, later)):
                raise
            raise AttributeError(f"{error}. {advice}", name=name, obj=self) from None

    def _restore(self, attributes: dict[str, Any]) -> None:
        """Restore exactly these attributes; but a random stream of its own, below no other layer, is kept once it is found."""
        known = self._layer_place
        self.__dict__.clear()
        self.__dict__.update(attributes)
        if not known.scope and known.stream is not None:
            self.__dict__["_layer_place"] = self._layer_place._replace(stream=known.stream)
        if "_deferred" in attributes:
            self._deferred.restoration.take_back(self._deferred.path, self)
        self._structure.changed()
        clock.tick()

    # Weights -------------------------------------------------------------------------------------------------------------

    collect_contents, weights = layer_weights.collect, property(layer_weights.weights_of)

    variables: Any = property(
        lambda self: list(_variables(self)),
        doc="All Variables: own trainable ones, own others, random state, then those of the sublayers.",
    )
    trainable_variables: Any = _chosen(_variables, True, "The Variables that an optimizer changes.")
    non_trainable_variables: Any = _chosen(_variables, False, "The Variables that an optimizer leaves alone.")
    trainable_weights = _chosen(attrgetter("weights"), True, "The weights that an optimizer changes.")
    non_trainable_weights = _chosen(attrgetter("weights"), False, "The weights that an optimizer leaves alone.")

    @property
    def metrics(self) -> list[Any]:
        """The metrics held by this layer and by those within it."""
        return list(self.collect_contents().metrics)

    @property
    def metrics_variables(self) -> list[Any]:
        """The state of the metrics."""
        return [variable for metric in self.metrics for variable in metric.variables]

    trainable = property(attrgetter("_trainable"), layer_weights.set_trainable, doc="True if the weights are trained.")

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Write what this layer itself holds to a mapping, by position: '0', '1' and so on; called when a model is saved.

        Override it, and `load_own_variables`, to keep another state.

        Args:
            store: takes arrays by name.

        >>> layer, store = tf.keras.layers.Dense(2), {}
        >>> layer.build((None, 3))
        >>> layer.save_own_variables(store)
        >>> [(name, array.shape) for name, array in store.items()]
        [('0', (3, 2)), ('1', (2,))]
        """
        for number, variable in enumerate(layer_weights.own_variables(self)):
            store[str(number)] = variable.numpy()

    load_own_variables, set_weights = layer_weights.load_own_variables, layer_weights.set_weights

    def count_params(self) -> int:
        """The number of elements of all weights.

        Raises:
            ValueError: if the layer is not built yet.
        """
        self._need_built("count_params")
        return sum(weight.shape.num_elements() for weight in self.weights)

    def get_weights(self) -> list[Any]:
        """The values of the weights as NumPy arrays."""
        return [weight.numpy() for weight in self.weights]

    def add_weight(
        self,
        shape: ShapeLike = None,
        initializer: Any = None,
        dtype: DTypeLike = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Weight:
        """A new weight of this layer.

        Args:
            shape: its shape; () by default.
            initializer: by name or object; Glorot's uniform distribution for floats and zeros for others by default. One
                without a seed draws from the stream of this layer.
            dtype: the layer's by default.
            trainable: whether an optimizer changes it.
            autocast: whether `call` reads it in the compute dtype.
            regularizer: penalty added to the losses while it is trained.
            constraint: projection after each step.
            aggregation: how changes by ranks or shards that compute on parts of a batch become one: 'sum', 'mean' weighted by
                rows, as 'none', or 'only_first_replica'.
            overwrite_with_gradient: not available; False.
            name: within the layer; 'variable' with a number by default.

        Raises:
            ValueError: if a name is given where the shape belongs, or the layer is built.
        """
        layer_weights.refuse_absent(self, {"overwrite_with_gradient": overwrite_with_gradient or None})
        if self._built:
            raise ValueError(layer_weights.locked(self.name, f"weight {name!r}"))
        kind, seed = as_dtype(dtype or self.variable_dtype), lambda: layer_weights.seed_for(self, name or "variable")
        value = layer_weights.initialized(initializer, shape, kind, name or "", seed)
        name = name or auto_name("variable")
        cls = CastWeight if autocast and kind.is_floating and kind != self._dtype else Weight
        path = "/".join((self.path, *_context.names(), name))
        weight = cls(value, name, path, trainable, regularizers.get(regularizer), constraints.get(constraint), aggregation)
        weight.freeze(not self._trainable)
        self._layer_state = self._layer_state._replace(added=(*self._layer_state.added, weight))
        return weight

    add_variable = add_weight

    def _add_kept(self, kept: str, shape: tuple[int, ...], autocast: bool = True, name: str | None = None) -> Weight:
        """Make a weight with the options of a name, such as `kernel_initializer` for 'kernel', and with that name."""
        first, penalty, limit = (getattr(self, f"{kept}_{option}") for option in ("initializer", "regularizer", "constraint"))
        return self.add_weight(shape, first, autocast=autocast, regularizer=penalty, constraint=limit, name=name or kept)

    # Building ------------------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """True if the weights exist, or if there are none to make."""
        return self._built or self._makes_nothing

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    def _need_built(self, method: str) -> None:
        if not self.built:
            raise ValueError(f"{method}: layer '{self.name}' is not built; call it on data or build(input_shape) first.")

    @property
    def path(self) -> str:
        """The names of the layers around it and its own, joined by '/'."""
        return "/".join((*self._layer_place.scope, self.name))

    @layer_weights.within_scope
    def build(self, input_shape: ShapeLike) -> None:
        """Make the weights. Override it; the default builds the sublayers, by calling on zeros."""
        if input_shape is not None and any(not layer._built for layer in self.collect_contents().sublayers):
            self.call(layer_weights.zero_inputs(input_shape, self._dtype))

    @layer_weights.within_scope
    def _become_built(self, input_shape: ShapeLike) -> None:
        """Mark the layer as built without making anything: the call that follows builds the sublayers."""

    def build_on_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if type(self).build is Layer.build:
            self._become_built(shapes_of_first(args, kwargs))
        else:
            given, named = layer_weights.build_arguments(self, type(self).build, self.call_spec.names, args, kwargs)
            self.build(*given, **named)

    get_build_config = layer_weights.get_build_config

    def build_from_config(self, config: dict[str, Any] | None) -> None:
        """Build for the shapes of `get_build_config`."""
        if config and not self._built:
            self.build(**config["shapes_dict"]) if "shapes_dict" in config else self.build(config["input_shape"])

    # Losses --------------------------------------------------------------------------------------------------------------

    def add_loss(self, loss: Any) -> None:
        """Add a scalar, or the elements of an array, computed in `call`, to the losses of this call."""
        self._losses.extend(nest.flatten(loss))

    @property
    def losses(self) -> list[Any]:
        """The losses that `add_loss` added in the last outermost call, and the penalties of the weights that are trained."""
        contents = self.collect_contents()
        added = [loss for layer in (self, *contents.sublayers) for loss in layer._losses]
        return added + [
            variable.regularizer(variable)
            for variable in contents.variables
            if isinstance(variable, Weight) and variable.regularizer is not None and variable._trainable
        ]

    # Shapes --------------------------------------------------------------------------------------------------------------

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The shape of the output for an input of a shape, None for axes of any size; nests of shapes for several.

        Found by a trial on zeros, of which nothing stays: a layer that is not built is not built by it. Layers that know a
        rule override it.

        >>> tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(8)]).compute_output_shape((None, 2))
        (None, 8)
        """
        return output_shapes(self, input_shape)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """KerasTensors of the shapes and dtypes that a call with these KerasTensors gives; the layer is not built by it."""
        return output_specs(self, args, kwargs)

    # Calling -------------------------------------------------------------------------------------------------------------

    _made_in_call = False
    supports_masking = False
    """True if `compute_mask` passes a mask of the input on to the output."""
    _takes_text = False
    """True if the layer takes text, so that a model with it takes columns of text."""
    gives_floats = False
    """True if integers become floats; other layers keep integers as they are, or refuse them when they are called."""
    computes_mask = False

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The computation. Override it."""
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_mask(self, inputs: TensorLike, previous_mask: TensorLike) -> Any:
        """The mask of the output; the input's by default."""
        return previous_mask

    input, output = LayerIO(), LayerIO()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        training = kwargs.pop("training", None) if kwargs else None
        spec = self.call_spec
        if kwargs and not args and spec.input_name in kwargs:
            args = (kwargs.pop(spec.input_name),)
        if len(args) == 1 and type(args[0]) is Tensor and not kwargs and args[0].attached is None:
            x, masks = args[0], None
            if x.array.dtype is not self._array_dtype:
                args = (self._tensor(x),)
            if x.array.shape != self._accepted:
                self._accept(args[0])
        elif holds_symbol((args, kwargs)):
            args = self._single(args)
            self._accept(args[0] if args else next(iter(kwargs.values())))
            return call_symbolically(self, args, kwargs if training is None else {**kwargs, "training": training})
        else:
            args, masks = self._prepared(args, kwargs)
        if not self._built:
            try:
                self.build_on_call(args, kwargs)
            except FAILURES as error:
                if is_failure(error):
                    raise inputs.unusable(self, error, args, kwargs) from error
                raise
            if self._made_in_call and _context.caller is not None:
                layer_weights.notice_unheld(_context.caller, self)
        if masks is not None or spec.masks:
            if masks is not None and spec.takes_mask and "mask" in spec.names[len(args) :]:
                kwargs["mask"] = masks
            given = dict(zip(spec.names, args, strict=False)) | kwargs
            for name in spec.masks:  # 'query_mask' for an argument called query
                if given.get(name) is None:
                    kwargs[name] = inputs.masks_of(given.get(name.removesuffix("_mask")))
        context = _context
        outer, caller = context.training, context.caller
        if training is None:
            training = spec.training if outer is None else outer
        if spec.takes_training:
            kwargs["training"] = training
        if caller is None:
            for layer in (self, *self.collect_contents().sublayers):
                layer._losses.clear()
        context.training, context.caller = training, self
        try:
            outputs = self.call(*args, **kwargs)
        except FAILURES as error:
            if is_failure(error):
                raise inputs.unusable(self, error, args, kwargs) from error
            raise
        finally:
            context.training, context.caller = outer, caller
        if masks is not None or self.computes_mask:
            inputs.pass_masks(self, args[0] if args else next(iter(kwargs.values())), outputs, masks)
        if self.activity_regularizer is not None:
            for output in nest.flatten(outputs):
                wide = cast(output, self.variable_dtype)
                self.add_loss(self.activity_regularizer(wide) / float(max(output.shape[0] if output.ndim else 1, 1)))
        return outputs

    def stateless_call(
        self, trainable_variables: Any, non_trainable_variables: Any, *args: Any, return_losses: bool = False, **kwargs: Any
    ) -> tuple[Any, ...]:
        """The outputs for these values of the Variables, then the values of the non-trainable ones after the call, then the
        losses if asked for. Nothing changes, and derivatives reach the values.

        >>> layer = tf.keras.layers.Dense(1)
        >>> layer.build((None, 1))
        >>> layer.stateless_call([[[2.0]], [1.0]], [], tf.constant([[3.0]]))[0].numpy()
        array([[7.]], dtype=float32)
        """
        self._need_built("stateless_call")
        values = ("trainable_variables", trainable_variables), ("non_trainable_variables", non_trainable_variables)
        groups = [(name, getattr(self, name), given) for name, given in values]
        kept = [(one, list(one._losses)) for one in (self, *self.collect_contents().sublayers)]
        call = lambda: (self(*args, **kwargs), self.losses)
        try:
            (outputs, losses), (_, others) = without_effects("stateless_call", groups, call)
        finally:
            for one, before in kept:
                one._losses[:] = before
        return (outputs, others, losses) if return_losses else (outputs, others)

    def _accept(self, x: TensorLike) -> None:
        """Check the inputs against `input_spec`; the same shape is not checked again."""
        if self._input_spec is not None:
            inputs.check(self, self._input_spec, x)
        if isinstance(x, Tensor) and getattr(self._input_spec, "dtype", None) is None:
            self.__dict__["_accepted"] = x.array.shape

    def _prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        """The positional arguments as Tensors, and the masks that count; keyword arguments are changed in place."""
        first = self.call_spec.names[0] if self.call_spec.names else ""
        masks = inputs.masks_of(args[0] if args else kwargs.get(first))
        for extra in args[1:]:
            if not isinstance(extra, list) and any(isinstance(leaf, (bool, int, float, str)) for leaf in nest.flatten(extra)):
                raise ValueError(
                    f"Only input tensors may be passed as positional arguments to {type(self).__name__} ('{self.name}'); "
                    f"{extra!r} should be passed as a keyword argument, for example training={extra!r}."
                )
        args = tuple(map(self._tensors, self._single(args)))
        for name, value in kwargs.items():
            if is_data(value) or (name == "mask" and is_numbers(value)):
                kwargs[name] = self._tensor(value)
        told = kwargs.get("mask")
        self._accept(args[0] if args else kwargs.get(first))
        return args, masks if told is None else told

    def _single(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments; a layer of one tensor takes it out of a list or dict of one."""
        if self.call_spec.takes_one_tensor and args and isinstance(args[0], (list, tuple, dict)) and not is_numbers(args[0]):
            return inputs.only_tensor(inputs.called(self), args[0]), *args[1:]
        return args

    def _tensors(self, argument: Any) -> Any:
        one = not hasattr(argument, "shape") and is_numbers(argument)
        return self._tensor(argument) if one else nest.map_structure(self._tensor, argument)

    def _tensor(self, value: Any) -> Any:
        if value is None:
            return None
        result = convert_to_tensor(value)
        if not self.autocast or result.array.dtype == self._array_dtype or not result.dtype.is_floating:
            return result
        wide, result = result, cast(result, self._dtype)
        inputs.attach(mask_of(wide), result)
        return result

    def __repr__(self) -> str:
        if "_name" not in self.__dict__:
            return f"<{type(self).__name__}, whose __init__ did not call super().__init__()>"
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"
