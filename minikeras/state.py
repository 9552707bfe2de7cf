"""The state of an object: every value by the path of attributes that leads to it; plain data as JSON.

Arrays go beside the JSON under names; what JSON cannot say (tuples, NaN, keys that are no texts) becomes a dict with one key
that starts with '$'. The way back builds these few types and nothing else.

The walk is breadth first, so the shortest path to a value is its key (`model/hidden/kernel`) and longer ones are its aliases.
The slots of a Variable go by its path, not by its number: `optimizer/slots/model/hidden/kernel/momentum`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import math
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .core import Operand, Variable, Write, array_of, is_array, logger, namespace, preserved, restore, to_device, to_numpy
from .errors import ShapeError, kind_of
from .files import refused
from .functions.random import Generator
from .module import Module, attributes, elements, waiting, walk


def split(value: Any, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """The JSON of a value; arrays in it are added to `arrays` under names that start with `name`. TypeError for other data."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
        return {"$scalar": _stored(value, name, arrays)}
    if isinstance(value, Operand) or is_array(value):
        return {"$array": _stored(to_numpy(array_of(value)), name, arrays)}
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
    """All objects that are reachable from some roots; each root is given with its path.

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
            start = joined(place, SLOTS)
            for number, (variable, slots) in enumerate(optimizer.checkpoint_slots()):
                numbered = joined(start, f"#{number}")  # for a graph without that Variable
                own = joined(start, paths[variable.key]) if variable.key in paths else numbered
                if own != numbered:
                    self.aliases[numbered] = own
                self.leaves.update({joined(own, name): slot for name, slot in slots.items()})
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

    def shown(self, path: str) -> str:
        """The words of messages for a path."""
        return path

    def optimizers(self) -> list[tuple[str, Any]]:
        """Path and object of everything that keeps slots beside Variables."""
        return [(place, holder) for place, holder in self.holders.items() if hasattr(holder, "checkpoint_slots")]


def joined(path: str, name: str) -> str:
    """The path of the object `name` within `path`."""
    return f"{path}/{name}" if path else name


def trackable_children(value: Any) -> Iterator[tuple[str, Any]]:
    """The children of an object that belong in a checkpoint, with names that stay the same from run to run."""
    if is_stateful(value):
        return
    if _holds(value):
        pairs = value.checkpoint_children()
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


def is_trackable(value: object) -> bool:
    """True if a value is, or may hold, something that belongs in a checkpoint."""
    return isinstance(value, (Variable, Module, Mapping, list, tuple)) or is_stateful(value) or _holds(value)


def _holds(value: object) -> bool:
    return hasattr(type(value), "checkpoint_children")


def is_stateful(value: object) -> bool:
    """True if a value has a state of plain data: `tf.random.Generator`, or an object with `get_state` and `set_state`.

    A Module or an optimizer with such methods is still saved by what it holds.
    """
    kind = type(value)
    has_both = callable(getattr(kind, "get_state", None)) and callable(getattr(kind, "set_state", None))
    return isinstance(value, Generator) or (has_both and not isinstance(value, Module) and not _holds(value))


def state_of(leaf: Any) -> Any:
    """The state of a stateful leaf, as plain data."""
    return [part % 2**64 for part in leaf.state] if isinstance(leaf, Generator) else leaf.get_state()


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
                    leaf.note_assignment(None, array, Write.FIRST)
                    restore([(leaf, array)])
                else:
                    set_state(leaf, value)
    except BaseException:
        for leaf, state in before:
            set_state(leaf, state)
        raise


# Bringing values back: match by path, check everything, then assign everything or nothing.


COUNTER = "save_counter"
SHOWN = 8
"""Number of paths of one kind that a message lists."""


class Match(NamedTuple):
    """The leaves of a tree, and the saved values that belong to them.

    Attributes:
        tree: the tree.
        found: its leaves that have got no value yet, by path.
        keys: the key of the saved value for each of these paths, where there is one.
        problems: the reasons why a value does not fit its leaf, by path.
        undo: how to forget the slots that were made for saved values, by the path of the optimizer.
    """

    tree: StateTree
    found: dict[str, Any]
    keys: dict[str, str]
    problems: dict[str, str]
    undo: dict[str, Callable[[], None]]


class Restoration:
    """The values of one checkpoint, called `source` in messages, on their way into objects; see `Checkpoint.restore`."""

    asker, holder = "restore", "checkpoint"
    """The words of messages for what loads, and for what the values come from."""
    converts = False
    """True if values of another dtype are converted where that loses nothing but digits."""

    def __init__(
        self,
        values: StateValues,
        source: str,
        only: str | Collection[str] | None = None,
        skip_mismatch: bool = False,
        cast: bool = False,
    ) -> None:
        self._arrays = {name: array for name, array in values.arrays.items() if not name.startswith("$")}
        self._states = {path: join(tree, values.arrays, source, path) for path, tree in values.states.items()}
        self._aliases = values.aliases
        self.source = source
        self._skip, self._cast = skip_mismatch, cast
        patterns = [only] if isinstance(only, str) else only
        self.wanted = {
            path
            for path in (*self._arrays, *self._states)
            if patterns is None or any(fnmatch.fnmatchcase(path, p) or path.startswith(p.rstrip("/") + "/") for p in patterns)
        }
        self.used: dict[str, str] = {}
        """Keys whose value has found its place, and that place."""
        self._done: dict[int, weakref.ref[Any]] = {}
        self._places: list[tuple[str, weakref.ref[Any]]] = []
        self.quiet = patterns is not None

    @property
    def due(self) -> set[str]:
        """Paths of values that are wanted and have not found their place."""
        return self.wanted - self.used.keys()

    def __deepcopy__(self, memo: dict[int, Any]) -> Restoration:
        return self

    # Matching ------------------------------------------------------------------------------------------------------------

    def key_of(self, path: str) -> str | None:
        """The key under which the value of a path was saved, through the aliases of that time."""
        for _ in range(32):
            if path in self._arrays or path in self._states:
                return path if path in self.wanted else None
            parts = path.split("/")
            prefixes = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
            prefix = next((prefix for prefix in prefixes if prefix in self._aliases), None)
            if prefix is None:
                return None
            path = self._aliases[prefix] + path[len(prefix) :]
        return None

    def visit(self, *roots: tuple[str, Any]) -> None:
        """Restore what is due and reachable from objects, each given with its path, and have the rest wait there."""
        self._wait(self.carry_out(lambda: StateTree(*roots)))

    def carry_out(self, look_up: Callable[[], StateTree], first: StateTree | None = None) -> StateTree:
        """Give the leaves of a tree the values that are due there, all of them or, with an error, none.

        Args:
            look_up: the tree by now; it is asked again where optimizers have made slots.
            first: the tree before that, if it is known.
        """
        tree = look_up() if first is None else first
        undo = self._make_slots(tree, look_up)
        try:
            tree = look_up() if undo else tree
            found = {place: leaf for place, leaf in tree.leaves.items() if not self.is_done(leaf)}
            due = self.due
            keys = {place: key for place in found if (key := self.key_of(place)) in due}
            problems = {place: text for place, key in keys.items() if (text := self._mismatch(tree, place, key))}
            match = Match(tree, found, keys, problems, undo)
            self._check(match)
            sound = {place: key for place, key in keys.items() if place not in problems}
            self._assign({place: (found[place], self._value_of(key)) for place, key in sound.items()})
        except BaseException:
            for take_back in undo.values():
                take_back()
            raise
        self.used.update({key: place for place, key in keys.items()})
        self._done.update({id(found[place]): weakref.ref(found[place]) for place in sound})
        return tree

    def _check(self, match: Match) -> None:
        """Refuse values that do not fit, or say that they are left out."""
        if match.problems and not self._skip:
            raise self._refusal(match)
        for text in match.problems.values():
            logger.warning("restore: left out, %s", text)

    def _assign(self, changes: Mapping[str, tuple[Any, Any]]) -> None:
        """Let leaves hold values, given by path."""
        apply_tree(changes.values())

    def _value_of(self, key: str) -> Any:
        return self._arrays[key] if key in self._arrays else self._states[key]

    def _complaints(self, match: Match) -> list[str]:
        """The lines of a message on all that does not fit."""
        missing = [match.tree.shown(path) for path in sorted(set(match.found) - set(match.keys))]
        lines = listed("mis-shaped", match.problems.values()) + listed(f"not in the {self.holder}", missing)
        return lines + listed(f"in the {self.holder}, but nowhere to put", sorted(self.due - set(match.keys.values())))

    def _refusal(self, match: Match) -> ShapeError:
        self.quiet = True
        first = f"{self.asker}: '{self.source}' does not fit; nothing was changed."
        last = "skip_mismatch=True leaves out what does not fit, cast=True converts dtypes."
        return ShapeError("\n".join([first, *self._complaints(match), last]))

    def is_done(self, leaf: Any) -> bool:
        """True if this object has its value already."""
        return id(leaf) in self._done and self._done[id(leaf)]() is leaf

    def _mismatch(self, tree: StateTree, place: str, key: str) -> str:
        """The reason why a value does not fit its place; '' if it does."""
        leaf, shown = tree.leaves[place], f"'{tree.shown(key)}'"
        if not isinstance(leaf, Variable):
            return "" if key in self._states else f"{shown}: an array was saved, the object has a state"
        if key not in self._arrays:
            return f"{shown}: a state was saved, the object is a Variable"
        array = self._arrays[key]
        if problem := misfit(array, leaf, self._cast or not self.converts):
            return f"{shown}: {problem}"
        if array.dtype != leaf.array.dtype and not self._cast and not self.converts:
            return f"{shown}: saved as {array.dtype.name}, the Variable is {leaf.dtype.name}"
        return ""

    def _make_slots(self, tree: StateTree, look_up: Callable[[], StateTree]) -> dict[str, Callable[[], None]]:
        """Let optimizers make the slots that were saved for Variables that are here; returns how to undo that, by path."""
        undo: dict[str, Callable[[], None]] = {}
        for place, optimizer in tree.optimizers():
            start = joined(place, SLOTS) + "/"
            saved = {key[len(start) :].rpartition("/")[0] for key in self.due if key.startswith(start)}
            wanted = sorted((path for path in saved if isinstance(tree.leaves.get(path), Variable)), key=self._number(start))
            if wanted:
                before = optimizer.state.slots
                optimizer.prepare([tree.leaves[path] for path in wanted])
                undo[place] = functools.partial(optimizer.state.restore, before)
        return undo

    def _number(self, start: str) -> Callable[[str], float]:
        """The number that a Variable's slots had in the optimizer that was saved."""
        numbers = {
            target[len(start) :]: int(alias[len(start) + 1 :])
            for alias, target in self._aliases.items()
            if alias.startswith(start + "#") and alias[len(start) + 1 :].isdecimal()
        }
        return lambda path: numbers.get(path, math.inf)

    # Waiting -------------------------------------------------------------------------------------------------------------

    def _wait(self, graph: StateTree) -> None:
        """Mark the objects below which something may still find its place; free them when nothing is due."""
        due = bool(self.due)
        for path, holder in graph.holders.items():
            attributes = getattr(holder, "__dict__", None)
            if attributes is None:  # a list or dict; what holds it is marked
                continue
            mark = attributes.get("_deferred")
            if due and (mark is None or mark.restoration is not self):
                attributes["_deferred"] = Deferred(self, path)
                self._places.append((path, weakref.ref(holder)))
            elif not due and mark is not None and mark.restoration is self:
                del attributes["_deferred"]
        (waiting.add if due else waiting.discard)(self)

    def revisit(self) -> None:
        """Look again for places of what is due, from the outermost objects that are left."""
        alive = [(path, holder) for path, reference in self._places if (holder := reference()) is not None]
        top = outermost([path for path, _ in alive])
        self.visit(*(place for place in sorted(alive, key=lambda place: len(place[0])) if place[0] in top))

    def take_back(self, path: str, holder: Any) -> None:
        """Note that `path` is as it was before: values whose places are gone are due again."""
        left = StateTree((path, holder)).leaves
        for key, place in list(self.used.items()):
            if (place.startswith(f"{path}/") or f"/{SLOTS}/{path}/" in place) and place not in left:
                del self.used[key]
        if self.due:
            waiting.add(self)

    def __del__(self) -> None:
        if not getattr(self, "quiet", True) and (due := self.due):
            said = "restore: %d values of '%s' were never used: %s. status.expect_partial() says that this is meant."
            logger.warning(said, len(due), self.source, ", ".join(sorted(due)[:SHOWN]))


