"""The state of an object: every value by the path of attributes that leads to it; plain data as JSON.

Arrays go beside the JSON under names; what JSON cannot say (tuples, NaN, keys that are no texts) becomes a dict with one key
that starts with '$'. The way back builds these few types and nothing else.

The walk is breadth first, so the shortest path to a value is its key (`model/hidden/kernel`) and longer ones are its aliases.
The slots of a Variable go by its path, not by its number: `optimizer/slots/model/hidden/kernel/momentum`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core import Variable
from ..core.arrays import is_array, namespace, to_device, to_numpy
from ..core.effects import Write
from ..core.tensor import Operand
from ..core.variable import preserved, restore
from ..errors import kind_of
from ..files.reading import refused
from ..functions.random import Generator
from ..module import Module, attributes, elements, walk


def split(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON of a value; arrays in it are added to `arrays` under names that start with `name`. TypeError for other data."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
        return {"$scalar": _stored(value, name, arrays)}
    if isinstance(value, Operand) or is_array(value):
        return {"$array": _stored(to_numpy(value.array if isinstance(value, Operand) else value), name, arrays)}
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, (list, tuple)):
        parts = [split(part, f"{name}/{number}", arrays) for number, part in enumerate(value)]
        return {"$tuple": parts} if isinstance(value, tuple) else parts
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: split(part, f"{name}/{key}", arrays) for key, part in value.items()}
        return {"$items": [split([key, part], f"{name}/{number}", arrays) for number, (key, part) in enumerate(value.items())]}
    raise TypeError(f"The state to save holds {kind_of(value)} at {name}; numbers, text and arrays can be kept.")


def _stored(array: NDArray[Any], name: str, arrays: dict[str, NDArray[Any]]) -> str:
    key = name
    while key in arrays:
        key += "+"
    arrays[key] = array
    return key


def join(tree: Any, arrays: Mapping[str, NDArray[Any]], file: object, place: str) -> Any:
    """The value that `split` was given, with copies of its arrays; a LoadError for JSON that `split` does not write."""
    if isinstance(tree, list):
        return [join(part, arrays, file, place) for part in tree]
    if not isinstance(tree, dict):
        return tree
    marks = [key for key in tree if key.startswith("$")]
    if not marks:
        return {key: join(part, arrays, file, f"{place}/{key}") for key, part in tree.items()}
    mark, content = (marks[0], tree[marks[0]]) if len(tree) == 1 else ("", None)
    if mark in ("$array", "$scalar") and isinstance(content, str) and content in arrays:
        array = arrays[content].copy()
        return array if mark == "$array" else array[()]
    if mark == "$float" and content in ("nan", "inf", "-inf"):
        return float(content)
    parts = join(content, arrays, file, place) if isinstance(content, list) else []
    if mark == "$tuple" and isinstance(content, list):
        return tuple(parts)
    with contextlib.suppress(TypeError, ValueError):  # a key that is a tuple of lists; a text that is no number
        if mark == "$int" and isinstance(content, str) and len(content) < 1000:
            return int(content, 16)
        pairs = mark == "$items" and isinstance(content, list) and all(isinstance(x, list) and len(x) == 2 for x in parts)
        if pairs and all(isinstance(key, (str, int, float, tuple)) for key, _ in parts):
            return {key: part for key, part in parts}
    raise refused(file, place, f"damaged state, {marks[0]} with an unexpected value")


SLOTS = "slots"


class StateValues(NamedTuple):
    """The values of a tree: arrays and states (plain data, as JSON) by path, further paths and what they stand for.

    The arrays of states have names that start with '$'.
    """

    arrays: dict[str, NDArray[Any]]
    states: dict[str, Any]
    aliases: dict[str, str]


class StateTree:
    """What is reachable from some objects, each given with the path at which it lies.

    Attributes:
        leaves: values by path; a Variable, or an object with a state (`is_stateful`).
        aliases: further paths to a leaf or to what holds leaves, and the path that stands for it.
        holders: everything else that was met, by path.
    """

    def __init__(self, *roots: tuple[str, Any]) -> None:
        self.leaves: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.holders: dict[str, Any] = {}
        for here, value, first in walk(*roots, children=trackable_children, separator="/", breadth_first=True):
            if first is not None:
                self.aliases[here] = first
            elif here in self.leaves or here in self.holders:
                raise ValueError(f"checkpoint: two values have the path '{here}'; rename an attribute or a key of a dict.")
            elif isinstance(value, Variable) or is_stateful(value):
                self.leaves[here] = value
            else:
                self.holders[here] = value
        paths = {leaf.key: place for place, leaf in self.leaves.items() if isinstance(leaf, Variable)}
        for place, optimizer in self.optimizers():
            self._add_slots(joined(place, SLOTS), optimizer, paths)
        above = {path for leaf in self.leaves for path in accumulate(leaf.split("/"), joined)} | {""}
        self.aliases = {alias: target for alias, target in self.aliases.items() if target in above}

    def values(self) -> StateValues:
        """All values of this moment. On the CPU these are references: no array is written while something refers to it."""
        arrays: dict[str, NDArray[Any]] = {}
        states: dict[str, Any] = {}
        for path, leaf in self.leaves.items():
            if isinstance(leaf, Variable):
                arrays[path] = to_numpy(leaf.array)
            else:
                states[path] = split(state_of(leaf), f"${path}", arrays)
        return StateValues(arrays, states, self.aliases)

    def optimizers(self) -> list[tuple[str, Any]]:
        """Path and object of everything that keeps slots beside Variables."""
        return [(place, holder) for place, holder in self.holders.items() if hasattr(holder, "_checkpoint_slots")]

    def _add_slots(self, place: str, optimizer: Any, paths: Mapping[int, str]) -> None:
        """What an optimizer keeps, by the path of the Variable; also by number, for a graph without that Variable."""
        for number, (variable, slots) in enumerate(optimizer._checkpoint_slots()):
            numbered = joined(place, f"#{number}")
            own = joined(place, paths[variable.key]) if variable.key in paths else numbered
            if own != numbered:
                self.aliases[numbered] = own
            self.leaves.update({joined(own, name): slot for name, slot in slots.items()})


def joined(path: str, name: str) -> str:
    """The path of what is called `name` within `path`."""
    return f"{path}/{name}" if path else name


def trackable_children(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds that belongs in a checkpoint, with names that stay the same from run to run."""
    if is_stateful(value):
        return
    if _holds(value):
        pairs = value._checkpoint_children()
    elif isinstance(value, Module):
        pairs = _attributes(value)
    else:
        pairs = ((name.replace(".", "..").replace("/", ".S"), child) for name, child in elements(value))
    yield from ((name, child) for name, child in pairs if is_trackable(child))


