"""The law: a compiled function is the eager one, bit for bit, in all it returns and all it changes."""

from __future__ import annotations

import numpy as np

import minikeras as tf
from minikeras import nest
from minikeras.arrays import random as streams

STEPS = 20


def both_ways(make, batches, eager=False):
    """Run `step(*batch)` over all batches, plainly and compiled; results and state must be the same bits.

    Args:
        make: returns a step and the function that lists its Variables; called once for each way, from the same seed.
        batches: tuples of arguments, cycled through for 20 steps.
        eager: whether the step cannot be recorded, and has to say so.
    """
    seen = []
    for compiled in (False, True):
        tf.keras.utils.clear_session()
        streams.set_global_seed(3)
        step, variables = make()
        run = tf.function(step) if compiled else step
        results = [leaves(run(*batches[i % len(batches)])) for i in range(STEPS)]
        seen.append((results, [variable.numpy() for variable in variables()]))
    for plain, replayed in zip(*(results for results, _ in seen), strict=True):
        assert_same(plain, replayed)
    assert_same(seen[0][1], seen[1][1])
    if eager:
        assert run.replays == 0 and run.recordings == 0
    else:
        signatures = len({tuple(map(described, batch)) for batch in batches})
        assert run.recordings == signatures, run
        assert run.replays >= STEPS - 2 * signatures, run
    return run


def described(argument):
    return (argument.shape, argument.dtype.name) if hasattr(argument, "dtype") else argument


def leaves(result):
    """The values of a result, as arrays."""
    return [leaf.numpy() if hasattr(leaf, "numpy") else leaf for leaf in nest.flatten(result)]


def assert_same(first, second):
    """The same bits; a NaN is a NaN."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype and np.shape(one) == np.shape(other)
        np.testing.assert_array_equal(one, other)