class Deferred:
    """The mark of an object at `path` under which values are due."""

    def __init__(self, restoration: Restoration, path: str) -> None:
        self.restoration, self.path = restoration, path

    def attribute_set(self, value: Any) -> None:
        """Restore what has come with a new attribute."""
        if is_trackable(value):
            self.restoration.revisit()

    def __deepcopy__(self, memo: dict[int, Any]) -> Deferred:
        return self


def outermost(places: Collection[str]) -> list[str]:
    """The outermost of some paths: those that lie within no other; all lie within ''."""
    if "" in places:
        return [""]
    return [place for place in sorted(places) if not any(place.startswith(f"{other}/") for other in places)]


def listed(kind: str, texts: Collection[str]) -> list[str]:
    """A line for each of the first few, under a heading with their number."""
    if not texts:
        return []
    some = [f"    {text}" for text in list(texts)[:SHOWN]]
    more = [f"    and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return [f"  {kind} ({len(texts)}):", *some, *more]


def misfit(array: NDArray[Any], variable: Variable, cast: bool) -> str:
    """The reason why a saved array cannot go into a Variable; '' if it can. Another dtype may change numbers by rounding, by
    more only with `cast`.
    """
    if array.shape != tuple(variable.shape):
        return f"saved with shape {array.shape}, the Variable has {tuple(variable.shape)}"
    if not cast and not _fits(array, variable.array.dtype):
        return f"saved as {array.dtype.name}, which {variable.dtype.name} cannot hold"
    return ""


def _fits(array: NDArray[Any], wanted: np.dtype[Any]) -> bool:
    if array.dtype == wanted:
        return True
    with np.errstate(all="ignore"):
        changed = array.astype(wanted)
        if _is_float(array.dtype) and _is_float(wanted):  # as under mixed precision: 0.1 is another number in each dtype
            return bool((np.isfinite(changed) | ~np.isfinite(array)).all())
        return np.array_equal(changed.astype(array.dtype), array, equal_nan=_is_float(array.dtype))


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
