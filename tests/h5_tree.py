"""A tree to be written as HDF5, from arrays by path."""

from collections.abc import Mapping
from typing import Any

from minikeras.files import hdf5


def tree(arrays: Mapping[str, Any]) -> hdf5.NewGroup:
    root = hdf5.NewGroup()
    for path, array in arrays.items():
        folder, _, name = path.rpartition("/")
        root.below(folder).arrays[name] = array
    return root
