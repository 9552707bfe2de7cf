"""The files of a checkpoint: an index, and a file of arrays that it vouches for.

    ckpt-3.index                            JSON: keys, states, and bytes and SHA-256 of the file of arrays
    ckpt-3.data-9f86d081884c7d65.safetensors   the arrays, safetensors

The file of arrays is named after its hash and is complete before the index is renamed into place, so at every moment the index
is the old or the new one, and what that names is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import secrets
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointBusyError, LoadError, NotFoundError
from ..files import durable, strict_json, tensors
from ..files.reading import excerpt, read_file, refused
from ..state import StateValues

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
    for attempt in range(5):
        index = read_index(prefix)
        try:
            return _read(prefix, index)
        except NotFoundError as error:
            # A writer may have replaced the index, and the arrays with it, since we read it.
            if read_index(prefix) == index or attempt == 4:
                raise refused(prefix, "", f"the file of arrays is missing ({excerpt(error, 100)})") from None
    raise AssertionError


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
