"""Random functions of tensors of many shapes, Variables and optimizers, and what must hold of every run of them.

A function is a list of numbers; each says what to do with which earlier values. All operations keep numbers small and
change smoothly, except where they see arguments, whose values are the same however a run rounds.
"""

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from side_by_side import leaves

import minikeras as tf
from minikeras.compiler.ir import Program
from minikeras.compiler.recorder import Recorder

optimizers = tf.keras.optimizers
OPTIMIZERS = [
    lambda: optimizers.SGD(0.1),
    lambda: optimizers.Adam(0.05, epsilon=0.1),
    lambda: optimizers.RMSprop(0.05, momentum=0.9, epsilon=0.1),
    lambda: optimizers.AdamW(0.05, weight_decay=0.1, epsilon=0.1),
    lambda: optimizers.Ftrl(0.1, l1_regularization_strength=0.01),
    lambda: optimizers.Nadam(0.05, epsilon=0.1),
    lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 2, 0.5), momentum=0.9, clipvalue=0.05),
]

UNARY = [
    *(tf.sin, tf.tanh, tf.nn.relu, tf.abs, tf.sigmoid, tf.identity, tf.stop_gradient, tf.zeros_like, tf.ones_like),
    *(lambda x: x + 1.0, lambda x: x * -0.5, lambda x: 0.0 - x, lambda x: 1.0 / (1.0 + x * x), lambda x: tf.sqrt(x * x + 1.0)),
    *(lambda x: tf.exp(-tf.abs(x)), lambda x: tf.clip_by_value(x, -1.0, 0.5), lambda x: x**3 * 0.1, lambda x: x * -0.0),
    *(lambda x: tf.maximum(x, 0.25), lambda x: tf.math.expm1(-tf.abs(x)), lambda x: tf.math.log1p(tf.abs(x))),
]
STEEP = [
    *(tf.sign, tf.floor, lambda x: tf.cast(tf.cast(x * 3.0, "int32"), x.dtype), lambda x: tf.where(x > 0.1, x, 0.0)),
    *(
        lambda x: tf.where(x > 0.1, 0.0, x),
        lambda x: tf.where(x > 0.1, 1.5, 0.5 * x),
        lambda x: tf.cast(tf.where(x > x * x, 1.0, 0.0), x.dtype),
    ),
    *(lambda x: tf.cast(tf.cast(x, "bool"), x.dtype) * 0.5, lambda x: tf.cast(tf.logical_not(x > 0.0), x.dtype) * x),
    lambda x: tf.cast(tf.logical_and(x > -1.0, x < 0.5), x.dtype) + x,
]
BINARY = [
    *(lambda a, b: (a + b) * 0.5, tf.subtract, tf.multiply, tf.maximum, tf.minimum, lambda a, b: a / (1.0 + b * b)),
    lambda a, b: tf.sin(a) * tf.cos(b) + a * 0.5,
]
SHAPING = [
    *(lambda x: tf.reshape(x, [-1]), tf.transpose, lambda x: x[None], lambda x: x[..., None], lambda x: x),
    *(lambda x: tf.broadcast_to(x, (2, *x.shape)), lambda x: tf.reshape(x, (*x.shape, 1))),
]
CUTS = [lambda x: x[::-1], lambda x: x[1:], lambda x: x[..., :1], lambda x: x[:2], lambda x: tf.concat([x, x], 0)]
REDUCTIONS = [tf.reduce_sum, tf.reduce_mean, lambda x, *options: tf.reduce_sum(tf.tanh(x), *options) * 0.5]
NEVER = st.just(False)
WHAT = [
    *("unary", "unary", "steep", "binary", "binary", "shape", "cut", "reduce", "product", "loss"),
    *("read", "read", "assign", "assign_sub", "optimize", "optimize twice", "gradient"),
]
INSTRUCTION = st.tuples(st.sampled_from(WHAT), *[st.integers(0, 1000)] * 3)
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]
LARGEST = 400
"""Elements of a value."""


class Case(NamedTuple):
    """What is needed to make a function.

    Attributes:
        shape: rows and columns.
        dtype: of all values.
        code: the instructions.
        results: which values it returns.
        optimizer: the number of the first one.
        special: whether arguments hold infinity, NaN and a negative zero.
    """

    shape: tuple[int, int]
    dtype: str
    code: list[tuple[str, int, int, int]]
    results: list[int]
    optimizer: int
    special: bool


def cases(sizes=(0, 1, 2, 3, 5), instruction=INSTRUCTION, special=NEVER):
    """Random functions."""
    size = st.sampled_from(sizes)
    return st.builds(
        Case,
        st.tuples(size, size),
        st.sampled_from(["float32", "float64"]),
        st.lists(instruction, min_size=1, max_size=16),
        st.lists(st.integers(0, 1000), min_size=1, max_size=6),
        st.integers(0, len(OPTIMIZERS) - 1),
        special,
    )


class State:
    """Variables and optimizers, the same whenever they are made for the same case."""

    def __init__(self, case: Case) -> None:
        tf.random.set_seed(1)
        generator = np.random.default_rng(3)
        self.weights = [
            tf.Variable(generator.normal(size=shape), dtype=case.dtype) for shape in (case.shape, case.shape[1:], ())
        ]
        numbers = (case.optimizer, (case.optimizer + 1) % len(OPTIMIZERS))
        self.optimizers = [OPTIMIZERS[number]() for number in numbers]
        for optimizer in self.optimizers:
            optimizer.build(self.weights)

    @property
    def variables(self):
        """All that may change."""
        return [*self.weights, *[variable for optimizer in self.optimizers for variable in optimizer.variables]]

    def values(self):
        """Copies of it."""
        return [np.array(variable.numpy()) for variable in self.variables]


