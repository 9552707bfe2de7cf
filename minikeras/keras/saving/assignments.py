"""The places of a model's state in Keras's files, and the assignment of a file to it: all of it or nothing.

Each object has a group, named by the attribute that holds it (`emb/vars/0`), within models and containers by its class and
number (`layers/dense_1/vars/0`). The subgroup `vars` holds its own Variables, trainable ones first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core import Variable
from ...core.variable import preserved, restore, snapshot
from ...core.warnings import warn_caller
from ...errors import ShapeError
from ...module import attributes, elements, snake_case, walk
from ...state import apply_tree, listed, misfit
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


Arrays = Mapping[str, NDArray[Any]]


class Assignments:
    """The assignments to make, and the obstacles to them; nothing is changed until `carry_out`.

    Args:
        skip: leave out what does not fit.
        cast: convert dtypes even with a loss.
    """

    def __init__(self, file: object, skip: bool, cast: bool) -> None:
        self._file, self._skip, self._cast = file, skip, cast
        self.pairs: list[tuple[Variable, NDArray[Any]]] = []
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.mismatched: list[str] = []
        self._by_themselves: list[tuple[ObjectPlace, Arrays]] = []
        self._skipped_optimizers: list[str] = []
        self._undo: list[tuple[Any, Any]] = []

    def add(self, path: str, variables: list[Variable], arrays: Arrays) -> None:
        """Match the Variables of one object, '0', '1' and so on."""
        keys = [str(number) for number in range(len(variables))]
        more = [key for key in arrays if key not in keys]
        self.mismatched += [f"{path}/{key}: saved, but the object has {len(keys)} Variables" for key in more]
        for key, variable in zip(keys, variables, strict=True):
            name = f"{path}/{key} ({getattr(variable, 'path', variable.name)})"
            if key not in arrays:
                self.missing.append(name)
            elif problem := misfit(arrays[key], variable, self._cast):
                fits = arrays[key].shape == tuple(variable.shape)
                self.mismatched.append(f"{name}: {problem}{' (cast=True)' if fits else ''}")
            else:
                self.pairs.append((variable, arrays[key]))

    def add_by_itself(self, place: ObjectPlace, arrays: Arrays) -> None:
        """Let an object load what it saved in a way of its own."""
        self._by_themselves.append((place, arrays))

    def add_optimizer(self, place: ObjectPlace, arrays: Arrays, candidates: Iterable[list[Variable]]) -> None:
        """The state of an optimizer, if the file holds one that fits; training starts it anew otherwise, with a warning.

        If it has no slots yet, they are made for the first of the `candidates` with which the file fits.
        """
        optimizer = place.owner
        if not arrays:
            return
        if overrides(optimizer, "load_own_variables"):
            self._undo.append((optimizer, optimizer.state.slots))
            if not optimizer.built and sum(map(str.isdecimal, arrays)) > len(optimizer.variables):  # beside what is its own
                optimizer.prepare(next(iter(candidates)))
            self.add_by_itself(place, arrays)
            return
        before = optimizer.state.slots
        problem = self._misfit(optimizer, arrays)
        untrained = not problem and not arrays["0"].any()  # and that is how the file has it: no slots are made
        if not problem and not optimizer.built and not untrained:
            problem = "it has not been built, whereas the saved optimizer has taken steps without slots"
        for variables in [] if optimizer.built or untrained else candidates:
            try:
                optimizer.prepare(variables)
            except ValueError:  # PerLayer: its rules are about other Variables
                continue
            if not self._misfit(optimizer, arrays):
                problem = ""
                break
            optimizer.state.restore(before)
        if problem:
            self._skipped_optimizers.append(
                f"Skipping variable loading for optimizer '{optimizer.name}', because {problem}. Its training starts anew."
            )
            return
        self._undo.append((optimizer, before))
        self.pairs += [(one, arrays[str(number)]) for number, one in enumerate(optimizer.variables)]

    def carry_out(self) -> None:
        """Assign everything, or raise a ShapeError of what does not fit and leave everything as it was."""
        held = [variable for place, _ in self._by_themselves for variable in own_variables(place.owner)]
        try:
            with preserved([*(one for one, _ in self.pairs), *held]):
                if (lines := self._lines()) and not self._skip:
                    first = f"load_weights: '{self._file}' does not fit the model; nothing was changed."
                    raise ShapeError("\n".join([first, *lines, "skip_mismatch=True loads the rest."]))
                with np.errstate(all="ignore"):  # copies: the arrays are views of the file
                    apply_tree((one, array.astype(one.array.dtype)) for one, array in self.pairs)
                for place, arrays in self._by_themselves:
                    self._load_itself(place, arrays)
                self._warn()
        except BaseException:
            for optimizer, slots in self._undo:
                optimizer.state.restore(slots)
            raise

    def _load_itself(self, place: ObjectPlace, arrays: Arrays) -> None:
        own = snapshot(own_variables(place.owner))
        try:
            place.owner.load_own_variables({key: np.array(array) for key, array in arrays.items()})
        except (LookupError, TypeError, ValueError) as error:  # what a file that is not of this object leads to
            problem = f"{place.path or place.owner.name}: load_own_variables raised {type(error).__name__}: {error}"
            restore(own)
            if isinstance(place.owner, Optimizer):
                text = f"Skipping variable loading for optimizer '{place.owner.name}': {error}. Its training starts anew."
                self._skipped_optimizers.append(text)
                return
            if not self._skip:
                raise ShapeError(
                    f"load_weights: '{self._file}' does not fit the model; nothing was changed.\n{problem}"
                ) from error
            self.mismatched.append(problem)

    def _misfit(self, optimizer: Optimizer, arrays: Arrays) -> str:
        """Why these arrays cannot be the Variables of an optimizer; '' if they can."""
        variables = optimizer.variables
        if {str(number) for number in range(len(variables))} != set(arrays):
            return f"it has {len(variables)} variables whereas the saved optimizer has {len(arrays)} variables"
        for number, variable in enumerate(variables):
            array, wanted = arrays[str(number)], variable.array
            if misfit(array, variable, False):
                return (
                    f"its variable {number} ({variable.name}) is {wanted.dtype.name} of shape {wanted.shape}, the saved one "
                    f"{array.dtype.name} of shape {array.shape}"
                )
        return ""

    def _lines(self) -> list[str]:
        lines = listed("mis-shaped", self.mismatched) + listed("not in the file", self.missing)
        return lines + listed("in the file, but nowhere to put", self.unexpected)

    def _warn(self) -> None:
        if lines := self._lines():
            warn_caller("\n".join([f"load_weights: parts of '{self._file}' were left out.", *lines]))
        if self._skipped_optimizers:
            warn_caller("\n".join(self._skipped_optimizers))
