"""Model: a layer that can be trained. Sequential: a chain of layers.

Next: `training.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..functions.creation import zeros
from .layers.core import InputLayer
from .layers.layer import Layer, shapes
from .training import Trainer


class Model(Trainer, Layer):
    """Base class of models: make layers in `__init__`, use them in `call`.

    Args:
        options: `name`, `dtype`, `trainable`, as in `Layer`.

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
    """

    _not_walked = (*Layer._not_walked, *Trainer._not_walked)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        if arguments or "inputs" in options or "outputs" in options:
            raise NotImplementedError(
                "Model(inputs, outputs): the functional API is not available yet. Use keras.Sequential, or a subclass of "
                "keras.Model with a `call` method."
            )
        super().__init__(**options)
        self._start_training_state()

    @property
    def layers(self) -> list[Layer]:
        """The layers it holds directly, in the order of their attributes."""
        return [thing for thing in self._own()[0] if isinstance(thing, Layer) and not isinstance(thing, InputLayer)]

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

    def summary(self, line_length: int | None = None, print_fn: Callable[[str], Any] | None = None) -> None:
        """Print a table of the layers: name and class, output shape, parameters, and whether they are trained."""
        rows = [("Layer (type)", "Output shape", "Parameters", "Trained")]
        for layer in self.layers:
            shape = _output_shape(layer)
            count = f"{layer.count_params():,}" if layer.built else "0 (unbuilt)"
            trained = "yes" if layer.trainable_variables else "frozen" if layer.weights else "-"
            rows.append(
                (f"{layer.name} ({type(layer).__name__})", "?" if shape is None else _shape_text(shape), count, trained)
            )
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        rule = "-" * max(len(line) for line in lines)
        trainable = sum(variable.shape.num_elements() for variable in self.trainable_weights)
        others = sum(variable.shape.num_elements() for variable in self.non_trainable_weights)
        totals = f"Parameters: {trainable + others:,}, of which {trainable:,} trainable and {others:,} not"
        for line in (f'Model: "{self.name}"', rule, lines[0], rule, *lines[1:], rule, totals):
            (print_fn or print)(line)


def _output_shape(layer: Layer) -> Any:
    """(None, ...) if the layer is built and can tell, else None."""
    compute = getattr(layer, "compute_output_shape", None)
    if not layer.built or compute is None or layer._build_shape is None or not isinstance(layer._build_shape, tuple):
        return None
    return (None, *compute(layer._build_shape)[1:])


def _shape_text(shape: Sequence[Any]) -> str:
    return "(" + ", ".join(str(size) for size in shape) + ("," if len(shape) == 1 else "") + ")"


class Sequential(Model):
    """A chain of layers, each called with the output of the one before.

    Built when `Input` comes first, else by the first call.

    Args:
        layers: the layers in order.
        trainable: whether their weights are trained.
        name: made up if None.

    Raises:
        TypeError: for anything that is no layer.
        ValueError: if two layers have one name.

    >>> import minikeras as tf
    >>> model = tf.keras.Sequential([
    ...     tf.keras.Input(shape=(4,)),
    ...     tf.keras.layers.Dense(8, activation="relu"),
    ...     tf.keras.layers.Dense(3),
    ... ])
    >>> model.count_params()
    67
    """

    def __init__(self, layers: Sequence[Layer] | None = None, trainable: bool = True, name: str | None = None) -> None:
        super().__init__(name=name)
        self._chain: tuple[Layer, ...] = ()
        for layer in layers or ():
            self._append(layer)
        self._build_if_shape_known()
        if not trainable:
            self.trainable = False

    def add(self, layer: Layer) -> None:
        """Append a layer."""
        self._append(layer)
        self._build_if_shape_known()

    def pop(self) -> Layer:
        """Remove the last layer and return it."""
        if not self._chain:
            raise TypeError("pop: there are no layers in the model.")
        last = self._chain[-1]
        self._hold(self._chain[:-1])
        return last

    def _append(self, layer: Layer) -> None:
        if not isinstance(layer, Layer):
            raise TypeError(
                f"Only instances of `keras.Layer` can be added to a Sequential model. Received: {layer!r} (of type "
                f"{type(layer)})."
            )
        if isinstance(layer, InputLayer) and self._chain:
            raise ValueError(f"Sequential '{self.name}': Input must be the first element.")
        if layer.name in {other.name for other in self._chain}:
            raise ValueError(
                f"All layers added to a Sequential model should have unique names. Name '{layer.name}' is already the name of "
                "a layer in this model. Update the `name` argument to pass a unique name."
            )
        self._hold((*self._chain, layer))

    def _hold(self, layers: tuple[Layer, ...]) -> None:
        """Be the chain of these layers; unlike other state they may change after the model is built."""
        self._built = False
        self._chain = layers

    def _build_if_shape_known(self) -> None:
        """Build the layers that are not built yet, if the first one says what comes in."""
        if not self._chain:
            return
        first = self._chain[0]
        if isinstance(first, InputLayer):
            self.build(first.batch_shape)
        elif first._input_shape_given is not None:
            self.build((None, *first._input_shape_given))

    @property
    def built(self) -> bool:
        """Whether the weights of all layers exist."""
        return self._built and all(layer.built for layer in self._chain)

    @built.setter
    def built(self, value: bool) -> None:
        self._built = bool(value)

    def build(self, input_shape: Any) -> None:
        """Build every layer for inputs of a shape with the batch axis; None fits any size."""
        shape = tuple(input_shape)
        for position, layer in enumerate(self._chain):
            if not layer.built:
                layer.build(shape)
            follows_input = position > 0 and isinstance(self._chain[position - 1], InputLayer)
            shape = self._shape_after(layer, shape, self._chain[0].dtype if follows_input else layer.dtype)

    def _build_on_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Only be ready: the call that follows builds each layer on what it is given."""
        if not self._chain:
            raise ValueError(f"Sequential model '{self.name}' cannot be called: it has no layers yet. Use model.add(layer).")
        Layer.build(self, shapes(args, kwargs))

    @staticmethod
    def _shape_after(layer: Layer, shape: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
        """The shape a layer gives, told by the layer or found by a call on zeros."""
        compute = getattr(layer, "compute_output_shape", None)
        if compute is not None:
            return tuple(compute(shape))
        sample = layer(zeros([1 if size is None else size for size in shape], dtype), training=False)
        return (shape[0], *sample.shape[1:])

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The shape that the last layer gives."""
        shape = tuple(input_shape)
        for layer in self._chain:
            shape = self._shape_after(layer, shape, layer.dtype)
        return shape

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        outputs = inputs
        for layer in self._chain:
            outputs = layer(outputs)
        return outputs

    @property
    def input_shape(self) -> tuple[Any, ...]:
        """The shape it was built for, with None for the batch axis."""
        if self._build_shape is None:
            raise AttributeError(f"Sequential '{self.name}' is not built yet, so its input shape is not known.")
        return (None, *self._build_shape[1:])

    @property
    def output_shape(self) -> tuple[Any, ...]:
        """The shape of its output, with None for the batch axis."""
        return (None, *self.compute_output_shape(self.input_shape)[1:])

    def get_config(self) -> dict[str, Any]:
        """Name, and class name and configuration of each layer."""
        layers = [{"class_name": type(layer).__name__, "config": layer.get_config()} for layer in self._chain]
        return {"name": self.name, "layers": layers}
