"""The files of a checkpoint: an index, and a file of arrays that it vouches for; and the file 'checkpoint' of a folder.

    ckpt-3.index                            JSON: keys, states, and bytes and SHA-256 of the file of arrays
    ckpt-3.data-9f86d081884c7d65.safetensors   the arrays, safetensors

The file of arrays is named after its hash and is complete before the index is renamed into place, so at every moment the index
is the old or the new one, and what that names is there. The file 'checkpoint' lists the checkpoints of its folder, oldest
first. What counts is which of them are complete: if it is missing, damaged or behind, the folder is looked through.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import platform
import re
import secrets
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core.warnings import logger
from .errors import CheckpointBusyError, LoadError, NotFoundError
from .files import durable, excerpt, read_file, refused, strict_json, tensors
from .state import StateValues
from .types import as_dtype

FORMAT = "minikeras checkpoint 1"
INDEX = ".index"
_INDEX = {"format": str, "saved": float, "counted": bool, "writer": str}
_INDEX |= {"files": dict, "states": dict, "aliases": dict, "complex128": list}
_SEAL = re.compile(rb'\{"sha256":"([0-9a-f]{64})","content":(.*)\}\n', re.DOTALL)
_DATA_NAME = re.compile(r"([^/]+)\.data-[0-9a-f]{16}\.safetensors", re.DOTALL)


def sealed(content: Any) -> bytes:
    """JSON that carries its own SHA-256."""
    body = strict_json.dumps(content)
    return b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'","content":' + body + b"}\n"


def unsealed(text: bytes | bytearray, file: object) -> Any:
    """The content of `sealed`; a LoadError if a byte is wrong."""
    match = _SEAL.fullmatch(text)
    if match is None or hashlib.sha256(match[2]).hexdigest().encode() != match[1]:
        raise refused(file, "", "is damaged: its content does not have the SHA-256 that it states")
    return strict_json.loads(match[2], file)


class WriterIdentity:
    """A writer of checkpoints: a process, and within it one object. No writer replaces or deletes the files of another."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._name, self._process = secrets.token_hex(8), os.getpid()
        _here[self._name] = self

    @property
    def mark(self) -> str:
        """The name of the writer in the index of a checkpoint; another one after a fork."""
        if self._process != os.getpid():
            self._begin()
        return f"{self._process} {self._name} {platform.node()}"

    def renew(self) -> None:
        """Go on as another writer: files that a failed save has left belong to a writer that is gone, and may be replaced."""
        _here.pop(self._name, None)
        self._begin()

    def may_replace(self, mark: str) -> bool:
        """True if a checkpoint with this mark is this writer's own, or its writer is gone."""
        process, _, rest = mark.partition(" ")
        name, _, host = rest.partition(" ")
        if not process or name == self._name:
            return True
        if process == str(os.getpid()) and host == platform.node():
            return name not in _here
        return host == platform.node() and not durable.is_alive(process)  # on another host there is no way to tell

    def may_adopt(self, mark: str) -> bool:
        """True if a checkpoint with this mark counts as its own: may be replaced, or is of its process, as in a notebook."""
        process, _, rest = mark.partition(" ")
        return self.may_replace(mark) or (process == str(os.getpid()) and rest.endswith(f" {platform.node()}"))


_here: weakref.WeakValueDictionary[str, WriterIdentity] = weakref.WeakValueDictionary()
"""The writers of this process, by name."""


class TakenError(CheckpointBusyError):
    """A numbered checkpoint of this name is there, and is not to be replaced."""


def write(
    prefix: Path,
    values: StateValues,
    counted: bool = False,
    durable_write: bool = True,
    writer: WriterIdentity | None = None,
    done: Callable[[], None] | None = None,
) -> None:
    """Write a checkpoint; what was there under this name stays complete until the new one is.

    Args:
        counted: whether it is one of a numbered sequence, of which `latest_checkpoint` finds the last.
        durable_write: whether to wait for the disk.
        writer: what saves; a counted checkpoint replaces one of its own only, or one whose writer is gone.
        done: called when it is complete, while no other program writes in the folder.

    Raises:
        OSError: if anything fails; the old checkpoint is untouched.
        TakenError: if the name belongs to another writer, or to a checkpoint that is damaged.
    """
    durable.make_directory(prefix.parent)
    # safetensors has no code for complex128: it is float64 with a last axis of length 2.
    complex_ones = [(name, np.ascontiguousarray(one)) for name, one in values.arrays.items() if one.dtype == np.complex128]
    pairs = {name: one.reshape(*values.arrays[name].shape, 1).view(np.float64) for name, one in complex_ones}
    content = tensors.encode(values.arrays | pairs, {"format": FORMAT})
    digest = hashlib.sha256(content).hexdigest()
    data = prefix.parent / f"{prefix.name}.data-{digest[:16]}.safetensors"
    index = {
        "format": FORMAT,
        "saved": time.time(),
        "counted": counted,
        "writer": "" if writer is None else writer.mark,
        "files": {data.name: [len(content), digest]},
        "states": values.states,
        "aliases": values.aliases,
        "complex128": list(pairs),
    }
    with durable.writer_lock(prefix.parent):
        durable.remove_stale(prefix.parent, age=0.0)  # no other program is writing here now
        if counted and writer is not None and is_taken(prefix, writer.may_replace):
            raise TakenError(f"{prefix}: a checkpoint of this name belongs to another program, or is damaged.")
        existed = data.exists()
        durable.write_file(data, content, durable_write)
        text, place = sealed(index), str(prefix) + INDEX
        try:
            durable.write_file(place, text, durable_write)
        except BaseException:
            # If even the name was changed, and only the folder could not be synced, the new checkpoint is there.
            with contextlib.suppress(OSError, LoadError, NotFoundError):
                if not existed and (not os.path.exists(place) or read_file(place) != text):
                    durable.remove(data)
            raise
        if done is not None:
            done()
        _remove_unnamed(prefix.parent)


