"""Random programs that cut, turn, transpose, broadcast, reduce and multiply arrays of any rank: natively they give what they
give eagerly, whatever the strides of the loops are.
"""

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import strategies as st
from slow import drawn

import minikeras as tf

pytest.importorskip("llvmlite")

SIZES = [1, 2, 3, 5, 16, 17, 40]
LARGEST = 200_000
REDUCTIONS = {"sum": lambda x, axes: tf.reduce_sum(x, axes) * 0.1, "mean": tf.reduce_mean, "largest": tf.reduce_max}
ELEMENTWISE = {
    "exp": lambda x: tf.exp(tf.tanh(x)) * 0.5 + 1.0,
    "tanh": lambda x: tf.tanh(x) * 2.0 - 1.0,
    "relu": lambda x: tf.nn.relu(x) + 0.5,
}
PAIRS = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: x * y * 0.5,
    "choose": lambda x, y: tf.where(x > 0.0, y, x * 0.1),
}
SHAPING = ["cut", "turn", "transpose", "concat", "flatten", "gate", "add the mean row", "center", "product"]


class Program:
    """A random function of arrays.

    Args:
        seed: of all that is chosen.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        base = [draw.choice(SIZES) for _ in range(draw.randint(1, 4))]
        shapes = [base] + [[1 if draw.random() < 0.3 else size for size in base] for _ in range(draw.randint(0, 2))]
        shapes = [base, *[shape[1:] if len(shape) > 1 and draw.random() < 0.2 else shape for shape in shapes[1:]]]
        generator = np.random.default_rng(seed)
        self.arguments = [tf.constant(generator.normal(size=shape).astype("float32")) for shape in shapes]
        kinds = [*REDUCTIONS, *ELEMENTWISE, *PAIRS, *SHAPING]
        self.steps = [(draw.choice(kinds), draw.random(), draw.random(), draw.random()) for _ in range(draw.randint(2, 9))]

    def __call__(self, *arguments):
        values = list(arguments)
        for kind, *numbers in self.steps:
            found = self._step(kind, values, *numbers)
            if found is not None and math.prod(found.shape) <= LARGEST:
                values.append(found)
        return values[-3:]

    @staticmethod
    def _step(kind: str, values: list, a: float, b: float, c: float):
        """The next value; None where the shapes do not fit."""
        x, y = values[int(a * len(values))], values[int(b * len(values))]
        shape, rank = list(x.shape), len(x.shape)
        axis = int(b * rank)
        if kind in ELEMENTWISE:
            return ELEMENTWISE[kind](x)
        if kind in PAIRS:
            fits = all(
                1 in pair or len({*pair}) == 1 for pair in itertools.zip_longest(shape[::-1], y.shape[::-1], fillvalue=1)
            )
            return PAIRS[kind](x, y) if fits else None
        if rank == 0:
            return None
        axes = list(range(axis, min(rank, axis + 1 + int(c * rank))))
        if kind in REDUCTIONS:
            return REDUCTIONS[kind](x, axes)
        whole = [slice(None)] * rank
        if kind == "cut":
            return x[(*whole[:axis], slice(int(c * shape[axis]), None))]
        if kind == "turn":
            return x + x[(*whole[:axis], slice(None, None, -1))]
        if kind == "transpose":
            return tf.transpose(x, random.Random(b).sample(range(rank), rank))
        if kind == "concat":
            return tf.concat([x, x * 2.0], axis)
        if kind == "flatten":
            return tf.reshape(x, [-1])
        if kind == "gate":
            return None if shape[-1] % 2 else tf.sigmoid(tf.split(x, 2, axis=-1)[0]) * tf.split(x, 2, axis=-1)[1]
        if kind == "add the mean row":
            return x * 0.3 + tf.reduce_mean(x, list(range(rank - 1)))
        if kind == "center":
            return x - tf.reduce_sum(x, axes, keepdims=True) * 0.1
        return None if rank < 2 else tf.matmul(x, x, transpose_a=c < 0.5, transpose_b=c >= 0.5) * 0.05


def _agree(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=3e-4, atol=3e-4)


@drawn(12, 400, st.integers(0, 2**32))
def test_a_native_program_over_any_strides_gives_what_an_eager_run_gives(seed: int) -> None:
    program = Program(seed)
    expected, native = program(*program.arguments), tf.function(program.__call__, jit_compile=True)
    for _ in range(3):
        _agree(native(*program.arguments), expected)
    assert (native.recordings, native.eager_calls) == (1, 0)


@drawn(6, 200, st.integers(0, 2**32))
def test_so_do_its_gradients(seed: int) -> None:
    program = Program(seed)

    def gradients(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            loss = tf.add_n([tf.reduce_mean(y) for y in program(*arguments)])
        return tape.gradient(loss, arguments, unconnected_gradients="zero")

    expected, native = gradients(*program.arguments), tf.function(gradients, jit_compile=True)
    for _ in range(3):
        _agree(native(*program.arguments), expected)
    assert (native.recordings, native.eager_calls) == (1, 0)
