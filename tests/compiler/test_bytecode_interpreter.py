"""The bytecode interpreter gives NumPy's numbers: every operation, kind of input and output, within and beyond a block."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("scipy")

import minikeras as tf
from minikeras.compiler.executors.numba import installed
from minikeras.compiler.executors.numba import interpreter as m
from minikeras.compiler.executors.numba.operations import COMBINED, OPERATIONS, TRANSCENDENTAL

DTYPES = ["float32", "float64"]
RELATIVE = {"float32": 1e-6, "float64": 1e-14}
ROUNDED = sorted({*TRANSCENDENTAL, "exp", "expm1", "tanh"})
EXACT = sorted(set(OPERATIONS) - set(ROUNDED))
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e-40, -1e-40, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.0, -1.0, 88.0, 709.0]
KINDS = [m.FULL, m.ROW, m.COLUMN, m.SCALAR, m.LITERAL]
HOWS = [m.STORE, m.OVER_ROWS, m.OVER_COLUMNS, m.OVER_ALL]
FEW, MANY = st.integers(1, 9), st.one_of(st.integers(100, 600), st.integers(m.BLOCK - 1, m.BLOCK + 1), st.just(2 * m.BLOCK + 5))
SHAPES = st.one_of(st.tuples(st.integers(0, 9), MANY), st.tuples(MANY, FEW), st.tuples(FEW, FEW), st.tuples(FEW, st.just(130)))


def carry_out(dtype, *instructions, arrays=(), literals=()):
    """Runs the instructions on arrays that they name by their places in `arrays`."""
    code = np.array([one for instruction in instructions for one in instruction], np.int64)
    pointers = np.array([array.ctypes.data for array in arrays], np.int64)
    assert all(array.flags.c_contiguous and array.dtype in (dtype, np.int64) for array in arrays)
    scratch = np.full(m.REGISTERS_MAX * m.BLOCK, np.nan, dtype)
    return m.run(code, pointers, np.array(literals, np.float64), scratch)


def loop(rows, columns, inputs, outputs, steps):
    operands = [rows, columns, len(inputs), len(outputs), len(steps), *sum([*inputs, *outputs, *steps], ())]
    return [m.LOOP, len(operands) + 2, *operands]


def step(name, register, a, b=0, c=0):
    return (OPERATIONS[name], register, a, b, c)


def normal(*shape, dtype="float32"):
    return np.random.default_rng(4).normal(size=shape).astype(dtype)


def applied(name, *inputs):
    """The result of one operation on whole arrays."""
    y = np.empty_like(inputs[0])
    arrays = [*inputs, y]
    outputs = [(len(inputs), len(inputs), m.STORE)]
    operands = range(len(inputs))
    instruction = loop(1, y.size, [(i, m.FULL) for i in operands], outputs, [step(name, len(inputs), *operands)])
    assert carry_out(y.dtype, instruction, arrays=arrays) == -1
    return y


def operands(name, dtype):
    """All combinations of special values, and random ones, for the number of operands that NumPy's function takes."""
    function, number = numpys(name)
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL, dtype)
    grid = [axis.ravel() for axis in np.meshgrid(*[special] * number)]
    random = np.random.default_rng(4).normal(size=(number, 3 * m.BLOCK)).astype(dtype) * 3
    return function, [np.concatenate(both) for both in zip(grid, random, strict=True)]


def numpys(name):
    """NumPy's function for an operation and the number of its operands; the tree of a combined one says what it is made of."""
    if name in COMBINED:
        tree = COMBINED[name]
        letters = sorted({letter for letter in str(tree) if f"'{letter}'" in str(tree)})
        return lambda *xs: grown(tree, dict(zip(letters, xs, strict=True))), len(letters)
    function = {"copy": np.positive}.get(name) or getattr(np, name)
    return function, 3 if name == "where" else function.nin