def may_be_of(prefix: Path, saved: float) -> bool:
    """True if the checkpoint of this name may be the one saved at this time: no other was saved under its name since."""
    try:
        return bool(read_index(prefix)["saved"] == saved)
    except (NotFoundError, LoadError):
        return True


def is_taken(prefix: Path, may: Callable[[str], bool]) -> bool:
    """True if there is a checkpoint of this name for which `may`, a writer's `may_replace` or `may_adopt`, is False."""
    try:
        return not may(read_index(prefix)["writer"])
    except NotFoundError:
        return False
    except LoadError:  # what is damaged may be all that is left of a long run
        return True


def delete(prefix: Path) -> None:
    """Remove the index of a checkpoint, which is then none; `write`, whose `done` calls this, removes its arrays."""
    durable.remove(str(prefix) + INDEX)
    durable.sync_directory(prefix.parent)


def _remove_unnamed(folder: Path) -> None:
    """Delete files of arrays that no index of the folder names, left by a kill or by a newer save; a failure leaves some."""
    with contextlib.suppress(OSError, LoadError, NotFoundError):
        found = os.listdir(folder)
        data = {name: match[1] + INDEX for name in found if (match := _DATA_NAME.fullmatch(name))}
        if len(set(data.values()) & set(found)) == len(data):
            return  # each has an index of its own
        indexes = [name.removesuffix(INDEX) for name in found if name.endswith(INDEX)]
        named = {name for index in indexes for name in read_index(folder / index)["files"]}
        for name in set(data) - named:
            durable.remove(folder / name)


def read(prefix: Path) -> StateValues:
    """Read a checkpoint and verify every byte of it; a NotFoundError if there is none, a LoadError if it is damaged."""
    for _ in range(5):
        index = read_index(prefix)
        try:
            return _read(prefix, index)
        except NotFoundError as error:
            missing = refused(prefix, "", f"the file of arrays is missing ({excerpt(error, 100)})")
            if read_index(prefix) == index:  # else a writer has replaced the index, and the arrays with it, since we read it
                break
    raise missing


def _read(prefix: Path, index: dict[str, Any]) -> StateValues:
    ((name, (size, digest)),) = index["files"].items()
    path = prefix.parent / name
    arrays, _ = tensors.load(path, sha256=digest, follow=False)
    if path.stat().st_size != size:
        raise refused(path, "", f"does not hold the {size} bytes that its index states")
    for key in index["complex128"]:
        if key not in arrays or arrays[key].dtype != np.float64 or arrays[key].shape[-1:] != (2,):
            raise refused(path, excerpt(key), "is no array of complex numbers")
        arrays[key] = arrays[key].view(np.complex128)[..., 0]
    return StateValues(arrays, index["states"], index["aliases"])


def read_index(prefix: Path) -> dict[str, Any]:
    """The index of a checkpoint, its own bytes verified."""
    path = str(prefix) + INDEX
    try:
        index = unsealed(read_file(path, strict_json.LARGEST), path)
    except NotFoundError:
        raise NotFoundError(
            f"checkpoint '{prefix}' not found: there is no {path}. tf.train.latest_checkpoint(folder) names the newest."
        ) from None
    if isinstance(index, dict):
        index.setdefault("writer", "")  # of the time before there were several
    if not isinstance(index, dict) or {key: type(value) for key, value in index.items()} != _INDEX:
        raise refused(path, "", "is no index of a checkpoint")
    if index["format"] != FORMAT:
        raise refused(path, "format", f"'{excerpt(index['format'])}', this version reads '{FORMAT}'")
    if len(index["files"]) != 1 or not all(_is_data(*item) for item in index["files"].items()):
        raise refused(path, "files", "must name one file of arrays of this checkpoint, with bytes and SHA-256")
    if not all(isinstance(target, str) for target in index["aliases"].values()):
        raise refused(path, "aliases", "must map paths to paths")
    return index


