"""Weights of a model in a file: Keras's `.weights.h5`, and safetensors.

Key idea of Keras's layout: a group for each object, named by the attribute that holds it (`emb/vars/0`), in Sequential and
functional models and in lists and dicts by its class and number (`layers/dense_1/vars/0`). Within `vars` come the object's own
Variables, trainable ones first. Everything is compared before anything is assigned. A safetensors file holds what
`tf.train.Checkpoint(model)` would, under the paths of attributes, random state of layers included.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import to_numpy
from ...checkpoint.bundle import Bundle
from ...checkpoint.checkpoint import snapshot
from ...checkpoint.restoring import Restoration, listed
from ...core import Tensor, Variable
from ...errors import ShapeError
from ...files import archive, durable, hdf5, strict_json, tensors
from ...files.reading import budget, read_file, refused
from ...module import snake_case
from ..layers.layer import Layer
from ..optimizers import Optimizer
from ..seeds import SeedState

STATES = "minikeras_states"
MEMBERS = ("metadata.json", "config.json", "model.weights.h5")


class Place(NamedTuple):
    """An object and the group of its Variables."""

    path: str
    owner: Any
    variables: list[Variable]


# The walk ------------------------------------------------------------------------------------------------------------------


def places(model: Any) -> list[Place]:
    """Every layer and optimizer of a model with its place in Keras's layout, each once."""
    return list(_visit(model, "", set()))


def _visit(owner: Any, path: str, seen: set[int]) -> Iterator[Place]:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    yield Place(path, owner, own_variables(owner))
    for name, value in _attributes(owner):
        yield from _visit_value(value, f"{path}/{name}" if path else name, seen)


def _visit_value(value: Any, path: str, seen: set[int]) -> Iterator[Place]:
    if _is_saved(value):
        yield from _visit(value, path, seen)
    elif isinstance(value, (list, tuple, Mapping)) and id(value) not in seen:
        seen.add(id(value))
        names: Counter[str] = Counter()
        for child in value.values() if isinstance(value, Mapping) else value:
            container = isinstance(child, (list, tuple, Mapping))
            if not container and not _is_saved(child):
                continue
            name = "container" if container else snake_case(type(child).__name__)
            count = names[name]
            names[name] += 1
            yield from _visit_value(child, f"{path}/{name}_{count}" if count else f"{path}/{name}", seen)


def _is_saved(value: Any) -> bool:
    return isinstance(value, (Layer, Optimizer))


