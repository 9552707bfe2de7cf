"""Loops and reductions that one kernel carries out give what they give one by one."""

import itertools
import re

import numpy as np
import pytest
import recorded
from shim import Memory, compiled, needs_gxx
from slow import mostly_slow

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.nodes import BUSY, TARGET, TURNS, Emitter, group_of, is_balanced
from minikeras.compiler.ir import Program, Slot, outputs_of
from minikeras.compiler.loop_ir.fusion import fuse_groups
from minikeras.compiler.loop_ir.groups import Domain, group
from minikeras.compiler.passes import optimized
from minikeras.core import Record
from minikeras.core.registry import operations
from minikeras.nn_ops import streams

L = tf.keras.layers
TRAINED = {
    "batch normalization": lambda: [L.Dense(9, "relu"), L.BatchNormalization(), L.Dense(3)],
    "layer normalization": lambda: [L.Dense(40), L.LayerNormalization(), L.Activation("gelu"), L.Dense(3)],
    "group normalization": lambda: [L.Reshape((3, 2)), L.GroupNormalization(2), L.Flatten(), L.Dense(3, "softmax")],
    "attention of one": lambda: [L.Dense(7), L.Softmax(), L.UnitNormalization(), L.Dense(3)],
    "regularized": lambda: [L.Dense(5, "tanh", kernel_regularizer="l2", activity_regularizer="l1"), L.Dense(3)],
}
BATCHES = [1, 31, 33, 8 * TURNS + 5, 700]


def fused(program):
    """The program with groups."""
    return fuse_groups(optimized(program), TARGET)


def step_of(layers, batch):
    """A training step and its inputs."""
    generator = np.random.default_rng(5)
    x = tf.constant(generator.normal(size=(batch, 6)), "float32")
    y = tf.constant(generator.integers(0, 3, batch))
    model = tf.keras.Sequential([tf.keras.Input((6,)), *layers()])
    loss_of, optimizer = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), tf.keras.optimizers.Adam()

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True)) + sum(model.losses, tf.constant(0.0))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return step, (x, y)


def program_of(layers, batch):
    step, inputs = step_of(layers, batch)
    compiled_step = tf.function(step)
    for _ in range(2):
        compiled_step(*inputs)
    return compiled_step.program(*inputs), [x.array for x in inputs]


@needs_gxx
@pytest.mark.parametrize("batch", mostly_slow(BATCHES, 33))
@pytest.mark.parametrize("layers", TRAINED)
def test_groups_of_a_training_step_give_the_numbers_of_numpy(layers, batch):
    program, inputs = program_of(TRAINED[layers], batch)
    cases = [case for case in recorded.replayed(layers, fused(program), inputs) if case.record.primitive is group]
    assert cases
    functions = iter(compiled([kernel for case in cases for kernel in case.kernels]))
    for case in cases:
        memory = Memory()
        for x, array in zip(case.record.inputs, case.given, strict=True):
            memory.put(x, array)
        for kernel in case.kernels:
            memory.run(kernel, next(functions))
        assert memory.is_whole()
        largest = max(np.abs(x).max(initial=0) for x in (*case.given, *case.expected))
        for y, expected in zip(outputs_of(case.record), case.expected, strict=True):
            tolerance = 1e-5 * max(largest, 1e-3)
            np.testing.assert_allclose(memory.array(y), expected, rtol=1e-4, atol=tolerance, err_msg=str(y))


@pytest.mark.parametrize("layers", TRAINED)
def test_a_program_with_groups_has_the_results_of_the_one_without(layers):
    def values(passes):
        streams.set_global_seed(2)
        program, inputs = program_of(TRAINED[layers], 33)
        cases = recorded.replayed("", passes(program), inputs)
        return {y.key: z for case in cases for y, z in zip(outputs_of(case.record), case.expected, strict=True)}

    expected, found = values(optimized), values(fused)
    assert set(found) <= set(expected) and len(found) > len(expected) / 2
    for key, value in found.items():
        np.testing.assert_array_equal(value, expected[key])


def kernels(program):
    """How many kernels carry out what is no product and no effect."""
    emitter = Emitter(itertools.count(1 << 20))
    views = ("part", "reshape", "transpose", "matrix_product", "flatten")
    records = [one for one in program.records if outputs_of(one) and one.primitive.name not in views]
    return sum(len(emitter.kernels(one) or ()) for one in records)


def test_normalization_forward_and_backward_is_a_kernel_each():
    program, _ = program_of(TRAINED["batch normalization"], 33)
    members = sorted(len(one.params["members"]) for one in fused(program).records if one.primitive is group)
    assert members[-1] > 8 and members[-2] > 5
    assert kernels(fused(program)) < kernels(optimized(program)) / 1.8


