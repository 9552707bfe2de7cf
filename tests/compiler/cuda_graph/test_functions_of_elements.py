"""Every elementwise function, in every dtype, has NumPy's bits, or its last digits where it is another library's."""

import functools

import numpy as np
import pytest
from in_one_test import in_one_test
from shim import Memory, compiled, needs_gxx

from minikeras.compiler.executors.cuda_graph.nodes import kernel_of
from minikeras.compiler.ir import Slot
from minikeras.compiler.loop_ir.reductions import copy_body, loop_nest
from minikeras.compiler.loop_ir.strided import spread
from minikeras.compiler.loops import Body, Step
from minikeras.compiler.render import cuda_functions as functions

ml_dtypes = pytest.importorskip("ml_dtypes")

pytestmark = needs_gxx
FLOATS = ["float16", "float32", "float64"]
WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 1e-40, -1e-40, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.0, -1.0, 88.0, 709.0]
ROUNDED = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "power", "hypot", "cbrt"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "arctan2"),
}
"""NumPy's own functions, or another library's, differ in the last digits."""
DIGITS = 8
"""Units of the last digit."""


def loop_kernel(*args):
    return kernel_of(loop_nest(*args))


def of_one_function(name, dtype, result):
    """The body of one function of operands of a dtype."""
    count = getattr(np, name).nin
    return Body((np.dtype(dtype),) * count, (), (), (Step(count, name, tuple(range(count)), np.dtype(result)),), (count,))


