"""Memory is written again only if nothing else refers to it, whatever a version of Python counts."""

from __future__ import annotations

import numpy as np
import pytest

import minikeras as tf
from minikeras.core.ownership import Owned, is_only_reference

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


@pytest.mark.parametrize("other", OTHERS)
def test_an_attribute_is_the_only_reference_until_there_is_another(other):
    v = tf.Variable(tf.zeros(3))
    v.exchange(np.ones(3, np.float32))
    assert is_only_reference(v, "_spare")
    kept = OTHERS[other](v._spare)
    assert not is_only_reference(v, "_spare") and kept is not None
    del kept
    assert is_only_reference(v, "_spare")


@pytest.mark.parametrize("other", OTHERS)
def test_a_spare_array_is_given_away_only_if_nothing_else_refers_to_it(other):
    for seen in (False, True):
        v = tf.Variable(tf.zeros(3))
        kept = OTHERS[other](v.array) if seen else None
        v.exchange(np.ones(3, np.float32))
        assert (v.spare() is None) == seen and v.spare() is None
        del kept
