"""Whole models in one file: `.keras`, a ZIP of configuration and weights.

Checked in this order: the archive, the weights (all bytes), the configuration (through the closed registry, within the bytes
that the weights have), and that both fit. Nothing in a file is run, imported or unpacked.
"""

from __future__ import annotations

import datetime
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...boundary import explaining
from ...errors import LoadError, ShapeError
from ...files import archive, durable, hdf5, limits, strict_json
from ...files.reading import excerpt, read_file, refused
from .assignments import places
from .legacy_h5 import allowance, compile_as, load_legacy_model, made_from
from .objects import ObjectSharingScope, serialize_keras_object
from .registry import CustomObjectScope
from .weights import encode, load_tree, may_write, opened

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
        warnings.warn(
            f"load_model: '{path}' holds weights, but the model cannot be built from its configuration; they were left out. "
            "Give its class a `build`, or begin it with an Input, then call load_weights.",
            stacklevel=3,
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
