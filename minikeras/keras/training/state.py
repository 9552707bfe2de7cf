"""The state of training: to go back to when a step fails, and as one value from which it goes on bit for bit.

A step fails as a whole: arrays are never written while they can be seen, so keeping the old state costs one reference for each
Variable. No object is stored, so the value can be kept in any container of arrays and text. As a tree the state is nested dicts
by the parts of each Variable's path, and back, all of it or nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ...compiler import CompiledFunction
from ...compiler.scan import Pace
from ...core import Tensor, Variable, clock, decide, restore, to_numpy
from ...data.table import RowBatches
from ...errors import LoadError, ShapeError
from ...module import Named, elements, walk
from ...nn_ops import streams
from ...state import join, split
from ...types import TensorLike
from ..batches import Feed
from ..callbacks import CallbackList
from ..callbacks.callback import numbers
from ..layers.layer import Layer
from ..layers.layer_weights import Contents
from ..metrics import Metric
from ..optimizers import Optimizer
from ..optimizers.state import commit, name_of
from ..random import SeedState

Logs = dict[str, Any]


class ModelLike(Protocol):
    """A model as training sees it, which may not import that class, or a stack of models: state, steps and options."""

    optimizer: Any
    loss: Any
    run_eagerly: bool
    jit_compile: Any
    steps_per_execution: Any
    stop_training: bool
    stop_evaluating: bool
    stop_predicting: bool

    @property
    def training_loops(self) -> Any: ...
    @property
    def layer_graph(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def built(self) -> bool: ...
    @property
    def dtype_policy(self) -> Any: ...
    @property
    def losses(self) -> list[Any]: ...
    @property
    def metrics(self) -> list[Any]: ...
    @property
    def output_names(self) -> list[str]: ...
    @property
    def trainable_variables(self) -> Any: ...
    @property
    def non_trainable_variables(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def compile(self, *args: Any, **kwargs: Any) -> None: ...
    def compute_loss(self, *args: Any, **kwargs: Any) -> Any: ...
    def compute_metrics(self, x: TensorLike, y: TensorLike, y_pred: TensorLike, sample_weight: TensorLike = None) -> Logs: ...
    def train_step(self, data: Any) -> Any: ...
    def test_step(self, data: Any) -> Any: ...
    def predict_step(self, data: Any) -> Any: ...
    def reset_metrics(self) -> None: ...
    def collect_contents(self) -> Contents: ...
    def learning_variables(self) -> Any: ...
    def is_overridden(self, name: str) -> bool: ...


_array_of = operator.attrgetter("array")


class Snapshot:
    """The state that a step may change: values of all `variables`, `layers` that are not built yet, random streams, and
    attributes of `holders` (metrics, optimizers and their states, which are re-bound and never changed in place; copies of
    them may be there already).
    """

    __slots__ = ("_arrays", "_attributes", "_holders", "_layers", "_streams", "_variables")

    def __init__(
        self,
        variables: Sequence[Variable],
        layers: Iterable[Layer],
        holders: Sequence[Any],
        attributes: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._variables, self._arrays = variables, list(map(_array_of, variables))
        self._layers = [(layer, layer.__dict__.copy()) for layer in layers]
        self._holders, self._attributes = holders, attributes or [holder.__dict__.copy() for holder in holders]
        self._streams: Any = streams.states()

    def restore(self) -> None:
        """Have everything as it was."""
        restore(zip(self._variables, self._arrays, strict=True))
        for layer, attributes in self._layers:
            layer._restore(attributes)
        for holder, attributes in zip(self._holders, self._attributes, strict=True):
            holder.__dict__.clear()
            holder.__dict__.update(attributes)
        streams.set_states(self._streams)
        clock.tick()


class Transaction:
    """Runs steps of a model, each of which happens as a whole or not at all."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._contents: Contents | None = None
        self._variables: list[Variable] = []
        self._unbuilt: list[Layer] = []
        self._holders: list[Any] = []
        self._attributes: list[dict[str, Any]] = []
        """The attributes of each holder when its Variables were looked up."""
        self._now: list[ValuesView[Any]] = []
        self._then: list[Any] = []
        """Views of the present values of all these attributes, and the values that they had then."""

    def __call__(self, step: Callable[[Any], Any], data: Any) -> Any:
        """Run a step; if it raises, all state is as it was before."""
        if isinstance(step, CompiledFunction) and step.whole and (found := step.replay_whole((data,))) is not None:
            return found[0]
        targets, before = self._model.training_loops.targets, self.snapshot()
        try:
            return step(data)
        except BaseException:
            before.restore()
            self._model.training_loops.targets = targets
            raise

    def replay(self, step: CompiledFunction, batches: RowBatches) -> Any:
        """Replay a compiled step for each batch; what the last one gives, or None, and nothing was done, without a program.

        If a step raises, all state is as it was after the one before it.
        """
        targets = self._model.training_loops.targets
        before: list[Snapshot] = []

        def keep_state() -> None:
            before[:] = [Snapshot(self._variables, self._unbuilt, self._holders) if before else self.snapshot()]

        try:
            found = step.replay_many(batches, (batches.first,), keep_state)
        except BaseException:
            for snapshot in before:
                snapshot.restore()
            self._model.training_loops.targets = targets
            raise
        return None if found is None else found[0]

    def snapshot(self) -> Snapshot:
        """The state by now."""
        contents = self._model.collect_contents()
        same = all(map(operator.is_, chain.from_iterable(self._now), self._then))
        if contents is not self._contents or not same or sum(map(len, self._now)) != len(self._then):
            self._look_up(contents)
        return Snapshot(self._variables, self._unbuilt, self._holders, self._attributes)

    def _look_up(self, contents: Contents) -> None:
        """Look up what a step may change; a holder's part follows from its attributes and those of holders within it."""
        model = self._model
        met = walk(*vars(model).items(), children=_of_optimizer, separator=".")
        optimizers = [found for _, found, first in met if first is None and isinstance(found, Optimizer)]
        holders: list[Any] = [*_with_inner(model.metrics), *optimizers]
        self._holders = [*holders, *(optimizer.state for optimizer in optimizers)]
        self._attributes = [holder.__dict__.copy() for holder in self._holders]
        self._now = [holder.__dict__.values() for holder in self._holders]
        self._then = [value for attributes in self._attributes for value in attributes.values()]
        self._contents = contents
        found = [*contents.variables, *(variable for holder in holders for variable in holder.variables)]
        self._variables = list({id(variable): variable for variable in found}.values())
        self._unbuilt = [layer for layer in (model, *contents.sublayers) if not layer._built]


