"""Files of models: weights in Keras's `.weights.h5` or as safetensors, and whole models in a `.keras` file, a ZIP archive of
configuration and weights.

`weight_trees.py` has Keras's layout. A safetensors file holds what `tf.train.Checkpoint(model)` would, under the paths of
attributes, random state of layers included. A whole model is checked in this order: the archive, the weights (all bytes), the
configuration (through the closed registry, within the bytes that the weights have), and that both fit. Nothing in a file runs,
is imported or unpacked.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...boundary import explaining
from ...core import Variable, array_of, to_numpy, warn_caller
from ...errors import LoadError, ShapeError
from ...files import MEGABYTE, archive, durable, excerpt, hdf5, limits, read_file, refused, strict_json, tensors
from ...state import StateTree, StateValues, split
from ..losses import Loss
from ..metrics import Metric
from ..optimizers import Optimizer
from .legacy_h5 import allowance, compile_as, load_legacy_model, load_legacy_weights, made_from
from .objects import ObjectSharingScope, described_kind, serialize_keras_object
from .registry import CustomObjectScope
from .weight_trees import KerasTree, LoadedWeights, ObjectPlace, OwnState, places

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
    number = {variable.key: position for position, variable in enumerate(_weights_of(walked))}
    for place in walked:
        if not hasattr(place.owner, "save_own_variables"):
            continue
        group = root.below(place.group)
        group.attributes["name"] = str(place.owner.name)
        state = OwnState(place.owner).get_state()
        group.arrays = {key: np.asarray(to_numpy(array_of(value))) for key, value in state.items()}
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
    if "model_weights" in root.members or root.attributes.get("layer_names") is not None:
        load_legacy_weights(model, root, path, skip_mismatch, by_name, cast)
        return
    if by_name:
        raise ValueError("load_weights: by_name is for `.h5` files in the layout of old; this file is matched by structure.")
    load_tree(model, root, path, skip_mismatch, cast)


def opened(content: bytearray, path: Path, max_bytes: int | None = None) -> tuple[dict[str, bytes], hdf5.StoredGroup]:
    """The members of a `.keras` file, and the tree of its weights."""
    most = max(64 * MEGABYTE, 8 * len(content)) if max_bytes is None else int(max_bytes)
    members = archive.read(content, path, MEMBERS, ("assets/",), most)
    return members, hdf5.read(members["model.weights.h5"], f"{path.name}/model.weights.h5")


def _load_safetensors(model: Any, path: Path, skip_mismatch: bool, cast: bool) -> None:
    arrays, metadata = tensors.load(path)
    extra = strict_json.loads(metadata[STATES].encode(), path, STATES) if STATES in metadata else {"states": {}, "aliases": {}}
    if not isinstance(extra, dict) or [type(extra.get(key)) for key in ("states", "aliases")] != [dict, dict]:
        raise refused(path, STATES, "must hold states and aliases")
    content = StateValues(arrays, extra["states"], extra["aliases"])
    found = LoadedWeights(content, path, skip_mismatch, cast, lambda place: [model.learning_variables()])
    found.carry_out(lambda: StateTree(("", model)))


def load_tree(model: Any, root: hdf5.StoredGroup, file: object, skip_mismatch: bool = False, cast: bool = False) -> None:
    """Assign what a file in Keras's layout holds, all or nothing."""
    walked = _by_old_names(places(model), root)
    weights, tree, content, known = _weights_of(walked), KerasTree(walked), StateValues({}, {}, {}), set()
    for place in walked:
        group = _group(root, place.path)
        found = {name: one for name, one in group.members.items() if isinstance(one, hdf5.StoredArray)} if group else {}
        known |= {one.path for one in found.values()}
        arrays = {name: one.array for name, one in found.items()}
        if isinstance(tree.leaves.get(place.group), OwnState):
            if arrays or not isinstance(place.owner, Optimizer):
                content.states[place.group] = split(arrays, f"${place.group}", content.arrays)
        elif not isinstance(place.owner, (Loss, Metric)):
            content.arrays.update({f"{place.group}/{name}": array for name, array in arrays.items()})
    content.arrays.update({one.path.lstrip("/"): one.array for one in _of_layers(root) if one.path not in known})

    def candidates(place: str) -> Iterator[list[Variable]]:
        yield from _candidates(model, weights, root.get(place))

    restoration = LoadedWeights(content, file, skip_mismatch, cast, candidates)
    restoration.carry_out(lambda: KerasTree(_by_old_names(places(model), root)), tree)


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
    stated = group.attributes.get(SLOTS_OF) if isinstance(group, hdf5.StoredGroup) else None
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


