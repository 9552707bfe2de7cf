"""Model: a layer that can be trained, made from a `call` of one's own or from inputs and outputs.

Key idea: there is one class. A model that is given KerasTensors holds their `Graph` and calls that; everything else, from
weights to `fit`, is the same. Next: `graph.py` and `sequential.py`, and `training/` for what models add to layers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ... import nest
from ...boundary import explaining
from ..layers import inputs as masks
from ..layers.input_layer import InputLayer
from ..layers.keras_tensor import Side
from ..layers.layer import Layer
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..training import Trainer
from .graph import Graph, only_one
from .stored import Stored


class Model(Stored, Trainer, Layer):
    """Base class of models: make layers in `__init__` and use them in `call`; or give inputs and outputs.

    Called, it gives its outputs nested as they were declared; a list of one output is given as that output.

    Args:
        inputs, outputs: KerasTensors or nests of them, for a functional model.
        options: `name`, `trainable`, and for other models `dtype`, as in `Layer`.

    Raises:
        ValueError: for a graph that is not connected or has a name twice; see `graph.py`.

    >>> import minikeras as tf
    >>> class Classifier(tf.keras.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = tf.keras.layers.Dense(8, activation="relu")
    ...         self.head = tf.keras.layers.Dense(3)
    ...     def call(self, x):
    ...         return self.head(self.hidden(x))
    >>> model = Classifier()
    >>> model(tf.ones([2, 4])).shape
    TensorShape([2, 3])
    >>> [variable.path for variable in model.trainable_variables][0]
    'classifier/dense/kernel'

    >>> x = tf.keras.Input((4,))
    >>> hidden = tf.keras.layers.Dense(4)(x)
    >>> tf.keras.Model(inputs=x, outputs=[hidden, x + hidden]).output_shape
    [(None, 4), (None, 4)]
    """

    _not_walked = (*Layer._not_walked, *Trainer._not_walked, "_given")

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is Model and _is_functional(arguments, options):
            return Functional.__new__(Functional)
        made = super().__new__(cls)
        object.__setattr__(made, "_given", (arguments, options))
        return made

    def __init__(self, *arguments: Any, **options: Any) -> None:
        graph = None
        if _is_functional(arguments, options):
            given = inspect.signature(_functional).bind(*arguments, **options).arguments
            graph = Graph(given["inputs"], given["outputs"])
            options = {
                key: value for key, value in given.items() if key in ("name", "trainable", "dtype") and value is not None
            }
        elif arguments:
            raise TypeError(
                f"{type(self).__name__}: give inputs and outputs, or only keyword arguments; found {arguments!r:.80}."
            )
        trainable = options.pop("trainable", True)
        super().__init__(**options)
        self._start_training_state()
        self._graph = graph
        if graph is not None:
            self._layers = tuple(operation for operation in graph.operations if isinstance(operation, Layer))
            self._open = self._built = True
            self.autocast = False  # its inputs say which dtype they have
            self._settle_stream()
        if not trainable:
            self.trainable = False

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """The computation: of a functional model its graph; override it for any other."""
        if self._graph is None:
            raise NotImplementedError(
                f"Model {type(self).__name__} does not have a `call()` method implemented: define `call(self, inputs)`, or "
                "give inputs and outputs."
            )
        return self._graph.run(_marked(inputs, mask))

    def __getstate__(self) -> dict[str, Any]:
        """The graph first: it holds its calls in an order that can be copied."""
        return {"_graph": self._graph, **vars(self)}

    # Looking ----------------------------------------------------------------------------------------------------------

    @property
    def layers(self) -> list[Layer]:
        """The layers it holds: of a functional model those of its graph by depth, else in the order of the attributes."""
        if self._graph is not None:
            return list(self._layers)
        return [thing for thing in self._own()[0] if isinstance(thing, Layer) and not isinstance(thing, InputLayer)]

    @explaining
    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer by name or by position.

        Raises:
            ValueError: if there is none, with the names there are.
        """
        layers = self.layers
        if (name is None) == (index is None):
            raise ValueError("get_layer: give either a name or an index.")
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers.")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in layers]}.")

    def _need_graph(self, what: str) -> Graph:
        if self._graph is None:
            raise AttributeError(
                f"Model '{self.name}' ({type(self).__name__}) has no `{what}`: what it computes is in its `call`. A functional "
                "model, keras.Model(inputs, outputs), and a Sequential with an Input have one."
            )
        return self._graph

    @property
    def inputs(self) -> list[Any]:
        """The KerasTensors that go in, in flattening order."""
        return nest.flatten(self._need_graph("inputs").inputs)

    @property
    def outputs(self) -> list[Any]:
        """The KerasTensors that come out, in flattening order."""
        return nest.flatten(self._need_graph("outputs").outputs)

    @property
    def input(self) -> Any:  # type: ignore[override]
        """The KerasTensors that go in, nested as they were given."""
        return _called(self, "input") if self._graph is None else self._graph.inputs

    @property
    def output(self) -> Any:  # type: ignore[override]
        """The KerasTensors that come out, nested as they were given."""
        return _called(self, "output") if self._graph is None else self._graph.outputs

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [one.name for one in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers that give the outputs."""
        return [one.node.operation.name for one in self.outputs]

    @property
    def input_shape(self) -> Any:
        """The shape of the input, or the shapes of several, None for axes of any size."""
        return nest.map_structure(lambda one: one.shape, only_one(self._need_graph("input_shape").inputs))

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or the shapes of several, None for axes of any size."""
        return nest.map_structure(lambda one: one.shape, only_one(self._need_graph("output_shape").outputs))

    @explaining
    def summary(
        self,
        line_length: int | None = None,
        positions: Any = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = True,
        layer_range: Any = None,
    ) -> None:
        """Print a table of the layers; see `summary.py`.

        Args:
            line_length: the greatest width in characters; the terminal's by default.
            positions: where columns end, in characters or as shares of `line_length`.
            print_fn: called with each line instead of `print`.
            expand_nested: whether the layers of models within are shown.
            show_trainable: whether there is a column that tells what is trained, and where a mode is settled.
            layer_range: names of the first and the last layer to show, or patterns that match them.

        >>> import minikeras as tf
        >>> tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)], name="net").summary()
        Model: "net"
        ┌───────────────┬──────────────┬─────────┬───────────┐
        │ Layer (type)  │ Output Shape │ Param # │ Trainable │
        ├───────────────┼──────────────┼─────────┼───────────┤
        │ dense (Dense) │ (None, 3)    │      15 │ Y         │
        └───────────────┴──────────────┴─────────┴───────────┘
         Total params: 15 (60 B)
         Trainable params: 15 (60 B)
         Non-trainable params: 0 (0 B)
        """
        from .summary import summary

        for line in summary(self, line_length, positions, expand_nested, show_trainable, layer_range):
            (print_fn or print)(line)

    # Configuration ----------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs: of a functional model its graph, of a subclass the arguments it was made with.

        Raises:
            NotImplementedError: for a subclass made with arguments that are no plain data and no objects with `get_config`,
                unless it has a `get_config` of its own, which adds them.
        """
        if self._graph is not None and type(self).__init__ is Model.__init__:
            from .graph_config import written

            return {"name": self.name, "trainable": self._trainable, **written(self._graph)}
        accepted = inspect.signature(type(self).__init__).parameters
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
        base = {"name": self.name, "trainable": self._trainable, "dtype": self.dtype_policy.name}
        config = {key: value for key, value in base.items() if key in accepted or open_ended}
        try:
            config |= serialize_keras_object(_by_name(type(self), *self._given))
        except (TypeError, ValueError) as error:
            if type(self).get_config is not Model.get_config:
                return config
            raise NotImplementedError(
                f"Object {type(self).__name__} was created by passing non-serializable argument values in `__init__()`, and "
                f"therefore the object must override `get_config()` in order to be serializable: {error}"
            ) from error
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """A new model, with new weights, from `get_config`.

        Args:
            config: of a functional model, or the arguments of a subclass.
            custom_objects: further classes and functions by name.
        """
        if {"layers", "input_layers", "output_layers"} <= set(config):
            from .graph_config import read

            inputs, outputs = read(config, custom_objects)
            made = cls(inputs=inputs, outputs=outputs, name=config.get("name"))
        else:
            made = cls(**deserialize_keras_object(dict(config), custom_objects))
        made._set_trainable_alone(config.get("trainable") is not False)  # each layer has its own in its configuration
        return made

    def to_json(self, **options: Any) -> str:
        """The configuration as JSON, without weights; `model_from_json` reads it.

        Args:
            options: for `json.dumps`, such as indent=2.
        """
        import json

        return json.dumps(serialize_keras_object(self), **options)


class Functional(Model):
    """The class of `keras.Model(inputs, outputs)`, which files and error messages name.

    >>> import minikeras as tf
    >>> x = tf.keras.Input((2,))
    >>> tf.keras.Model(x, tf.keras.layers.Dense(1)(x))
    <Functional name=functional, built=True>
    """


def _functional(inputs: Any, outputs: Any, name: str | None = None, trainable: bool | None = None, dtype: Any = None) -> None:
    """The arguments of a functional model."""


def _is_functional(arguments: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    return len(arguments) >= 2 or (len(arguments) == 1 and "outputs" in options) or {"inputs", "outputs"} <= set(options)


def _by_name(cls: type, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an object was made with, by name."""
    bound = inspect.signature(cls.__init__).bind(None, *arguments, **options)  # type: ignore[misc]
    found: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind = inspect.signature(cls.__init__).parameters[name].kind  # type: ignore[misc]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(f"positional arguments {value!r:.80} have no names")
        found |= value if kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return found


def _marked(inputs: Any, mask: Any) -> Any:
    """The inputs, carrying the masks that were given by hand."""
    if mask is None:
        return inputs
    carried = [masks.mask_of(x) for x in nest.flatten(inputs)]
    if all(given is own for given, own in zip(nest.flatten(mask), carried, strict=False)):
        return inputs
    from ...functions.elementwise import identity

    marked = nest.map_structure(lambda x: None if x is None else identity(x), inputs)
    masks.attach(nest.flatten(mask), marked)
    return marked


def _called(model: Model, name: str) -> Any:
    """`input` or `output` of a model without a graph: those of its call on KerasTensors."""
    side = Side()
    side.__set_name__(Model, name)
    return side.__get__(model)
