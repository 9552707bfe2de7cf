"""Draws: each is a function of a key, and those with parameters of these too."""

import numpy as np

from minikeras.core.arrays import namespace
from minikeras.nn_ops import draws, philox4x32
from specimens.table import fixed, row

KEY = fixed(np.array([3, 4], "uint32"))
SHAPE = (3, 4)


def specimen(primitive, function, *parameters, dtype="float64", **options):
    """A row for a draw of a dtype, whatever dtype its parameters have."""
    kind = np.dtype(dtype)

    def call(key, *given):
        return primitive(key, *given, xp=namespace(key.array), shape=SHAPE, dtype=kind, **options)

    def reference(key, *given):
        with np.errstate(all="ignore"):
            return function(key, SHAPE, kind, *[np.asarray(one, "float64") for one in given], **options)

    return row(primitive, (KEY, *[fixed(one) for one in parameters]), reference, call=call, smooth=False, float32=False)


SPECIMENS = [
    row(draws.next_key, KEY, lambda key: key + np.array([0, 1], "uint32"), smooth=False),
    row(
        draws.operation_key,
        KEY,
        lambda key: (key ^ np.array([9, 0], "uint32")) + np.array([0, 1], "uint32"),
        mix=9,
        smooth=False,
    ),
    specimen(draws.random_normal, philox4x32.normal),
    specimen(draws.random_uniform, philox4x32.uniform),
    specimen(draws.random_truncated_normal, philox4x32.truncated_normal),
    specimen(draws.random_integers, philox4x32.integers, dtype="int64", low=-5, span=11),
    specimen(draws.random_gamma, draws.gamma, [0.5, 1.0, 2.5, 9.0]),
    specimen(draws.random_beta, draws.beta, [0.5, 1.0, 2.5, 9.0], [[1.5]]),
    specimen(draws.random_poisson, draws.poisson, [0.5, 1.0, 20.0, 90.0]),
    specimen(draws.random_binomial, draws.binomial, [5.0, 50.0, 9.0, 99.0], [[0.25], [0.5], [0.75]]),
]