def grown(tree, values):
    """What a tree of functions gives."""
    return values[tree] if isinstance(tree, str) else getattr(np, tree[0])(*[grown(branch, values) for branch in tree[1:]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_an_operation_gives_the_bits_of_numpy(name, dtype):
    function, inputs = operands(name, dtype)
    if name == "where":
        expected = np.where(inputs[0] != 0, *inputs[1:])
    else:
        with np.errstate(all="ignore"):
            expected = function(*inputs).astype(dtype)
    found = applied(name, *inputs)
    np.testing.assert_array_equal(found, expected)
    if name not in ("maximum", "minimum"):  # IEEE leaves open which zero is the larger one
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROUNDED)
def test_an_operation_that_rounds_is_accurate_to_the_last_digits(name, dtype):
    """The expected value is computed in longer numbers and then rounded."""
    function, inputs = operands(name, dtype)
    with np.errstate(all="ignore"):
        expected = function(*[x.astype(np.longdouble) for x in inputs]).astype(dtype)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    np.testing.assert_allclose(applied(name, *inputs), expected, rtol=RELATIVE[dtype], atol=2 * tiny)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "expm1", "tanh"])
def test_exponentials_are_accurate_from_the_smallest_to_the_largest_number(name, dtype):
    limits = np.finfo(dtype)
    powers = np.logspace(np.log10(limits.tiny), 3, 20_000)
    x = np.concatenate([powers, -powers, np.linspace(-800, 800, 20_000), np.linspace(-105, 90, 20_000)]).astype(dtype)
    x = np.concatenate([x, np.log(np.array([limits.max, limits.tiny, limits.smallest_subnormal]))])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype(np.longdouble)).astype(dtype)
    tiny = float(limits.smallest_subnormal)
    np.testing.assert_allclose(applied(name, x), expected, rtol=3 * limits.eps, atol=2 * tiny)


@settings(max_examples=60)
@given(
    shape=SHAPES,
    kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=4),
    hows=st.lists(st.sampled_from(HOWS), min_size=1, max_size=5),
    of_input=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
def test_every_kind_of_input_meets_every_kind_of_output(shape, kinds, hows, of_input, dtype):
    """The result is ((x0 + x1) * x1 + x2) ...; each output is it, or the last input, stored or summed."""
    rows, columns = shape
    shapes = {m.FULL: (rows, columns), m.ROW: (columns,), m.COLUMN: (rows, 1)}
    inputs = [np.asarray(normal(*shapes.get(kind, ()), dtype=dtype) + number) for number, kind in enumerate(kinds)]
    literals = [float(x) if x.ndim == 0 else 0.0 for x in inputs]
    steps, last = [], 0
    result = np.broadcast_to(inputs[0], (rows, columns))
    for number in range(1, len(kinds)):
        register = len(kinds) + len(steps)
        steps += [step("add", register, last, number), step("multiply", register + 1, register, number)]
        result, last = (result + inputs[number]) * inputs[number], register + 1
    if of_input:
        result, last = np.broadcast_to(inputs[-1], (rows, columns)), len(kinds) - 1
    sizes = {m.STORE: (rows, columns), m.OVER_ROWS: (columns,), m.OVER_COLUMNS: (rows,), m.OVER_ALL: ()}
    outputs = [np.full(sizes[how], np.nan, dtype) for how in hows]
    instruction = loop(
        rows,
        columns,
        [(number, kind) for number, kind in enumerate(kinds)],
        [(len(kinds) + number, last, how) for number, how in enumerate(hows)],
        steps,
    )
    kept = [x.copy() for x in inputs]
    assert carry_out(dtype, instruction, arrays=[*inputs, *outputs], literals=literals) == -1
    for found, how in zip(outputs, hows, strict=True):
        if how == m.STORE:
            np.testing.assert_array_equal(found, result)
        else:
            axis = {m.OVER_ROWS: 0, m.OVER_COLUMNS: 1, m.OVER_ALL: None}[how]
            exact = result.sum(axis, dtype=np.longdouble)
            size = np.abs(result).sum(axis, dtype=np.longdouble)
            roundings = rows if how == m.OVER_ROWS else 32  # rows are added in order, as NumPy does
            assert np.all(np.abs(found - exact) <= roundings * np.finfo(dtype).eps * size)
    for x, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("how", [m.OVER_ROWS, m.OVER_COLUMNS, m.OVER_ALL])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_sums_of_nothing_are_zero(how, rows, columns):
    out = np.full({m.OVER_ROWS: columns, m.OVER_COLUMNS: rows, m.OVER_ALL: 1}[how], np.nan, np.float32)
    carry_out("float32", loop(rows, columns, [(0, m.FULL)], [(1, 0, how)], []), arrays=[normal(rows, columns), out])
    assert not out.any()


