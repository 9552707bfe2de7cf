"""Kernels of single instructions: sizes around a warp and a block, sums that are cut in two, axes, dtypes, bad indices."""

import functools
import itertools

import numpy as np
import pytest
import recorded
from shim import Memory, compiled, needs_gxx
from slow import mostly_slow

from minikeras.compiler.executors.cuda_graph.nodes import Emitter
from minikeras.compiler.ir import Program, Slot, outputs_of
from minikeras.compiler.loops import loop, traced
from minikeras.compiler.render.cuda import LONG, THREADS
from minikeras.core import Record
from minikeras.core.registry import operations as o
from minikeras.keras.optimizers.adam import adam_step

pytestmark = needs_gxx
SIZES = [1, 31, 33, THREADS - 1, THREADS + 1, 1023]


def normal(*shape, dtype="float32", seed=0):
    return np.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


def integers(high, *shape, low=0, dtype="int64"):
    return np.random.default_rng(1).integers(low, high, shape, dtype)


def special(x):
    """With NaN and infinities in the first rows."""
    x = np.array(x)
    x.reshape(-1)[:: max(1, x.size // 3)][:3] = [np.nan, np.inf, -np.inf][: x.size]
    return x


SHAPES = [*((n,) for n in SIZES), (1, 31), (33, 1), (33, 65), (7, 257), (257, 7), (3, 1, 5, 2), (0,), (0, 3), (3, 0)]
LARGE = [(LONG + 1,), (3, LONG + 5), (LONG + 3, 3), (2, LONG, 3), (5 * LONG + 77,)]


def axes_of(shape):
    """All choices of axes that differ in kind."""
    rank = len(shape)
    return sorted({axes for n in (1, 2, rank) for axes in itertools.combinations(range(-rank, 0), n)})


def over_all_axes(*names):
    for name, shape in itertools.product(names, SHAPES):
        for axes in axes_of(shape):
            keepdims = len(axes) % 2 == 0
            yield getattr(o, f"reduce_{name}"), [normal(*shape)], {"axes": axes, "keepdims": keepdims}


def more_reductions():
    yield from over_all_axes("min", "prod", "mean", "euclidean_norm")


def reductions():
    yield from over_all_axes("sum", "max", "logsumexp")
    for name, shape in itertools.product(["sum", "mean", "max", "euclidean_norm"], LARGE):
        for axes in axes_of(shape):
            yield getattr(o, f"reduce_{name}"), [normal(*shape)], {"axes": axes, "keepdims": False}
    for dtype, name in itertools.product(
        ["float64", "float16", "int8", "int32", "uint8", "int64"], ["sum", "mean", "max", "prod"]
    ):
        x = (normal(9, 40) * 3).astype(dtype) if dtype != "uint8" else integers(200, 9, 40, dtype="uint8")
        yield getattr(o, f"reduce_{name}"), [x], {"axes": (-1,), "keepdims": False}
    for name, axis in itertools.product(["argmax", "argmin"], [-1, -2]):
        tied = integers(4, 33, 40).astype("float32")
        for x in (tied, special(tied), tied.astype("int32"), tied.astype("float16")):
            yield getattr(o, name), [x], {"axis": axis, "dtype": "int64"}
    for name in ("any", "all"):
        for x in (integers(2, 5, 300).astype(bool), np.zeros((3, 40), bool), np.ones((3, 40), bool), normal(2, 5)):
            yield getattr(o, f"reduce_{name}"), [x], {"axes": (-1,), "keepdims": True}
    for name in ("max", "min", "sum", "logsumexp"):
        yield getattr(o, f"reduce_{name}"), [special(normal(6, 3))], {"axes": (-1,), "keepdims": False}
    infinite = np.array([[-np.inf, -np.inf], [np.inf, 1], [-1e30, -1e30], [1000, 1001]], "float32")
    yield o.reduce_logsumexp, [infinite], {"axes": (-1,), "keepdims": False}


def rows():
    for shape, axis in [
        ((33, 65), -1),
        ((33, 65), -2),
        ((4, 300), -1),
        ((2, 3, 5), -2),
        ((7, 1), -1),
        ((1, 1000), -1),
        ((5, 9), -1),
    ]:
        for x in (normal(*shape), special(normal(*shape)), normal(*shape, dtype="float64"), normal(*shape, dtype="float16")):
            yield o.softmax, [x * 5], {"axis": axis}
            yield o.log_softmax, [x * 5], {"axis": axis}
    for count, classes in [(1, 3), (33, 10), (9, 300)]:
        logits, labels = normal(count, classes) * 4, integers(classes, count)
        one_hot = np.eye(classes, dtype="float32")[labels]
        yield o.softmax_cross_entropy, [one_hot, logits], {}
        yield o.softmax_cross_entropy, [one_hot.astype("float16"), logits.astype("float16")], {}
        for kind in ("int32", "int64", "uint8") if classes < 256 else ("int64",):
            yield o.sparse_softmax_cross_entropy, [labels.astype(kind), logits], {}
            yield o.sparse_softmax_cross_entropy_grad, [labels.astype(kind), logits], {}
    yield o.sparse_softmax_cross_entropy, [integers(5, 2, 3), normal(2, 3, 5)], {}
    yield o.sparse_softmax_cross_entropy_grad, [integers(5, 3), normal(2, 3, 5)], {}
    for kind, dtype in itertools.product(("int8", "int32", "uint8", "float32"), ("float16", "float32", "int32", "bool")):
        options = {"on": True, "off": False} if dtype == "bool" else {"on": 2.5, "off": -1}
        yield o.one_hot, [integers(300, 33, low=-1).astype(kind)], {"depth": 300, "dtype": dtype, **options}


def moves():
    x = normal(3, 4, 5)
    for perm in itertools.permutations((-3, -2, -1)):
        yield o.transpose, [x], {"perm": perm}
    yield o.transpose, [normal(2, 33, 31)], {"perm": (-1, -2)}
    yield o.reshape, [x], {"shape": (6, 10), "rank": 3}
    yield o.broadcast_to, [normal(4, 1)], {"shape": (2, 4, 7), "rank": 2}
    yield o.broadcast_to, [np.float32(3)], {"shape": (33,), "rank": 0}
    for key in [(Ellipsis, 1), (slice(None, None, -2), slice(1, 3)), (None, 2, Ellipsis, slice(4, 0, -3)), (slice(2, 2),)]:
        sliced = x[key]
        yield o.strided_slice, [x], {"key": key, "shape": x.shape}
        yield o.put_slice, [np.ascontiguousarray(sliced)], {"key": key, "shape": x.shape}
    for axis in (-1, -2, -3):
        shape = list(x.shape)
        shape[axis] = 33
        yield o.concat, [x, normal(*shape, seed=2), x], {"axis": axis}
        yield o.stack_along, [x, x + 1, x + 2], {"axis": axis}
        yield o.cumsum, [x], {"axis": axis, "exclusive": axis == -1, "reverse": axis == -2}
        yield o.cumprod, [x], {"axis": axis, "exclusive": axis == -2, "reverse": axis == -1}
        yield o.running_logsumexp, [x], {"axis": axis}
        for descending in (False, True):
            tied = special(integers(4, 3, 4, 5).astype("float32"))
            yield o.argsort, [tied], {"axis": axis, "descending": descending}
            yield o.sort, [tied], {"axis": axis, "descending": descending}
    yield o.pad, [x], {"paddings": ((1, 0), (0, 2), (3, 1)), "value": -1.5}
    yield o.pad, [x], {"paddings": ((2, 2),), "value": float("-inf")}
    yield o.tile, [x], {"multiples": (2, 1, 3)}
    yield o.roll, [x], {"shift": (2, -7), "axis": (-1, -3)}
    for lower, offset in itertools.product((True, False), (-1, 0, 2)):
        yield o.triangle, [x], {"lower": lower, "offset": offset}
    yield o.identity_like, [x], {"n": 5, "trailing": 2}
    for side in ("left", "right"):
        table = np.sort(integers(9, 4, 40).astype("float32"))
        yield o.searchsorted, [table, integers(11, 4, 6, low=-1).astype("float32")], {"side": side}


def gathers():
    x, ids = normal(40, 3, 5), integers(40, 4, 9, low=-40)
    yield o.gather_rows, [x, ids], {"axis": -3}
    yield o.gather_rows, [x, integers(3, 7)], {"axis": -2}
    yield o.look_up, [integers(255, 40, 784, dtype="uint8"), ids.astype("int32")], {"axis": -2}
    yield o.take_along, [x, integers(40, 2, 3, 5)], {"axis": -3}
    yield o.take_along, [x, integers(5, 40, 3, 9)], {"axis": -1}
    yield o.add_along, [normal(2, 3, 5), integers(7, 2, 3, 5)], {"axis": -3, "size": 7}
    for count, size, width in [(1, 1, 1), (33, 7, 5), (9, 20, 2), (600, 3, 300), (300, 40, 2)]:
        given = normal(count, width), integers(size, count, low=-size)
        yield o.add_rows, given, {"axis": -2, "size": size}
        for name in ("segment_max", "segment_min", "segment_prod"):
            yield getattr(o, name), given, {"axis": -2, "size": size}
    yield o.add_rows, [normal(2, 3, 5, 4), integers(6, 3, 5)], {"axis": -2, "size": 6}
    yield o.add_rows, [normal(90, 2, dtype="float16"), integers(3, 90)], {"axis": -2, "size": 3}
    yield o.segment_max, [integers(50, 9, 2, low=-50), integers(4, 9)], {"axis": -2, "size": 5}
    pairs = np.stack([integers(4, 33), integers(3, 33)], -1)
    yield o.gather_nd, [normal(4, 3, 5), pairs], {}
    yield o.scatter_nd, [normal(33, 5), pairs], {"shape": (4, 3, 5)}
    yield o.overwrite_nd, [normal(4, 3, 5), pairs, normal(33, 5, seed=1)], {}


def products():
    for a, b in [
        ((1, 1), (1, 1)),
        ((33, 31), (31, 65)),
        ((2, 5, 7), (7, 3)),
        ((2, 1, 5, 7), (3, 7, 4)),
        ((3, 9000), (9000, 2)),
    ]:
        yield o.matrix_product, [normal(*a), normal(*b, seed=1)], {}
    yield o.matrix_product, [normal(9, 40, dtype="float16"), normal(40, 5, dtype="float16")], {}
    yield o.einsum, [normal(3, 4, 5), normal(4, 5, 6)], {"terms": ("abc", "bcd"), "result": "da"}
    yield o.einsum, [normal(3, 4, 4)], {"terms": ("ii",), "result": "i"}
    yield o.einsum, [normal(2, 3), normal(3), normal(2)], {"terms": ("ab", "b", "a"), "result": ""}
    yield o.power, [np.abs(normal(33)), normal(33, seed=1)], {}


def loops():
    rng = np.random.default_rng(8)
    body = traced(lambda a, b, c, rate: ((a * rate + b) / (c * c + 1), a > b), [np.dtype("f4")] * 3 + [float])
    for shape in SHAPES:
        broadcast = [shape, shape[-1:], tuple(1 if axis else n for axis, n in enumerate(shape)) or (1,)]
        arrays = [np.asarray(rng.normal(size=one), "float32") for one in broadcast]
        yield loop, [*arrays, 0.1], {"body": body}
    for shapes in ([(3, 1, 5), (4, 1), ()], [(), (), ()], [(2, 1, 3, 1), (1, 5, 1, 7), (1,)]):
        yield loop, [*[np.asarray(rng.normal(size=one), "float32") for one in shapes], 2.0], {"body": body}
    adam = traced(functools.partial(adam_step, beta_2=0.999, epsilon=1e-7), [np.dtype("f4")] * 4 + [float] * 2)
    for size in SIZES:
        g, w, m = (rng.normal(size=size).astype("float32") for _ in range(3))
        yield loop, [g, w, m, m * m, 0.01, 0.9], {"body": adam}


def draws():
    keys = [np.array([2**32 - 1, 7], np.uint32), np.array([2**40 + 3, 2**63 + 5], np.uint64)]
    yield o.next_key, [np.array([5, 2**32 - 1], np.uint32)], {}
    yield o.next_key, [np.stack([keys[1]] * 17)], {}
    for shape, dtype in [*(((size,), "float32") for size in SIZES), ((3, 11), "float64"), ((33,), "float16"), ((), "float32")]:
        options, kind = {"shape": shape, "xp": np}, np.dtype(dtype)
        for key in keys:
            yield o.dropout_mask, [key], options | {"dtype": kind, "rate": 0.3}
            yield o.random_uniform, [key], options | {"dtype": kind}
            yield o.random_normal, [key], options | {"dtype": kind}
            yield o.times_dropout_mask, [normal(*shape, dtype=dtype), key], {"shape": shape, "rate": 0.3}
            yield o.times_gaussian, [normal(*shape, dtype=dtype), key], {"shape": shape, "stddev": 0.5}
    for shape in [(5, 1, 7), (1, 6, 1), (1, 1, 1), (5, 6, 7)]:
        yield o.times_dropout_mask, [normal(5, 6, 7), keys[0]], {"shape": shape, "rate": 0.6}


TABLES = {
    "draws": draws,
    "loops": loops,
    "reductions": reductions,
    "more reductions": more_reductions,
    "moves": moves,
    "gathers": gathers,
    "products": products,
}


def instruction(primitive, arrays, params):
    """A record over new slots, its values, and NumPy's results."""
    inputs = [
        Slot(key, None if isinstance(x, float) else np.shape(x), float if isinstance(x, float) else x.dtype)
        for key, x in enumerate(arrays)
    ]
    with np.errstate(all="ignore"):
        results = primitive.kernel(np)(*arrays, **params)
    several = type(results) is tuple
    expected = [np.asarray(y) for y in (results if several else (results,))]
    slots = [Slot(100 + key, y.shape, y.dtype) for key, y in enumerate(expected)]
    return Record(primitive, inputs, params, tuple(slots) if several else slots[0]), arrays, expected


@pytest.mark.parametrize("every", mostly_slow([1, 7], 7))
@pytest.mark.parametrize("table", TABLES)
def test_kernels_of_a_table_give_the_numbers_of_numpy(table, every):
    cases = [instruction(*row) for row in itertools.islice(TABLES[table](), 0, None, every)]
    written = [Emitter(itertools.count(1000)).kernels(record) for record, *_ in cases]
    assert all(kernels is not None for kernels in written), "a row has no kernel"
    functions = iter(compiled([kernel for kernels in written for kernel in kernels]))
    for (record, arrays, expected), kernels in zip(cases, written, strict=True):
        memory = Memory()
        for slot, array in zip(record.inputs, arrays, strict=True):
            memory.put(slot, array)
        for kernel in kernels:
            memory.run(kernel, next(functions))
        assert memory.is_whole(), str(record)
        for slot, y in zip(outputs_of(record), expected, strict=True):
            if y.size:
                assert_close(memory.array(slot), y, arrays, str(record))


def test_instructions_over_rows_become_loops_and_sums():
    cases = [instruction(*row) for row in rows()]
    programs = [recorded.in_groups(Program(one.inputs, [one], [one.outputs], None)) for one, *_ in cases]
    written = [[kernel for one in program.records for kernel in emitted(one)] for program in programs]
    functions = iter(compiled([kernel for kernels in written for kernel in kernels]))
    for (record, arrays, (expected,)), program, kernels in zip(cases, programs, written, strict=True):
        memory = Memory()
        for slot, array in (*zip(record.inputs, arrays, strict=True), *constants(program)):
            memory.put(slot, array)
        for kernel in kernels:
            memory.run(kernel, next(functions))
        assert memory.is_whole(), str(record)
        assert_close(memory.array(program.results[0]), expected, arrays, str(record))


def emitted(record):
    return Emitter(itertools.count(1000)).kernels(record)


def constants(program):
    return [(slot, slot.array) for slot in program.slots() if slot.array is not None]


def assert_close(found, expected, arrays, told):
    assert found.dtype == expected.dtype and found.shape == expected.shape, told
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, told)
        return
    given = np.concatenate([np.ravel(x).astype(np.float64) for x in (*arrays, expected)])
    scale = np.abs(given[np.isfinite(given)]).max(initial=0)
    eps = float(np.finfo(expected.dtype).eps)
    many = np.sqrt(max(np.size(x) for x in arrays))
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=40 * eps, atol=eps * scale * (4 + many), err_msg=told)


