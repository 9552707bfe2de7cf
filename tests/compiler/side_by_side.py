"""The law: a compiled function is the eager one, in all it returns and all it changes.

With NumPy's own loops it is so bit for bit; an executor that joins them rounds in other places.
"""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import minikeras as tf
from minikeras import nest
from minikeras.compiler.executors import llvm
from minikeras.nn_ops import streams

STEPS = 20
ROUNDING = 1e-4
"""Relative to the largest number of an array, after all steps."""
NOISE = 1e-6
"""What rounding leaves where numbers near 1 cancel."""


class Executor(NamedTuple):
    """What carries programs out.

    Attributes:
        exact: whether it gives the same bits as an eager run.
        jit_compile: what asks for it.
    """

    exact: bool
    jit_compile: bool | None


NUMPY = Executor(True, None)
EXECUTORS = [NUMPY, Executor(False, True)] if llvm.installed() else [NUMPY]


def both_ways(make, batches, eager=False, exact=None, executors=EXECUTORS):
    """Run `step(*batch)` over all batches, directly and compiled for each executor; results and state must be the same.

    Args:
        make: returns a step and the function that lists its Variables; called once for each way, from the same seed.
        batches: tuples of arguments, cycled through for 20 steps.
        eager: whether the step cannot be recorded, and has to say so.
        exact: whether that means the same bits; if None, whatever the executor promises.

    Returns:
        The compiled functions, one for each executor, or one that stays eager.
    """

    def seen(wrapped):
        tf.keras.utils.clear_session()
        streams.set_global_seed(4)
        step, variables = make()
        run = wrapped(step)
        results = [leaves(run(*batches[i % len(batches)])) for i in range(STEPS)]
        return run, results, [variable.numpy() for variable in variables()]

    _, expected, state = seen(lambda step: step)
    runs = []
    for executor in [NUMPY] if eager else executors:
        same = executor.exact if exact is None else exact
        run, found, state_now = seen(functools.partial(tf.function, jit_compile=executor.jit_compile))
        for plain, replayed in zip(expected, found, strict=True):
            assert_same(plain, replayed, same)
        assert_same(state, state_now, same)
        if eager:
            assert run.replays == 0 and run.recordings == 0
        else:
            signatures = len({tuple(map(described, batch)) for batch in batches})
            assert run.recordings == signatures, run
            assert run.replays >= STEPS - 2 * signatures, run
        runs.append(run)
    return runs


def with_gradient(specimen):
    """An operation and its gradient as one function, and a sample of its inputs."""
    if specimen.reference is None:
        pytest.skip("a random draw; tests of training compare those")

    def step(*inputs):
        smooth = [x for x in inputs if x.dtype.is_differentiable]
        with tf.GradientTape() as tape:
            tape.watch(smooth)
            y = nest.flatten(specimen.call(*inputs))
        gradients = tape.gradient(y, smooth) if specimen.smooth else []
        return y, [tf.convert_to_tensor(g) for g in gradients if g is not None]

    return step, [tf.constant(x) for x in specimen.sample("float32" if specimen.float32 else "float64")]


def described(argument):
    return (argument.shape, argument.dtype.name) if hasattr(argument, "dtype") else argument


def leaves(result):
    """The values of a result, as arrays."""
    return [leaf.numpy() if hasattr(leaf, "numpy") else leaf for leaf in nest.flatten(result)]


def assert_same(first, second, exact=True):
    """The same bits, or the same up to rounding; a NaN is a NaN."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        if isinstance(one, (int, float)):  # a compiled function returns a Tensor in its place
            one = np.asarray(one, np.asarray(other).dtype)
        assert np.asarray(one).dtype == np.asarray(other).dtype and np.shape(one) == np.shape(other)
        if exact or np.asarray(one).dtype.kind not in "fc" or not np.size(one):
            np.testing.assert_array_equal(one, other)
        else:
            largest = np.abs(one, where=np.isfinite(one), out=np.zeros(np.shape(one))).max()
            np.testing.assert_allclose(other, one, rtol=ROUNDING, atol=ROUNDING * largest + NOISE)
