"""The state of a model by Keras's paths, and files of weights on their way into it.

Each object has a group, named by the attribute that holds it (`emb/vars/0`), within models and containers by its class and
number (`layers/dense_1/vars/0`). The subgroup `vars` holds its own Variables, trainable ones first.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core import Variable, preserved, restore, snapshot, warn_caller
from ...errors import ShapeError
from ...module import attributes, elements, snake_case, walk
from ...state import SLOTS, Match, Restoration, StateTree, StateValues, apply_tree, listed, outermost
from ..layers import layer_weights
from ..layers.layer import Layer
from ..losses import Loss
from ..metrics import Metric
from ..optimizers import Optimizer

STATE_METHODS = ("save_own_variables", "load_own_variables", "save_assets", "load_assets")
"""The methods by which a class may save and load its state itself."""


class ObjectPlace(NamedTuple):
    """An object and the group of its Variables."""

    path: str
    owner: Any
    variables: list[Variable]

    @property
    def group(self) -> str:
        """The path of the group of its Variables."""
        return f"{self.path}/vars".lstrip("/")


def places(model: Any) -> list[ObjectPlace]:
    """Every object of a model that has a place in Keras's layout, each once."""
    met = walk(("", model), children=_children, separator="/")
    return [ObjectPlace(path, one, own_variables(one)) for path, one, first in met if first is None and _has_place(one)]


def own_variables(owner: Any) -> list[Variable]:
    """The Variables of an object itself; those of layers within it have places of their own."""
    if isinstance(owner, Layer):
        return layer_weights.own_variables(owner)
    return list(owner.variables) if isinstance(owner, (Optimizer, Metric)) else []


def overrides(owner: Any, name: str) -> bool:
    """True if the class of an object overrides this one of `STATE_METHODS`."""
    found = getattr(type(owner), name, None)
    return found is not None and all(found is not getattr(base, name, None) for base in (Layer, Optimizer))


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    """The children of a layer or container that have a place, by Keras's names and in its order: of a layer first the layers of
    its chain or graph, then attributes by name, private ones last.
    """
    if isinstance(value, Layer):
        chained = {"_chain", "_layers"} & set(vars(value))
        held = {name: one for name, one in attributes(value, also=(*value.checkpointed, "loss")) if name not in chained}
        named = [("layers", value.layers)] if chained else []
        named += sorted(held.items(), key=lambda item: (item[0].startswith("_"), item[0]))
        yield from ((name, child) for name, child in named if _has_place(child) or _is_container(child))
    elif _is_container(value) and not _has_place(value):
        names: Counter[str] = Counter()
        for _, child in elements(value):
            if _has_place(child) or _is_container(child):
                name = snake_case(type(child).__name__) if _has_place(child) else "container"
                yield (f"{name}_{names[name]}" if names[name] else name), child
                names[name] += 1


def _is_container(value: object) -> bool:
    return isinstance(value, (list, tuple, Mapping))


def _has_place(value: object) -> bool:
    """Layers and optimizers; losses and metrics that say how they are saved."""
    if isinstance(value, (Loss, Metric)):
        return any(overrides(value, name) for name in STATE_METHODS)
    return isinstance(value, (Layer, Optimizer))


class OwnState:
    """The state of an object that saves or loads it in a way of its own, as a leaf of a tree."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def get_state(self) -> dict[str, Any]:
        """The values that the object saves, by name."""
        store: dict[str, Any] = {}
        self.owner.save_own_variables(store)
        return store

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Let the object load them."""
        self.owner.load_own_variables(dict(state))


class KerasTree(StateTree):
    """The state of objects at their places in Keras's layout: `layers/dense_1/vars/0`, optimizers with all their slots."""

    def __init__(self, places: Iterable[ObjectPlace]) -> None:
        self.leaves, self.aliases, self.holders = {}, {}, {}
        for place in places:
            if overrides(place.owner, "load_own_variables"):
                self.leaves[place.group] = OwnState(place.owner)
            elif not isinstance(place.owner, (Loss, Metric)):
                self.leaves |= {f"{place.group}/{number}": one for number, one in enumerate(place.variables)}
            if isinstance(place.owner, Optimizer):
                self.holders[place.path] = place.owner

    def shown(self, path: str) -> str:
        leaf = self.leaves.get(path)
        return f"{path} ({getattr(leaf, 'path', leaf.name)})" if isinstance(leaf, Variable) else path


Candidates = Callable[[str], Iterable[list[Variable]]]
"""Gives the Variables for which the optimizer of a path may have kept slots."""


