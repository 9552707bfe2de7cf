"""Kernels give NumPy's numbers: every function, kind of input and output, within and beyond a block, in any number of parts."""

import ctypes
import math
import threading

import numpy as np
import pytest
from hypothesis import assume, example
from hypothesis import strategies as st
from in_one_test import in_one_test

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from in_threads import in_threads
from interrupts import interrupt
from slow import drawn

import minikeras as tf
from minikeras.compiler.executors.llvm import jit, products, runner
from minikeras.compiler.executors.llvm.functions import FLOATS, LIBRARY, Instructions
from minikeras.compiler.executors.llvm.runner import Job
from minikeras.compiler.ir import Slot
from minikeras.compiler.loop_ir import contractions, indexed
from minikeras.compiler.loop_ir.elements import Made, elements_launch, elements_nest
from minikeras.compiler.loop_ir.groups import BLOCK, Domain, rows_nest
from minikeras.compiler.loop_ir.reductions import arg_nest
from minikeras.compiler.loop_ir.strided import Access
from minikeras.compiler.loops import Body, Step, traced
from minikeras.compiler.loops import loop as elementwise
from minikeras.compiler.render.llvm import NestKernel
from minikeras.core import Record
from minikeras.core.registry import operations
from minikeras.keras.optimizers.adam import adam_step

DTYPES = ["float32", "float64"]
RELATIVE = {"float32": 1e-6, "float64": 1e-14}
ROUNDED = sorted({*LIBRARY, "exp", "expm1", "tanh", "log", "log1p"})
EXACT = sorted({*FLOATS, "where", "logical_and", "logical_or", "logical_not"} - set(ROUNDED))
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e-40, -1e-40, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.0, -1.0, 88.0, 709.0]
FULL, ROW, COLUMN, SCALAR, WINDOW = KINDS = ["full", "row", "column", "scalar", "window"]
STORED, OVER_ROWS, OVER_COLUMNS, OVER_ALL = HOWS = ["stored", "over rows", "over columns", "over all"]
LARGEST = "largest"
FEW, MANY = st.integers(1, 9), st.one_of(st.integers(100, 600), st.integers(BLOCK - 1, BLOCK + 1), st.just(2 * BLOCK + 5))
SHAPES = st.one_of(st.tuples(st.integers(0, 9), MANY), st.tuples(MANY, FEW), st.tuples(FEW, FEW), st.tuples(FEW, st.just(130)))


def carry_out(*instructions, parts=1):
    """Run kernels, each with its arrays and further operands: (kernel, sizes, arrays, numbers)."""
    return job_of(*instructions, parts=parts)()


def job_of(*instructions, parts=1):
    arrays = [array for _, _, own, *_ in instructions for array in own]
    assert all(array.flags.c_contiguous for array in arrays)
    addresses = np.array([array.ctypes.data for array in arrays], np.int64)
    places = {id(array): number for number, array in enumerate(arrays)}
    functions = jit.addresses([kernel for kernel, *_ in instructions])
    listed = [
        (function, [*sizes, *[places[id(array)] for array in own], *numbers], parts)
        for function, (_, sizes, own, numbers, *_) in zip(functions, instructions, strict=True)
    ]
    return Job(listed, addresses)


def loop(body, kinds, hows, shape, inputs, outputs):
    """An instruction and its time; `hows` are pairs of a register and what becomes of it."""
    if {how for _, how in hows} & {OVER_COLUMNS, OVER_ALL, LARGEST}:
        return rows(body, hows, shape, inputs, outputs)
    wide = shape[1]
    strides = {FULL: (wide, 1), ROW: (0, 1), COLUMN: (1, 0), SCALAR: (0, 0), WINDOW: (wide + 3, 1)}
    strides |= {STORED: (wide, 1), OVER_ROWS: (0, 1)}
    slots = iter([Slot(key, array.shape, array.dtype) for key, array in enumerate((*inputs, *outputs))])
    accesses = [Access(next(slots), int(kind == WINDOW), strides[kind]) for kind in kinds]
    made = [Made(one, Access(next(slots), 0, strides[how])) for one, how in hows]
    launch = elements_launch(body, tuple(shape), accesses, made)
    if launch is None:  # the sum of a column alone is one of a row
        return None
    return NestKernel(launch.nest), [], [*inputs, *outputs], launch.sizes, launch.seconds


