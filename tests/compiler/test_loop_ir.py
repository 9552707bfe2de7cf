"""Nests give NumPy's numbers: through the interpreter, whichever way it goes, and as kernels, in any number of parts."""

import numpy as np
import pytest
from hypothesis import strategies as st
from interpreter import interpret
from slow import drawn

from minikeras.compiler.executors import llvm
from minikeras.compiler.ir import Slot
from minikeras.compiler.loop_ir.elements import copy_launch
from minikeras.compiler.loop_ir.expression import Array, Axis, register, size, where
from minikeras.compiler.loop_ir.nest import Fold, For, Nest, Store
from minikeras.compiler.loop_ir.operations import launches
from minikeras.compiler.loop_ir.strided import view_of
from minikeras.core import Record
from minikeras.core.registry import operations
from minikeras.nn_ops.convolution import places

RELATIVE = {"float32": 2e-5, "float64": 1e-12}


def record_of(primitive, arrays, params):
    """An instruction, as a recorded run has it, and NumPy's result."""
    expected = np.ascontiguousarray(primitive.kernel(np)(*arrays, **params))
    slots = [Slot(key, array.shape, array.dtype) for key, array in enumerate(arrays)]
    return Record(primitive, slots, params, Slot(len(slots), expected.shape, expected.dtype)), expected


class Run:
    """Carries the nests of an instruction out."""

    def __init__(self, record, arrays):
        self.record, self.arrays = record, dict(enumerate(map(np.ascontiguousarray, arrays)))
        self.launches = launches(record, self.temporary)

    def temporary(self, shape, dtype):
        return Slot(len(self.arrays) + 100, shape, np.dtype(dtype))

    def results(self, carry_out):
        arrays = dict(self.arrays)
        for one in self.launches:
            (y,) = one.results
            result = arrays.setdefault(y.key, np.full(y.shape, 88, y.dtype))
            carry_out(one, [arrays[x.key] for x in one.operands], result)
        return result


def by_interpreter(backwards):
    def carry_out(launch, operands, result):
        for member in range(launch.members):
            stacks = zip(operands, moving(launch), strict=True)
            own = [x.reshape(launch.members, -1)[member] if moves else x for x, moves in stacks]
            interpret(launch.nest, [*own, result.reshape(launch.members, -1)[member]], launch.sizes, backwards)

    return carry_out


def moving(launch):
    return launch.moving if launch.members > 1 else [False] * len(launch.operands)


def by_llvm(parts):
    from minikeras.compiler.executors.llvm import jit
    from minikeras.compiler.executors.llvm.calls import KernelCall
    from minikeras.compiler.executors.llvm.runner import Job

    def carry_out(launch, operands, result):
        call = KernelCall(launch, launch.operands, None)
        arrays = dict(zip([x.key for x in (*launch.operands, *launch.results)], [*operands, result], strict=True))
        addresses = np.array([array.ctypes.data for array in arrays.values()], np.int64)
        given = call.places(lambda slot: list(arrays).index(slot.key))
        assert Job([(jit.addresses([call.function])[0], given, parts)], addresses)()

    return carry_out


def assert_nests_give_numpys_numbers(primitive, arrays, params, exact=False):
    record, expected = record_of(primitive, arrays, params)
    run = Run(record, arrays)
    ways = [by_interpreter(False), by_interpreter(True)] + [by_llvm(parts) for parts in (1, 3) if llvm.installed()]
    for way in ways:
        found = run.results(way)
        if exact:
            np.testing.assert_array_equal(found, expected)
        else:
            scale = np.abs(expected).max(initial=1e-30)
            np.testing.assert_allclose(found, expected, rtol=0, atol=RELATIVE[expected.dtype.name] * scale)


# Windows ---------------------------------------------------------------------------------------------------------------------


@st.composite
def geometries(draw, most_rank=3):
    """Sizes, window, and the parameters of windows that fit at least once."""
    rank = draw(st.integers(1, most_rank))
    window = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    dilation = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    strides = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    padding = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(rank))
    reach = [(width - 1) * spread + 1 for width, spread in zip(window, dilation, strict=True)]
    sizes = tuple(max(1, one - sum(pair)) + draw(st.integers(0, 5)) for one, pair in zip(reach, padding, strict=True))
    return sizes, window, {"strides": strides, "padding": padding, "dilation": dilation}