def _with_inner(metrics: Iterable[Metric]) -> Iterator[Metric]:
    for metric in metrics:
        yield metric
        yield from _with_inner(metric._metrics())


def _of_optimizer(value: Any) -> Named:
    """The attributes and elements that may be an optimizer, or hold some."""
    if isinstance(value, Optimizer):
        return vars(value).items()
    return [(name, one) for name, one in elements(value) if isinstance(one, (Optimizer, tuple))]


FORMAT = 1
_COUNTED = re.compile(r"_\d+(?=[/_]|$)")

State = dict[str, Any]


class FitProgress:
    """The progress of a call of `fit`: the epoch under way or next, the number of its batches done, the logs of the last one,
    whether a validation is under way, in which metrics hold other numbers, and the number of steps taken in a row.
    """

    def __init__(self, epoch: int, feed: Feed, hooks: CallbackList) -> None:
        self.epoch, self.batch, self.feed, self.hooks = epoch, 0, feed, hooks
        self.logs: Mapping[str, Any] = {}
        self.testing = False
        self.pace = Pace()
        self._first = epoch

    @property
    def goes_on(self) -> bool:
        """True if this call has trained an epoch before the one under way."""
        return self.epoch > self._first

    def position(self, stopped: bool) -> dict[str, Any]:
        """The state from which another run goes on, apart from Variables."""
        place = {"epoch": self.epoch, "batch": self.batch, "stopped": stopped, "logs": numbers(self.logs)}
        return place | {"data": self.feed.state(), "callbacks": self.hooks.get_state()}

    def go_to(self, position: Mapping[str, Any]) -> bool:
        """Go to the position of another run; True if that one was told to stop."""
        try:
            self.hooks.set_state(position["callbacks"])
            self.feed.resume(position["data"])
            self.epoch, self.batch, self.logs = int(position["epoch"]), int(position["batch"]), dict(position["logs"])
            return bool(position["stopped"])
        except (LookupError, TypeError, AttributeError) as error:
            raise LoadError(f"The position in training is damaged: {type(error).__name__}: {error}.") from error