def operands(name, dtype):
    """All combinations of special values, and random ones."""
    count, random = getattr(np, name).nin, np.random.default_rng(4)
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            special = np.array(SPECIAL, dtype)
        rest = random.normal(size=(count, 500)).astype(dtype) * 3
    elif dtype == "bool":
        special, rest = np.array([False, True]), random.integers(0, 2, (count, 9)).astype(bool)
    else:
        limits = np.iinfo(dtype)
        special = np.array([limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7, limits.max // 2], dtype)
        if limits.min < 0:
            special = np.append(special, np.array([-1, -2, -7], dtype))
        rest = random.integers(limits.min, limits.max, (count, 500), dtype, endpoint=True)
    grid = [axis.ravel() for axis in np.meshgrid(*[special] * count)]
    return [np.concatenate(both) for both in zip(grid, rest, strict=True)]


def cases():
    """(function, dtype of operands, dtype of the result) that NumPy has and that come from no cast of operands."""
    tables = {"float": functions.FLOATS, "int": functions.INTEGERS, "bool": functions.BOOLS}
    for kind, dtypes in (("float", FLOATS), ("int", WHOLE), ("bool", ["bool"])):
        for name in {**tables[kind], **functions.COMPARISONS}:
            for dtype in dtypes:
                if name == "nextafter" and dtype == "float16":
                    continue  # of the number between
                try:
                    *given, result = getattr(np, name).resolve_dtypes((np.dtype(dtype),) * getattr(np, name).nin + (None,))
                except TypeError:
                    continue
                if all(one == dtype for one in given):
                    yield name, dtype, result.name


@functools.cache
def results():
    """Of all functions, from one source."""
    slots, kernels, memory = {}, [], Memory()
    for number, (name, dtype, result) in enumerate(cases()):
        given = operands(name, dtype)
        inputs = [Slot(10 * number + i, x.shape, x.dtype) for i, x in enumerate(given)]
        for slot, array in zip(inputs, given, strict=True):
            memory.put(slot, array)
        y = slots[name, dtype, result] = Slot(10 * number + 9, given[0].shape, np.dtype(result))
        kernels.append(
            loop_kernel("f", y.shape, of_one_function(name, dtype, result), [spread(x, y.shape) for x in inputs], [y])
        )
    for kernel, function in zip(kernels, compiled(kernels), strict=True):
        memory.run(kernel, function)
    assert memory.is_whole() and len(kernels) > 200
    return {key: memory.array(slot) for key, slot in slots.items()}


@in_one_test(case=[one for one in cases() if one[1] in FLOATS and one[0] in ROUNDED])
def test_a_function_of_a_library_agrees_to_the_last_digits(case):
    name, dtype, result = case
    given = operands(name, dtype)
    with np.errstate(all="ignore"):
        wide = np.float64 if dtype == "float32" else np.float32 if dtype == "float16" else np.longdouble
        expected = getattr(np, name)(*[x.astype(wide) for x in given]).astype(dtype)
    found, limits = results()[name, dtype, result], np.finfo(dtype)
    near_zero = limits.eps if name == "logaddexp" else 2 * float(limits.smallest_subnormal)  # where a + log(...) cancels
    np.testing.assert_allclose(found, expected, rtol=DIGITS * limits.eps, atol=near_zero)


@in_one_test(case=[one for one in cases() if one[1] not in FLOATS or one[0] not in ROUNDED])
def test_a_function_has_the_bits_of_numpy(case):
    name, dtype, result = case
    given = operands(name, dtype)
    found = results()[name, dtype, result]
    if dtype not in FLOATS and name == "power":
        given, found = [x[given[1] >= 0] for x in given], found[given[1] >= 0]
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(*given)
    np.testing.assert_array_equal(found, expected)
    if dtype in FLOATS and expected.dtype.kind == "f" and name not in ("maximum", "minimum", "fmax", "fmin"):
        numbers = ~np.isnan(expected)  # IEEE leaves open which zero is the larger one
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


DTYPES = ["bool", *WHOLE, *FLOATS, "bfloat16"]


@functools.cache
def casts():
    """Of every dtype to every other one, from one source: small whole numbers and halves, which all can hold or cut."""
    kernels, memory, slots = [], Memory(), {}
    for number, (old, new) in enumerate((old, new) for old in DTYPES for new in DTYPES):
        given = values_of(old)
        x, y = Slot(2 * number, given.shape, given.dtype), Slot(2 * number + 1, given.shape, np.dtype(new))
        memory.put(x, given)
        slots[old, new] = y
        kernels.append(loop_kernel("cast", x.shape, copy_body(x.dtype, y.dtype), [spread(x, x.shape)], [y]))
    for kernel, function in zip(kernels, compiled(kernels), strict=True):
        memory.run(kernel, function)
    return {key: memory.array(slot) for key, slot in slots.items()}


def values_of(dtype):
    signed = np.dtype(dtype).kind not in "ub"
    values = [0, 1, 2, 3, 100, 127] + [-1, -2, -100] * signed
    fractions = (
        [0.5, 1.5, 2.75, 1e-8, 70000.0, 3.14159, 1 / 3, 65519.0, 2049.0, 1 + 2.0**-11 + 2.0**-40, -1e300]
        if np.dtype(dtype).kind in "fV"
        else []
    )
    with np.errstate(all="ignore"):
        return np.array(values + fractions, np.float64).astype(dtype)


@in_one_test(old=DTYPES, new=DTYPES)
def test_a_cast_is_that_of_numpy(old, new):
    given = values_of(old)
    with np.errstate(all="ignore"):
        expected = given.astype(new)
    if np.dtype(old).kind in "fV" and np.dtype(new).kind in "iu":
        fits = np.abs(given.astype(np.float64)) <= np.iinfo(new).max
        fits &= (given.astype(np.float64) >= 0) | (np.dtype(new).kind == "i")  # else each processor does what it likes
    else:
        fits = np.ones(given.shape, bool)
    np.testing.assert_array_equal(casts()[old, new][fits].astype(np.float64), expected[fits].astype(np.float64))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_number_of_16_bits_is_read_and_rounded_like_numpy_does(dtype):
    halves = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    singles = np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, np.uint32).view(np.float32)
    memory, kernels = Memory(), []
    for number, (given, new) in enumerate([(halves, "float32"), (singles, dtype)]):
        x, y = Slot(2 * number, given.shape, given.dtype), Slot(2 * number + 1, given.shape, np.dtype(new))
        memory.put(x, given)
        kernels.append((loop_kernel("cast", x.shape, copy_body(x.dtype, y.dtype), [spread(x, x.shape)], [y]), y, given))
    for (kernel, y, given), function in zip(kernels, compiled([one for one, *_ in kernels]), strict=True):
        memory.run(kernel, function)
        with np.errstate(all="ignore"):
            found, expected = memory.array(y).astype(np.float64), given.astype(y.dtype).astype(np.float64)
        np.testing.assert_array_equal(found, expected)