def numbers(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def places_of(x, window, params):
    return places(x.shape[-len(window) - 1 : -1], window, params["strides"], params["padding"], params["dilation"])


@drawn(
    4, 25, geometries(), st.sampled_from(["float32", "float64"]), st.integers(1, 3), st.sampled_from([1, 2]), st.integers(1, 9),
    st.integers(1, 4), st.sampled_from([(), (2,)]), st.booleans(),
)  # fmt: skip
def test_convolutions(geometry, dtype, batch, groups, channels, outputs, lead, shared):
    sizes, window, params = geometry
    channels = channels + 1 if groups == 2 else channels
    params = params | {"groups": groups}
    x = numbers((*lead, batch, *sizes, groups * channels), dtype)
    kernel = numbers((*(() if shared else lead), *window, channels, groups * outputs), dtype, 1)
    assert_nests_give_numpys_numbers(operations.convolve, [x, kernel], params)
    g = numbers((*lead, batch, *places_of(x, window, params), groups * outputs), dtype, 2)
    assert_nests_give_numpys_numbers(operations.spread_windows, [g, kernel], params | {"sizes": sizes})
    assert_nests_give_numpys_numbers(operations.correlate_windows, [x, g], params | {"window": window})


@drawn(3, 15, geometries(2), st.sampled_from(["float32", "float64"]), st.integers(1, 3), st.integers(2, 20), st.integers(1, 2))
def test_convolutions_of_each_channel(geometry, dtype, batch, channels, times):
    sizes, window, params = geometry
    params = params | {"groups": channels}
    x, kernel = numbers((batch, *sizes, channels), dtype), numbers((*window, 1, channels * times), dtype, 1)
    assert_nests_give_numpys_numbers(operations.convolve, [x, kernel], params)
    g = numbers((batch, *places_of(x, window, params), channels * times), dtype, 2)
    assert_nests_give_numpys_numbers(operations.spread_windows, [g, kernel], params | {"sizes": sizes})
    assert_nests_give_numpys_numbers(operations.correlate_windows, [x, g], params | {"window": window})


@pytest.mark.parametrize("sizes", [(40, 700), (3, 5, 90), (2000,)])
def test_convolutions_of_long_lines_and_of_many_tiles(sizes):
    rank = len(sizes)
    params = {"strides": (1,) * rank, "padding": ((1, 1),) * rank, "dilation": (1,) * rank, "groups": 1}
    x, kernel = numbers((2, *sizes, 9), "float32"), numbers(((3,) * rank) + (9, 11), "float32", 1)
    g = numbers((2, *sizes, 11), "float32", 2)
    for primitive, arrays, more in [
        (operations.convolve, [x, kernel], {}),
        (operations.spread_windows, [g, kernel], {"sizes": sizes}),
        (operations.correlate_windows, [x, g], {"window": (3,) * rank}),
    ]:
        record, expected = record_of(primitive, arrays, params | more)
        found = Run(record, arrays).results(by_llvm(2))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@drawn(2, 25, geometries(), st.sampled_from(["float32", "float64"]), st.integers(1, 3), st.sampled_from([1, 3, 8, 20]))
def test_pools(geometry, dtype, batch, channels):
    sizes, window, params = geometry
    params = params | {"window": window}
    x = numbers((batch, *sizes, channels), dtype).round(0)  # with equal elements
    x[0, ..., 0] = np.nan
    assert_nests_give_numpys_numbers(operations.max_pool, [x], params, exact=True)
    assert_nests_give_numpys_numbers(operations.first_largest_in_window, [x], params, exact=True)
    chosen = operations.first_largest_in_window.kernel(np)(x, **params)
    assert_nests_give_numpys_numbers(operations.pick_from_window, [np.nan_to_num(x), chosen], params, exact=True)
    g = numbers(chosen.shape, dtype, 1)
    assert_nests_give_numpys_numbers(operations.put_into_window, [g, chosen], params | {"sizes": sizes})
    assert_nests_give_numpys_numbers(operations.window_sum, [np.nan_to_num(x)], params)
    assert_nests_give_numpys_numbers(operations.window_spread, [g], params | {"sizes": sizes})


@pytest.mark.parametrize(
    ("terms", "result"),
    [
        (("abcd", "aecd"), "acbe"),
        (("acbe", "aecd"), "abcd"),
        (("abcd", "acbe"), "aecd"),
        (("acbe", "abcd"), "aecd"),
        (("abc", "acd"), "abd"),
        (("abc", "adc"), "abd"),
        (("abc", "acd"), "adb"),
        (("ab", "ab"), "a"),
        (("abc", "ab"), "ac"),
        (("bacd", "adce"), "abe"),
    ],
)
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5, 6), (1, 1, 1, 1, 1), (3, 1, 2, 1, 4)])
def test_contractions(terms, result, sizes):
    length = dict(zip("abcde", sizes, strict=True))
    arrays = [numbers([length[one] for one in term], "float64", len(term)) for term in terms]
    record, _ = record_of(operations.einsum, arrays, {"terms": terms, "result": result})
    if terms == ("bacd", "adce"):
        assert launches(record, None) is None  # the axes of the sum have another order in each array
    else:
        assert_nests_give_numpys_numbers(operations.einsum, arrays, {"terms": terms, "result": result})


