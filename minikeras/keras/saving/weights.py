"""Weights of a model in a file: Keras's `.weights.h5`, and safetensors.

`assignments.py` has Keras's layout. A safetensors file holds what `tf.train.Checkpoint(model)` would, under the paths of
attributes, random state of layers included.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...core import Variable
from ...core.arrays import to_numpy
from ...core.tensor import array_of
from ...files import archive, durable, hdf5, strict_json, tensors
from ...files.reading import budget, read_file, refused
from ...state import Restoration, StateTree, StateValues
from ..layers.layer import Layer
from ..optimizers import Optimizer
from .assignments import Assignments, ObjectPlace, overrides, places
from .legacy_h5 import load_legacy_weights
from .objects import described_kind

STATES = "minikeras_states"
SLOTS_OF = "slots_of"
"""Attribute of an optimizer's group, where slots are not those of all trainable weights: the numbers of the weights that have
some, in the optimizer's order. Keras ignores it."""

MEMBERS = ("metadata.json", "config.json", "model.weights.h5")


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

    >>> import os, tempfile
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.weights.h5")
    >>> tf.keras.saving.save_weights(model, path)
    >>> os.path.exists(path)
    True
    """
    path = Path(filepath)
    may_write(path, overwrite)
    _need_weights(model, "saving a model")
    if path.name.endswith(".weights.h5"):
        durable.write_file(path, encode(model))
    elif path.suffix == ".safetensors":
        content = StateTree(("", model)).values()
        states = strict_json.dumps({"states": content.states, "aliases": content.aliases}).decode()
        tensors.save(path, content.arrays, {STATES: states})
    else:
        raise ValueError(f"The filename must end in `.weights.h5` or `.safetensors`. Received: filepath={filepath}")


def _need_weights(model: Any, action: str) -> None:
    if not model.built:
        raise ValueError(
            f"You are {action} that has not yet been built. Try building the model first by calling it on some data or by "
            "using `build()`."
        )


def may_write(path: Path, overwrite: bool) -> None:
    """Refuse to replace a file unless that is allowed."""
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} exists, and overwrite=False was given. Choose another name, or delete it.")


def encode(model: Any) -> bytes:
    """The bytes of a `.weights.h5` file."""
    root = hdf5.NewGroup()
    walked = places(model)
    weights = _weights_of(walked)
    number = {variable.key: position for position, variable in enumerate(weights)}
    for place in walked:
        if not hasattr(place.owner, "save_own_variables"):
            continue
        group = root.below(f"{place.path}/vars".lstrip("/"))
        group.attributes["name"] = str(place.owner.name)
        store: dict[str, Any] = {}
        place.owner.save_own_variables(store)
        group.arrays = {key: np.asarray(to_numpy(array_of(value))) for key, value in store.items()}
        if isinstance(place.owner, Optimizer):
            kept = list(place.owner.state.slots)
            if kept and kept != [variable.key for variable in model.learning_variables()] and set(kept) <= set(number):
                root.below(place.path).attributes[SLOTS_OF] = " ".join(str(number[key]) for key in kept)
    return hdf5.encode(root)


def _weights_of(walked: list[ObjectPlace]) -> list[Variable]:
    """All Variables that an optimizer may keep slots for, in the order of the file."""
    return [variable for place in walked if not isinstance(place.owner, Optimizer) for variable in place.variables]


# Loading -------------------------------------------------------------------------------------------------------------------


def load_weights(
    model: Any, filepath: str | os.PathLike[str], skip_mismatch: bool = False, by_name: bool = False, cast: bool = False
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

    >>> import os, tempfile
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.weights.h5")
    >>> tf.keras.saving.save_weights(model, path)
    >>> tf.keras.saving.load_weights(model, path)
    """
    path = Path(filepath)
    _need_weights(model, "loading weights into a model")
    if path.suffix == ".safetensors":
        _load_safetensors(model, path, skip_mismatch, cast)
        return
    if path.suffix == ".keras":
        root = opened(read_file(path), path)[1]
    elif path.suffix in (".h5", ".hdf5"):
        root = hdf5.read(read_file(path), path)
    else:
        raise ValueError(
            f"File format not supported: filepath={filepath}. Keras 3 only supports V3 `.keras` and `.weights.h5` files, or "
            "legacy V1/V2 `.h5` files; `.safetensors` is read as well."
        )
    if "model_weights" in root.members or root.attribute("layer_names") is not None:
        load_legacy_weights(model, root, path, skip_mismatch, by_name, cast)
        return
    if by_name:
        raise ValueError("load_weights: by_name is for `.h5` files in the layout of old; this file is matched by structure.")
    load_tree(model, root, path, skip_mismatch, cast)


def opened(content: bytearray, path: Path, max_bytes: int | None = None) -> tuple[dict[str, bytes], hdf5.StoredGroup]:
    """The members of a `.keras` file, and the tree of its weights."""
    members = archive.read(content, path, MEMBERS, ("assets/",), budget(len(content), max_bytes))
    return members, hdf5.read(members["model.weights.h5"], f"{path.name}/model.weights.h5")


