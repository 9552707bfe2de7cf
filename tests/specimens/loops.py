"""Rows for loops over a recorded step."""

import numpy as np

import minikeras as tf
from minikeras.core.registry import operations
from minikeras.nn_ops.scan import scan
from specimens.table import fixed, normal, row


def run_step(step, *, reverse=False, trusted=False):
    """A call of the primitive: from first values, slices and constants to the last values and the rows."""

    def call(h, x, *constants):
        xs = [x] if hasattr(x, "shape") else list(x)

        def one(carried, slices):
            after = step(carried[0], slices[0], *constants)
            return [after[0]], list(after[1:])

        last, rows = scan(one, [h], xs, xs[0].shape[0], reverse, trusted)
        return [*last, *rows]

    return call


def looped(step, *, reverse=False):
    """The same by NumPy."""

    def reference(h, x, *constants):
        rows = [None] * len(x)
        for i in range(len(x))[:: -1 if reverse else 1]:
            h, *rows[i] = step(h, x[i], *constants)
        return [h, *map(np.stack, zip(*rows, strict=True))] if rows[0] else [h]

    return reference


def product(lib):
    """Products of slices (before the loop), of what is carried, and of results; a sum over rows."""
    tanh, matmul = lib.tanh, lib.matmul

    def step(h, x, kernel, recurrent, bias, *last):
        h = tanh(matmul(x, kernel) + matmul(h, recurrent) + bias)
        return h, *(matmul(h * h, one) for one in last)

    return step


def gate(lib):
    """A product of elements, and a constant that the carried value is multiplied with."""
    return lambda h, x, a: (h * x + lib.sin(a * h),)


def chosen(lib):
    """A choice by slices of bools, and results that no carried value depends on."""
    return lambda h, x, keep: (lib.where(keep, h * 0.5 + x, h), x * x * h)


PRODUCTS = (normal(2, 3), normal(4, 2, 2), normal(2, 3), normal(3, 3), normal(3), normal(3, 2))
KEEP = fixed([[True], [False]])
SPECIMENS = [
    row(operations.scan, PRODUCTS, looped(product(np)), "of products", call=run_step(product(tf))),
    row(operations.scan, PRODUCTS, looped(product(np), reverse=True), "from the end", call=run_step(product(tf), reverse=True)),
    row(operations.scan, PRODUCTS[:5], looped(product(np)), "without rows", call=run_step(product(tf), trusted=True)),
    row(operations.scan, (normal(3), normal(5, 3), normal(3)), looped(gate(np)), "of elements", call=run_step(gate(tf))),
    row(operations.scan, (normal(2, 3), normal(4, 2, 3), KEEP), looped(chosen(np)), "with choices", call=run_step(chosen(tf))),
    row(
        operations.scan,
        (normal(4, 3), normal(3, 3)),
        lambda x, a: np.stack([x[0], a @ x[0] + x[1], a @ (a @ x[0] + x[1]) + x[2], a @ (a @ (a @ x[0] + x[1]) + x[2]) + x[3]]),
        "over a tensor",
        call=lambda x, a: tf.scan(lambda h, row: tf.linalg.matvec(a, h) + row, x),
    ),
    row(
        operations.scan,
        normal(4, 3),
        lambda x: ((x[3] * x[2]) * x[1]) * x[0],
        "that folds",
        call=lambda x: tf.foldr(lambda h, row: h * row, x),
    ),
    row(
        operations.split_along,
        normal(3, 5, 2),
        lambda x: [x[:, :2], x[:, 2:]],
        call=lambda x: list(operations.split_along(x, sizes=(2, 3), axis=-2)),
    ),
]