def rows(body, hows, shape, inputs, outputs):
    """The same with sums, or the largest, of each row or of all."""
    axes = (0, 1) if OVER_ALL in dict(map(reversed, hows)) else (1,)
    given = [Slot(key, array.shape, array.dtype) for key, array in enumerate(inputs)]
    full = tuple([Slot(100 + key, tuple(shape), array.dtype) for key, array in enumerate(outputs)])
    members = [Record(elementwise, given, {"body": body._replace(outputs=tuple([one for one, _ in hows]))}, full)]
    made = []
    for x, array, (_, how) in zip(full, outputs, hows, strict=True):
        made.append(x if how == STORED else Slot(100 + x.key, array.shape, array.dtype))
        reduce = operations.reduce_max if how == LARGEST else operations.reduce_sum
        members += [] if how == STORED else [Record(reduce, [x], {"axes": axes, "keepdims": False}, made[-1])]
    launch = rows_nest(Domain(tuple(shape), axes), members, made)
    arrays = dict(zip([x.key for x in (*given, *made)], [*inputs, *outputs], strict=True))
    own = [arrays[x.key] for x in (*launch.operands, *launch.results)]
    return NestKernel(launch.nest), [], own, launch.sizes, launch.seconds


def body_of(function, *dtypes):
    body = traced(function, [np.dtype(dtype) if dtype is not float else float for dtype in dtypes])
    assert body is not None
    return body


def normal(*shape, dtype="float32"):
    return np.random.default_rng(4).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("numbers", [(2.0, 2), (2, 2.0), (0.0, 0), (1, 1.0), (0.0, -0.0)])
def test_bodies_whose_literals_python_calls_equal_are_other_kernels(numbers):
    """2 is a constant of a kernel, 2.0 one of its operands: told by equality alone, the second gets the kernel of the first."""
    x = np.linspace(-1.0, 1.0, 400, dtype=np.float32).reshape(4, 100)
    elements_nest.cache_clear()
    first, second = [body_of(lambda x, number=number: np.exp(x) * number + 0.25, "float32") for number in numbers]
    assert first != second and len({first, second}) == 2
    for number in numbers:
        double = tf.function(lambda x, number=number: tf.exp(x) * number + 0.25, jit_compile=True)
        for _ in range(3):
            np.testing.assert_allclose(double(tf.constant(x)), np.exp(x) * np.float32(number) + 0.25, rtol=1e-6)


def applied(name, *inputs):
    """The result of one function on whole arrays."""
    dtypes, count = [x.dtype for x in inputs], len(inputs)
    dtype = dtypes[1] if name == "where" else getattr(np, name).resolve_dtypes((*dtypes, None))[-1]
    body = Body(tuple(dtypes), (), (), (Step(count, name, tuple(range(count)), dtype),), (count,))
    y = np.empty(inputs[0].shape, dtype)
    full = [FULL] * len(inputs)
    assert carry_out(loop(body, full, [(body.outputs[0], STORED)], [1, y.size], inputs, [y]))
    return y


def operands(name, dtype):
    """All combinations of special values, and random ones, for the number of operands that NumPy's function takes."""
    number = 3 if name == "where" else getattr(np, name).nin
    with np.errstate(all="ignore"):
        special = np.array(SPECIAL, dtype)
    grid = [axis.ravel() for axis in np.meshgrid(*[special] * number)]
    random = np.random.default_rng(4).normal(size=(number, 3 * BLOCK)).astype(dtype) * 3
    return [np.concatenate(both) for both in zip(grid, random, strict=True)]