def test_a_long_sum_of_float32_is_accurate():
    x = np.full(3_000_000, 0.1, np.float32)
    out = np.empty((), np.float32)
    carry_out("float32", loop(1, x.size, [(0, m.FULL)], [(1, 0, m.OVER_ALL)], []), arrays=[x, out])
    np.testing.assert_allclose(out, x.sum(dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (3, 700), (40, 130), (2, 3 * m.BLOCK + 1)])
def test_outputs_may_take_the_memory_of_inputs(rows, columns, dtype):
    """Momentum: v = 0.9 v + g, w = w - v, both in place, with the sum of the new w; w reads where it is written."""
    w, g, v = (normal(rows, columns, dtype=dtype) + shift for shift in range(3))
    new_v = w.dtype.type(0.9) * v + g
    new_w = w - new_v
    total = np.empty(rows, dtype)
    instruction = loop(
        rows,
        columns,
        [(0, m.FULL), (1, m.FULL), (2, m.FULL), (0, m.LITERAL)],
        [(0, 6, m.STORE), (2, 5, m.STORE), (3, 6, m.OVER_COLUMNS)],
        [step("multiply", 4, 2, 3), step("add", 5, 4, 1), step("subtract", 6, 0, 5)],
    )
    carry_out(dtype, instruction, arrays=[w, g, v, total], literals=[0.9])
    np.testing.assert_array_equal(v, new_v)
    np.testing.assert_array_equal(w, new_w)
    np.testing.assert_allclose(total, new_w.sum(1), rtol=1e-4)


def test_a_register_may_be_stored_twice_and_summed():
    x = normal(50, 60)
    first, second, rows = np.empty_like(x), np.empty_like(x), np.empty(60, np.float32)
    outputs = [(1, 1, m.STORE), (2, 1, m.STORE), (3, 1, m.OVER_ROWS)]
    instruction = loop(50, 60, [(0, m.FULL)], outputs, [step("square", 1, 0)])
    carry_out("float32", instruction, arrays=[x, first, second, rows])
    np.testing.assert_array_equal(first, x * x)
    np.testing.assert_array_equal(second, x * x)
    np.testing.assert_array_equal(rows, (x * x).sum(0))


def test_a_loop_may_use_all_registers():
    steps = [step("add", register, register - 1, 0) for register in range(1, m.REGISTERS_MAX)]
    x, y = np.ones(3 * m.BLOCK + 1, np.float32), np.empty(3 * m.BLOCK + 1, np.float32)
    outputs = [(1, m.REGISTERS_MAX - 1, m.STORE)]
    carry_out("float32", loop(1, x.size, [(0, m.FULL)], outputs, steps), arrays=[x, y])
    np.testing.assert_array_equal(y, np.full_like(x, m.REGISTERS_MAX))