# Variables ---------------------------------------------------------------------------------------------------------------


def named_variables(model: Any) -> dict[str, Variable]:
    """All Variables that training changes by name: without the numbers that a process counts up ('dense_3'), so that the same
    model made again has the same names.
    """
    groups: list[tuple[str, Iterable[Variable]]] = [("model", model.variables)]
    groups += [(name, value.variables) for name, value in vars(model).items() if isinstance(value, Optimizer)]
    groups += [(f"metrics/{label}", metric.variables) for label, metric in model.training_loops.labelled_metrics(model)]
    found = {}
    for group, variables in groups:
        for number, variable in enumerate(variables):  # the path of a weight; others are found by their group and name
            path = getattr(variable, "path", None) if group == "model" and not isinstance(variable, SeedState) else None
            found[f"{group}/{number}/{_COUNTED.sub('', path or variable.name.removesuffix(':0'))}"] = variable
    return found


def capture(model: Any, run: FitProgress | None) -> State:
    """The state of training of a model: {"arrays": {name: NumPy array}, "values": what JSON can hold}.

    Arrays are all Variables: 'model/<number>/<path>', '<attribute>/...' for each optimizer, 'metrics/<label>/...' for the open
    epoch, and 'values/...' for arrays that callbacks remember. Values: random streams and, during `fit`, where it stands.
    """
    arrays = {name: np.asarray(to_numpy(variable.array)) for name, variable in named_variables(model).items()}
    position = None if run is None else run.position(model.stop_training)
    values = {"format": FORMAT, "streams": streams.states(), "position": position}
    return {"arrays": arrays, "values": split(values, "values", arrays)}


def differences(model: Any, state: State) -> list[str]:
    """The differences between a state and this model: names that one of them lacks, and shapes. Metrics may be missing."""
    own, arrays = named_variables(model), state["arrays"]
    saved = {name for name in arrays if not name.startswith("values/")}
    found = [f"the model lacks '{name}'" for name in sorted(saved - set(own))]
    found += [f"the state lacks '{name}'" for name in sorted(set(own) - saved) if not name.startswith("metrics/")]
    for name in sorted(saved & set(own)):
        shapes = tuple(own[name].shape), tuple(arrays[name].shape)
        if shapes[0] != shapes[1]:
            found.append(f"'{name}' has shape {shapes[0]} here and {shapes[1]} in the state")
    return found


