"""Kernels that know their shapes give the bits of the primitive's own."""

from __future__ import annotations

import numpy as np
import pytest
from side_by_side import assert_same

import minikeras as tf
from minikeras.core import Record, bind
from minikeras.core.registry import operations
from minikeras.program.prepared import _rows, kernel_of
from minikeras.program.recorder import Slot

RANDOM = np.random.default_rng(4)


def array(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(dtype)


LABELS = RANDOM.integers(0, 7, 33)
CASES = [
    ("affine", [array(33, 5), array(5, 7), array(7)], {}),
    ("affine", [array(2, 33, 5), array(5, 7), array(7)], {}),
    ("matrix_product", [array(33, 5), array(5, 7)], {}),
    ("matrix_product", [array(3, 4, 5, dtype="float64"), array(5, 7, dtype="float64")], {}),
    ("transpose", [array(3, 4)], {"perm": (-1, -2)}),
    ("transpose", [array(2, 3, 4, 5)], {"perm": (-1, -3, -2)}),
    ("reshape", [array(3, 4)], {"shape": (2, 6), "rank": 2}),
    ("reshape", [array(5, 3, 4)], {"shape": (12,), "rank": 2}),
    ("reshape", [np.float32(3.0)], {"shape": (1,), "rank": 0}),
    ("sparse_softmax_cross_entropy", [LABELS, array(33, 7)], {}),
    ("sparse_softmax_cross_entropy", [LABELS[:1], np.float32([[np.inf, -np.inf, 1.0, 0, 0, 0, 0]])], {}),
    ("sparse_softmax_cross_entropy", [LABELS.reshape(3, 11), array(3, 11, 7)], {}),
    ("label_excess", [LABELS, array(33, 7)], {}),
    ("label_excess", [LABELS.reshape(3, 11), array(3, 11, 7)], {}),
    *(
        ("reduce_sum", [array(33, 130, dtype=dtype)], {"axes": axes, "keepdims": keep})
        for dtype in ("float16", "float32", "float64")
        for axes in ((-1,), (-2,), (-2, -1), ())
        for keep in (False, True)
    ),
    ("reduce_sum", [LABELS], {"axes": (-1,), "keepdims": False}),
]


@pytest.mark.parametrize(("name", "arrays", "params"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_prepared_kernel_gives_the_same_bits(name, arrays, params):
    primitive = getattr(operations, name)
    kept = [np.array(one) for one in arrays]
    with np.errstate(all="ignore"):
        expected = primitive.on_numpy(*arrays, **params)
        slots = [Slot(i, one, False, False) for i, one in enumerate(arrays)]
        found = kernel_of(Record(primitive, slots, params, Slot(9, expected, False, False)), np)(*arrays)
    assert type(found) is type(expected)
    assert_same([found], [expected])
    assert_same(arrays, kept)


def test_every_prepared_kernel_is_tried():
    assert {primitive.name for primitive in _rows()} == {name for name, _, _ in CASES}


def test_an_operation_of_the_same_name_is_another_one():
    odd = tf.autodiff.primitive("matrix_product", lambda xp, a, b: a - b, None, None)
    step = tf.function(lambda a, b: bind(odd, (a, b), {}))
    for _ in range(2):
        assert step(tf.ones((2, 2)), tf.ones((2, 2))).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert step.replays == 1