@pytest.mark.parametrize(("first", "second"), [((2,), (2,)), ((3, 2), (3, 2)), ((1,), (1,)), ((1,), (3,))])
def test_contractions_of_stacks(first, second):
    """Leading axes without letters are those of members of an ensemble."""
    arrays = [numbers((*first, 4, 5, 2), "float64", 1), numbers((*second, 4, 3, 2), "float64", 2)]
    params = {"terms": ("abc", "adc"), "result": "abd"}
    record, _ = record_of(operations.einsum, arrays, params)
    if first != second:
        assert launches(record, None) is None  # one array is repeated
    else:
        assert_nests_give_numpys_numbers(operations.einsum, arrays, params)


@drawn(
    5, 20, st.lists(st.integers(1, 4), max_size=2), st.integers(1, 9), st.sampled_from([(), (1,), (5,), (70,), (3, 50)]),
    st.lists(st.integers(1, 7), min_size=1, max_size=2), st.sampled_from(["float32", "float64"]),
    st.sampled_from(["int32", "int64"]),
)  # fmt: skip
def test_rows(outer, size, inner, counts, dtype, indices):
    x, axis = numbers((*outer, size, *inner), dtype), -1 - len(inner)
    at = np.random.default_rng(1).integers(-size, size, counts).astype(indices)
    assert_nests_give_numpys_numbers(operations.gather_rows, [x, at], {"axis": axis}, exact=True)
    assert_nests_give_numpys_numbers(operations.look_up, [x, at], {"axis": axis}, exact=True)
    g = numbers((*outer, *counts, *inner), dtype, 2)
    assert_nests_give_numpys_numbers(operations.add_rows, [g, at % size], {"axis": axis, "size": size})


@pytest.mark.parametrize("bad", [3, -4, 1 << 40])
def test_a_number_that_is_no_row_counts_as_0(bad):
    """Checks have refused it by then, and nothing is read or written beyond the array."""
    at, x = np.array([1, bad]), numbers((3, 4), "float32")
    for primitive, params in ((operations.gather_rows, {"axis": -2}), (operations.add_rows, {"axis": -2, "size": 3})):
        given, valid = x[: 3 if primitive is operations.gather_rows else 2], np.array([1, 0])
        record, _ = record_of(primitive, [given, valid], params)
        for carry_out in [by_interpreter(False), *([by_llvm(1)] if llvm.installed() else [])]:
            found, expected = [Run(record, [given, one]).results(carry_out) for one in (at, valid)]
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "key", [(slice(1, 4),), (..., slice(None, None, -2), slice(4, 0, -1)), (..., 1, None, slice(1, 3)), (3, 2)]
)
def test_an_array_becomes_a_part_of_another_one(key):
    whole = numbers((6, 5, 4), "float32")
    assert_nests_give_numpys_numbers(operations.put_slice, [whole[key]], {"key": key, "shape": whole.shape}, exact=True)
    for paddings, value in ((((1, 2), (0, 1)), 0), (((0, 2), (0, 0), (0, 0)), 2.5), (((0, 0), (3, 0), (0, 0)), -1.0)):
        assert_nests_give_numpys_numbers(operations.pad, [whole], {"paddings": paddings, "value": value}, exact=True)


# The language ----------------------------------------------------------------------------------------------------------------


