"""The state of a model as a tree: nested dicts by the parts of each Variable's path, and back, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from ...core import Tensor, Variable
from ...core.effects import decide
from ...errors import ShapeError
from ..optimizers.state import commit, name_of

Tree = dict[str, Any]


class Trained(Protocol):
    """An object with such a state: a model."""

    trainable_variables: list[Variable]
    non_trainable_variables: list[Variable]
    optimizer: Any
    metrics: Any


def get_state_tree(self: Trained, value_format: str = "backend_tensor") -> Tree:
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


def set_state_tree(self: Trained, state_tree: Mapping[str, Any]) -> None:
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


def _groups(model: Trained) -> dict[str, Sequence[Variable]]:
    """All Variables that training changes, in Keras's groups."""
    found = {"trainable_variables": model.trainable_variables, "non_trainable_variables": model.non_trainable_variables}
    if model.optimizer is not None:
        found["optimizer_variables"] = model.optimizer.variables
    return found | {"metrics_variables": [variable for metric in model.metrics for variable in metric.variables]}


def _tree_of(variables: Sequence[Variable], value_format: str) -> Tree:
    tree: Tree = {}
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
    """The values of a tree by path."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value
