"""Products of tiles: the numbers of NumPy for all sizes, and the same bits in any number of parts."""

import numpy as np
import pytest
from hypothesis import strategies as st

pytest.importorskip("llvmlite")
pytest.importorskip("scipy")

from slow import drawn
from test_kernels import DTYPES, RELATIVE, carry_out, normal

from minikeras.compiler.executors.llvm import jit, products
from minikeras.compiler.executors.llvm.products import Tiles
from minikeras.compiler.loop_ir import contractions
from minikeras.compiler.render.llvm import NestKernel

SIZES = st.one_of(st.integers(1, 9), st.integers(14, 35), st.integers(60, 70))
VECTORS = [16, 32, 64]
"""Bytes: a processor without such vectors does with several."""


def product(vector, a, b, transpose_a, transpose_b, parts=1):
    """The product of two matrices, with a line before and after it that has to stay."""
    (rows, inner), columns = a.shape[::-1] if transpose_a else a.shape, b.shape[0 if transpose_b else 1]
    memory = np.full((rows + 2, columns), 7, a.dtype)
    address = products._address(Tiles(a.dtype, vector))
    kernel = NestKernel(contractions.product(a.dtype, bool(transpose_a), bool(transpose_b), by_rows=True))
    lines = [rows if transpose_a else inner, inner if transpose_b else columns, columns]
    numbers = [rows, columns, inner, *lines, address, 0]
    assert carry_out((kernel, [], [a, b, memory[1:-1]], numbers), parts=parts)
    assert (memory[[0, -1]] == 7).all()
    return memory[1:-1]


def factors(sizes, transpose_a, transpose_b, dtype):
    rows, columns, inner = sizes
    a = normal(*((inner, rows) if transpose_a else (rows, inner)), dtype=dtype)
    return a, normal(*((columns, inner) if transpose_b else (inner, columns)), dtype=dtype) + 1


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("dtype", DTYPES)
@drawn(
    25, 150, sizes=st.tuples(SIZES, SIZES, SIZES), transpose_a=st.booleans(), transpose_b=st.booleans(), parts=st.integers(1, 3)
)
def test_a_product_of_tiles_is_that_of_numpy_in_any_number_of_parts(dtype, vector, sizes, transpose_a, transpose_b, parts):
    a, b = factors(sizes, transpose_a, transpose_b, dtype)
    out = product(vector, a, b, transpose_a, transpose_b, parts)
    left, right = a.T if transpose_a else a, b.T if transpose_b else b
    assert np.all(np.abs(out - left @ right) <= 4 * RELATIVE[dtype] * (np.abs(left) @ np.abs(right)))
    np.testing.assert_array_equal(out, product(vector, a, b, transpose_a, transpose_b))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(0, 0), (1, 0), (0, 1)])
def test_a_wide_factor(transpose_a, transpose_b, dtype):
    """Rows so long that neighbours lie far apart, and columns beyond the last."""
    sizes = 69, 521, 40
    a, b = factors(sizes, transpose_a, transpose_b, dtype)
    out = product(jit.vector_bytes(), a, b, transpose_a, transpose_b)
    np.testing.assert_allclose(out, (a.T if transpose_a else a) @ (b.T if transpose_b else b), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_long_sums_are_taken_in_blocks(transpose_a, transpose_b):
    sizes = 13, 37, 2 * (products.PANEL // (2 * jit.vector_bytes())) + 5
    a, b = factors(sizes, transpose_a, transpose_b, "float64")
    out = product(jit.vector_bytes(), a, b, transpose_a, transpose_b)
    np.testing.assert_allclose(out, (a.T if transpose_a else a) @ (b.T if transpose_b else b), rtol=1e-11, atol=1e-10)


def test_not_a_number_and_infinity_stay_in_their_rows_and_columns():
    a, b = normal(9, 11), normal(11, 13)
    a[3, 4], b[5, 6] = np.nan, np.inf
    out = product(jit.vector_bytes(), a, b, False, False)
    np.testing.assert_array_equal(np.isfinite(out), np.isfinite(a @ b))


@pytest.mark.parametrize("vector", VECTORS)
def test_large_and_empty_products_are_for_blas(vector):
    kernel = Tiles(np.dtype("float32"), vector)
    assert kernel.takes(8, 8, 8)
    assert not kernel.takes(1 << 10, 1 << 10, 1 << 11)
    assert not kernel.takes(8, 8, 0)
