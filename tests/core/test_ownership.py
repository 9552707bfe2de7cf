"""Memory is written again only if nothing else refers to it, whatever a version of Python counts."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.core.ownership import Owned

OTHERS = {
    "a name": lambda array: array,
    "a view": lambda array: array[1:],
    "a memoryview": memoryview,
    "a list": lambda array: [array],
    "a closure": lambda array: lambda: array,
    "a tensor": lambda array: tf.Variable(0.0).value().__class__(array),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("position", [0, 2])
def test_arrays_are_shared_as_long_as_something_else_refers_to_one(other, position):
    owned = Owned([np.zeros(3), np.zeros(3), np.zeros(3)])
    assert not owned.is_shared
    kept = OTHERS[other](owned.arrays[position])
    assert owned.is_shared and kept is not None
    del kept
    assert not owned.is_shared