def _attributes(owner: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, in Keras's order: the layers of a chain or graph, then attributes by name, private ones last."""
    if isinstance(owner, Optimizer):
        return
    chained = {"_chain", "_layers"} & set(vars(owner))
    if chained:
        yield "layers", owner.layers
    hidden, wanted = owner._not_walked, getattr(owner, "_checkpointed", ())
    for name in sorted(vars(owner), key=lambda name: (name.startswith("_"), name)):
        if name not in chained and (name not in hidden or name in wanted):
            yield name, vars(owner)[name]


def own_variables(owner: Any) -> list[Variable]:
    """The Variables of an object itself, trainable by nature first; those of layers within have places of their own."""
    if isinstance(owner, Optimizer):
        return owner.variables
    own = owner._own()[0]
    held = {thing.key: thing for thing in own if isinstance(thing, Variable) and not isinstance(thing, SeedState)}
    return sorted(held.values(), key=lambda variable: (not owner._learns(variable), variable.key))


# Saving --------------------------------------------------------------------------------------------------------------------


def save_weights(model: Any, filepath: str | os.PathLike[str], overwrite: bool = True) -> None:
    """Write the weights of a model, and the state of its optimizer, to a file; whole or not at all.

    Args:
        model: a model whose weights exist.
        filepath: a name that ends in '.weights.h5', which Keras reads too, or in '.safetensors'.
        overwrite: whether an existing file may be replaced.

    Raises:
        ValueError: for another name, or a model that is not built.
        FileExistsError: with overwrite=False.
    """
    path = Path(filepath)
    may_write(path, overwrite)
    if not model.built:
        raise ValueError(
            "You are saving a model that has not yet been built. Try building the model first by calling it on some data or by "
            "using `build()`."
        )
    if path.name.endswith(".weights.h5"):
        durable.write_file(path, encode(model))
    elif path.suffix == ".safetensors":
        content = snapshot(model)
        states = strict_json.dumps({"states": content.states, "aliases": content.aliases}).decode()
        tensors.save(path, content.arrays, {STATES: states})
    else:
        raise ValueError(f"The filename must end in `.weights.h5` or `.safetensors`. Received: filepath={filepath}")


def may_write(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file unless that is allowed."""
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} exists, and overwrite=False was given. Choose another name, or delete it.")


def encode(model: Any) -> bytes:
    """The bytes of a `.weights.h5` file."""
    root = hdf5.Node()
    for place in places(model):
        group = root.below(f"{place.path}/vars".lstrip("/"))
        group.attributes["name"] = str(place.owner.name)
        store: dict[str, Any] = {}
        if _overrides(place.owner, "save_own_variables"):
            place.owner.save_own_variables(store)
        else:
            store = {str(number): to_numpy(variable._array) for number, variable in enumerate(place.variables)}
        group.arrays = {key: _as_array(value) for key, value in store.items()}
    return hdf5.encode(root)


def _overrides(owner: Any, name: str) -> bool:
    """Whether a layer's class has a way of its own to save or load."""
    return not isinstance(owner, Optimizer) and hasattr(type(owner), name)


def _as_array(value: Any) -> NDArray[Any]:
    return np.asarray(to_numpy(value._array) if hasattr(value, "_array") else to_numpy(value))


# Loading -------------------------------------------------------------------------------------------------------------------


def load_weights(
    model: Any,
    filepath: str | os.PathLike[str],
    skip_mismatch: bool = False,
    by_name: bool = False,
    cast: bool = False,
) -> None:
    """Read the weights of a model, and the state of its optimizer if the file holds one.

    Args:
        model: a model whose weights exist; they stay as they are if anything is wrong.
        filepath: '.weights.h5', '.keras' or '.h5' of this package or of Keras, or '.safetensors'.
        skip_mismatch: leave out what is missing or has another shape, with a warning, instead of refusing everything.
        by_name: of an '.h5' file of old, match layers by their names instead of their order.
        cast: convert weights of another dtype even if that loses digits.

    Raises:
        NotFoundError: if there is no such file.
        LoadError: if the file is damaged.
        ValueError: if the model is not built; a ShapeError lists all that does not fit.
    """
    path = Path(filepath)
    if not model.built:
        raise ValueError(
            "You are loading weights into a model that has not yet been built. Try building the model first by calling it on "
            "some data or by using `build()`."
        )
    if path.suffix == ".safetensors":
        _load_safetensors(model, path, skip_mismatch, cast)
        return
    if path.suffix == ".keras":
        content = read_file(path)
        members = archive.read(content, path, MEMBERS, ("assets/",), budget(len(content), None))
        root = hdf5.read(members["model.weights.h5"], f"{path.name}/model.weights.h5")
    elif path.suffix in (".h5", ".hdf5"):
        root = hdf5.read(read_file(path), path)
    else:
        raise ValueError(
            f"File format not supported: filepath={filepath}. Keras 3 only supports V3 `.keras` and `.weights.h5` files, or "
            "legacy V1/V2 `.h5` files; `.safetensors` is read as well."
        )
    if "model_weights" in root.members or root.attribute("layer_names") is not None:
        from .legacy import load_legacy_weights

        load_legacy_weights(model, root, path, skip_mismatch, by_name, cast)
        return
    if by_name:
        raise ValueError("load_weights: by_name is for `.h5` files in the layout of old; this file is matched by structure.")
    load_tree(model, root, path, skip_mismatch, cast)


def _load_safetensors(model: Any, path: Path, skip_mismatch: bool, cast: bool) -> None:
    arrays, metadata = tensors.load(path)
    extra = strict_json.loads(metadata[STATES].encode(), path, STATES) if STATES in metadata else {"states": {}, "aliases": {}}
    if not isinstance(extra, dict) or [type(extra.get(key)) for key in ("states", "aliases")] != [dict, dict]:
        raise refused(path, STATES, "must hold states and aliases")
    content = Bundle(arrays, extra["states"], extra["aliases"])
    Restoration(content, str(path), None, skip_mismatch, cast, strict=not skip_mismatch).visit(("", model), wait=False)


def load_tree(model: Any, root: hdf5.Group, file: object, skip_mismatch: bool = False, cast: bool = False) -> None:
    """Assign what a tree in Keras's layout holds, all or nothing."""
    assignments = Assignments(file, skip_mismatch, cast)
    known: set[str] = set()
    for place in places(model):
        group = _group(root, place.path)
        found = {name: one for name, one in group.members.items() if isinstance(one, hdf5.Dataset)} if group else {}
        known.update(one.path for one in found.values())
        arrays = {name: one.array for name, one in found.items()}
        if isinstance(place.owner, Optimizer):
            assignments.add_optimizer(model, place, arrays)
        elif _overrides(place.owner, "load_own_variables"):
            assignments.by_themselves.append((place.owner, arrays))
        else:
            assignments.add(place.path or place.owner.name, place.variables, arrays)
    assignments.unexpected = [
        dataset.path.lstrip("/")
        for dataset in root.datasets()
        if dataset.path not in known and not dataset.path.startswith("/optimizer/")
    ]
    assignments.carry_out()


def _group(root: hdf5.Group, path: str) -> hdf5.Group | None:
    """The group of an object's Variables; of files that TensorFlow 2.13 wrote under the name of that time."""
    found = root.get(f"{path}/vars".lstrip("/"))
    if found is None and "_layer_checkpoint_dependencies" in root.members:
        found = root.get(f"{path}/vars".lstrip("/").replace("layers", "_layer_checkpoint_dependencies"))
    return found if isinstance(found, hdf5.Group) else None


class Assignments:
    """What is to be assigned, and what stands in the way; nothing is changed until `carry_out`.

    Args:
        file: its name, for messages.
        skip: leave out what does not fit.
        cast: convert dtypes even with a loss.
    """

    def __init__(self, file: object, skip: bool, cast: bool) -> None:
        self._file, self._skip, self._cast = file, skip, cast
        self.pairs: list[tuple[Variable, NDArray[Any]]] = []
        self.by_themselves: list[tuple[Any, dict[str, NDArray[Any]]]] = []
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.mismatched: list[str] = []
        self._undo: list[tuple[Any, Any]] = []

    def add(self, path: str, variables: list[Variable], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Match the Variables of one object, '0', '1' and so on."""
        keys = [str(number) for number in range(len(variables))]
        more = [key for key in arrays if key not in keys]
        self.mismatched += [f"{path}/{key}: saved, but the object has {len(keys)} Variables" for key in more]
        for key, variable in zip(keys, variables, strict=True):
            name = f"{path}/{key} ({getattr(variable, 'path', variable.name)})"
            if key in arrays:
                self.match(name, variable, arrays[key])
            else:
                self.missing.append(name)

    def match(self, name: str, variable: Variable, array: NDArray[Any]) -> None:
        """One Variable and its value."""
        wanted = variable._array.dtype
        if array.shape != tuple(variable.shape):
            self.mismatched.append(f"{name}: saved with shape {array.shape}, the Variable has {tuple(variable.shape)}")
            return
        changed = _converted(array, wanted)
        if changed is None and not self._cast:
            self.mismatched.append(f"{name}: saved as {array.dtype.name}, {wanted.name} would lose digits (cast=True)")
            return
        self.pairs.append((variable, array.astype(wanted) if changed is None else changed))

    def add_optimizer(self, model: Any, place: Place, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The state of an optimizer, if the file holds one; its slots are made first."""
        if not arrays:
            return
        optimizer, before = place.owner, place.owner._slots
        self._undo.append((optimizer, before))
        if not optimizer.built:
            optimizer.build(model._learning_variables())
            if len(optimizer.variables) != len(arrays):  # Keras makes slots for what is trainable at present
                optimizer._slots = before
                optimizer.build(model.trainable_variables)
        self.add(f"{place.path} ({optimizer.name})", optimizer.variables, arrays)

    def carry_out(self) -> None:
        """Assign everything, or raise and leave everything as it was.

        Raises:
            ShapeError: listing what is missing, unexpected or of another shape.
        """
        try:
            self._report()
            held = [variable for owner, _ in self.by_themselves for variable in own_variables(owner)]
            before = [(variable, variable._array) for variable in (*(one for one, _ in self.pairs), *held)]
            try:
                for variable, array in self.pairs:
                    variable.assign(Tensor(array))
                    variable._spare = None
                for owner, arrays in self.by_themselves:
                    owner.load_own_variables({key: np.array(array) for key, array in arrays.items()})
            except BaseException:
                for variable, array in before:
                    variable._array = array
                raise
        except BaseException:
            for optimizer, slots in self._undo:
                optimizer._slots = slots
            raise

    def _report(self) -> None:
        lines = listed("mis-shaped", self.mismatched) + listed("not in the file", self.missing)
        lines += listed("in the file, but nowhere to put", self.unexpected)
        if not lines:
            return
        if not self._skip:
            first = f"load_weights: '{self._file}' does not fit the model; nothing was changed."
            raise ShapeError("\n".join([first, *lines, "skip_mismatch=True loads the rest."]))
        warnings.warn("\n".join([f"load_weights: parts of '{self._file}' were left out.", *lines]), stacklevel=5)


def _converted(array: NDArray[Any], wanted: np.dtype[Any]) -> NDArray[Any] | None:
    """A copy in another dtype; None if that would change a number."""
    if array.dtype == wanted:
        return array.copy()
    with np.errstate(all="ignore"):
        changed = array.astype(wanted)
        same = np.array_equal(changed.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
    return changed if same else None
