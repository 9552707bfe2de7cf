"""What operations, layers, losses and optimizers record runs as kernels, here on the CPU, with the numbers that NumPy has."""

import functools
import itertools

import numpy as np
import pytest
import recorded
from recorded import Case
from shim import Memory, compiled, needs_gxx

from minikeras.compiler.ir import Slot, outputs_of, slots_of
from minikeras.compiler.loop_ir.expression import DTYPES
from minikeras.compiler.loop_ir.groups import group
from minikeras.compiler.loops import elementwise_body
from minikeras.core.precision import is_short

ROUNDING = 16
"""Relative to the largest number that an instruction meets, in units of its dtype's precision: sums in another order, and
functions of another library. What is not summed and no such function has the same bits."""

MISSING = {
    "linear algebra": {
        *("triangular_solve", "solve", "svd", "lu", "singular_values", "qr", "inverse", "cholesky", "eigh", "eig"),
        *("square_root", "determinant", "cofactors", "slogdet", "rfft", "irfft", "fft", "ifft"),
    },
    "products of matrices, which are a library's": {"affine"},
    "rows of softmax, its losses and one-hot, in whose place a program has their operations: the cases in groups": {
        *(
            "one_hot",
            "softmax",
            "log_softmax",
            "softmax_cross_entropy",
            "sparse_softmax_cross_entropy",
            "sparse_softmax_cross_entropy_grad",
            "take_at",
            "add_at",
        ),
    },
    "convolutions of stacks, with leading axes": {"convolve", "spread_windows", "correlate_windows"},
    "integers whose divisor must be looked at": {"floor_divide", "floor_modulus"},
    "draws by rejection, on the host": {"random_gamma", "random_beta", "random_poisson", "random_binomial"},
    "loops, which Python carries out, and pieces for them": {"scan", "split_along"},
    "what a GPU sorts as a whole": {"largest_places"},
    "functions that C does not have": {"zeta", "digamma", "imag", "HistogramFixedWidth", "Bitcast", "AdjustContrastv2"},
    "what the program does with its state": {
        "read_variable",
        "step_numbers",
        "graph_step_numbers",
        "read_flat",
        "draw_key",
        "next_key",
    },
}
"""Instructions without a kernel, by the reason; others need one unless they are of complex numbers."""

SUMS = ("reduce", "softmax", "einsum", "matrix_product", "convolve", "windows", "add_", "scatter", "running", "power")
DRAWS = ("random_normal", "times_gaussian")
FUNCTIONS = ("exp", "log", "sin", "cos", "tan", "power", "arc", "cbrt", "hypot")


def few(cases, every):
    """A part of the cases."""
    return list(itertools.islice(cases, 0, None, every))


GROUPS = {
    "some operations": lambda: few(recorded.of_operations(every=4), 5),
    "some layers": lambda: few(recorded.of_layers(every=4), 5),
    "some losses": lambda: few(recorded.of_losses(every=2), 3),
    "some optimizers": lambda: list(recorded.of_optimizers(every=7)),
    "optimizers": lambda: list(recorded.of_optimizers()),
    "operations": lambda: list(recorded.of_operations()),
    "layers": lambda: list(recorded.of_layers()),
    "layers in float64": lambda: list(recorded.of_layers("float64")),
    "layers in float16": lambda: list(recorded.of_layers("mixed_float16")),
    "layers in bfloat16": lambda: list(recorded.of_layers("mixed_bfloat16", recorded.in_groups)),
    "losses": lambda: list(recorded.of_losses()),
    "operations in groups": lambda: list(recorded.of_operations(recorded.in_groups)),
    "layers in groups": lambda: list(recorded.of_layers(passes=recorded.in_groups)),
    "losses in groups": lambda: list(recorded.of_losses(recorded.in_groups)),
}
LEAST = {
    "some operations": 120,
    "some layers": 50,
    "some losses": 60,
    "some optimizers": 30,
    "optimizers": 250,
    "losses": 300,
    "losses in groups": 120,
    "layers in groups": 600,
}
"""How many instructions at least are compared: a test that finds none proves nothing."""
QUICK = ("some operations", "some layers", "some losses", "some optimizers")


@functools.cache
def cases(group: str) -> list[Case]:
    return GROUPS[group]()


def groups():
    return [group if group in QUICK else pytest.param(group, marks=pytest.mark.slow) for group in GROUPS]


@needs_gxx
@pytest.mark.parametrize("group", groups())
def test_kernels_give_the_numbers_of_numpy(group):
    found = [case for case in cases(group) if case.kernels is not None]
    functions = iter(compiled([kernel for case in found for kernel in case.kernels]))
    compared = 0
    for case in found:
        memory = Memory()
        for x, array in zip(case.record.inputs, case.given, strict=True):
            if isinstance(x, Slot):
                memory.put(x, array)
        for kernel in case.kernels:
            memory.run(kernel, next(functions))
        assert memory.is_whole(), f"{case.name}: {case.record}"
        for slot, expected in zip(outputs_of(case.record), case.expected, strict=True):
            layout = case.record.params.get("layout")  # between the arrays of a flat one nothing is written
            parts = layout.slices if layout is not None and expected.shape == (layout.size,) else [...]
            for part in parts if expected.size else ():
                assert_close(memory.array(slot)[part], expected[part], case)
                compared += 1
    assert compared >= LEAST.get(group, 800)


def assert_close(result, expected, case):
    """The same bits, unless sums are taken in another order or functions are those of another library."""
    told = f"{case.name}: {case.record}"
    assert result.dtype == expected.dtype and result.shape == expected.shape, told
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(result, expected, told)
        return
    precision = 2.0**-7 if expected.dtype.name == "bfloat16" else np.finfo(expected.dtype).eps
    result, expected = result.astype(np.float64), expected.astype(np.float64)
    if is_exact(case):
        np.testing.assert_array_equal(result, expected, told)
        return
    met = [np.asarray(x, np.float64) for x in (*case.given, expected) if isinstance(x, np.ndarray) and floats(x.dtype)]
    scale = max((np.abs(x[np.isfinite(x)]).max(initial=0) for x in met), default=0)
    np.testing.assert_allclose(result, expected, rtol=0, atol=ROUNDING * precision * scale, err_msg=told)


def floats(dtype):
    return dtype.kind == "f" or is_short(dtype)


def is_exact(case):
    if case.record.primitive is group or case.record.params.get("sums"):
        return False
    _, body = elementwise_body(case.record, DTYPES)
    if body is not None:
        return not any(word in step.function for step in body.steps for word in FUNCTIONS)
    return not any(word in case.record.primitive.name for word in (*SUMS, *DRAWS))


@pytest.mark.parametrize("group", groups())
def test_every_instruction_has_a_kernel_but_those_that_are_listed(group):
    allowed = set().union(*MISSING.values())
    for case in cases(group):
        if case.kernels is None and not any(x.dtype.kind == "c" for x in slots_of(case.record) if x.shape is not None):
            assert case.record.primitive.name in allowed, f"{case.name}: {case.record}"