def _load_safetensors(model: Any, path: Path, skip_mismatch: bool, cast: bool) -> None:
    arrays, metadata = tensors.load(path)
    extra = strict_json.loads(metadata[STATES].encode(), path, STATES) if STATES in metadata else {"states": {}, "aliases": {}}
    if not isinstance(extra, dict) or [type(extra.get(key)) for key in ("states", "aliases")] != [dict, dict]:
        raise refused(path, STATES, "must hold states and aliases")
    content = StateValues(arrays, extra["states"], extra["aliases"])
    made = [place.owner for place in places(model) if isinstance(place.owner, Optimizer) and _lacks_slots(place, arrays)]
    for optimizer in made:
        optimizer.prepare(model.learning_variables())
    try:
        Restoration(content, str(path), None, skip_mismatch, cast, strict=not skip_mismatch).visit(("", model), wait=False)
    finally:
        for optimizer in made:
            if not optimizer.iterations:  # it was left out
                optimizer.state.restore({})


def _lacks_slots(place: ObjectPlace, arrays: Mapping[str, Any]) -> bool:
    """True if an optimizer has no slots, and the one that was saved took its steps without any; another kind may need some."""
    steps = arrays.get(f"{place.path}/iterations")
    with_slots = any("/slots/" in name for name in arrays if name.startswith(f"{place.path}/"))
    return not place.owner.built and not with_slots and steps is not None and bool(steps.any())


def load_tree(model: Any, root: hdf5.StoredGroup, file: object, skip_mismatch: bool = False, cast: bool = False) -> None:
    """Assign what a tree in Keras's layout holds, all or nothing."""
    assignments = Assignments(file, skip_mismatch, cast)
    known: set[str] = set()
    walked = _by_old_names(places(model), root)
    weights = _weights_of(walked)
    for place in walked:
        group = _group(root, place.path)
        found = {name: one for name, one in group.members.items() if isinstance(one, hdf5.StoredArray)} if group else {}
        known.update(one.path for one in found.values())
        arrays = {name: one.array for name, one in found.items()}
        if isinstance(place.owner, Optimizer):
            assignments.add_optimizer(place, arrays, _candidates(model, weights, root.get(place.path)))
        elif overrides(place.owner, "load_own_variables"):
            assignments.add_by_itself(place, arrays)
        elif isinstance(place.owner, Layer):
            assignments.add(place.path or place.owner.name, place.variables, arrays)
    assignments.unexpected = [dataset.path.lstrip("/") for dataset in _of_layers(root) if dataset.path not in known]
    assignments.carry_out()


def _by_old_names(walked: list[ObjectPlace], root: hdf5.StoredGroup) -> list[ObjectPlace]:
    """The places by the names of the file: an attribute that was renamed may keep its old name as a property, as in Keras."""
    current = {id(place.owner): place.path for place in walked}
    for place in walked:
        path = current[id(place.owner)]
        group = root.get(path) if path else root
        for name in group.members if isinstance(group, hdf5.StoredGroup) else ():
            found = getattr(type(place.owner), name, None)
            own = isinstance(found, property) and found is not getattr(described_kind(type(place.owner)), name, None)
            held = getattr(place.owner, name, None) if own else None
            before, after = current.get(id(held)), f"{path}/{name}".lstrip("/")
            if before and before != after and root.get(before) is None:
                inside = {key: one for key, one in current.items() if one == before or one.startswith(f"{before}/")}
                current |= {key: after + one.removeprefix(before) for key, one in inside.items()}
    return [place._replace(path=current[id(place.owner)]) for place in walked]


def _candidates(model: Any, weights: list[Variable], group: Any) -> Iterator[list[Variable]]:
    """Variables that the optimizer of a file may have kept slots for: as the file says, or as Keras makes them."""
    stated = group.attribute(SLOTS_OF) if isinstance(group, hdf5.StoredGroup) else None
    numbers = stated.split() if isinstance(stated, str) else []
    if numbers and all(number.isdecimal() and len(number) < 10 and int(number) < len(weights) for number in numbers):
        yield [weights[int(number)] for number in numbers]
    yield model.learning_variables()
    yield model.trainable_variables


def _of_layers(group: hdf5.StoredGroup) -> Iterator[hdf5.StoredArray]:
    """The datasets of a file without those of optimizers, which a model may have or not have."""
    for name, member in group.members.items():
        if isinstance(member, hdf5.StoredArray):
            yield member
        elif not _is_optimizer(name, member):
            yield from _of_layers(member)


def _is_optimizer(name: str, group: hdf5.StoredGroup) -> bool:
    """True if a group is that of an optimizer: by its name, or because its first Variable is a count of steps."""
    own = group.members.get("vars")
    first = own.members.get("0") if isinstance(own, hdf5.StoredGroup) else None
    counts = isinstance(first, hdf5.StoredArray) and first.array.shape == () and first.array.dtype.kind in "iu"
    return name == "optimizer" or counts


def _group(root: hdf5.StoredGroup, path: str) -> hdf5.StoredGroup | None:
    """The group of an object's Variables; of files that TensorFlow 2.13 wrote under the name of that time."""
    path, old = f"{path}/vars".lstrip("/"), "_layer_checkpoint_dependencies"
    found = root.get(path) or (root.get(path.replace("layers", old)) if old in root.members else None)
    return found if isinstance(found, hdf5.StoredGroup) else None
