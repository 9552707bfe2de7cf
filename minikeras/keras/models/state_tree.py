"""All Variables of a model as nested dicts by their paths: methods of `Model`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from ...core import Variable
from ...core.variable import preserved

_FORMATS = {"backend_tensor": lambda variable: variable.value, "numpy_array": lambda variable: variable.numpy()}


def get_state_tree(model: Any, value_format: str = "backend_tensor") -> dict[str, Any]:
    """What the Variables of the model, its optimizer and its metrics hold, in dicts nested like their paths.

    Args:
        value_format: 'backend_tensor' or 'numpy_array'.

    Raises:
        ValueError: for another format, or a path that two Variables have.

    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, name="head")], name="net")
    >>> model.compile("sgd", "mse")
    >>> model.get_state_tree("numpy_array")["trainable_variables"]["net"]["head"]["bias"]
    array([0.], dtype=float32)
    """
    if value_format not in _FORMATS:
        raise ValueError(f"get_state_tree: value_format must be one of {list(_FORMATS)}, found {value_format!r}.")
    tree: dict[str, Any] = {}
    for group, variables in _groups(model).items():
        place = tree[group] = {}
        for path, variable in variables.items():
            *around, name = path.split("/")
            held = functools.reduce(lambda outer, part: outer.setdefault(part, {}), around, place)
            held[name] = _FORMATS[value_format](variable)
    return tree


def set_state_tree(model: Any, state_tree: Mapping[str, Any]) -> None:
    """Assign what `get_state_tree` gave, or a part of it.

    Raises:
        ValueError: for a group or path that the model has not, or a value that does not fit; nothing has changed then.
    """
    groups = _groups(model)
    with preserved([variable for variables in groups.values() for variable in variables.values()]):
        for group, tree in state_tree.items():
            if group not in groups:
                raise ValueError(f"set_state_tree: the groups are {list(groups)}, found {group!r}.")
            for path, value in _leaves(tree):
                if path not in groups[group]:
                    raise ValueError(f"set_state_tree: no variable of {group} has the path {path!r}.")
                groups[group][path].assign(value)


def _groups(model: Any) -> dict[str, dict[str, Variable]]:
    """The Variables by group and path."""
    found: dict[str, dict[str, Variable]] = {}
    held = {name: getattr(model, name) for name in ("trainable_variables", "non_trainable_variables")}
    held["optimizer_variables"] = [] if model.optimizer is None else model.optimizer.variables
    for group, variables in (held | {"metrics_variables": model.metrics_variables}).items():
        found[group] = {}
        for variable in variables:
            path = getattr(variable, "path", variable.name)
            if found[group].setdefault(path, variable) is not variable:
                raise ValueError(f"get_state_tree: two variables of {group} have the path {path!r}. Give layers unique names.")
    return found


def _leaves(tree: Mapping[str, Any], around: str = "") -> Iterator[tuple[str, Any]]:
    """The paths and values of nested dicts."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{around}{name}/")
        else:
            yield f"{around}{name}", value