# Whole models ---------------------------------------------------------------------------------------------------------

KERAS_VERSION = "3.15.1"
"""The version of Keras whose layout the files have."""

FOLDER = "assets/"


@explaining
def save_model(
    model: Any,
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    zipped: bool | None = None,
    save_format: str | None = None,
) -> None:
    """Write a model, its weights, how it was compiled and the state of its optimizer to a `.keras` file, which Keras reads too.

    Args:
        model: the model; weights that are not made yet are not in the file.
        filepath: a name that ends in '.keras'.
        overwrite: whether an existing file may be replaced. It is replaced in one step, when the new one is complete.
        zipped: None or True: one file; folders are not written.
        save_format: None or 'keras', which the name says already.

    Raises:
        ValueError: for another name or format, or with zipped=False.
        FileExistsError: with overwrite=False.
        TypeError: if something in the model cannot be described; the message names it.

    >>> import tempfile
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> path = tempfile.mkdtemp() + "/model.keras"
    >>> tf.keras.saving.save_model(model, path)
    >>> again = tf.keras.saving.load_model(path)
    >>> (again.get_weights()[0] == model.get_weights()[0]).all()
    np.True_
    """
    path = Path(filepath)
    if zipped is False:
        raise ValueError("save: a model is one file here; leave out zipped=False.")
    if path.suffix in (".h5", ".hdf5"):
        raise ValueError(
            f"save: '{filepath}': the HDF5 layout of old is read, not written. Use a name that ends in '.keras', or "
            "save_weights with '.weights.h5'."
        )
    if save_format not in (None, "keras"):
        raise ValueError(f"save: found save_format={save_format!r}; leave it out, the name '{filepath}' says the format.")
    if path.suffix != ".keras":
        raise ValueError(f"Invalid filepath extension for saving. Use a name that ends in `.keras`. Received: {filepath}.")
    may_write(path, overwrite)
    durable.write_file(path, encoded(model))


def encoded(model: Any) -> bytes:
    """The content of a `.keras` file."""
    with ObjectSharingScope():
        config = serialize_keras_object(model)
    date = datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S")
    members = {
        "metadata.json": strict_json.dumps({"keras_version": KERAS_VERSION, "date_saved": date}),
        "config.json": strict_json.dumps_in_order(config),
        "model.weights.h5": encode(model),
        **_assets_of(model),
    }
    return archive.encode(members)


@explaining
def load_model(
    filepath: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool = True,
    max_bytes: int | None = None,
) -> Any:
    """A model from a `.keras` file, or from an `.h5` file of old, written by this package or by Keras.

    Args:
        filepath: the file.
        custom_objects: classes and functions by name, beside those that were registered.
        compile: whether to compile the model as it was, with the state of its optimizer.
        safe_mode: accepted for compatibility; there is no other mode.
        max_bytes: how many bytes the file may unfold to, 64 MiB or 8 times its size by default; and what state of metrics and
            optimizers, and arrays on the way, may need, 128 MiB or 8 times its size. More also allows more layers.

    Raises:
        NotFoundError: if there is no such file.
        LoadError: if the file is damaged or holds what does not belong there; UnknownObjectError if it names a class that is
            not registered.
        ValueError: with safe_mode=False.

    >>> import os, tempfile
    >>> model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.keras")
    >>> model.save(path)
    >>> again = tf.keras.models.load_model(path)
    >>> print((again(tf.ones([1, 2])) == model(tf.ones([1, 2]))).numpy())
    [[ True]]
    """
    path = Path(filepath)
    if not safe_mode:
        raise ValueError("load_model: safe_mode=False is not available: nothing in a file is ever run. Register its classes.")
    content = read_file(path)
    if content.startswith(hdf5.SIGNATURE):
        root = hdf5.read(content, path)
        return load_legacy_model(root, path, custom_objects, compile, allowance(root, len(content), max_bytes))
    return decoded(content, path, custom_objects, compile, max_bytes)


