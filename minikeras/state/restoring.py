"""Bringing values back: match by path, check everything, then assign everything or nothing.

What has no place yet waits: the objects under whose path it is due carry a mark, `_deferred`, which holds the values; setting
an attribute of such an object, or building a layer, takes the walk up again from there.
"""

from __future__ import annotations

import fnmatch
import functools
import math
import warnings
import weakref
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import Variable
from ..core.warnings import logger
from ..errors import ShapeError
from ..module import waiting
from .tree import SLOTS, StateTree, StateValues, apply_tree, is_trackable, join, joined

STEPS = "/iterations"
"""What every optimizer keeps."""
COUNTER = "save_counter"
SHOWN = 8
"""Number of paths of one kind that a message lists."""


class Restoration:
    """The values of one checkpoint, called `source` in messages, on their way into objects; see `Checkpoint.restore`.

    Args:
        strict: refuse everything if a value or an object is left over, apart from an optimizer: what is saved of one that is
            another now is left out, with a warning, and nothing is said of one that only one side has.
    """

    def __init__(
        self,
        values: StateValues,
        source: str,
        only: str | Collection[str] | None = None,
        skip_mismatch: bool = False,
        cast: bool = False,
        strict: bool = False,
    ) -> None:
        self._arrays = {name: array for name, array in values.arrays.items() if not name.startswith("$")}
        self._states = {path: join(tree, values.arrays, source, path) for path, tree in values.states.items()}
        self._aliases = values.aliases
        self.source = source
        self._skip, self._cast, self._strict = skip_mismatch, cast, strict
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
        self.quiet = strict or patterns is not None

    @property
    def due(self) -> set[str]:
        """Paths of values that are wanted and have not found their place."""
        return self.wanted - self.used.keys()

    def __deepcopy__(self, memo: Any) -> Restoration:
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

    def visit(self, *roots: tuple[str, Any], wait: bool = True) -> StateTree:
        """Restore what is due and reachable from objects, each given with its path; with `wait`, have the rest wait there."""
        graph = StateTree(*roots)
        undo = self._make_slots(graph)
        try:
            if undo:
                graph = StateTree(*roots)
            found = {place: leaf for place, leaf in graph.leaves.items() if not self.is_done(leaf)}
            matched = {place: key for place in found if (key := self.key_of(place)) in self.due}
            problems = {place: text for place, key in matched.items() if (text := self._mismatch(found[place], key))}
            skipped = self._without_other_optimizers(graph, found, matched, problems) if self._strict else {}
            for place in skipped:
                undo.pop(place, lambda: None)()
            left = set(found) - set(matched), self.due - set(matched.values())
            if (problems and not self._skip) or (self._strict and any(left)):
                self.quiet = True
                raise ShapeError(self._refusal(problems, left))
            for text in problems.values():
                logger.warning("restore: left out, %s", text)
            for text in filter(None, skipped.values()):
                warnings.warn(text, stacklevel=5)
            sound = {place: key for place, key in matched.items() if place not in problems}
            apply_tree((found[place], self._arrays.get(key, self._states.get(key))) for place, key in sound.items())
        except BaseException:
            for take_back in undo.values():
                take_back()
            raise
        self.used.update({key: place for place, key in matched.items()})
        self._done.update({id(found[place]): weakref.ref(found[place]) for place in sound})
        if wait:
            self._wait(graph)
        return graph

    def is_done(self, leaf: Any) -> bool:
        """Whether this object has its value already."""
        return id(leaf) in self._done and self._done[id(leaf)]() is leaf

    def _mismatch(self, leaf: Any, key: str) -> str:
        """What keeps a value from its place; '' if nothing does."""
        if not isinstance(leaf, Variable):
            return "" if key in self._states else f"'{key}': an array was saved, the object has a state"
        if key not in self._arrays:
            return f"'{key}': a state was saved, the object is a Variable"
        array = self._arrays[key]
        if array.shape != tuple(leaf.shape):
            return f"'{key}': saved with shape {array.shape}, the Variable has {tuple(leaf.shape)}"
        if self._strict and converted(array, leaf.array.dtype, self._cast) is None:
            return f"'{key}': saved as {array.dtype.name}, which {leaf.dtype.name} cannot hold"
        if array.dtype != leaf.array.dtype and not self._cast and not self._strict:
            return f"'{key}': saved as {array.dtype.name}, the Variable is {leaf.dtype.name}"
        return ""

    def _without_other_optimizers(
        self, graph: StateTree, found: dict[str, Any], matched: dict[str, str], problems: dict[str, str]
    ) -> dict[str, str]:
        """Leave out optimizers that only one side has, and those whose state does not fit; their paths, and what to say."""
        skipped: dict[str, str] = {}
        here = {place: optimizer.name for place, optimizer in graph.optimizers()}
        saved = {key.removesuffix(STEPS): "" for key in self._arrays if key.endswith(STEPS)}
        for place in outermost({**saved, **here}):
            within = f"{place}/"
            missing = sorted(path for path in found if path.startswith(within) and path not in matched)
            left = sorted(key for key in self.due - set(matched.values()) if key.startswith(within))
            reasons = [text for path, text in problems.items() if path.startswith(within)]
            reasons += [f"'{path}' was not saved" for path in missing] + [f"it has no '{key}'" for key in left]
            if not reasons:
                continue
            both = any(path.startswith(within) for path in matched)
            text = f"Skipping variable loading for optimizer '{here.get(place, place)}', because {reasons[0]}."
            skipped[place] = f"{text} Its training starts anew." if both else ""
            self.wanted = {key for key in self.wanted if not key.startswith(within)}
            for part in (found, matched, problems):
                for path in [path for path in part if path.startswith(within)]:
                    del part[path]
        return skipped

    def _refusal(self, problems: Mapping[str, str], left: tuple[set[str], set[str]]) -> str:
        lines = [f"restore: '{self.source}' does not fit; nothing was changed.", *listed("mis-shaped", problems.values())]
        lines += listed("not in the checkpoint", sorted(left[0]))
        lines += listed("in the checkpoint, but nowhere to put", sorted(left[1]))
        return "\n".join([*lines, "skip_mismatch=True leaves out what does not fit, cast=True converts dtypes."])

    def _make_slots(self, graph: StateTree) -> dict[str, Callable[[], None]]:
        """Let optimizers make the slots that were saved for Variables which are here; how to take that back, by path."""
        undo: dict[str, Callable[[], None]] = {}
        for place, optimizer in graph.optimizers():
            start = joined(place, SLOTS) + "/"
            saved = {key[len(start) :].rpartition("/")[0] for key in self.due if key.startswith(start)}
            wanted = sorted((path for path in saved if isinstance(graph.leaves.get(path), Variable)), key=self._number(start))
            if wanted:
                before = optimizer.state.slots
                optimizer.prepare([graph.leaves[path] for path in wanted])
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
        """What lies at `path` is as it was before: values that had found a place in what is gone are due again."""
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

    def taken_back(self, holder: Any) -> None:
        """The object has the attributes of an earlier moment again."""
        self.restoration.take_back(self.path, holder)

    def __deepcopy__(self, memo: Any) -> Deferred:
        return self


def outermost(places: Collection[str]) -> list[str]:
    """Those of some paths that lie within no other; all lie within ''."""
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


def converted(array: NDArray[Any], wanted: np.dtype[Any], cast: bool) -> NDArray[Any] | None:
    """A copy in another dtype. None if that would change a number by more than rounding, unless `cast` allows it."""
    if array.dtype == wanted:
        return array.copy()
    with np.errstate(all="ignore"):
        changed = array.astype(wanted)
        if cast:
            return changed
        if _is_float(array.dtype) and _is_float(wanted):  # as under mixed precision: 0.1 is another number in each dtype
            kept = np.isfinite(changed) | ~np.isfinite(array)
            return changed if bool(kept.all()) else None
        back = changed.astype(array.dtype)
    return changed if np.array_equal(back, array, equal_nan=_is_float(array.dtype)) else None


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
