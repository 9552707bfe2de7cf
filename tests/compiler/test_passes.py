"""Improved programs give the same bits: random programs, step by step and all together; and each step does what it is for."""

import functools

import numpy as np
import pytest
from hypothesis import strategies as st
from side_by_side import assert_same, leaves
from slow import drawn, mostly_slow

import minikeras as tf
from minikeras.compiler.executors import by_numpy
from minikeras.compiler.ir import Program
from minikeras.compiler.passes import PASSES, optimized
from minikeras.compiler.passes.simplification import (
    LARGEST,
    eliminate_common_subexpressions,
    eliminate_dead_code,
    fold_constants,
    remove_identities,
)
from minikeras.compiler.recorder import Recorder
from minikeras.core.registry import operations
from minikeras.core.variable import assigned
from minikeras.nn_ops.loop_body import BodyValue, Instruction, LoopBody, fingerprint

UNARY = [
    *(tf.sin, tf.exp, tf.tanh, tf.stop_gradient, tf.identity, tf.zeros_like, tf.ones_like, tf.transpose, tf.sign),
    *(lambda x: x + 1.0, lambda x: x * -0.0, lambda x: 0.0 - x, lambda x: tf.reshape(x, (2, 2)), lambda x: x[::-1]),
    *(lambda x: tf.reshape(x, (4,))[1:] * tf.ones(3), lambda x: tf.reduce_sum(x, -1, keepdims=True) + x),
    *(lambda x: tf.cast(x, "float32"), lambda x: tf.constant([[1.0, 2.0], [3.0, 4.0]]) * 0.5, lambda x: tf.nn.relu(x)),
    lambda x: tf.cast(tf.cast(x * 3.0, "int32"), "float32"),
]
BINARY = [tf.add, tf.subtract, tf.multiply, tf.maximum, tf.matmul, lambda a, b: tf.where(a > b, a, b)]
EFFECTS = ["assign", "assign_add", "read", "draw", "gradient", "gather"]
INSTRUCTION = st.tuples(st.sampled_from(["unary", "binary", *EFFECTS]), *[st.integers(0, 1000)] * 3)


def run(code, variables, x, y):
    """A function made of random instructions; every value has shape (2, 2)."""
    values = [x, y]
    for what, which, first, second in code:
        a, b = values[first % len(values)], values[second % len(values)]
        v = variables[which % len(variables)]
        if what == "unary":
            made = UNARY[which % len(UNARY)](a)
            made = made if tuple(made.shape) == (2, 2) else tf.reduce_sum(made) * tf.ones_like(a)
        elif what == "binary":
            made = BINARY[which % len(BINARY)](a, b)
        elif what == "assign":
            made = v.assign(a).read_value()
        elif what == "assign_add":
            made = v.assign_add(b * 0.25) * 1.0
        elif what == "read":
            made = v + a
        elif what == "draw":
            made = tf.random.uniform((2, 2)) + a
        elif what == "gather":
            made = tf.gather(a, [1, 0])
        else:
            with tf.GradientTape() as tape:
                tape.watch(a)
                z = tf.tanh(a * v) * b
            made = tape.gradient(z, [a, v], unconnected_gradients="zero")[which % 2]
        values.append(made)
    return values[-3:]


def fresh():
    tf.random.set_seed(1)
    return [tf.Variable(np.full((2, 2), 0.5 + i, "f")) for i in range(2)]


def recorded(code):
    """The program of such a function, and the Variables that it works on, as they were."""
    variables = fresh()
    arguments = [tf.constant([[0.1, -0.2], [0.3, 0.4]]), tf.constant([[1.0, 2.0], [-3.0, 0.5]])]
    with Recorder(arguments, True) as recorder, np.errstate(all="ignore"):
        result = run(code, variables, *arguments)
        results = [recorder.result(leaf) for leaf in result]
    for variable, first in zip(variables, fresh(), strict=True):
        variable.assign(first)
    return Program(recorder.arguments, recorder.records, results, result), variables


def outcome(program, variables, runs=3):
    """What some runs of a program return and leave; everything is as before afterwards."""
    replay, found = by_numpy(program), []
    for i in range(runs):
        found += leaves(replay([np.full((2, 2), 0.3 * i, "f"), np.float32([[i, 1.0], [-1.0, 0.0]])]))
    found += [variable.numpy() for variable in variables]
    for variable, first in zip(variables, fresh(), strict=True):
        variable.assign(first)
    return found


@pytest.mark.parametrize("step", mostly_slow([*PASSES, optimized], optimized), ids=lambda step: step.__name__)
@drawn(30, 150, code=st.lists(INSTRUCTION, min_size=1, max_size=25))
def test_an_improved_program_gives_the_same_bits(step, code):
    program, variables = recorded(code)
    assert_same(outcome(program, variables), outcome(step(program), variables))


@drawn(30, 150, code=st.lists(INSTRUCTION, min_size=1, max_size=25))
def test_a_recorded_program_is_the_function(code):
    program, variables = recorded(code)
    own, expected = fresh(), []
    with np.errstate(all="ignore"):
        for i in range(3):
            x, y = tf.constant(np.full((2, 2), 0.3 * i, "f")), tf.constant(np.float32([[i, 1.0], [-1.0, 0.0]]))
            expected += leaves(run(code, own, x, y))
    tf.random.set_seed(1)
    assert_same(expected + [variable.numpy() for variable in own], outcome(program, variables))