def decoded(
    content: bytearray, path: Path, custom_objects: Mapping[str, Any] | None, compile: bool, max_bytes: int | None
) -> Any:
    """The model of a `.keras` file with this content; errors name `path`."""
    members, root = opened(content, path, max_bytes)
    config = strict_json.loads(members["config.json"], path, "config.json")
    if not isinstance(config, dict) or "class_name" not in config:
        raise refused(path, "config.json", "must describe a model")
    compile_config = config.pop("compile_config", None)
    with limits.loading(allowance(root, len(content), max_bytes)), CustomObjectScope(custom_objects):
        with ObjectSharingScope():
            model = made_from(config, path, "config.json")
        if compile and compile_config:
            compile_as(model, compile_config, path, "config.json: compile_config")
        _load_values(model, root, path)
        _load_assets(model, members, path)
    return model


def _load_values(model: Any, root: hdf5.StoredGroup, path: Path) -> None:
    if model.built:
        try:
            load_tree(model, root, path)
        except ShapeError as error:
            raise LoadError(f"{path.name}: weights and configuration contradict each other. {error}") from error
    elif next(root.datasets(), None) is not None:
        warn_caller(
            f"load_model: '{path}' holds weights, but the model cannot be built from its configuration; they were left out. "
            "Give its class a `build`, or begin it with an Input, then call load_weights."
        )


# Assets: what objects save beside their weights, such as vocabularies, each in a temporary folder of its own ------------------


def _assets_of(model: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for place in places(model):
        if not hasattr(place.owner, "save_assets"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            place.owner.save_assets(folder)
            start = f"{FOLDER}{place.path}/" if place.path else FOLDER
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    found[start + path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def _load_assets(model: Any, members: Mapping[str, bytes], file: Path) -> None:
    """Let the objects of a model read their saved assets; LoadError if an object cannot use them, or a name is no safe path."""
    saved = {name: content for name, content in members.items() if name.startswith(FOLDER) and not name.endswith("/")}
    for place in places(model):
        if not hasattr(place.owner, "load_assets"):
            continue
        start = f"{FOLDER}{place.path}/" if place.path else FOLDER
        with tempfile.TemporaryDirectory() as folder:
            for name in (name for name in saved if name.startswith(start)):
                _write_asset(Path(folder), name.removeprefix(start), saved[name], file)
            try:
                place.owner.load_assets(folder)
            except (LookupError, TypeError, ValueError, OSError, RuntimeError) as error:
                raise refused(file, start, f"load_assets raised {type(error).__name__}: {excerpt(error, 120)}") from error


def _write_asset(folder: Path, name: str, content: bytes, file: Path) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") or ":" in part or "\\" in part or "\0" in part for part in parts) or len(parts) > 32:
        raise refused(file, f"{FOLDER}{excerpt(name)}", "a name that could leave its folder")
    try:
        path = folder.joinpath(*parts)
        os.makedirs(path.parent, exist_ok=True)
        with open(path, "xb") as stream:
            stream.write(content)
    except OSError as error:
        raise refused(file, f"{FOLDER}{excerpt(name)}", f"cannot be unpacked ({error.strerror})") from None