def _is_data(name: str, facts: Any) -> bool:
    """True if an index may name this file: one beside it, with the name that `write` gives."""
    sound = isinstance(facts, list) and [type(fact) for fact in facts] == [int, str] and len(facts[1]) == 64
    return sound and _DATA_NAME.fullmatch(name) is not None


# The list of a folder --------------------------------------------------------------------------------------------------

NAME = "checkpoint"


class CheckpointState(NamedTuple):
    """The list of a folder's checkpoints.

    Attributes:
        model_checkpoint_path: the newest, or ''.
        all_model_checkpoint_paths: all that are known, oldest first.
        all_model_checkpoint_timestamps: when each was saved, in seconds since 1970.
        last_preserved_timestamp: when the last one was saved that a manager keeps for good.
        preserved: paths of checkpoints that a manager keeps for good.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=tf.Variable(1.0)), folder, max_to_keep=2)
    >>> path = manager.save()
    >>> state = tf.train.get_checkpoint_state(folder)
    >>> state.model_checkpoint_path == path, len(state.all_model_checkpoint_paths)
    (True, 1)
    """

    model_checkpoint_path: str = ""
    all_model_checkpoint_paths: Sequence[str] = ()
    all_model_checkpoint_timestamps: Sequence[float] = ()
    last_preserved_timestamp: float = 0.0
    preserved: Sequence[str] = ()


def get_checkpoint_state(checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None) -> CheckpointState | None:
    """The content of the file 'checkpoint' of a folder; None if it is missing or damaged.

    >>> import tempfile
    >>> print(tf.train.get_checkpoint_state(tempfile.mkdtemp()))
    None
    """
    path = Path(checkpoint_dir, latest_filename or NAME)
    try:
        content = unsealed(read_file(path, strict_json.LARGEST), path)
        names, preserved = [str(name) for name, _ in content["all"]], [str(name) for name in content["preserved"]]
        if any("/" in name or not name for name in (*names, *preserved)):
            raise refused(path, "", "names something outside of its folder")
        stamps, last = [float(saved) for _, saved in content["all"]], float(content["last_preserved"])
    except NotFoundError:
        return None
    except (LoadError, KeyError, TypeError, ValueError) as error:
        logger.warning("the file '%s' is damaged (%s); the folder is looked through instead.", path, error)
        return None
    paths = [os.path.join(checkpoint_dir, name) for name in names]
    kept = [os.path.join(checkpoint_dir, name) for name in preserved]
    return CheckpointState(paths[-1] if paths else "", paths, stamps, last, kept)


def write_list(
    folder: Path,
    known: Mapping[str, float],
    is_own: Callable[[str], bool] = lambda path: False,
    dropped: Collection[str] = (),
    preserved: Collection[str] = (),
    last_preserved: float | None = None,
) -> None:
    """Write the file: the newest checkpoints, `known` with the times at which they were saved, after all others there are.

    Args:
        is_own: whether a path has a name that the manager of the known ones gives.
        dropped: checkpoints that it is about to delete.
        preserved, last_preserved: see `CheckpointState`.
    """
    state = get_checkpoint_state(folder) or CheckpointState()
    times = zip(state.all_model_checkpoint_paths, state.all_model_checkpoint_timestamps, strict=True)
    leaving = {*known, *dropped, *preserved}
    others = {path: saved for path, saved in times if path not in leaving and os.path.exists(path + INDEX)}
    kept = [*(path for path in state.preserved if not is_own(path)), *preserved]
    content = {
        "all": [[os.path.basename(path), saved] for path, saved in {**others, **known}.items()],
        "preserved": [os.path.basename(path) for path in kept],
        "last_preserved": state.last_preserved_timestamp if last_preserved is None else last_preserved,
    }
    durable.write_file(folder / NAME, sealed(content))


def highest(prefix: str) -> int:
    """The highest number of a checkpoint 'prefix-number', complete or not; 0 if there is none."""
    folder, name = os.path.split(prefix)
    found = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    numbers = [one.removeprefix(f"{name}-").removesuffix(INDEX) for one in found if one.startswith(f"{name}-")]
    return max([int(number) for number in numbers if number.isdecimal()], default=0)


def damaged(folder: str | os.PathLike[str], is_wanted: Callable[[str], bool] = lambda path: True) -> list[str]:
    """The checkpoints of a folder whose index cannot be read."""
    return [path for path, index in _indexes(folder) if is_wanted(path) and isinstance(index, LoadError)]