@settings(max_examples=60)
@given(
    sizes=st.tuples(*[st.one_of(st.integers(0, 5), st.integers(10, 20), st.integers(60, 70))] * 3),
    transpose_a=st.booleans(),
    transpose_b=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
def test_a_product_is_that_of_numpy_whatever_is_transposed(sizes, transpose_a, transpose_b, dtype):
    rows, columns, inner = sizes
    a = normal(*((inner, rows) if transpose_a else (rows, inner)), dtype=dtype)
    b = normal(*((columns, inner) if transpose_b else (inner, columns)), dtype=dtype) + 1
    out = np.full((rows, columns), np.nan, dtype)
    instruction = [m.PRODUCT, 10, 2, 0, 1, rows, columns, inner, int(transpose_a), int(transpose_b)]
    assert carry_out(dtype, instruction, arrays=[a, b, out]) == -1
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    assert np.all(np.abs(out - a @ b) <= 4 * RELATIVE[dtype] * (np.abs(a) @ np.abs(b)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (32, 10), (7, 1000), (0, 3)])
def test_take_at_and_add_at_are_for_an_index_in_each_row(rows, columns, dtype):
    x = normal(rows, columns, dtype=dtype)
    indices = np.random.default_rng(4).integers(-columns, columns, rows)
    taken, changed = np.full(rows, np.nan, dtype), np.full((rows, columns), np.nan, dtype)
    instructions = [[m.TAKE_AT, 7, 0, 1, 2, rows, columns], [m.ADD_AT, 8, 3, 1, 2, rows, columns, 0]]
    assert carry_out(dtype, *instructions, arrays=[taken, x, indices, changed], literals=[-1.0]) == -1
    each, expected = np.arange(rows), x.copy()
    np.testing.assert_array_equal(taken, x[each, indices])
    expected[each, indices] -= 1
    np.testing.assert_array_equal(changed, expected)
    assert carry_out(dtype, [m.ADD_AT, 8, 0, 0, 1, rows, columns, 0], arrays=[x, indices], literals=[-1.0]) == -1
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (3, 2 * m.BLOCK + 5), (600, 1)])
@pytest.mark.parametrize("special", [0.0, np.nan, np.inf, -np.inf])
def test_the_largest_of_each_row(rows, columns, special, dtype):
    x = normal(rows, columns, dtype=dtype)
    x[::2, columns // 2] = special
    largest, shape = np.zeros(rows, dtype), (rows, columns)
    carry_out(dtype, loop(*shape, [(0, m.FULL)], [(1, 0, m.LARGEST_OF_ROW)], []), arrays=[x, largest])
    np.testing.assert_array_equal(largest, x.max(1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "scale"), [((1, 1), 1), ((32, 10), 1), ((7, 1000), 1e4), ((2, 3, 4), 1)])
def test_losses_of_labels_are_those_of_numpy_also_for_large_logits(shape, scale, dtype):
    x = tf.constant(normal(*shape, dtype=dtype) * scale)
    labels = tf.constant(np.random.default_rng(4).integers(0, shape[-1], shape[:-1]))

    def step(labels, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        return loss, tape.gradient(loss, x)

    compiled = tf.function(step, jit_compile=True)
    for _ in range(2):
        for found, expected in zip(compiled(labels, x), step(labels, x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=10 * RELATIVE[dtype], atol=RELATIVE[dtype])
    assert compiled.kernels < 10


@pytest.mark.parametrize("logits", [[np.inf, 0, 1], [np.nan, 0, 1], [0, np.nan, 1], [-np.inf] * 3])
def test_losses_of_logits_without_a_largest_number_are_nan(logits):
    loss = tf.function(tf.nn.sparse_softmax_cross_entropy_with_logits, jit_compile=True)
    assert np.isnan(loss(tf.constant([1]), tf.constant([logits], "float32"))).all()


@pytest.mark.parametrize("index", [3, -4])
@pytest.mark.parametrize("opcode", ["TAKE_AT", "ADD_AT"])
def test_an_index_outside_its_row_ends_the_run_and_names_the_instruction(opcode, index):
    x, after = normal(3), np.zeros(3, np.float32)
    copy = loop(1, 3, [(2, m.FULL)], [(3, 0, m.STORE)], [])
    arrays = [np.zeros((2, 3), np.float32), np.array([0, index]), normal(2, 3), after]
    arrays[2][0] = x
    instruction = [m.TAKE_AT, 7, 0, 2, 1, 2, 3] if opcode == "TAKE_AT" else [m.ADD_AT, 8, 0, 2, 1, 2, 3, 0]
    assert carry_out("float32", instruction, copy, arrays=arrays, literals=[1.0]) == 0
    assert carry_out("float32", copy, instruction, arrays=arrays, literals=[1.0]) == len(copy)
    np.testing.assert_array_equal(after, x)


def test_instructions_run_in_their_order():
    x, product = normal(4, 4), np.empty((4, 4), np.float32)
    double = loop(4, 4, [(1, m.FULL)], [(1, 1, m.STORE)], [step("add", 1, 0, 0)])
    carry_out("float32", [m.PRODUCT, 10, 1, 0, 0, 4, 4, 4, 0, 0], double, double, arrays=[x, product])
    np.testing.assert_allclose(product, 4 * (x @ x), rtol=1e-5)


def test_a_later_process_finds_the_interpreter_on_disk():
    assert installed()
    m.warm("float32")
    script = "from minikeras.compiler.executors.numba.interpreter import warm; print(warm('float32'), warm('float32'))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert found.stdout.split() == ["True", "False"]
