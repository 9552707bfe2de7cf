"""The file 'checkpoint' of a folder: which checkpoints there are, oldest first; and looking into them without any objects.

What counts is which checkpoints are complete: if the file is missing, damaged or behind, the folder is looked through.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.warnings import logger
from ..errors import LoadError, NotFoundError
from ..files import durable, strict_json
from ..files.reading import read_file, refused
from ..types import as_dtype
from . import bundle

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
        content = bundle.unsealed(read_file(path, strict_json.LARGEST), path)
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


def write(
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
    others = {path: saved for path, saved in times if path not in leaving and os.path.exists(path + bundle.INDEX)}
    kept = [*(path for path in state.preserved if not is_own(path)), *preserved]
    content = {
        "all": [[os.path.basename(path), saved] for path, saved in {**others, **known}.items()],
        "preserved": [os.path.basename(path) for path in kept],
        "last_preserved": state.last_preserved_timestamp if last_preserved is None else last_preserved,
    }
    durable.write_file(folder / NAME, bundle.sealed(content))


def highest(prefix: str) -> int:
    """The highest number of a checkpoint 'prefix-number', complete or not; 0 if there is none."""
    folder, name = os.path.split(prefix)
    found = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
    numbers = [one.removeprefix(f"{name}-").removesuffix(bundle.INDEX) for one in found if one.startswith(f"{name}-")]
    return max([int(number) for number in numbers if number.isdecimal()], default=0)


def damaged(folder: str | os.PathLike[str], is_wanted: Callable[[str], bool] = lambda path: True) -> list[str]:
    """The checkpoints of a folder whose index cannot be read."""
    return [path for path, index in _indexes(folder) if is_wanted(path) and isinstance(index, LoadError)]


def _indexes(folder: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any] | Exception]]:
    """The checkpoints of a folder, each with its index, or with what keeps it from being read."""
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(bundle.INDEX) and not name.startswith("."):
            path = os.path.join(folder, name.removesuffix(bundle.INDEX))
            try:
                yield path, bundle.read_index(Path(path))
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
            bundle.read(Path(path))
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
        arrays = bundle.read(Path(prefix)).arrays
        self._values = {name + VALUE: array for name, array in arrays.items() if not name.startswith("$")}

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