def test_an_index_outside_counts_as_0_and_nothing_is_read_from_there():
    x = normal(4, 4)
    for primitive, operands, given, counts_as, params in [
        (o.gather_rows, lambda indices: [x, indices], [0, 4], [0, 0], {"axis": -2}),
        (o.add_rows, lambda indices: [x[:2], indices], [1, 9], [1, 0], {"axis": -2, "size": 4}),
    ]:
        record, _, (expected,) = instruction(primitive, operands(np.array(counts_as)), params)
        memory = Memory()
        for slot, array in zip(record.inputs, operands(np.array(given)), strict=True):
            memory.put(slot, array)
        kernels = Emitter(itertools.count(1000)).kernels(record)
        for kernel, function in zip(kernels, compiled(kernels), strict=True):
            memory.run(kernel, function)
        assert memory.is_whole()
        np.testing.assert_allclose(memory.array(record.outputs), expected, rtol=1e-6)


def test_a_result_may_lie_where_an_operand_of_its_size_lies():
    x, b, y = Slot(0, (33, 5), np.dtype("f4")), Slot(1, (5,), np.dtype("f4")), Slot(2, (33, 5), np.dtype("f4"))
    (kernel,) = Emitter(itertools.count(9)).kernels(Record(o.add, [x, b], {}, y))
    assert kernel.inputs == (x, b) and kernel.may_alias == ((0,),)


def test_long_sums_are_cut_into_pieces_that_fill_the_device():
    x, y = Slot(0, (1 << 20,), np.dtype("f4")), Slot(1, (), np.dtype("f4"))
    first, last = Emitter(itertools.count(9)).kernels(Record(o.reduce_sum, [x], {"axes": (-1,), "keepdims": False}, y))
    assert first.blocks > 200 and last.blocks == 1 and last.outputs == (y,)