def put_back(model: Any, state: State) -> Any:
    """Restore Variables and random streams, all or nothing; returns the position, None outside `fit`."""
    values = join(state["values"], state["arrays"], "the state of training", "values")
    if not isinstance(values, dict):
        raise LoadError(f"The state of training is damaged: a dict was saved, found {values!r:.40}.")
    if values.get("format") != FORMAT:
        raise ValueError(f"The state of training has format {values.get('format')!r}, this version reads {FORMAT}.")
    problems = differences(model, state)
    if problems:
        shown = "; ".join(problems[:8]) + (f"; and {len(problems) - 8} more" if len(problems) > 8 else "")
        raise ValueError(f"The state of training belongs to another model or optimizer: {shown}.")
    own, arrays = named_variables(model), state["arrays"]
    new = {name: variable.convert(arrays[name]) for name, variable in own.items() if name in arrays}
    before = streams.states()
    try:
        position = values["position"]
        streams.set_states(values["streams"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        streams.set_states(before)
        raise LoadError(f"The state of training is damaged: {type(error).__name__}: {error}.") from error
    model.reset_metrics()
    restore((own[name], array) for name, array in new.items())
    return position


# Trees -------------------------------------------------------------------------------------------------------------------


def get_state_tree(self: ModelLike, value_format: str = "backend_tensor") -> State:
    """The values of all Variables as nested dicts: `trainable_variables`, `non_trainable_variables`, `optimizer_variables` and
    `metrics_variables`, each by the parts of a Variable's path.

    Args:
        value_format: 'backend_tensor' for Tensors, 'numpy_array' for NumPy arrays.

    Raises:
        ValueError: for two Variables of one path.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, name="head")], name="net")
    >>> model.get_state_tree("numpy_array")["trainable_variables"]["net"]["head"]["bias"]
    array([0.], dtype=float32)
    """
    if value_format not in ("backend_tensor", "numpy_array"):
        raise ValueError(f"get_state_tree: value_format must be 'backend_tensor' or 'numpy_array', found {value_format!r}.")
    return {name: _tree_of(group, value_format) for name, group in _groups(self).items()}


def set_state_tree(self: ModelLike, state_tree: Mapping[str, Any]) -> None:
    """Assign the values of a tree that `get_state_tree` gave, or of a part of it: all of them or, with an error, none.

    Raises:
        ValueError: for a path that the model has not, such as those of an optimizer that is not built.
        ShapeError: for a value of another shape.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, name="head")], name="net")
    >>> model.set_state_tree({"trainable_variables": {"net": {"head": {"bias": [7.0]}}}})
    >>> float(model.layers[0].bias[0])
    7.0
    """
    groups, changes = _groups(self), []
    for group, values in state_tree.items():
        known = {name_of(variable): variable for variable in groups.get(group, [])}
        for path, value in _leaves(values):
            if path not in known:
                raise ValueError(
                    f"set_state_tree: '{group}' has no '{path}'; it has {list(known) or 'nothing'}. Nothing was changed. Build "
                    "the model and its optimizer, and let metrics see a batch, before they are given a state."
                )
            variable = known[path]
            array = variable.convert(value)
            if array.shape != variable.array.shape:
                raise ShapeError(
                    f"set_state_tree: '{path}' has shape {tuple(variable.shape)}, the value {array.shape}. Nothing was changed."
                )
            changes.append((variable, array))
    for variable, _ in changes:
        decide(variable)
    commit(changes)


def _groups(model: ModelLike) -> dict[str, Sequence[Variable]]:
    """All Variables that training changes, in Keras's groups."""
    found = {"trainable_variables": model.trainable_variables, "non_trainable_variables": model.non_trainable_variables}
    if model.optimizer is not None:
        found["optimizer_variables"] = model.optimizer.variables
    return found | {"metrics_variables": [variable for metric in model.metrics for variable in metric.variables]}


def _tree_of(variables: Sequence[Variable], value_format: str) -> State:
    tree: State = {}
    for variable in variables:
        *parts, last = name_of(variable).split("/")
        place = tree
        for part in parts:
            place = place.setdefault(part, {})
        if last in place:
            raise ValueError(
                f"get_state_tree: two variables have the path '{name_of(variable)}'. Give layers, metrics and weights names "
                "that differ."
            )
        place[last] = variable.numpy() if value_format == "numpy_array" else Tensor(variable.array)
    return tree


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value
