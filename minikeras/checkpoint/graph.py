"""The graph of what a checkpoint holds: every value by the path of attributes that leads to it.

The walk is breadth first, so the shortest path to a value is its key (`model/hidden/kernel`) and longer ones are its aliases.
The slots of a Variable go by its path, not by its number: `optimizer/slots/model/hidden/kernel/momentum`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from ..core import Variable
from ..functions.random import Generator
from ..module import Module, attributes, elements, walk

SLOTS = "slots"


class ObjectGraph:
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
    for name, child in attributes(module, also=module._checkpointed):
        plain = name.lstrip("_")
        if name in module._checkpoint_names:
            yield module._checkpoint_names[name], getattr(module, module._checkpoint_names[name])
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