def _indexes(folder: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any] | Exception]]:
    """The checkpoints of a folder, each with its index, or with what keeps it from being read."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(INDEX) and not name.startswith("."):
            path = os.path.join(folder, name.removesuffix(INDEX))
            try:
                yield path, read_index(Path(path))
            except (LoadError, NotFoundError) as error:  # not found: deleted in between
                yield path, error


def known_checkpoints(folder: str | os.PathLike[str], latest_filename: str | None = None) -> dict[str, float]:
    """The counted checkpoints of a folder and the times at which they were saved, oldest first.

    One that the file does not list was cut off from it by a kill: on its way out if it is older than those listed, else new.
    """
    state = get_checkpoint_state(folder, latest_filename) or CheckpointState()
    found: dict[str, float] = {}
    for path, index in _indexes(folder):
        if isinstance(index, Exception):
            logger.warning("checkpoint '%s' is skipped: %s", path, index)
        elif index["counted"] and path not in state.preserved:
            found[path] = index["saved"]
    order = {path: number for number, path in enumerate(state.all_model_checkpoint_paths)}
    first = min(state.all_model_checkpoint_timestamps, default=-math.inf)

    def age(path: str) -> tuple[float, float]:
        return order.get(path, -1 if found[path] < first else math.inf), found[path]

    return {path: found[path] for path in sorted(found, key=age)}


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None) -> str | None:
    """The path of the newest checkpoint of a folder all of whose bytes are right, or None; damaged ones are logged.

    Args:
        checkpoint_dir: the folder.
        latest_filename: the file that lists the checkpoints, 'checkpoint' by default.

    Raises:
        LoadError: if there are checkpoints, but none is complete: that is no beginning.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> print(tf.train.latest_checkpoint(folder))
    None
    >>> path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(folder + "/ckpt")
    >>> tf.train.latest_checkpoint(folder) == path
    True
    """
    before: list[str] = []
    while True:
        paths = list(known_checkpoints(checkpoint_dir, latest_filename)) or damaged(checkpoint_dir)
        found = newest_complete(paths)
        if found is not None or not paths:
            return found
        if paths == before:
            raise LoadError(f"{checkpoint_dir}: none of the {len(paths)} checkpoints is complete; the log says why for each.")
        before = paths  # another program may have deleted them since, after it saved something newer


def newest_complete(paths: Sequence[str]) -> str | None:
    """The last of these checkpoints that is complete; those after it are reported."""
    for path in reversed(paths):
        try:
            read(Path(path))
            return path
        except (LoadError, NotFoundError, OSError) as error:
            logger.warning("checkpoint '%s' is skipped: %s", path, error)
    return None


VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
"""The suffix that TensorFlow appends to the path of a Variable."""


class Reader:
    """The values of one checkpoint, without any objects; of a folder, those of its newest one."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        prefix = latest_checkpoint(place) if os.path.isdir(place) else place
        if prefix is None:
            raise NotFoundError(f"'{place}' holds no complete checkpoint.")
        self._values = {name + VALUE: one for name, one in read(Path(prefix)).arrays.items() if not name.startswith("$")}

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shapes by key."""
        return {key: list(array.shape) for key, array in sorted(self._values.items())}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Dtypes by key."""
        return {key: as_dtype(array.dtype) for key, array in sorted(self._values.items())}

    def has_tensor(self, name: str) -> bool:
        """True if there is a value of this key, or of this path."""
        return name in self._values or name + VALUE in self._values

    def get_tensor(self, name: str) -> Any:
        """A value as an array, by key or path; a NotFoundError with the keys there are if there is none."""
        for key in (name, name + VALUE):
            if key in self._values:
                return self._values[key].copy()
        raise NotFoundError(f"Key {name} not found in checkpoint. There are: {', '.join(sorted(self._values)[:12])}.")


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> Reader:
    """A reader of the values of a checkpoint, or of the newest one of a folder.

    >>> import tempfile
    >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(tempfile.mkdtemp() + "/here")
    >>> tf.train.load_checkpoint(path).get_tensor("v")
    array([1., 2.], dtype=float32)
    """
    return Reader(ckpt_dir_or_file)


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """Keys and shapes of what a checkpoint holds.

    >>> import tempfile
    >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(tempfile.mkdtemp() + "/here")
    >>> tf.train.list_variables(path)
    [('v/.ATTRIBUTES/VARIABLE_VALUE', [2])]
    """
    return list(Reader(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """One value of a checkpoint, by its key or its path, as an array.

    >>> import tempfile
    >>> path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(tempfile.mkdtemp() + "/here")
    >>> tf.train.load_variable(path, "v")
    array([1., 2.], dtype=float32)
    """
    return Reader(ckpt_dir_or_file).get_tensor(name)