def arguments(case, run):
    """Arrays of several shapes, others for each run; the last one holds labels."""
    rows, columns = case.shape
    generator = np.random.default_rng(run)
    shapes = [(rows, columns), (columns,), (rows, 1), ()]
    found = [np.asarray(generator.normal(size=shape), case.dtype) for shape in shapes]
    if case.special and run:
        for array in found:
            array[...] = np.where(generator.random(array.shape) < 0.3, generator.choice(SPECIAL, array.shape), array)
    return [*found[:3], found[3][()], generator.integers(0, max(columns, 1), rows).astype("int32")]


def run(case, state, given):
    """One call of the function."""
    *floats, labels = given
    values = list(floats)
    for what, which, first, second in case.code:
        a, b = values[-1 - first % len(values)], values[second % len(values)]
        if what == "steep":
            a = floats[first % len(floats)]
        if what in ("loss", "product"):
            a = next((x for x in reversed(values) if x.shape.rank == 2), a)
        values.append(_made(what, which, a, b, values, labels, state))
    return [values[-1 - number % len(values)] for number in (0, *case.results)]


def _made(what, which, a, b, values, labels, state):
    rank, variable = len(a.shape), state.weights[which % 3]
    if what in ("unary", "steep"):
        table = UNARY if what == "unary" else STEEP
        return table[which % len(table)](a)
    if what == "binary":
        try:
            small = math.prod(np.broadcast_shapes(tuple(a.shape), tuple(b.shape))) <= LARGEST
        except ValueError:
            small = False
        return BINARY[which % len(BINARY)](a, b if small else tf.reduce_sum(b) * 0.1)
    if what == "shape":
        return SHAPING[which % len(SHAPING)](a) if rank < 4 and 2 * _size(a) <= LARGEST else tf.reshape(a, [-1])
    if what == "cut":
        return CUTS[which % len(CUTS)](a) if rank and 2 * _size(a) <= LARGEST else a * 0.5
    if what == "reduce":
        axis = [None, 0, -1, tuple(range(rank))][which // 2 % 4] if rank else None
        return REDUCTIONS[which % len(REDUCTIONS)](a, axis, which % 2 == 0) * 0.25
    if what == "product":
        return tf.matmul(a, a, transpose_a=which % 2 == 0, transpose_b=which % 2 == 1) * 0.1 if rank == 2 else a
    if what == "loss":
        if rank != 2 or a.shape[0] != labels.shape[0] or not 0 < values[0].shape[1] <= a.shape[1]:
            return a
        with tf.GradientTape() as tape:
            tape.watch(a)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, a)
        return loss if which % 2 else tape.gradient(loss, a)
    if what == "read":
        return variable.read_value()
    if what in ("assign", "assign_sub"):
        fitting = [x for x in values if x.shape == variable.shape]
        value = fitting[which % len(fitting)] if fitting else tf.broadcast_to(tf.tanh(tf.reduce_sum(a)), variable.shape)
        variable.assign(value) if what == "assign" else variable.assign_sub(0.25 * value)
        return a
    with tf.GradientTape() as tape:
        z = [tf.tanh(w * 0.5 + tf.reduce_sum(a) * 0.1) for w in state.weights]
        loss = tf.add_n([tf.reduce_sum(one * one) for one in z])
    found = tape.gradient(loss, state.weights)
    if what == "gradient":
        return found[which % 3]
    chosen = slice(0, 1 + which // 2 % 3)
    for optimizer in state.optimizers if what == "optimize twice" else [state.optimizers[which % 2]]:
        optimizer.apply(found[chosen], state.weights[chosen])
    return loss


def _size(x):
    return math.prod(x.shape)


# What must hold -------------------------------------------------------------------------------------------------------------


def recorded(case):
    """The program of the function, and the state that it works on, as it was before."""
    state = State(case)
    before = state.values()
    given = [tf.constant(array) for array in arguments(case, 0)]
    with Recorder(given, True) as recorder, np.errstate(all="ignore"):
        result = run(case, state, given)
        results = [recorder.result(leaf) for leaf in result]
    for variable, value in zip(state.variables, before, strict=True):
        variable.assign(value)
    return Program(recorder.arguments, recorder.records, results, result), state


def eagerly(case, runs=4):
    """What runs of the function itself return and leave."""
    state, found = State(case), []
    with np.errstate(all="ignore"):
        for number in range(runs):
            found += leaves(run(case, state, [tf.constant(array) for array in arguments(case, number)]))
    return found, state.values()


class Seen:
    """Arrays that were seen from outside, and what they held then."""

    def __init__(self):
        self._seen = []

    def add(self, array):
        """Remember an array, or None."""
        self._seen.append((array, np.array(array)))

    def check(self):
        """None of them has been written to."""
        for array, before in self._seen:
            np.testing.assert_array_equal(np.asarray(array), before)


WAYS = [
    *(lambda variable: variable.array, lambda variable: variable.numpy(), lambda variable: None),
    *(
        lambda variable: np.asarray(variable.read_value()).T,
        lambda variable: memoryview(variable.array),
        lambda variable: None,
    ),
]
"""What may be kept of a Variable; None for nothing, so that its memory is used again."""


def replayed(case, replay, state, runs=4):
    """What runs of a program return and leave. What was seen of earlier runs must not change, nor what was given."""
    kept, found = Seen(), []
    for number in range(runs):
        given = arguments(case, number)
        for array in given:
            kept.add(array)
        results = replay(given)
        found += [np.array(leaf) for leaf in leaves(results)]
        for leaf in results:
            kept.add(leaf.numpy())
        for position, variable in enumerate(state.variables):
            kept.add(WAYS[(number + position) % len(WAYS)](variable))
        kept.check()
    return found, state.values()
