"""A small step of training that runs eagerly, compiled, or compiled by LLVM."""

import numpy as np
import pytest
from side_by_side import assert_same, leaves

import minikeras as tf
from minikeras.compiler.executors import llvm

needs_llvm = pytest.mark.skipif(not llvm.installed(), reason="llvmlite and SciPy are not installed")
both = pytest.mark.parametrize("fast", [None, pytest.param(True, marks=needs_llvm)], ids=["numpy", "llvm"])
RANDOM = np.random.default_rng(6)
X, LABELS = tf.constant(RANDOM.normal(size=(6, 4)), "float32"), tf.constant(RANDOM.integers(0, 3, 6), "int32")


def trained(optimizer, fast=None, compiled=True):
    """A step of training, as a function, with its weights."""
    generator = np.random.default_rng(7)
    shapes = {"kernel": (4, 3), "bias": (3,)}
    weights = [tf.Variable(generator.normal(size=shape), dtype="float32", name=name) for name, shape in shapes.items()]
    optimizer.build(weights)

    def step(x, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x @ weights[0] + weights[1]))
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    return tf.function(step, jit_compile=fast) if compiled else step, weights


def same(first, second, fast):
    """The same bits under NumPy, the same numbers by LLVM."""
    assert_same(leaves(first), leaves(second), exact=not fast)