@in_one_test(dtype=DTYPES, name=EXACT)
def test_a_function_gives_the_bits_of_numpy(name, dtype):
    inputs = operands(name, dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*inputs)
    found = applied(name, *inputs)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if name not in ("maximum", "minimum") and expected.dtype.kind == "f":  # IEEE leaves open which zero is the larger one
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROUNDED)
def test_a_function_that_rounds_is_accurate_to_the_last_digits(name, dtype):
    """The expected value is computed in longer numbers and then rounded."""
    inputs = operands(name, dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*[x.astype(np.longdouble) for x in inputs]).astype(dtype)
    tiny = float(np.finfo(dtype).smallest_subnormal)
    np.testing.assert_allclose(applied(name, *inputs), expected, rtol=RELATIVE[dtype], atol=2 * tiny)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "expm1", "tanh", "log", "log1p"])
def test_exponentials_and_logarithms_are_accurate_from_the_smallest_to_the_largest_number(name, dtype):
    limits = np.finfo(dtype)
    powers = np.logspace(np.log10(limits.tiny), 3, 20_000)
    x = np.concatenate([powers, -powers, np.linspace(-800, 800, 20_000), np.linspace(-105, 90, 20_000), 1 + powers / 1e3])
    x = np.concatenate([x.astype(dtype), np.log(np.array([limits.max, limits.tiny, limits.smallest_subnormal]))])
    x = np.concatenate([x, np.array([limits.max, limits.tiny, limits.smallest_subnormal, 0.0, -1.0])]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x.astype(np.longdouble)).astype(dtype)
    tiny = float(limits.smallest_subnormal)
    np.testing.assert_allclose(applied(name, x), expected, rtol=4 * limits.eps, atol=2 * tiny)


@drawn(
    25,
    120,
    shape=SHAPES,
    kinds=st.lists(st.sampled_from(KINDS), min_size=2, max_size=4),
    hows=st.one_of(
        st.lists(st.sampled_from([STORED, OVER_ROWS]), min_size=1, max_size=5),
        *[st.lists(st.sampled_from([STORED, how]), min_size=1, max_size=5) for how in (OVER_COLUMNS, OVER_ALL)],
    ),
    of_input=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
@example(shape=(8, 6), kinds=[SCALAR] * 3, hows=[OVER_ROWS] * 3 + [STORED, OVER_ROWS], of_input=False, dtype="float64")
@example(shape=(2053, 1), kinds=[FULL, ROW], hows=[OVER_ALL], of_input=True, dtype="float64")
def test_every_kind_of_input_meets_every_kind_of_output(shape, kinds, hows, of_input, dtype):
    """The result is ((x0 + x1) * x1 + x2) ...; each output is it, or the last input, stored or summed."""
    rows, columns = shape
    within = {*hows} & {OVER_COLUMNS, OVER_ALL}
    assume(not within or rows)
    kinds = [FULL if kind == WINDOW and within else kind for kind in kinds]
    whole = OVER_ALL in hows or (OVER_ROWS in hows and columns == 1) or (OVER_COLUMNS in hows and rows == 1)
    shapes = {FULL: (rows, columns), ROW: (columns,), COLUMN: (rows, 1)}
    shapes[WINDOW] = rows, columns + 3
    given = [np.asarray(normal(*shapes.get(kind, ()), dtype=dtype) + number) for number, kind in enumerate(kinds)]
    inputs = [x[:, 1:-2] if kind == WINDOW else x for x, kind in zip(given, kinds, strict=True)]
    steps, last = [], 0
    result = np.broadcast_to(inputs[0], (rows, columns))
    for number in range(1, len(kinds)):
        register = len(kinds) + len(steps)
        steps += [
            Step(register, "add", (last, number), np.dtype(dtype)),
            Step(register + 1, "multiply", (register, number), np.dtype(dtype)),
        ]
        result, last = (result + inputs[number]) * inputs[number], register + 1
    if of_input:
        result, last = np.broadcast_to(inputs[-1], (rows, columns)), len(kinds) - 1
    sizes = {STORED: (rows, columns), OVER_ROWS: (columns,), OVER_COLUMNS: (rows,), OVER_ALL: ()}
    body = Body(tuple([np.dtype(dtype)] * len(kinds)), (), (), tuple(steps), (last,))
    kept = [x.copy() for x in given]
    pairs = [(last, how) for how in hows]
    for parts in [1] if whole else [1, 2, 3]:
        outputs = [np.full(sizes[how], np.nan, dtype) for how in hows]
        instruction = loop(body, kinds, pairs, shape, given, outputs)
        assume(instruction is not None)
        assert carry_out(instruction, parts=parts if instruction[-1] else 1)  # a loop of no time is for one thread
        for found, how in zip(outputs, hows, strict=True):
            if how == STORED:
                np.testing.assert_array_equal(found, result)
            else:
                axis = {OVER_ROWS: 0, OVER_COLUMNS: 1, OVER_ALL: None}[how]
                exact = result.sum(axis, dtype=np.longdouble)
                size = np.abs(result).sum(axis, dtype=np.longdouble)
                # rows are added in order, as NumPy does; to a total in float64
                in_order = how == OVER_ROWS or (how == OVER_ALL and dtype == "float64")
                roundings = 64 + rows if in_order else 64
                assert np.all(np.abs(found - exact) <= roundings * np.finfo(dtype).eps * size)
        for x, before in zip(given, kept, strict=True):
            np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (0, 0)])
