"""What a kernel says is a nest, and NumPy carries it out: the interpreter gives NumPy's numbers, whichever way it goes.

Kernels in CUDA C are the text of these nests and of no others, so what holds here holds of them but for the renderer and the
launches; test_kernels_of_instructions.py holds the text to the same tables.
"""

import itertools

import numpy as np
import pytest
import recorded
from interpreter import interpret
from slow import mostly_slow
from test_groups import TRAINED, fused, program_of
from test_kernels_of_instructions import TABLES, assert_close, instruction, integers, normal

from minikeras.compiler.ir import Slot, outputs_of
from minikeras.compiler.loop_ir.groups import group
from minikeras.compiler.loop_ir.lowering import Lowering
from minikeras.compiler.loops import SumScope, loop, loop_of_parts, traced
from minikeras.compiler.passes.device import add_rows_of_windows, windows_as_rows
from minikeras.compiler.render.cuda import Schedule
from minikeras.compiler.variable_storage import flatten, part
from minikeras.core.registry import operations as o
from minikeras.layout import Layout

GEOMETRY = {"strides": (2, 1), "padding": ((1, 0), (1, 2)), "dilation": (1, 2)}


def windows():
    x, window = normal(2, 5, 7, 3), (2, 3)
    places = (3, 6)
    params = GEOMETRY | {"window": window}
    chosen = integers(6, 2, *places, 3, dtype="int32")
    g = normal(2, *places, 3, seed=1)
    yield o.max_pool, [x], params
    yield o.window_sum, [x], params
    yield o.first_largest_in_window, [x], params
    yield o.first_largest_in_window, [np.where(normal(2, 5, 7, 3, seed=3) > 0.5, np.float32(np.nan), x)], params
    yield o.pick_from_window, [x, chosen], params
    yield o.window_spread, [g], params | {"sizes": (5, 7)}
    yield o.put_into_window, [g, chosen], params | {"sizes": (5, 7)}
    for groups in (1, 3):
        kernel, y = normal(*window, 3 // groups, 6), normal(2, *places, 6, seed=2)
        yield o.convolve, [x, kernel], GEOMETRY | {"groups": groups}
        yield o.spread_windows, [y, kernel], GEOMETRY | {"groups": groups, "sizes": (5, 7)}
        yield o.correlate_windows, [x, y], params | {"groups": groups}
    yield windows_as_rows, [x], params | {"count": places}
    yield add_rows_of_windows, [normal(2 * 18, 18)], params | {"count": places, "sizes": (5, 7)}


def flat():
    layout = Layout([(3, 5), (0,), (4097,), ()], "float32")
    body = traced(lambda x, own, rate: (x * own + rate, x - own), [np.dtype("f4"), np.dtype("f4"), float])
    for sums in (None, *SumScope):
        yield loop_of_parts, [normal(layout.size), normal(4, 1), 0.25], {"body": body, "layout": layout, "sums": sums}
    small = Layout([(3, 5), (2,)], "float32")
    yield flatten, [normal(3, 5), normal(2)], {"layout": small}
    yield part, [normal(17)], {"start": 15, "shape": (2,)}


def further_draws():
    key, options = np.array([2**40 + 3, 2**63 + 5], np.uint64), {"shape": (29,), "xp": np}
    yield o.operation_key, [key], {"mix": 2**63 + 5}
    for dtype in ("float32", "float64"):
        yield o.random_truncated_normal, [key], options | {"dtype": np.dtype(dtype)}
    for span in (7, 2**32 + 1, 2**62 + 3, 0):
        yield o.random_integers, [key], options | {"dtype": np.dtype("int64"), "low": -7, "span": span}
    yield o.random_uniform, [key], options | {"dtype": np.dtype("float32"), "start": 5}
    yield o.real, [normal(4)], {}


ALL = TABLES | {"windows": windows, "flat": flat, "further draws": further_draws}
MOST_PAIRS = 10_000
"""Rows of a scatter times indices: each pair is a turn in Python."""
SLOW = ("more reductions", "reductions")


def lowering():
    """As for a GPU, which cuts long sums of few results into pieces."""
    keys = itertools.count(1000)
    temporary = lambda shape, dtype: Slot(next(keys), shape, np.dtype(dtype))
    return Lowering(temporary, lambda lowered: Schedule(lowered.nest).pieces)


def carried_out(nests, slots, arrays, backwards):
    """The memory of all slots after some nests."""
    memory = {x.key: np.ascontiguousarray(np.atleast_1d(array)) for x, array in zip(slots, arrays, strict=True)}
    for nest, operands, results, *_ in nests:
        for y in results:
            memory[y.key] = np.full(max(1, int(np.prod(y.shape))), 77).astype(y.dtype)
        interpret(nest, [memory[x.key] for x in (*operands, *results)], [], backwards)
    return memory


@pytest.mark.parametrize("table", mostly_slow(ALL, *sorted({*ALL} - {*SLOW})))
def test_nests_give_the_numbers_of_numpy(table):
    for row in ALL[table]():
        record, arrays, expected = instruction(*row)
        if record.params.get("size", 0) * np.size(arrays[-1]) > MOST_PAIRS:
            continue
        nests = lowering().nests(record)
        assert nests is not None, str(record)
        for backwards in (False, True):
            memory = carried_out(nests, record.inputs, arrays, backwards)
            for slot, y in zip(outputs_of(record), expected, strict=True):
                if y.size:
                    assert_close(memory[slot.key].reshape(y.shape), y, arrays, str(record))


@pytest.mark.parametrize("layers", TRAINED)
def test_nests_of_groups_give_the_numbers_of_numpy(layers):
    program, inputs = program_of(TRAINED[layers], 5)
    cases = [case for case in recorded.replayed(layers, fused(program), inputs) if case.record.primitive is group]
    assert cases
    for case, backwards in itertools.product(cases, (False, True)):
        memory = carried_out(lowering().nests(case.record), case.record.inputs, case.given, backwards)
        for slot, y in zip(outputs_of(case.record), case.expected, strict=True):
            assert_close(memory[slot.key].reshape(y.shape), y, case.given, str(case.record))


def test_each_instruction_that_has_a_rule_is_in_a_table():
    tried = {row[0].name for rows in ALL.values() for row in rows()}
    rules = {primitive.name for primitive in lowering()._rules}
    assert rules - tried <= {group.name, "conj"} and loop.name in tried
    assert len(rules) > 60
