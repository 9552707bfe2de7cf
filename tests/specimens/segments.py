"""Rows for reductions over segments."""

import numpy as np

import minikeras as tf
from specimens.table import distinct, fixed, nonzero, normal, row

M = tf.math
REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "sqrt_n": lambda rows, axis: rows.sum(axis) / np.sqrt(len(rows)),
}
EMPTY = dict.fromkeys(REDUCTIONS, 0.0) | {"prod": 1.0}


def by_hand(name, empty, size):
    def reference(data, ids):
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        chosen = [rows[ids.ravel() == k] for k in range(size)]
        return np.stack([REDUCTIONS[name](one, axis=0) if len(one) else np.full(rows.shape[1:], empty) for one in chosen])

    return reference


def unsorted(name, sampler, ids, size, variant="", **facts):
    return row(
        getattr(M, f"unsorted_segment_{name}"),
        (sampler, fixed(ids)),
        by_hand(name, EMPTY[name], size),
        variant,
        num_segments=size,
        **facts,
    )


def in_order(name, sampler, ids, variant="", **facts):
    function = getattr(M, f"segment_{name}")
    reference = lambda data: by_hand(name, float(name == "prod"), ids[-1] + 1)(data, np.array(ids))
    return row(function, sampler, reference, variant, call=lambda data: function(data, ids), **facts)


SPECIMENS = [
    *(unsorted(name, distinct(6, 3), [2, 0, -1, 2, 0, 1], 3, analytic=name not in ("max", "min")) for name in REDUCTIONS),
    *(unsorted(name, distinct(2, 3, 2), [[1, 0, 1], [1, 0, 2]], 3, "of two axes", analytic=False) for name in REDUCTIONS),
    *(unsorted(name, distinct(2), [0, 2], 4, "with nothing in it") for name in REDUCTIONS if name not in ("max", "min")),
    unsorted("prod", fixed([0.0, 2.0, 0.0, 3.0, 4.0, 0.0]), [0, 1, 0, 1, 1, 1], 2, "with zeros"),
    *(
        in_order(name, nonzero(5, 2), [0, 0, 2, 2, 2], analytic=name not in ("max", "min"))
        for name in ("sum", "mean", "max", "min", "prod")
    ),
    in_order("sum", normal(5), [0, 1, 1, 1, 1], "of numbers"),
]
