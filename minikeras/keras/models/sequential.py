"""Sequential: a chain of layers.

The chain is called layer by layer. As soon as the shape of its input is known it is also called on a KerasTensor, which builds
the layers and makes `inputs`, `outputs` and every `layer.output` known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import nest
from ...boundary import explaining
from ...core import Tensor
from ...types import ShapeLike, TensorLike
from ..layers.core import InputLayer, entrance
from ..layers.inputs import marked, of_rank
from ..layers.layer import Layer
from ..layers.layer_weights import set_trainable_alone
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..symbolic import KerasTensor, holds_symbol, shapes_of_first
from ..symbolic.trial import returned_none
from .graph import LayerGraph
from .model import Model


class Sequential(Model, described=True):
    """A chain of layers, each called with the output of the one before.

    Built when `Input` or a model that knows its input comes first, else by the first call.

    Args:
        layers: the layers in order.
        trainable: whether their weights are trained.
        name: made up if None.

    Raises:
        ValueError: for anything that is no layer, or if two layers have one name; one layer may occur twice, and shares its
            weights with itself.

    >>> model = tf.keras.Sequential([
    ...     tf.keras.Input(shape=(4,)),
    ...     tf.keras.layers.Dense(8, activation="relu"),
    ...     tf.keras.layers.Dense(3),
    ... ])
    >>> model.count_params(), model.layers[0].output
    (67, <KerasTensor shape=(None, 8), dtype=float32, name=keras_tensor>)
    """

    _not_walked = ("_trail", "_named")
    checkpoint_names = {"_chain": "layers"}

    @explaining
    def __init__(self, layers: Sequence[Any] | None = None, trainable: bool = True, name: str | None = None) -> None:
        super().__init__(name=name)
        self.autocast = False  # each layer casts for itself
        self._chain: tuple[Layer, ...] = ()
        self._named: dict[str, Layer] = {}
        self._trail: tuple[KerasTensor, ...] = ()
        for layer in layers or ():
            self._append(layer)
        self._build_if_shape_known()
        if not trainable:
            self.trainable = False

    # The chain --------------------------------------------------------------------------------------------------------

    def add(self, layer: Any) -> None:
        """Append a layer."""
        self._append(layer)
        self._build_if_shape_known()

    def pop(self) -> Layer:
        """Remove the last layer and return it."""
        if not self._chain:
            raise TypeError("pop: there are no layers in the model.")
        last = self._chain[-1]
        self._hold(self._chain[:-1])
        self._named = {layer.name: layer for layer in self._chain}
        return last

    def _append(self, layer: Any) -> None:
        if isinstance(layer, KerasTensor) and isinstance(layer.node.operation, InputLayer):
            entered: tuple[KerasTensor, ...] = (layer,)
            layer = layer.node.operation
        else:
            entered = (entrance(layer),) if isinstance(layer, InputLayer) else ()
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Only instances of `keras.Layer` can be added to a Sequential model. Received: {layer!r} (of type "
                f"{type(layer)})."
            )
        if entered and self._chain:
            raise ValueError(f"Sequential '{self.name}': Input must be the first element.")
        if self._named.get(layer.name, layer) is not layer:
            raise ValueError(
                f"All layers added to a Sequential model should have unique names. Name '{layer.name}' is already the name of "
                "a layer in this model. Update the `name` argument to pass a unique name."
            )
        self._named[layer.name] = layer
        self._hold((*self._chain, layer))
        self._trail = entered or self._trail

    def _hold(self, layers: tuple[Layer, ...]) -> None:
        """Set the layers of the chain; unlike other state they may change after the model is built."""
        self._built, self._graph = False, None
        self._chain = layers
        entered = bool(layers) and isinstance(layers[0], InputLayer)
        self._trail = self._trail[: 1 + len(layers) - entered]

    def _build_if_shape_known(self) -> None:
        """Build the layers that are not built yet, if the first one says what comes in."""
        if self._trail:
            self.build(self._trail[0].shape)
        elif self._chain and (shape := self._chain[0]._input_shape_given) is not None:
            self.build((None, *shape))
        elif self._chain and (known := _only_input(self._chain[0])) is not None:
            self._trail = (entrance(InputLayer(batch_shape=known.shape, dtype=known.dtype)),)
            self.build(known.shape)

    # Building ---------------------------------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """True if the weights of all layers exist."""
        return self._built and all(layer.built for layer in self._chain)

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    def build(self, input_shape: ShapeLike) -> None:
        """Build every layer for inputs of a shape with the batch axis; None fits any size."""
        shape = tuple(input_shape)
        if not self._trail or self._trail[0].shape != shape:
            dtype = self._trail[0].dtype if self._trail else self.layers[0].compute_dtype if self.layers else None
            self._trail = (entrance(InputLayer(batch_shape=shape, dtype=dtype)),)
        for layer in self.layers[len(self._trail) - 1 :]:
            self._trail = (*self._trail, layer(self._trail[-1]))
        self._graph = LayerGraph(self._trail[0], self._trail[-1])

    def build_on_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Called on data, only mark the model as built: the call that follows builds each layer on its own input."""
        if not self._chain:
            raise ValueError(f"Sequential model '{self.name}' cannot be called: it has no layers yet. Use model.add(layer).")
        if not holds_symbol(args):
            self._become_built(shapes_of_first(args, kwargs))
            return
        if not self._trail:
            self._trail = (entrance(InputLayer(batch_shape=args[0].shape, dtype=args[0].dtype)),)
        self.build(self._trail[0].shape)

    def need_graph(self, what: str) -> LayerGraph:
        """The chain as a graph; of a model that was built by a call it is made now."""
        if self._graph is None and self.built and self._build_shape is not None:
            self.build((None, *self._build_shape[1:]))
        if self._graph is None:
            words = what.replace("_", " ")
            raise AttributeError(
                f"Sequential '{self.name}' is not built yet, so its {words} is not known. Begin with an Input, or call it."
            )
        return self._graph

    input = property(lambda self: self.need_graph("input").inputs, doc="The KerasTensor that goes in.")
    output = property(lambda self: self.need_graph("output").outputs, doc="The KerasTensor that comes out.")

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, without the input."""
        return [layer for layer in self._chain if not isinstance(layer, InputLayer)]

    def call(self, inputs: TensorLike, training: bool | None = None, mask: TensorLike = None) -> Any:
        outputs, chain = inputs if mask is None else marked(inputs, mask), self._chain
        if chain and type(chain[0]) is InputLayer and chain[0].passes(outputs):
            chain = chain[1:]
        elif self._trail and isinstance(outputs, Tensor):
            outputs = of_rank(outputs, self._trail[0].shape)
        for layer in chain:
            outputs = layer(outputs)
            if outputs is None:
                raise ValueError(returned_none(layer))
        return outputs

    def _clone_chain(self, inputs: Any, cloned: Callable[[Layer], Any]) -> Any:
        """A model of the clones of these layers, one for each, on a KerasTensor if one is given."""
        given = nest.flatten(inputs) if inputs is not None else []
        if len(given) > 1 or not all(isinstance(one, KerasTensor) for one in given):
            raise ValueError(f"clone_model: a Sequential has one input; found input_tensors={inputs!r:.200}.")
        copies = {layer: cloned(layer) for layer in self.layers}
        layers = [copies[layer] for layer in self.layers]
        if given and not isinstance(given[0].node.operation, InputLayer):
            x = given[0]
            for layer in layers:
                x = layer(x)
            return Model(given[0], x, name=self.name)
        first = given or ([InputLayer.from_config(self._chain[0].get_config())] if len(self._chain) > len(layers) else [])
        made = type(self)([*first, *layers], name=self.name)
        if not made.built and self._build_shape is not None:
            made.build((None, *self._build_shape[1:]))
        return made

    # Configuration ----------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Name and policy, the configuration of each layer, and the shape it was built for."""
        config = {
            "name": self.name,
            "trainable": self._trainable,
            "dtype": serialize_keras_object(self.dtype_policy),
            "layers": [serialize_keras_object(layer) for layer in self._chain],
        }
        if self._build_shape is not None:
            config["build_input_shape"] = [None, *self._build_shape[1:]]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """A new model, with new weights, from what `get_config` or Keras gives; `custom_objects` as in `Model`."""
        if not isinstance(config, Mapping):
            config = {"layers": config}
        shape = config.get("build_input_shape")
        described = config["layers"]
        if shape:  # then they are built here, under the name of this model
            described = [_unbuilt(layer) for layer in described]
        chain: list[Any] = []
        places: dict[str, int] = {}
        for number, layer in enumerate(described):
            inner = layer.get("config") if isinstance(layer, Mapping) else None
            name = str(inner.get("name", "")) if isinstance(inner, Mapping) else ""
            place = places.setdefault(name or f"/{number}", number)
            twice = place < number and described[place] == layer  # then it is one layer, which shares its weights with itself
            chain.append(chain[place] if twice else deserialize_keras_object(layer, custom_objects))
        for layer, one in zip(chain, config["layers"], strict=True):
            own_way = isinstance(layer, Layer) and type(layer).build_from_config is not Layer.build_from_config
            if own_way and not layer.built and one.get("build_config"):
                layer.build_from_config(deserialize_keras_object(one["build_config"]))
        made = cls(chain, name=config.get("name"))
        set_trainable_alone(made, config.get("trainable") is not False)  # each layer has its own in its configuration
        if isinstance(shape, (list, tuple)) and not made.built:
            made.build(shape)
        return made


def _only_input(layer: Any) -> KerasTensor | None:
    """The input of a model that knows it and has one only."""
    try:
        found = nest.flatten(layer.input) if isinstance(layer, Model) and layer.built else []
    except AttributeError:  # a subclass that was not called on KerasTensors
        return None
    return found[0] if len(found) == 1 else None


def _unbuilt(layer: Any) -> Any:
    """The configuration of a layer without the shape that it was built for; a chain with an Input of its own keeps it."""
    if not isinstance(layer, Mapping):
        return layer
    bare = {key: value for key, value in layer.items() if key != "build_config"}
    inner = bare.get("config")
    if isinstance(inner, Mapping) and "build_input_shape" in inner:
        parts = inner.get("layers") or [{}]
        if not (isinstance(parts[0], Mapping) and parts[0].get("class_name") == "InputLayer"):
            bare["config"] = {key: value for key, value in inner.items() if key != "build_input_shape"}
    return bare
