"""Looking into a checkpoint without the objects that it was made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import NotFoundError
from ..types import as_dtype
from . import bundle
from .pointer import latest_checkpoint

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
"""What TensorFlow appends to the path of a Variable."""


def as_prefix(place: str | os.PathLike[str]) -> Path:
    """The checkpoint that a path names: itself, or the newest of a folder."""
    if os.path.isdir(place):
        found = latest_checkpoint(place)
        if found is None:
            raise NotFoundError(f"'{place}' holds no complete checkpoint.")
        return Path(found)
    return Path(place)


class Reader:
    """The values of one checkpoint, without any objects; of a folder, those of its newest one."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        arrays = bundle.read(as_prefix(place)).arrays
        self._values = {name + VALUE: array for name, array in arrays.items() if not name.startswith("$")}

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Shapes by key."""
        return {key: list(array.shape) for key, array in sorted(self._values.items())}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Dtypes by key."""
        return {key: as_dtype(array.dtype) for key, array in sorted(self._values.items())}

    def has_tensor(self, name: str) -> bool:
        """Whether there is a value of this key, or of this path."""
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