def names(function, *arguments, step=None):
    """Primitives of a function's program after one step."""
    given = [tf.constant(argument) for argument in arguments]
    with Recorder(given, True) as recorder:
        results = [recorder.result(function(*given))]
    program = Program(recorder.arguments, recorder.records, results, None)
    return [record.primitive.name for record in (step(program) if step else program).records]


def test_dead_instructions_go_and_effects_stay():
    v = tf.Variable(1.0)

    def step(x):
        tf.sin(x * 2.0)
        v.assign(tf.exp(x))
        tf.random.normal([])
        return x

    assert names(step, 1.0) == ["multiply", "sin", "exp", "assign", "draw_key", "random_normal"]
    assert names(step, 1.0, step=eliminate_dead_code) == ["exp", "assign", "draw_key"]


def test_constants_are_folded_unless_they_are_large():
    row = LARGEST // 4 + 1
    assert names(lambda x: x * (tf.ones_like(x) * 2.0 + 1.0), [1.0, 2.0], step=fold_constants) == ["multiply"]
    assert names(lambda x: x + tf.broadcast_to(tf.constant(1.0) * 2.0, [row])[:1], [1.0], step=fold_constants) == [
        "broadcast_to",
        "strided_slice",
        "add",
    ]


def test_what_is_computed_twice_is_computed_once_but_not_across_an_assignment():
    v = tf.Variable(1.0)

    def step(x):
        a = tf.sin(v * x)
        b = tf.sin(v * x)
        v.assign_add(1.0)
        return a + b + tf.sin(v * x) + x * 0.0 + x * -0.0

    found = names(step, 1.0, step=eliminate_common_subexpressions)
    assert found.count("read_variable") == found.count("sin") == 2
    assert found.count("multiply") == 4


def test_second_names_cost_nothing():
    def step(x):
        return tf.reshape(tf.identity(tf.stop_gradient(tf.cast(x, "float32"))), [2, 1]) + tf.reshape(x, [2])

    assert names(step, [1.0, 2.0], step=remove_identities) == ["reshape", "add"]


def test_chains_that_meet_become_one_loop_whatever_their_order():
    def cell(x, c):
        i, f, g, o = tf.split(x, 4, axis=-1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c)

    assert names(cell, np.zeros([2, 8], "f4"), np.zeros([2, 2], "f4"), step=optimized) == ["strided_slice"] * 4 + ["loop"]


def test_chains_that_do_not_meet_stay_apart():
    def step(x, y):
        return tf.matmul(tf.exp(x) * 2.0, tf.exp(y) + 1.0)

    assert names(step, np.ones([2, 2]), np.ones([2, 2]), step=optimized) == ["loop", "loop", "matrix_product"]


def test_assignments_keep_their_order():
    v, w = tf.Variable(1.0), tf.Variable(2.0)

    def step(x):
        v.assign(w)
        w.assign(v + x)
        v.assign_sub(w)
        return v * w

    program_names = names(step, 1.0, step=optimized)
    assert program_names.count("assign") == 3
    run_ = tf.function(step)
    v.assign(1.0), w.assign(2.0)
    expected = [1.0, 2.0]
    for x in (1.0, 2.0, 3.0):
        old = expected[1]
        new = old + x
        expected = [old - new, new]
        assert float(run_(tf.constant(x))) == expected[0] * expected[1]
    records = run_.program(tf.constant(1.0)).records
    assert [record.primitive for record in records].count(assigned) == 3


def test_parameters_are_told_apart_by_value():
    values = [
        1,
        1.0,
        True,
        0.0,
        -0.0,
        1j,
        "1",
        (1,),
        [1],
        slice(1),
        None,
        np.float32(0.0),
        np.float32(-0.0),
        {"a": 1},
        {"a": -0.0},
    ]
    values += [np.zeros(1), -np.zeros(1), np.zeros(1, "float32"), functools.partial(max, 1), functools.partial(max, 1.0)]
    keys = [fingerprint(one) for one in values]
    assert len(set(keys)) == len(values) and keys == [fingerprint(one) for one in values]
    assert fingerprint(float("nan")) == fingerprint(float("nan"))
    above = lambda bound: lambda x: x > bound
    assert fingerprint(above(0.0)) == fingerprint(above(0.0)) != fingerprint(above(-0.0))


def test_steps_of_loops_that_differ_by_the_sign_of_zero_are_two():
    bodies = [
        LoopBody([BodyValue((2,), np.dtype("float32"))] * 2, [0], [], [], [one], [1])
        for one in (Instruction(operations.leaky_relu, (0,), {"alpha": alpha}, (1,), False) for alpha in (0.0, -0.0))
    ]
    assert bodies[0] != bodies[1]


@pytest.mark.parametrize("jit", [False, True])
def test_an_operation_on_a_repeated_array_alone_keeps_the_shape_of_the_repetition(jit):
    once = tf.constant([[0.0, 1.0, 2.0, 3.0]])
    compiled = tf.function(lambda x: tf.exp(tf.broadcast_to(x, [3, 4])), jit_compile=jit)
    for _ in range(3):
        np.testing.assert_allclose(compiled(once), np.broadcast_to(tf.exp(once), [3, 4]), rtol=1e-6)
