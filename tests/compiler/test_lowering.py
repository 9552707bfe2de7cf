"""Instructions as calls that write where they are told give the bits of the primitives' own kernels."""

import math

import numpy as np
import pytest
from in_one_test import in_one_test
from side_by_side import assert_same, leaves, with_gradient
from specimens import SPECIMENS

import minikeras as tf
from minikeras.compiler.executors import by_numpy
from minikeras.compiler.executors.numpy.blocks import BlockLoop, writing
from minikeras.compiler.executors.numpy.lowering import Call, View, _rows, lowered
from minikeras.compiler.ir import Program, Slot
from minikeras.compiler.loops import traced
from minikeras.compiler.passes.inlining import inline_composites
from minikeras.core import Record, bind
from minikeras.core.ops.arithmetic import extreme
from minikeras.core.registry import operations

RANDOM = np.random.default_rng(4)


def array(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(dtype)


LABELS = RANDOM.integers(0, 7, 33)
CASES = [
    ("affine", [array(33, 5), array(5, 7), array(7)], {}),
    ("affine", [array(2, 33, 5), array(5, 7), array(7)], {}),
    ("matrix_product", [array(33, 5), array(5, 7)], {}),
    ("matrix_product", [array(3, 4, 5, dtype="float64"), array(5, 7, dtype="float64")], {}),
    ("transpose", [array(3, 4)], {"perm": (-1, -2)}),
    ("transpose", [array(2, 3, 4, 5)], {"perm": (-1, -3, -2)}),
    ("reshape", [array(3, 4)], {"shape": (2, 6), "rank": 2}),
    ("reshape", [array(5, 3, 4)], {"shape": (12,), "rank": 2}),
    ("reshape", [np.float32(3.0)], {"shape": (1,), "rank": 0}),
    ("sparse_softmax_cross_entropy", [LABELS, array(33, 7)], {}),
    ("sparse_softmax_cross_entropy", [LABELS[:1], np.float32([[np.inf, -np.inf, 1.0, 0, 0, 0, 0]])], {}),
    ("sparse_softmax_cross_entropy", [LABELS.reshape(3, 11), array(3, 11, 7)], {}),
    ("sparse_softmax_cross_entropy_grad", [LABELS, array(33, 7)], {}),
    ("sparse_softmax_cross_entropy_grad", [LABELS.reshape(3, 11), array(3, 11, 7)], {}),
    *(
        ("reduce_sum", [array(33, 130, dtype=dtype)], {"axes": axes, "keepdims": keep})
        for dtype in ("float16", "float32", "float64")
        for axes in ((-1,), (-2,), (-2, -1), ())
        for keep in (False, True)
    ),
    ("reduce_max", [array(33, 7)], {"axes": (-1,), "keepdims": True}),
    ("reduce_sum", [LABELS], {"axes": (-1,), "keepdims": False}),
    *(
        ("reduce_mean", [array(33, 7)], {"axes": axes, "keepdims": keep})
        for axes in ((-1,), (-2,), (-2, -1), ())
        for keep in (False, True)
    ),
    ("broadcast_to", [array(7)], {"shape": (33, 7), "rank": 1}),
    ("strided_slice", [array(33, 7)], {"key": (slice(3, None, 2),), "shape": (33, 7)}),
    ("strided_slice", [array(33, 7)], {"key": (slice(3, 4), 0, None), "shape": (33, 7)}),
]


def program_of(name, arrays, params):
    """A program of one instruction, and the result of the primitive's own kernel."""
    primitive = getattr(operations, name)
    with np.errstate(all="ignore"):
        expected = primitive.on(np)(*arrays, **params)
    slots = [Slot(i, one.shape, one.dtype) for i, one in enumerate(arrays)]
    made = Slot(9, expected.shape, expected.dtype)
    return Program(slots, [Record(primitive, slots, params, made)], [made], None), expected


@pytest.mark.parametrize(("name", "arrays", "params"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_lowered_instruction_gives_the_same_bits(name, arrays, params):
    kept = [np.array(one) for one in arrays]
    program, expected = program_of(name, arrays, params)
    program = inline_composites(program)
    for _ in range(2):
        (found,) = by_numpy(program)(arrays)
        assert_same([found.numpy()], [expected])
    assert_same(arrays, kept)


def test_every_row_of_the_lowering_is_tried_and_used():
    found = {name for name, arrays, params in CASES if type(lowered(program_of(name, arrays, params)[0])[0]) in (Call, View)}
    tried_elsewhere = {"part", "take_at", "add_at", "flatten", "assign_flat"}  # the last two in test_flat_instructions.py
    assert {primitive.name for primitive in _rows()} - tried_elsewhere == found


@in_one_test(2, specimen=SPECIMENS)
def test_an_operation_and_its_gradient_are_the_same_compiled(specimen):
    step, inputs = with_gradient(specimen)
    compiled = tf.function(step)
    with np.errstate(all="ignore"):
        expected = leaves(step(*inputs))
    for _ in range(3):
        with np.errstate(all="ignore"):
            found = leaves(compiled(*inputs))
        assert_same(found, expected)
    assert compiled.replays == 2 or compiled.program(*inputs).reason


def test_an_operation_of_the_same_name_is_another_one():
    odd = tf.autodiff.primitive("matrix_product", lambda xp, a, b: a - b, None, None)
    step = tf.function(lambda a, b: bind(odd, (a, b), {}))
    for _ in range(2):
        assert step(tf.ones((2, 2)), tf.ones((2, 2))).numpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert step.replays == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_chain_of_either_precision_is_one_loop(dtype):
    step = tf.function(lambda x, y: (x * 2.0 + y) * y)
    x = tf.ones([5], dtype)
    step(x, x)
    assert [record.primitive.name for record in step.program(x, x).records] == ["loop"]


@pytest.mark.parametrize("stacks", [(0, None), (None, 0), (0, 0)], ids=["labels", "logits", "both"])
def test_cross_entropy_of_stacks(stacks):
    labels, logits = tf.constant(RANDOM.integers(0, 7, (3, 5))), tf.constant(array(3, 5, 7))
    given = [x if stack == 0 else x[0] for x, stack in zip((labels, logits), stacks, strict=True)]

    def step(labels, logits):
        pick = lambda one: one if stacks == (0, 0) else (one, given[1]) if stacks[0] == 0 else (given[0], one)
        stacked = (labels, logits) if stacks == (0, 0) else labels if stacks[0] == 0 else logits
        return tf.vectorized_map(lambda one: tf.nn.sparse_softmax_cross_entropy_with_logits(*pick(one)), stacked)

    compiled = tf.function(step)
    each = [[x[i] if stack == 0 else x for x, stack in zip(given, stacks, strict=True)] for i in range(3)]
    expected = np.stack([tf.nn.sparse_softmax_cross_entropy_with_logits(*pair).numpy() for pair in each])
    np.testing.assert_allclose(step(*given), expected, rtol=1e-6)
    for _ in range(2):
        np.testing.assert_allclose(compiled(*given), expected, rtol=1e-6)


def bits_of(function, *arguments):
    """The results of an eager run as bytes, once they are those of its replays."""
    compiled, arguments = tf.function(function), [tf.constant(one) for one in arguments]
    expected = [np.asarray(one).tobytes() for one in leaves(function(*arguments))]
    for _ in range(3):
        assert [np.asarray(one).tobytes() for one in leaves(compiled(*arguments))] == expected
    assert compiled.replays == 2
    return expected


@pytest.mark.parametrize("shape", [(), (1,), (3, 7), (40, 41), (300, 300)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_not_chosen_is_a_true_zero(shape, dtype):
    x = array(*shape, dtype=dtype)
    y = np.resize(np.array([np.inf, -np.inf, np.nan, -1.0, -0.0, 2.0], dtype), shape)
    bits_of(lambda x, y: [tf.where(x > 0.0, y * 3.0, 0.0) * 2.0, tf.where(x > 0.0, y, 0.0), tf.where(x > 0.0, 0.0, y)], x, y)
    bits_of(lambda x, y: tf.where(x[:1] > 0.0, y, 0.0) if shape else y, x, y)


@pytest.mark.parametrize("number", [0.1, 1e300, -1e300, np.inf, np.nan, -0.0, 3, 16777217, 2**70, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_numbers_in_programs_are_what_they_are_beside_tensors(number, dtype):
    if dtype == "int32" and type(number) is not int:
        return
    number = number % 2**31 if dtype == "int32" else number
    bits_of(lambda x: [x * number, number - x, tf.maximum(x, number), x + number - number], array(5).astype(dtype))


@pytest.mark.parametrize("m", [1, 2, 17])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_products_of_matrices_that_lie_in_any_order(m, n):
    a, b = array(m, 9), array(9, n)
    twice = lambda x: x * 2.0  # in memory of the program
    bits_of(
        lambda a, b, c: [
            twice(a) @ twice(b),
            twice(twice(a) @ b) @ tf.transpose(twice(b)),
            tf.transpose(twice(a)) @ twice(a),
            twice(a)[:, ::2] @ twice(b)[::2],
            tf.transpose(twice(c)) @ twice(b),
            tf.reshape(twice(tf.transpose(c)), [m, 9]) @ b,
        ],
        *(a, b, np.ascontiguousarray(a.T)),
    )


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "uint64"])
def test_labels_of_any_integers(dtype):
    labels, logits = LABELS.astype(dtype), array(33, 7)

    def step(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return loss, tape.gradient(loss, logits)

    bits_of(step, labels, logits)
    compiled, wrong = tf.function(step), tf.constant(np.where(labels == labels[4], 7, labels).astype(dtype))
    compiled(tf.constant(labels), tf.constant(logits))
    with pytest.raises(tf.errors.InvalidArgumentError, match="label value of 7"):
        compiled(wrong, tf.constant(logits))


def test_an_output_spares_an_operand_that_is_read_later_also_behind_steps_that_are_taken_once():
    def kernel(x, number):
        root = np.sqrt(np.sqrt(np.sqrt(number)))
        return x * 2.0, x * 3.0 + root

    block = BlockLoop(traced(kernel, [np.dtype("float32")] * 2), (5,), [(5,), ()])
    assert 0 not in block.may_alias(0) and 0 in block.may_alias(1)


@pytest.mark.parametrize("exponent", [2, 0.5, -1, 1, 3])
def test_a_power_in_place_takes_the_short_way_of_a_power(exponent):
    """LLVM's root of -0.0 is -0.0, as that of NumPy, but its power of 0.5 is 0.0 and takes longer."""

    def in_place(x):
        x **= exponent
        return x + 1.0

    assert traced(in_place, [np.dtype("f4")]) == traced(lambda x: x**exponent + 1.0, [np.dtype("f4")])


SPECIAL = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -2.5, 1e-45]


def _special(dtype: str, shift: int) -> np.ndarray:
    return np.roll(np.resize(np.array(SPECIAL, dtype), (7, 11, 1301)), shift)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("cut", [(), (slice(None), slice(None, None, 2))], ids=["together", "apart"])
@pytest.mark.parametrize("other", [None, 2.5, -0.0], ids=["array", "number", "zero"])
def test_a_choice_of_many_floats_has_the_bits_that_numpy_chooses(
    dtype: str, cut: tuple[slice, ...], other: float | None
) -> None:
    a, b = _special(dtype, 0)[cut], _special(dtype, 4)[cut] if other is None else other
    condition = np.resize([True, False, False, True, True], a.shape)
    for first, second in ((a, b), (b, a)):
        found = np.empty(a.shape, dtype)
        writing("where")(condition, first, second, found)
        assert found.tobytes() == np.where(condition, first, second).tobytes()


@in_one_test(
    dtype=["float16", "float32", "float64", "int32"],
    cut=[(), (slice(None), slice(None, None, 2))],
    function=[np.maximum, np.minimum],
    number=[0, -0.0, 1.5],
)
def test_the_larger_of_many_elements_and_a_number_has_the_bits_of_numpy(dtype, cut, function, number) -> None:
    x = np.resize(np.arange(-5, 6), (7, 11, 1301)).astype(dtype)[cut] if dtype == "int32" else _special(dtype, 0)[cut]
    number = int(number) if dtype == "int32" else number
    assert extreme(function, x, number).tobytes() == function(x, number).tobytes()


@pytest.mark.parametrize("size", [3, 5000])
def test_the_larger_of_a_bool_and_a_number_is_an_integer_as_in_numpy(size: int) -> None:
    x = np.arange(size) % 2 == 0
    for found in (extreme(np.maximum, x, 0), bind(operations.relu, [x], {})):
        assert found.dtype == np.maximum(x, 0).dtype and (found == x).all()


@pytest.mark.parametrize("jit_compile", [None, True])
def test_no_elements_are_divided_by_zero_as_in_an_eager_run(jit_compile):
    remainder = tf.function(lambda x: (x // 0, x % 0), jit_compile=jit_compile)
    for _ in range(4):
        assert [y.shape for y in remainder(tf.zeros((0, 3), "int32"))] == [(0, 3)] * 2