def test_sums_of_nothing_are_zero(axis, rows, columns):
    total = tf.function(lambda x: tf.reduce_sum(tf.exp(x) * 2.0, axis), jit_compile=True)
    for _ in range(3):
        found = total(tf.zeros([rows, columns]))
        assert found.shape == np.zeros((rows, columns)).sum(axis).shape and not found.numpy().any()


def test_a_long_sum_of_float32_is_accurate():
    x, out = np.full(3_000_000, 0.1, np.float32), np.empty((), np.float32)
    body = Body((np.dtype("f4"),), (), (), (), (0,))
    carry_out(loop(body, [FULL], [(0, OVER_ALL)], [1, x.size], [x], [out]))
    np.testing.assert_allclose(out, x.sum(dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("how", [OVER_COLUMNS, OVER_ALL])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sum_of_differences_is_nan_where_one_of_them_is(how, dtype):
    body, x, out = body_of(lambda x: x - x, dtype), np.ones(3000, dtype), np.zeros(1, dtype)
    x[1500] = np.inf
    carry_out(loop(body, [FULL], [(body.outputs[0], how)], [1, x.size], [x], [out]))
    assert np.isnan(out[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("size", [1, 5, 130, 3 * BLOCK + 1])
def test_outputs_may_take_the_memory_of_inputs(size, parts, dtype):
    """Adam in place: the weight and both slots read where they are written, and have the bits of NumPy's formula."""
    arrays = [normal(size, dtype=dtype) + shift for shift in range(4)]
    arrays[3] = np.abs(arrays[3])
    body = body_of(lambda g, w, m, v, rate: adam_step(g, w, m, v, rate, 0.9, 0.999, 1e-7), *[dtype] * 4, float)
    expected = adam_step(*[x.copy() for x in arrays], 1e-3, 0.9, 0.999, 1e-7)
    stored = [(register, STORED) for register in body.outputs]
    kinds = [FULL] * 4 + [SCALAR]
    carry_out(loop(body, kinds, stored, [1, size], [*arrays, np.array(1e-3)], arrays[1:]), parts=parts)
    for found, one in zip(arrays[1:], expected, strict=True):
        np.testing.assert_array_equal(found, one)


def test_the_loop_of_adam_is_vectorized_and_takes_packed_square_roots():
    body = body_of(lambda g, w, m, v, rate: adam_step(g, w, m, v, rate, 0.9, 0.999, 1e-7), *["f4"] * 4, float)
    arrays, stored = [np.zeros(100, "f4") for _ in range(8)], [(register, STORED) for register in body.outputs]
    kernel, *_ = loop(body, [FULL] * 4 + [SCALAR], stored, [1, 100], [*arrays[:4], np.array(1e-3)], arrays[4 : 4 + len(stored)])
    compiler = jit.compiler()
    text = str(compiler.optimized(kernel.text))
    assert "call <" in text and "@llvm.sqrt.v" in text, text


@pytest.mark.parametrize("columns", [2, 3, 7])
def test_vectors_go_along_lines_of_a_few_columns(columns):
    """A sum of exponentials of each line, and in place their shares: the numbers of NumPy, and vectors in LLVM's language."""
    x = normal(50, columns)
    body, total = body_of(np.exp, "float32"), np.empty((50, 1), np.float32)
    exps = x.copy()
    stored = [(body.outputs[0], STORED), (body.outputs[0], OVER_COLUMNS)]
    instruction = loop(body, [FULL], stored, x.shape, [exps], [exps, total])
    share = loop(body_of(lambda x, y: x / y, *["float32"] * 2), [FULL, COLUMN], [(2, STORED)], x.shape, [exps, total], [exps])
    assert carry_out(instruction, share)
    np.testing.assert_allclose(exps, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-6)
    assert " x float>" in str(jit.compiler().optimized(instruction[0].text))


def test_python_numbers_take_the_dtype_of_what_they_meet_and_are_computed_in_float64():
    body = body_of(lambda x, a, b: x * (a / b) + (1.0 - a), "float32", float, float)
    x, y = normal(1000), np.empty(1000, np.float32)
    numbers = [np.array(0.1), np.array(0.3)]
    kinds = [FULL, SCALAR, SCALAR]
    carry_out(loop(body, kinds, [(body.outputs[0], STORED)], [1, 1000], [x, *numbers], [y]))
    np.testing.assert_array_equal(y, x * (0.1 / 0.3) + (1.0 - 0.1))


@pytest.mark.parametrize("other", ["float64", "int32", "int64", "bool"])
def test_dtypes_mix_as_in_numpy(other):
    a, b = normal(300), (normal(300) * 2).astype(other)
    body = body_of(lambda a, b: (a + b, np.where(a > 0, b, a), b.astype(np.dtype("f4"))), "float32", other)
    expected = (a + b, np.where(a > 0, b, a), b.astype("f4"))
    outputs = [np.empty(300, one.dtype) for one in expected]
    stored = [(register, STORED) for register in body.outputs]
    carry_out(loop(body, [FULL] * 2, stored, [1, 300], [a, b], outputs))
    for found, one in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(found, one)


@drawn(
    30,
    150,
    sizes=st.tuples(*[st.one_of(st.integers(0, 5), st.integers(10, 20), st.integers(60, 70))] * 3),
    transpose_a=st.booleans(),
    transpose_b=st.booleans(),
    by_rows=st.booleans(),
    dtype=st.sampled_from(DTYPES),
    parts=st.integers(1, 3),
)
def test_a_product_is_that_of_numpy_whatever_is_transposed(sizes, transpose_a, transpose_b, by_rows, dtype, parts):
    rows, columns, inner = sizes
    a = normal(*((inner, rows) if transpose_a else (rows, inner)), dtype=dtype)
    b = normal(*((columns, inner) if transpose_b else (inner, columns)), dtype=dtype) + 1
    out = np.full((rows, columns), np.nan, dtype)
    way = products.way_of(out.dtype, (None, None, None))
    nest = contractions.product(out.dtype, transpose_a, transpose_b, by_rows)
    lines = [rows if transpose_a else inner, inner if transpose_b else columns, columns]
    numbers = [rows, columns, inner, *lines, *way]
    assert carry_out((NestKernel(nest, multiplies=True), [], [a, b, out], numbers), parts=parts)
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    assert np.all(np.abs(out - a @ b) <= 4 * RELATIVE[dtype] * (np.abs(a) @ np.abs(b)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (32, 10), (40, 3), (7, 1000), (0, 3)])
def test_take_at_and_add_at_are_for_an_index_in_each_row(rows, columns, index, dtype):
    x = normal(rows, columns, dtype=dtype)
    indices = np.random.default_rng(4).integers(-columns, columns, rows).astype(index)
    taken, changed = np.full(rows, np.nan, dtype), np.full((rows, columns), np.nan, dtype)
    take = NestKernel(indexed.take_nest(x.dtype, indices.dtype))
    add = NestKernel(indexed.add_number_nest(x.dtype, indices.dtype, -1, columns))
    numbers = [rows, columns]
    assert carry_out((take, [], [x, indices, taken], numbers), (add, [], [x, indices, changed], numbers))
    each, expected = np.arange(rows), x.copy()
    np.testing.assert_array_equal(taken, x[each, indices])
    expected[each, indices] -= 1
    np.testing.assert_array_equal(changed, expected)
    assert carry_out((add, [], [x, indices, x], numbers))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(("rows", "columns"), [(5, 7), (40, 7), (3, 2 * BLOCK + 5), (600, 1)])
@in_one_test(dtype=DTYPES, parts=[1, 2], special=[0.0, np.nan, np.inf, -np.inf])
def test_the_largest_of_each_row(rows, columns, special, parts, dtype):
    x = normal(rows, columns, dtype=dtype)
    x[::2, columns // 2] = special
    largest = np.zeros(rows, dtype)
    body = Body((x.dtype,), (), (), (), (0,))
    instruction = loop(body, [FULL], [(0, LARGEST)], [rows, columns], [x], [largest])
    carry_out(instruction, parts=parts)
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


def test_two_threads_may_write_the_text_of_a_kernel_at_once(monkeypatch):
    """No lock is held, which a fork would leave locked in the child."""
    nest, loop_of, others = indexed.take_nest(np.dtype("f4"), np.dtype("i8")), NestKernel._loop, []
    alone, kernel = NestKernel(nest).text, NestKernel(nest)

    def interrupted(self, *given):
        monkeypatch.undo()
        thread = threading.Thread(target=lambda: others.append(kernel.text), daemon=True)
        thread.start()
        thread.join(10)
        return loop_of(self, *given)

    monkeypatch.setattr(NestKernel, "_loop", interrupted)
    assert [kernel.text, *others] == [alone, alone]


def test_loops_and_conditions_are_carried_out_as_they_are_written():
    to = Instructions()
    total = to.add("alloca i64")
    to.do(f"store i64 0, ptr {total}")
    with to.loop("2", "%n") as row, to.loop(stop=row.index) as column:  # ends where the sum of both reaches 9
        both = to.add(f"add i64 {row.index}, {column.index}")
        column.leave(to.add(f"icmp sge i64 {both}, 9"))
        with to.when(to.add(f"icmp eq i64 {column.index}, 7")):
            to.do("ret i64 -1")
        with to.when(to.add(f"icmp ne i64 {column.index}, 1")):
            old = to.add(f"load i64, ptr {total}")
            to.do(f"store i64 {to.add(f'add i64 {old}, {both}')}, ptr {total}")
    with to.loop() as turn:  # counts until its square is larger
        turn.leave(to.add(f"icmp sgt i64 {to.add(f'mul i64 {turn.index}, {turn.index}')}, %n"))
    result = to.add(f"add i64 {to.add(f'load i64, ptr {total}')}, {turn.index}")
    text = "\n".join(["define i64 @sums(i64 %n) {", "entry:", *to.lines, f"  ret i64 {result}", "}"])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(jit.functions(text, ["sums"])[0])
    for n in (0, 2, 3, 8, 20):
        pairs = [(i, j) for i in range(2, n) for j in range(i) if i + j < 9 and j != 1]
        assert function(n) == sum(i + j for i, j in pairs) + math.isqrt(n) + 1


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_instructions_run_in_their_order_also_in_parts(parts):
    """Each of 200 loops reads what the one before has written, all of it: in reverse rows, by a product with a permutation."""
    size = 48
    turn = np.eye(size, dtype=np.float32)[::-1].copy()
    body = body_of(lambda x: x * 1.5 + 1.0, "float32")
    x, y = normal(size, size), np.empty((size, size), np.float32)
    numbers = [*[size] * 6, *products.way_of(x.dtype, (None, None, None))]
    product = NestKernel(contractions.product(x.dtype, False, False, by_rows=True), multiplies=True)
    expected, program = x.copy(), []
    for _ in range(100):
        program += [
            (product, [], [turn, x, y], numbers),
            loop(body, [FULL], [(body.outputs[0], STORED)], [1, x.size], [y], [x]),
        ]
        expected = (turn @ expected) * np.float32(1.5) + np.float32(1)
        np.clip(expected, -1e30, 1e30, out=expected)
    for _ in range(20):
        kept = x.copy()
        carry_out(*program[:20], parts=parts)
        once = kept
        for _ in range(10):
            once = (turn @ once) * np.float32(1.5) + np.float32(1)
        np.testing.assert_array_equal(x, once)
        x *= np.float32(1e-2)


def test_runs_of_several_threads_share_the_workers_one_at_a_time():
    body = body_of(lambda x: np.exp(x) * 0.5, "float64")
    x = normal(20_000, dtype="float64")
    expected = np.empty_like(x)
    stored = [(body.outputs[0], STORED)]
    carry_out(loop(body, [FULL], stored, [1, x.size], [x], [expected]))

    def work():
        for _ in range(50):
            y = np.empty_like(x)
            carry_out(*[loop(body, [FULL], stored, [1, x.size], [x], [y])] * 3, parts=2)
            np.testing.assert_array_equal(y, expected)

    in_threads(*[work] * 4)


def test_after_an_interrupt_anywhere_within_a_run_threads_share_the_next_one():
    body = body_of(lambda x: x + 1.0, "float64")
    x, y = np.zeros(100), np.zeros(100)
    interrupts = 0
    for number in range(1000):
        job = job_of(loop(body, [FULL], [(body.outputs[0], STORED)], [1, x.size], [x], [y]), parts=2)
        try:
            with interrupt(Job.__call__, number):
                job()
        except KeyboardInterrupt:
            interrupts += 1
        else:
            break
        assert job() and not runner._team().mailboxes[:1, runner._TAKEN].any()
        np.testing.assert_array_equal(y, x + 1.0)
    assert interrupts > 10


@in_one_test(dtype=[*DTYPES, "int32", "int64"], index=["int32", "int64"], parts=[1, 2], special=[None, np.nan, np.inf, -np.inf])
def test_the_place_of_the_largest_of_each_row_is_the_first(dtype, index, parts, special):
    x = (normal(40, 9, dtype="float64") * 3).round().astype(dtype)  # many are equal
    if special is not None and x.dtype.kind == "f":
        x[::3, 4], x[::6, 7], x[5] = special, special, -np.inf
    out = np.empty(40, index)
    slots = [Slot(key, array.shape, array.dtype) for key, array in enumerate((x, out))]
    nest = arg_nest("argmax", slots[0], (*x.shape, 1), slots[1], fixed=False).nest
    assert carry_out((NestKernel(nest), [], [x, out], [40, 9]), parts=parts)
    np.testing.assert_array_equal(out, x.argmax(1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("rows", [0, 1, 7, 100])
def test_rows_are_gathered_by_their_numbers(rows, parts, dtype):
    x = (normal(50, 13, dtype="float64") * 3).astype(dtype)
    numbers = np.random.default_rng(4).integers(0, 50, rows)
    out = np.zeros((rows, 13), dtype)
    sizes = indexed.COUNT, indexed.ROWS, indexed.WIDTH
    kernel = NestKernel(indexed.gather_nest((1, *sizes), f"i{x.itemsize}", np.int64, sizes))
    assert carry_out((kernel, [], [x, numbers, out], [rows, 50, 13]), parts=parts)
    np.testing.assert_array_equal(out, x[numbers])
