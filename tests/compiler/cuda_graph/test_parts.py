"""Kernels over flat arrays that know their parts: sizes around a chunk, gaps that are NaN, sums of each part and of all."""

import itertools

import numpy as np
import pytest
from shim import Memory, compiled, needs_gxx
from slow import mostly_slow

from minikeras.compiler.executors.cuda_graph.nodes import Emitter
from minikeras.compiler.executors.numpy.lowering import kernel_of
from minikeras.compiler.ir import Slot
from minikeras.compiler.loop_ir.reductions import CHUNK
from minikeras.compiler.loops import SumScope, loop_of_parts, sums_shape, traced
from minikeras.core import Record
from minikeras.layout import Layout

pytestmark = needs_gxx
SHAPES = {
    "one number": [()],
    "one array": [(3, 5)],
    "around a warp": [(1,), (31,), (33,), (2, 2)],
    "around a chunk": [(CHUNK - 1,), (CHUNK,), (CHUNK + 1,), (3 * CHUNK + 7,)],
    "with empty ones": [(0,), (5,), (0, 3), (7, 2), (0,)],
}


def cases(shapes):
    """Where gaps are, what is summed and in which dtype: a record of each, its operands, layout and kernels."""
    names = itertools.count(100)
    for alignment, sums, dtype in itertools.product([1, 64], [None, *SumScope], ["float32", "float64"]):
        layout, random, dtype = Layout(shapes, dtype, alignment), np.random.default_rng(4), np.dtype(dtype)
        flat, own, whole, number = (layout.size,), (len(shapes), 1), (), None
        operands = [
            Slot(key, shape, dtype if shape is not None else float)
            for key, shape in enumerate((flat, own, whole, number, flat))
        ]
        body = traced(lambda x, part, all_, rate, y: (x * part + all_ * rate, y - x), [x.dtype for x in operands])
        outputs = tuple([Slot(9 + n, flat if sums is None else sums_shape(layout, sums), dtype) for n in range(2)])
        record = Record(loop_of_parts, operands, {"body": body, "layout": layout, "sums": sums}, outputs)
        given = [np.asarray(random.normal(size=x.shape or ()), dtype) for x in operands]
        given[3] = 0.25
        for gap in range(layout.size):
            if not any(part.start <= gap < part.stop for part in layout.slices):
                given[0][gap] = given[4][gap] = np.nan
        yield record, given, Emitter(names).kernels(record)


@pytest.mark.parametrize("every", mostly_slow([1, 3], 3))
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_numbers_of_parts_reach_their_elements_and_sums_their_part(shapes, every):
    several = list(cases(shapes))[::every]
    functions = iter(compiled([kernel for *_, kernels in several for kernel in kernels]))
    for record, given, kernels in several:
        memory, layout, sums = Memory(), record.params["layout"], record.params["sums"]
        for x, array in zip(record.inputs, given, strict=True):
            memory.put(x, array)
        for kernel in kernels:
            memory.run(kernel, next(functions))
        told = f"{layout}, sums {sums}"
        assert memory.is_whole(), told
        for y, expected in zip(record.outputs, kernel_of(record, np)(*given), strict=True):
            found = memory.array(y)
            assert found.shape == np.shape(expected) == y.shape, told
            rtol, atol = 1e-5 if y.dtype == np.float32 else 1e-12, 1e-3 * (sums is not None)
            for part in layout.slices if sums is None else [slice(None)]:
                chosen = found[part] if y.shape else found
                wanted = np.asarray(expected)[part] if y.shape else expected
                np.testing.assert_allclose(chosen, wanted, rtol, atol, err_msg=told)