def test_a_nest_can_be_read():
    rows, columns = size("rows"), size("columns")
    x, y, i, j = Array("x", "float32"), Array("y", "float32"), Axis(rows), Axis(columns, "reduced")
    r = register("float32")
    body = [Fold(r, "set", 0.0), For(j, [Fold(r, "add", x[i * columns + j])]), Store(y, i, where(r < 0.0, 0.0, r))]
    nest = Nest("positive_sums", [x, y], [rows, columns], For(i, body))
    assert (
        str(nest)
        == """positive_sums(x: float32, y: float32; rows; columns)
  for i0 in parallel(rows):
    r1 = 0.0
    for i2 in reduced(columns):
      r1 = add(r1, x[((i0 * columns) + i2)])
    y[i0] = where((r1 < 0.0), 0.0, r1)"""
    )
    given, result = numbers((4, 5), "float32"), np.empty(4, np.float32)
    interpret(nest, [given, result], [4, 5])
    np.testing.assert_allclose(result, np.maximum(given.sum(1), 0), rtol=1e-6)


def test_the_interpreter_refuses_what_lies_outside_an_array():
    x, y, i, arrays = Array("x", "float32"), Array("y", "float32"), Axis(5), [np.zeros(5, "float32"), np.zeros(5, "float32")]
    for index, source in ((i, i + 1), (i + 1, i)):
        with pytest.raises(IndexError, match="which has 5 elements"):
            interpret(Nest("beyond", [x, y], [], For(i, [Store(y, index, x[source])])), arrays, [])


def test_expressions_of_several_dtypes_are_refused():
    with pytest.raises(TypeError, match="convert them to one dtype"):
        Array("x", "float32")[0] + Array("y", "float64")[0]


# Copies ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_arrays_are_joined(dtype, axis):
    shapes = [[2, 3, 5], [2, 3, 5], [2, 3, 5]]
    for number, shape in enumerate(shapes):
        shape[axis] += 2 * number
    arrays = [numbers(shape, "float32", seed).astype(dtype) for seed, shape in enumerate(shapes)]
    assert_nests_give_numpys_numbers(operations.concat, arrays, {"axis": axis}, exact=True)
    pair = [arrays[0], np.flip(arrays[0], 1).copy()]
    assert_nests_give_numpys_numbers(operations.stack_along, pair, {"axis": axis}, exact=True)


@pytest.mark.parametrize("key", [np.s_[:, 1:, ::2], np.s_[::-1, :, 1], np.s_[1], np.s_[..., 3:0:-1], np.s_[:, :2]])
@pytest.mark.parametrize("perm", [(-1, -2, -3), (-3, -1, -2), (-2, -3, -1), (-3, -2, -1)])
def test_what_lies_with_gaps_is_copied(key, perm):
    x = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    for primitive, params in (
        (operations.strided_slice, {"key": key, "shape": x.shape}),
        (operations.transpose, {"perm": perm}),
    ):
        given, expected = primitive.kernel(np)(x, **params), np.ascontiguousarray(primitive.kernel(np)(x, **params))
        record, _ = record_of(primitive, [x], params)
        access = view_of(record)
        assert access.strides == tuple([stride // 4 for stride in given.strides])
        launch = copy_launch(access, Slot(7, expected.shape, expected.dtype))
        for carry_out in [by_interpreter(False), by_interpreter(True)] + [
            by_llvm(parts) for parts in (1, 3) if llvm.installed()
        ]:
            result = np.full(expected.shape, 88, np.float32)
            carry_out(launch, [x], result)
            np.testing.assert_array_equal(result, expected)


# Draws, and single elements of rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["uint32", "uint64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "start"), [((3,), 0), ((40, 61), 0), ((5, 7), 11), ((1030,), 1021)])
def test_draws_have_the_bits_of_numpy(key, dtype, shape, start):
    keys = np.array([2**31 + 5, 2**32 - 3], key)
    params = {"shape": shape, "dtype": np.dtype(dtype), "xp": np, "start": start}
    assert_nests_give_numpys_numbers(operations.random_uniform, [keys], params, exact=True)
    assert_nests_give_numpys_numbers(operations.dropout_mask, [keys], params | {"rate": 0.3}, exact=True)
    assert_nests_give_numpys_numbers(operations.next_key, [keys], {}, exact=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_the_largest_of_a_row_is_the_first(dtype):
    x = np.random.default_rng(0).integers(0, 5, (6, 9)).astype(dtype)
    assert_nests_give_numpys_numbers(operations.argmax, [x], {"axis": -1, "dtype": np.dtype(np.int64)}, exact=True)
