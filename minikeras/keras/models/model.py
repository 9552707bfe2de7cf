"""Model: a layer that can be trained, made from the `call` of a subclass or from inputs and outputs.

A model that is given KerasTensors holds their `LayerGraph` and calls that; everything else, from weights to `fit`, is the same.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from ... import nest
from ...boundary import explaining
from ...core import Tensor, Variable
from .. import batches
from ..arguments import takes_numpy
from ..callbacks import History
from ..layers import inputs as masks
from ..layers import layer_weights
from ..layers.core import InputLayer
from ..layers.layer import Layer
from ..saving.objects import serialize_keras_object
from ..training import state, steps, trainer
from ..training.executions import on_host
from ..training.state import Logs, Snapshot, State, Transaction
from . import configuration
from .graph import LayerGraph, only_one


class Model(Layer, described=True):
    """Base class of models: make layers in `__init__` and use them in `call`; or give inputs and outputs.

    Called, it gives its outputs nested as they were declared; a list of one output is given as that output.

    Args:
        inputs, outputs: KerasTensors or nests of them, for a functional model.
        options: `name`, `trainable`, and for other models `dtype`, as in `Layer`.

    Raises:
        ValueError: for a graph that is not connected or has a name twice; see `graph.py`.

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

    A model can also be pickled and deep-copied, for another process or as a trial: the copy has weights, compilation, state of
    the optimizer and random streams of its own, and training goes on as with the original. To keep a model, `save` it: a pickle
    fits one version of this package, and loading it runs what it says.
    """

    _not_walked: Collection[str] = ("_trainer", "optimizer", "loss", "history", "_given")
    checkpointed = ("optimizer",)
    _unwatched = ("_trainer", "history", "stop_training", "stop_evaluating", "stop_predicting")
    compiled_loss, compiled_metrics = steps.compiled_loss, property(steps.compiled_metrics)
    layer_graph = property(attrgetter("_graph"), doc="The layers of a functional model and how they are joined, or None.")
    training_loops = property(attrgetter("_trainer"), doc="What `compile` was given, and the loops with their compiled steps.")

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is Model and configuration.is_functional(arguments, options):
            return Functional.__new__(Functional)
        made = super().__new__(cls)
        object.__setattr__(made, "_given", (arguments, options))
        return made

    def __init__(self, *arguments: Any, **options: Any) -> None:
        graph = None
        if configuration.is_functional(arguments, options):
            options = configuration.functional(arguments, options)
            graph = LayerGraph(options.pop("inputs", None), options.pop("outputs", None))
        elif arguments:
            raise TypeError(
                f"{type(self).__name__}: give inputs and outputs, or only keyword arguments; found {arguments!r:.80}."
            )
        trainable = options.pop("trainable", True)
        super().__init__(**options)
        self._trainer = trainer.Trainer()
        self.optimizer: Any = None
        self.loss: Any = None
        self.stop_training = self.stop_evaluating = self.stop_predicting = False
        self.history: Any = None
        self.run_eagerly, self.jit_compile, self.steps_per_execution = False, "auto", "auto"
        self._graph = graph
        if graph is not None:
            self._layers = tuple(operation for operation in graph.operations if isinstance(operation, Layer))
            self._open = self._built = True
            self.autocast = False  # its inputs say which dtype they have
            layer_weights.settle_stream(self)
        if not trainable:
            self.trainable = False

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """The computation: of a functional model its graph; override it for any other."""
        if self._graph is None:
            raise NotImplementedError(
                f"Model {type(self).__name__} does not have a `call()` method implemented: define `call(self, inputs)`, or "
                "give inputs and outputs."
            )
        return self._graph.run(masks.marked(inputs, mask))

    def __getstate__(self) -> dict[str, Any]:
        """The graph first: it holds its calls in an order that can be copied."""
        return {"_graph": self._graph, **vars(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A trainer of its own also for a shallow copy."""
        vars(self).update(state, _trainer=copy.copy(state["_trainer"]))

    # Looking ----------------------------------------------------------------------------------------------------------

    @property
    def layers(self) -> list[Layer]:
        """The layers it holds: of a functional model those of its graph by depth, else in the order of the attributes."""
        if self._graph is not None:
            return list(self._layers)
        held = layer_weights.held_by(self)[0]
        return [thing for thing in held if isinstance(thing, Layer) and not isinstance(thing, InputLayer)]

    @explaining
    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer by name or by position; a ValueError with the names there are if there is none."""
        layers = self.layers
        if (name is None) == (index is None):
            raise ValueError("get_layer: give either a name or an index.")
        if index is not None and not -len(layers) <= index < len(layers):
            raise ValueError(f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers.")
        found = layers[index] if index is not None else next((layer for layer in layers if layer.name == name), None)
        if found is None:
            raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in layers]}.")
        return found

    def need_graph(self, what: str) -> LayerGraph:
        if self._graph is None:
            raise AttributeError(
                f"Model '{self.name}' ({type(self).__name__}) has no `{what}`: what it computes is in its `call`. A functional "
                "model, keras.Model(inputs, outputs), and a Sequential with an Input have one."
            )
        return self._graph

    @property
    def inputs(self) -> list[Any]:
        """The KerasTensors that go in, in flattening order."""
        return nest.flatten(self.need_graph("inputs").inputs)

    @property
    def outputs(self) -> list[Any]:
        """The KerasTensors that come out, in flattening order."""
        return nest.flatten(self.need_graph("outputs").outputs)

    @property
    def input(self) -> Any:
        """The KerasTensors that go in, nested as they were given."""
        return super().input if self._graph is None else self._graph.inputs

    @property
    def output(self) -> Any:
        """The KerasTensors that come out, nested as they were given."""
        return super().output if self._graph is None else self._graph.outputs

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
        return nest.map_structure(lambda one: one.shape, only_one(self.need_graph("input_shape").inputs))

    @property
    def output_shape(self) -> Any:
        """The shape of the output, or the shapes of several, None for axes of any size."""
        return nest.map_structure(lambda one: one.shape, only_one(self.need_graph("output_shape").outputs))

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

    def _repr_html_(self) -> str:
        from .summary import summary_html

        return summary_html(self)

    def get_config(self) -> dict[str, Any]:
        """The configuration for `from_config`: of a functional model its graph, of a subclass the arguments it was made with.

        Raises:
            NotImplementedError: for a subclass without its own, made with arguments that are neither plain data nor have one.
        """
        if self._graph is None or self.is_overridden("__init__"):
            return configuration.subclass_config(self)
        return {"name": self.name, "trainable": self._trainable, **configuration.graph_config(self._graph)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """A new model, with new weights, from `get_config`; `custom_objects` are further classes and functions by name."""
        return configuration.model_of(cls, config, custom_objects)

    def to_json(self, **options: Any) -> str:
        """The configuration as JSON, without weights; `model_from_json` reads it. The options are those of `json.dumps`."""
        import json

        return json.dumps(serialize_keras_object(self), **options)

    # Training ---------------------------------------------------------------------------------------------------------

    @explaining
    @takes_numpy
    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int | str = "auto",
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
    ) -> None:
        """Choose optimizer, loss and metrics.

        With several outputs, losses, weights and metrics are a list with an entry for each, or a dict by the names of the
        outputs; an entry of a list of losses or metrics may itself be a list. One loss alone serves every output. The losses of
        the outputs are added up, and logged one by one as 'name_loss'.

        Args:
            optimizer: by name or object.
            loss: by name, function or object; None if only `add_loss` is used.
            loss_weights: factors of the losses.
            metrics: names, functions or objects; 'accuracy' picks the kind that fits the shapes.
            weighted_metrics: likewise, for metrics that use sample weights.
            run_eagerly: let Python carry out every step, as for `jit_compile=False`.
            jit_compile: 'auto' records a step once and replays it, and runs it eagerly, which is logged once, where Python asks
                for the value of a tensor; True raises a `CompileError` there; False runs all steps eagerly.
            steps_per_execution: call the hooks of a batch once for so many batches. 'auto', as for 1: for each batch. Steps
                are taken in a row, as many as take about 20 ms, where no callback is called in between; results are the same.
            auto_scale_loss: under the policy 'mixed_float16', wrap the optimizer in a `LossScaleOptimizer`.

        Raises:
            TypeError, ValueError: for an unknown name, or steps_per_execution that is neither 'auto' nor a whole number from 1.

        >>> model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse", metrics=["mae"])
        """
        self._trainer.compile(self, {name: value for name, value in locals().items() if name != "self"})

    @property
    def compiled(self) -> bool:
        """True if `compile` was called."""
        return self._trainer.compiled

    @property
    def metrics(self) -> list[Any]:
        """The loss tracker, the compiled metrics (all once a batch has shown the outputs), and those held as attributes."""
        return [metric for _, metric in self._trainer.labelled_metrics(self)]

    @property
    def metrics_names(self) -> list[str]:
        """Their names in logs: 'loss' first, then the losses of the outputs, then the metrics."""
        return [label for label, _ in self._trainer.logged_metrics(self)]

    def metric_direction(self, name: str) -> str | None:
        """'min' or 'max', whichever is better for a value of the logs; None if its metric does not say."""
        return self._trainer.direction(self, name)

    def reset_metrics(self) -> None:
        """Let all metrics forget."""
        for metric in self.metrics:
            metric.reset_state()

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Tensor:
        """The loss of a batch, with everything that `add_loss` and regularizers add."""
        return steps.compute_loss(self, y, y_pred, sample_weight)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> Logs:
        """Let a batch enter the metrics and return all results."""
        self._trainer.settle(self, y, y_pred).update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> Logs:
        """The results of all metrics by name."""
        return self._trainer.results(self)

    def train_step(self, data: Any) -> Logs:
        """One batch, x, (x, y) or (x, y, sample_weight): predict, loss, gradient, apply. Gives logs by name.

        Override it for another step.
        """
        return steps.train_step(self, data)

    def test_step(self, data: Any) -> Logs:
        """One batch of evaluation."""
        return steps.test_step(self, data)

    def predict_step(self, data: Any) -> Any:
        """One batch of prediction."""
        return steps.predict_step(self, data)

    def learning_variables(self) -> list[Variable]:
        """All that may ever be trained, frozen or not: their slots survive freezing."""
        return [variable for variable in self.variables if getattr(variable, "learns", variable.trainable)]

    def is_overridden(self, name: str) -> bool:
        """True if a subclass overrides a method."""
        return getattr(type(self), name) is not getattr(Model, name)

    def _snapshot(self) -> Snapshot:
        """The state that a step may change, to go back to."""
        return Transaction(self).snapshot()

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """One step on one batch; metrics start anew. Gives the loss, [loss, metrics...], or logs by name with `return_dict`."""
        return self._on_batch("train", x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Loss and metrics of one batch, which start anew."""
        return self._on_batch("test", x, y, sample_weight, None, return_dict)

    def _on_batch(self, kind: str, x: Any, y: Any, sample_weight: Any, class_weight: Any, return_dict: bool) -> Any:
        name, text = f"{kind}_on_batch", trainer.takes_text(self)
        self._trainer.need_compile(name)
        with trainer.on_device_of(self, name):
            source = batches.source(name, x, y, sample_weight, None, False, class_weight, whole=True, text=text)
            return self._trainer.on_batch(self, f"{kind}_step", source, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as NumPy arrays."""
        with trainer.on_device_of(self, "predict_on_batch"):
            text = trainer.takes_text(self)
            data = batches.source("predict_on_batch", x, None, None, None, False, whole=True, text=text).first()
            with np.errstate(all="ignore"):
                return nest.map_structure(on_host, self._trainer.steps.of(self, "predict_step")(data))

    @explaining
    @takes_numpy
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> History:
        """Train for a number of epochs.

        Args:
            x, y: arrays, Tensors, data frames, lists or dicts of them; or a Dataset, PyDataset, generator or loader of batches
                as `x`.
            batch_size: rows a step, 32 by default; the last batch of an epoch may be smaller.
            epochs: index of the last epoch, counted from 0 and not from `initial_epoch`.
            verbose: 0 silent, 1 or 'auto' a progress bar where one can be drawn and a line an epoch, 2 the line alone.
            callbacks: a list of `Callback`.
            validation_split: share of the rows, from the end, kept for validation; cut off before shuffling.
            validation_data: (x, y), (x, y, sample_weight) or batches.
            shuffle: whether the rows of arrays, or the batches of a PyDataset, are shuffled anew for each epoch; 'batch' keeps
                the rows of a batch together.
            class_weight: weight of each class in the loss.
            sample_weight: weight of each row in the loss; for several outputs a list or dict as for `y`.
            initial_epoch: where to start counting.
            steps_per_epoch: end an epoch after so many steps; needed for data without end.
            validation_steps, validation_batch_size: likewise for validation.
            validation_freq: validate every n-th epoch, or a list of epochs counted from 1.

        Returns:
            The `History`: `.history` holds a list for each name, `.epoch` the epochs.

        Raises:
            ValueError: if the model is not compiled or the data does not fit together.
            TypeError: if a number of epochs, rows or steps is no whole number.

        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[0.0], [1.0]], [[0.0], [1.0]], epochs=3, verbose=0)
        >>> sorted(history.history), history.epoch
        (['loss'], [0, 1, 2])
        """
        self._trainer.need_compile("fit")
        with trainer.on_device_of(self, "fit"):
            plan = trainer.FitPlan.of(self, locals())
            hooks = trainer.hooks_of(self, callbacks, True, verbose, plan.epochs.stop, plan.feed.steps)
            return self._trainer.fit(self, plan, hooks)

    @explaining
    @takes_numpy
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Loss and metrics over data, which may come in every form that `fit` takes.

        Returns:
            The loss; [loss, losses of the outputs, metrics...], as in `metrics_names`; or results by name with `return_dict`.

        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> model.evaluate([[1.0]], [[3.0]], verbose=0)
        4.0
        """
        self._trainer.need_compile("evaluate")
        with trainer.on_device_of(self, "evaluate"):
            feed = trainer.feed_of(self, "evaluate", x, y, sample_weight, batch_size, steps)
            with trainer.hooks_of(self, callbacks, False, verbose, 1, feed.steps) as hooks:
                logs = self._trainer.evaluate(self, hooks, feed)
            return dict(sorted(logs.items())) if return_dict else trainer.listed(logs)

    @explaining
    @takes_numpy
    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None, callbacks: Any = None
    ) -> Any:
        """The outputs for all rows, as NumPy arrays.

        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        >>> model.predict([[1.0], [2.0]], verbose=0).ravel().tolist()
        [1.0, 2.0]
        """
        with trainer.on_device_of(self, "predict"):
            feed = trainer.feed_of(self, "predict", x, None, None, batch_size, steps)
            return self._trainer.predict(self, trainer.hooks_of(self, callbacks, False, verbose, 1, feed.steps), feed)

    def get_training_state(self) -> State:
        """All that training depends on, as arrays and plain values: see `training/state.py`.

        In a callback it also holds where `fit` stands; a callback with `runs_last = True` sees what all others have done.

        Raises:
            RuntimeError: during validation, while the metrics hold other numbers.

        >>> model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> state = model.get_training_state()
        >>> sorted(state["arrays"])[0], state["values"]["position"]
        ('metrics/loss/0/total', None)
        """
        run = self._trainer.run
        if run is not None and run.testing:
            raise RuntimeError("The state of training cannot be taken during validation. Take it after a batch or an epoch.")
        return state.capture(self, run)

    def set_training_state(self, state: State) -> None:
        """Restore what `get_training_state` gave. If it was taken within `fit`, the next `fit` (or the one under way, in
        `on_train_begin`) goes on from that batch and equals one that was never interrupted, bit for bit.

        A model, optimizer or metric that has no Variables yet gets them by a step on the first batch, which is then undone.

        Raises:
            ValueError: if the state belongs to another model; nothing is changed.
        """
        self._trainer.set_state(self, state)

    get_state_tree, set_state_tree = state.get_state_tree, state.set_state_tree

    @explaining
    def save(self, filepath: str | os.PathLike[str], overwrite: bool = True, **kwargs: Any) -> None:
        """Write the whole model to a '.keras' file: see `keras.saving.save_model`."""
        from ..saving.model_files import save_model

        save_model(self, filepath, overwrite, **kwargs)

    @explaining
    def save_weights(self, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write weights and the state of the optimizer to a file: see `keras.saving.save_weights`."""
        from ..saving.model_files import save_weights

        save_weights(self, filepath, overwrite)

    @explaining
    def load_weights(
        self, filepath: str | os.PathLike[str], skip_mismatch: bool = False, by_name: bool = False, cast: bool = False
    ) -> None:
        """Read weights, and the state of the optimizer if the file holds one: see `keras.saving.load_weights`."""
        from ..saving.model_files import load_weights

        load_weights(self, filepath, skip_mismatch, by_name, cast)

    def export(
        self,
        filepath: str | os.PathLike[str],
        format: str | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        **options: Any,
    ) -> None:
        """Write what the model computes in inference mode to an '.onnx' file: see `keras.export.export_model`."""
        from ..export import export_model

        export_model(self, filepath, format, verbose, input_signature, **options)

    def get_compile_config(self) -> dict[str, Any] | None:
        """The arguments of `compile` as plain data; None if it was not called, or with something that has no description."""
        return self._trainer.compile_config(self.optimizer)

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile as `get_compile_config` says; a class with a `compile` of its own overrides both, or compiles again."""
        self._trainer.compile_from_config(self, config)


class Functional(Model, described=True):
    """The class of `keras.Model(inputs, outputs)`, which files and error messages name.

    >>> inputs = tf.keras.Input((2,))
    >>> model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))
    >>> isinstance(model, tf.keras.models.Functional)
    True
    """