def test_a_long_sum_of_few_columns_is_cut_instead_of_grouped():
    few, many = Domain((1 << 20, 4), (0,)), Domain((1 << 12, 1 << 14), (0,))
    assert not is_balanced(few) and is_balanced(many)
    assert group_of(many).blocks * group_of(many).threads >= BUSY


def test_the_sums_of_a_group_have_room_in_the_memory_that_a_block_shares():
    columns = np.ones((300, 40))
    function = tf.function(lambda x: [tf.reduce_sum(x * float(k), axis=0) for k in range(1, 20)])
    function(tf.constant(columns))
    program = fused(function.program(tf.constant(columns)))
    kernels = [one for case in recorded.replayed("", program, [columns]) for one in case.kernels]
    shared = [8 * sum(map(int, re.findall(r"__shared__ double \w+\[(\d+)\];", one.text))) for one in kernels]
    assert 32 << 10 < max(shared) <= 48 << 10, "without being asked a device gives a block 48 KiB"


def test_equal_groups_share_one_function():
    step, inputs = step_of(lambda: [L.Dense(8), L.LayerNormalization(), L.Dense(8), L.LayerNormalization(), L.Dense(3)], 33)
    function = tf.function(step)
    for _ in range(2):
        function(*inputs)
    program = fused(function.program(*inputs))
    emitter = Emitter(itertools.count(1 << 20))
    texts = [kernel.text for one in program.records if one.primitive is group for kernel in emitter.kernels(one)]
    assert len(set(texts)) < len(texts)


def test_moving_averages_may_be_written_where_they_lie():
    program, _ = program_of(TRAINED["batch normalization"], 33)
    forward = max((one for one in fused(program).records if one.primitive is group), key=lambda one: len(one.outputs))
    (kernel,) = Emitter(itertools.count(1 << 20)).kernels(forward)
    places = {y.shape: where for y, where in zip(kernel.outputs, kernel.may_alias, strict=True)}
    assert places[33, 9] == () and {kernel.inputs[n].shape for n in places[9,]} == {(9,)}


@needs_gxx
@pytest.mark.parametrize("size", [33, 40_000])
def test_whether_all_numbers_are_finite_is_asked_in_one_pass(size):
    function = tf.function(lambda x: tf.reduce_all(tf.math.is_finite(x * 2.0)))
    whole = np.ones(size, "float32")
    function(tf.constant(whole))
    program = fused(function.program(tf.constant(whole)))
    (record,) = program.records
    for position in (None, 0, size - 1):
        x = np.array(whole)
        x[[] if position is None else position] = np.inf
        (case,) = recorded.replayed("", program, [x])
        memory = Memory()
        memory.put(record.inputs[0], x)
        for kernel, run in zip(case.kernels, compiled(case.kernels), strict=True):
            memory.run(kernel, run)
        assert memory.array(record.outputs[0]) == (position is None) == case.expected[0]


@pytest.mark.parametrize(("lead", "shape"), [((33,), None), ((33,), ()), ((33,), (33, 1)), ((3, 11), None)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_loss_and_its_derivative_are_one_group(lead, shape, dtype):
    floats, labels = np.dtype(dtype), Slot(0, lead, np.dtype("i8"))
    logits, loss, gradient = Slot(1, (*lead, 10), floats), Slot(2, lead, floats), Slot(3, (*lead, 10), floats)
    both = operations.sparse_softmax_cross_entropy, operations.sparse_softmax_cross_entropy_grad
    records = [Record(one, [labels, logits], {}, y) for one, y in zip(both, (loss, gradient), strict=True)]
    arguments, results = [labels, logits], [loss, gradient]
    if shape is not None:  # the factor of a mean
        arguments.append(Slot(4, shape, floats))
        results[1] = Slot(5, (33, 10), floats)
        records.append(Record(operations.multiply, [arguments[-1], gradient], {}, results[1]))
    program = recorded.in_groups(Program(arguments, records, results, None))
    assert [one.primitive.name for one in program.records if one.primitive is not operations.reshape] == ["group"]


def test_a_view_of_a_view_of_a_sum_is_still_there_for_others():
    @tf.function
    def step(x):
        mean = tf.reshape(tf.reshape(tf.reduce_mean(x * 2.0, axis=0, keepdims=True), [3]), [1, 3])
        return x - mean, tf.reshape(mean, [3, 1])

    x = tf.constant(np.arange(12, dtype="float32").reshape(4, 3))
    step(x)
    program = fused(step.program(x))
    values = {}
    for case in recorded.replayed("", program, [x.numpy()]):
        values |= {y.key: z for y, z in zip(outputs_of(case.record), case.expected, strict=True)}
    np.testing.assert_array_equal(values[program.results[1].key], [[9.0], [11.0], [13.0]])