def _attributes(module: Module) -> Iterator[tuple[str, Any]]:
    """The attributes of a Module; a leading underscore is dropped unless the name without it is taken."""
    for name, child in attributes(module, also=module.checkpointed):
        plain = name.lstrip("_")
        if name in module.checkpoint_names:
            yield module.checkpoint_names[name], getattr(module, module.checkpoint_names[name])
        else:
            yield name if plain in vars(module) else plain, child


def is_trackable(value: Any) -> bool:
    """Whether a value is, or may hold, something that belongs in a checkpoint."""
    return isinstance(value, (Variable, Module, Mapping, list, tuple)) or is_stateful(value) or _holds(value)


def _holds(value: Any) -> bool:
    return hasattr(type(value), "_checkpoint_children")


def is_stateful(value: Any) -> bool:
    """Whether a value has a state of plain data: `tf.random.Generator`, or an object with `get_state` and `set_state`.

    A Module or an optimizer with such methods is still saved by what it holds.
    """
    kind = type(value)
    has_both = callable(getattr(kind, "get_state", None)) and callable(getattr(kind, "set_state", None))
    return isinstance(value, Generator) or (has_both and not isinstance(value, Module) and not _holds(value))


def state_of(leaf: Any) -> Any:
    """The state of a stateful leaf, as plain data."""
    if isinstance(leaf, Generator):
        return [part % 2**64 for part in leaf.state]
    return leaf.get_state()


def set_state(leaf: Any, state: Any) -> None:
    """Give a stateful leaf its state again."""
    if isinstance(leaf, Generator):
        leaf._stream.state = (int(state[0]), int(state[1]))
    else:
        leaf.set_state(state)


def apply_tree(changes: Iterable[tuple[Any, Any]]) -> None:
    """Let leaves hold values, all of them or, with an error, none: a Variable an array of its shape, another leaf a state."""
    changes = list(changes)
    before = [(leaf, state_of(leaf)) for leaf, _ in changes if not isinstance(leaf, Variable)]
    try:
        with preserved(leaf for leaf, _ in changes if isinstance(leaf, Variable)):
            for leaf, value in changes:
                if isinstance(leaf, Variable):
                    array = to_device(value.astype(leaf.array.dtype, copy=False), namespace(leaf.array))
                    leaf._note(None, array, Write.FIRST)
                    restore([(leaf, array)])
                else:
                    set_state(leaf, value)
    except BaseException:
        for leaf, state in before:
            set_state(leaf, state)
        raise