class LoadedWeights(Restoration):
    """The values of a file of weights on their way into a model, which has to have a place for all of them, and they for all
    that it has. Only the state of an optimizer is left out if it does not fit, with a warning: its training starts anew.

    Args:
        candidates: see `Candidates`; an optimizer without slots makes them for the first with which the file fits.
    """

    asker, holder, converts = "load_weights", "file", True

    def __init__(self, values: StateValues, file: object, skip: bool, cast: bool, candidates: Candidates) -> None:
        super().__init__(values, str(file), None, skip, cast)
        self.quiet, self._candidates = True, candidates
        self._unprepared: set[str] = set()
        """Paths of optimizers without slots whose saved state belongs to other Variables than there are."""
        self._said: list[str] = []

    def _make_slots(self, tree: StateTree, look_up: Callable[[], StateTree]) -> dict[str, Callable[[], None]]:
        undo = super()._make_slots(tree, look_up)
        optimizers = dict(tree.optimizers())
        for place in outermost(optimizers):
            optimizer = optimizers[place]
            by_path = any(f"/{SLOTS}/" in key for key in self._keys_of(place))
            if by_path or optimizer.built or not self._has_more(tree, place, optimizer):
                continue
            take_back = functools.partial(optimizer.state.restore, optimizer.state.slots)
            for variables in self._candidates(place):
                try:
                    optimizer.prepare(variables)
                except ValueError:  # PerLayer: its rules are about other Variables
                    continue
                if self._fits(look_up(), place):
                    undo[place] = take_back
                    break
                take_back()
            else:
                self._unprepared.add(place)
        return undo

    def _has_more(self, tree: StateTree, place: str, optimizer: Optimizer) -> bool:
        """True if the saved state has slots, or steps that were taken without any; one without both is taken as it is."""
        own = self._states.get(f"{place}/vars")
        if own is not None:
            return sum(map(str.isdecimal, own)) > len(optimizer.variables)
        counter = next((self.key_of(path) for path, leaf in tree.leaves.items() if leaf is optimizer.iterations), None)
        has_steps = counter in self._arrays and bool(self._arrays[counter].any())
        return has_steps or bool(self._keys_of(place) - {self.key_of(path) for path in tree.leaves})

    def _keys_of(self, place: str) -> set[str]:
        return {key for key in self.due if key.startswith(f"{place}/")}

    def _fits(self, tree: StateTree, place: str) -> bool:
        """True if the saved state of an optimizer fits what it has now."""
        keys = {path: self.key_of(path) for path in tree.leaves if path.startswith(f"{place}/")}
        if set(keys.values()) != self._keys_of(place):
            return False
        return not any(self._mismatch(tree, path, key) for path, key in keys.items() if key is not None)

    def _check(self, match: Match) -> None:
        self._leave_out_optimizers(match)
        lines = self._complaints(match)
        if lines and not self._skip:
            raise self._refusal(match)
        if lines:
            self._leave_out(lines)

    def _leave_out(self, lines: list[str]) -> None:
        self._said.insert(0, "\n".join([f"load_weights: parts of '{self.source}' were left out.", *lines]))

    def _leave_out_optimizers(self, match: Match) -> None:
        """Leave out optimizers that only one side has, in silence, and those whose state does not fit."""
        here = {place: optimizer.name for place, optimizer in match.tree.optimizers()}
        saved = {key.removesuffix("/iterations"): "" for key in self._arrays if key.endswith("/iterations")}
        for place in outermost({**saved, **here}):
            within = f"{place}/"
            own, keys = [path for path in match.found if path.startswith(within)], self._keys_of(place)
            missing, left = sorted(set(own) - set(match.keys)), sorted(keys - set(match.keys.values()))
            reasons = [text for path, text in match.problems.items() if path.startswith(within)]
            count = f"it has {len(own)} variables whereas the saved optimizer has {len(keys)} variables"
            reasons += [f"{count}: '{path}' was not saved" for path in missing]
            reasons += [f"{count}: it has no '{key}'" for key in left]
            reasons += ["it is not built, and the saved one has taken steps"] if place in self._unprepared else []
            if not reasons:
                continue
            if any(path.startswith(within) for path in match.keys):
                self._skip_optimizer(here.get(place, place), reasons[0])
            self.wanted = {key for key in self.wanted if not key.startswith(within)}
            for part in (match.found, match.keys, match.problems):
                for path in [path for path in part if path.startswith(within)]:
                    del part[path]
            match.undo.pop(place, lambda: None)()

    def _skip_optimizer(self, name: str, reason: object) -> None:
        self._said.append(f"Skipping variable loading for optimizer '{name}', because {reason}. Its training starts anew.")

    def _assign(self, changes: Mapping[str, tuple[Any, Any]]) -> None:
        by_themselves = {path: pair for path, pair in changes.items() if isinstance(pair[0], OwnState)}
        held = [variable for leaf, _ in by_themselves.values() for variable in own_variables(leaf.owner)]
        with preserved([*(leaf for leaf, _ in changes.values() if isinstance(leaf, Variable)), *held]):
            with np.errstate(all="ignore"):  # of a cast
                apply_tree(pair for path, pair in changes.items() if path not in by_themselves)
            for path, (leaf, state) in by_themselves.items():
                self._load_itself(path, leaf, state)
            if self._said:
                warn_caller("\n".join(self._said))

    def _load_itself(self, path: str, leaf: OwnState, state: Mapping[str, Any]) -> None:
        own, owner = snapshot(own_variables(leaf.owner)), leaf.owner
        try:
            leaf.set_state(state)
        except (LookupError, TypeError, ValueError) as error:  # what a file that is not of this object leads to
            restore(own)
            problem = f"{path}: load_own_variables raised {type(error).__name__}: {error}"
            if isinstance(owner, Optimizer):
                self._skip_optimizer(owner.name, problem)
            elif self._skip:
                self._leave_out(listed("mis-shaped", [problem]))
            else:
                first = f"load_weights: '{self.source}' does not fit; nothing was changed."
                raise ShapeError("\n".join([first, *listed("mis-shaped", [problem])])) from error

    def _value_of(self, key: str) -> Any:
        value = super()._value_of(key)
        return value if key in self._states else value.copy()  # it may be a view of the file
