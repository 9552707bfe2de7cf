"""The memory of programs: values that live together share no bytes, free bytes serve again, what is in use is not written."""

import numpy as np
import pytest
from hypothesis import strategies as st
from interrupts import interrupt
from random_programs import cases, recorded
from slow import drawn

import minikeras as tf
from minikeras.compiler.executors import llvm
from minikeras.compiler.executors.numpy.lowering import Call, FlattenKernel, View, lowered
from minikeras.compiler.executors.numpy.memory_plan import MemoryPlan
from minikeras.compiler.ir import Slot
from minikeras.compiler.passes import optimized
from minikeras.compiler.planning import ALIGNMENT, Interval, allocate
from minikeras.compiler.variable_storage import FlatBuffer, FlatVariables, HostMemory
from minikeras.core import Tensor
from minikeras.core.variable import are_held
from minikeras.layout import Layout

# Plan ---------------------------------------------------------------------------------------------------------------------


class Memory:
    """The bytes of a program, each with the name of what was written there last."""

    def __init__(self, plan, slots):
        self.plan, self.slots = plan, slots
        self.names = np.full(plan.arena.size, -1)

    def bytes_of(self, key):
        """Where a slot lies in the program's memory; None if it lies elsewhere."""
        root = self.plan.root(key)
        if root not in self.plan.placed:
            return None
        _, start = self.plan.placed[root]
        return slice(start, start + self.slots[root].bytes)

    def write(self, key):
        where = self.bytes_of(key)
        if where is not None:
            self.names[where] = self.plan.root(key)

    def check(self, key, also=()):
        """What is read is what was written."""
        where = self.bytes_of(key)
        if where is not None:
            assert np.isin(self.names[where], [self.plan.root(key), *also]).all()


def slots_in(calls):
    """All slots of the calls, by key."""
    return {x.key: x for call in calls for x in (*call.operands, *call.results) if isinstance(x, Slot)}


def carried_out(plan, calls):
    """All calls, on names instead of numbers."""
    memory = Memory(plan, slots_in(calls))
    wholes: dict[int, int] = {}
    for call in calls:
        if isinstance(call, View):
            continue
        operands = [x.key for x in call.operands if isinstance(x, Slot)]
        for key in operands:
            memory.check(key, wholes.get(plan.root(key), ()))
        if isinstance(call, Call):
            assert_results_overlap_nothing_but_what_they_may(memory, call)
            for y in call.results:
                memory.write(y.key)
        elif isinstance(call, FlattenKernel):
            wholes |= {key: (call.results[0].key,) for key in operands}
            memory.write(call.results[0].key)
    for key in plan.exported:
        memory.check(key, wholes.get(key, ()))


def assert_results_overlap_nothing_but_what_they_may(memory, call):
    """A result lies where no other result does, and where an operand does only if the call may write there."""
    for number, y in enumerate(call.results):
        own = memory.bytes_of(y.key)
        others = [memory.bytes_of(other.key) for other in call.results if other is not y]
        assert not any(overlap(own, other) for other in others)
        for position, x in enumerate(call.operands):
            if isinstance(x, Slot) and overlap(own, memory.bytes_of(x.key)):
                assert position in call.may_alias[number] and (x.shape, x.dtype) == (y.shape, y.dtype)


def overlap(first, second):
    return first is not None and second is not None and first.start < second.stop and second.start < first.stop


@drawn(25, 200, case=cases(sizes=(0, 1, 3, 6)))
def test_values_that_live_at_the_same_time_share_no_bytes(lowering, case):
    program = optimized(recorded(case)[0])
    calls = lowering(program)
    plan = MemoryPlan(program, calls)
    carried_out(plan, calls)
    slots = slots_in(calls)
    wholes = [call.results[0] for call in calls if isinstance(call, FlattenKernel)]
    for key, (_, start) in plan.placed.items():
        assert start + slots[key].bytes <= plan.arena.size
        assert start % ALIGNMENT == 0 or any(plan.lies_inside(slots[key], whole) for whole in wholes)


@drawn(
    30,
    300,
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 6), st.lists(st.integers(0, 30), max_size=3)), max_size=30),
    st.integers(1, 4),
)
def test_an_arena_keeps_apart_what_lives_together(values, together):
    """A value takes the memory of a donor only if that dies where it is born; each birth is shared by some values."""
    intervals = [
        Interval(key, size, key // together, key // together + life, [one for one in donors if one < key])
        for key, (size, life, donors) in enumerate(values)
    ]
    arena = allocate(intervals)
    given_away = set()
    for later in intervals:
        for value in intervals[: later.key]:
            start, other = arena.offsets[later.key], arena.offsets[value.key]
            if value.dies < later.born or start + later.bytes <= other or other + value.bytes <= start:
                continue
            assert value.key in later.donors and value.dies == later.born and value.key not in given_away
            given_away.add(value.key)
    assert all(offset % ALIGNMENT == 0 for offset in arena.offsets.values())
    assert arena.size >= max([arena.offsets[one.key] + one.bytes for one in intervals], default=0)
    living = [sum(one.born <= position <= one.dies for one in intervals) for position in range(40)]
    assert max(living) - len(given_away) <= arena.buffers <= max(living)


def planned(function, *shapes, lowering=lowered):
    """The plan of a function of zeros of these shapes; the bytes of all that lies in its memory, and of copied arguments."""
    compiled = tf.function(function)
    given_ = [tf.zeros(shape) for shape in shapes]
    compiled(*given_)
    program = compiled.program(*given_)
    calls = lowering(program)
    plan = MemoryPlan(program, calls)
    copied = 0 if lowering is lowered else sum(4 * int(tf.size(one)) for one in given_)
    return plan, sum(slots_in(calls)[key].bytes for key in plan.placed), copied


def test_a_result_is_written_over_the_operand_that_is_read_for_the_last_time(lowering):
    function = lambda x, w: tf.reduce_sum(tf.tanh(x @ w) * 2.0 + 1.0, 0)
    plan, together, copied = planned(function, (32, 16), (16, 16), lowering=lowering)
    assert plan.arena.size <= 32 * 16 * 4 + copied < together + copied
    assert plan.arena.buffers == 1 or copied


def test_memory_serves_again_in_a_long_chain(lowering):
    def chain(x, w):
        for _ in range(10):
            x = tf.tanh(x @ w)
        return tf.reduce_sum(x, 0)

    plan, together, copied = planned(chain, (32, 16), (16, 16), lowering=lowering)
    assert plan.arena.size <= 2 * 32 * 16 * 4 + copied and together >= 10 * 32 * 16 * 4


def test_a_view_keeps_the_memory_that_it_is_of(lowering):
    def step(x, w):
        made = tf.tanh(x @ w)
        turned, flat = tf.transpose(made), tf.reshape(tf.reshape(made, [-1])[::-1], [-1])
        for _ in range(3):
            x = tf.tanh(x @ w)
        return tf.reduce_sum(turned @ x, 0), tf.reduce_sum(tf.reshape(flat, (32, 16)) * x, 0)

    compiled = tf.function(step)
    given_ = tf.zeros((32, 16)), tf.zeros((16, 16))
    compiled(*given_)
    program = compiled.program(*given_)
    calls = lowering(program)
    plan = MemoryPlan(program, calls)
    assert len(plan.views) >= 2
    carried_out(plan, calls)


def test_what_leaves_the_program_does_not_lie_in_its_memory():
    v = tf.Variable(tf.zeros((8, 8)))

    def step(x):
        y = tf.tanh(x @ x)
        v.assign(y * 2.0)
        return y, tf.transpose(y)

    plan, together, _ = planned(step, (8, 8))
    assert plan.arena.size == together == 8 * 8 * 4, "the product alone"
    assert not plan.views and len(plan.fresh) == 2


def test_a_flattened_gradient_that_leaves_the_program_is_whole_when_it_is_copied(lowering):
    weights = [[tf.Variable(tf.ones((8, 8))), tf.Variable(tf.ones(8))] for _ in range(2)]
    sgd = [tf.keras.optimizers.SGD(0.1) for _ in weights]

    def step(x):
        found = []
        for optimizer, (w, b) in zip(sgd, weights, strict=True):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(tf.tanh(x @ w + b)))
            found += tape.gradient(loss, [w, b])
            optimizer.apply_gradients(zip(found[-2:], [w, b], strict=True))
        return found

    compiled, x = tf.function(step), tf.ones((4, 8))
    for _ in range(3):
        compiled(x)
    program = compiled.program(x)
    calls = lowering(program)
    plan = MemoryPlan(program, calls)
    assert any(isinstance(call, FlattenKernel) for call in calls)
    carried_out(plan, calls)


# FlatBuffer ----------------------------------------------------------------------------------------------------------------

LAYOUT = Layout([(2, 3), (), (0, 4), (5,)], np.float32)
HOLDERS = {
    "the array": lambda piece: piece,
    "a view": lambda piece: piece[1:],
    "a view of a view": lambda piece: piece.T[1:][:1],
    "a reshaped view": lambda piece: piece.reshape(-1),
    "a tensor": Tensor,
    "what NumPy makes of a tensor": lambda piece: np.asarray(Tensor(piece)),
    "a view of that": lambda piece: np.asarray(Tensor(piece))[0],
    "a memoryview": memoryview,
    "a DLPack export": lambda piece: piece.__dlpack__(),
    "an array from DLPack": np.from_dlpack,
    "an iterator": lambda piece: piece.flat,
    "a record array": lambda piece: piece.view(np.recarray),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_buffer_is_in_use_as_long_as_anything_holds_a_part_of_it(holder):
    buffer = FlatBuffer(HostMemory(LAYOUT, 2))
    assert not buffer.in_use
    for number in (0, 4):
        kept = HOLDERS[holder](buffer.pieces[number])
        assert buffer.in_use
        del kept
        assert not buffer.in_use


def test_programs_that_read_a_buffer_do_not_use_it():
    buffer = FlatBuffer(HostMemory(LAYOUT, 2))
    kept = [buffer.memory.flats[0][3:], LAYOUT.pieces(buffer.memory.flats[1])]
    assert not buffer.in_use and len(kept) == 2


def test_a_buffer_that_variables_hold_is_in_use_until_they_hold_something_else():
    buffer, variables = FlatBuffer(HostMemory(LAYOUT)), [tf.Variable(tf.zeros(shape)) for shape in LAYOUT.shapes]
    assert not are_held(buffer.pieces, variables) and not buffer.in_use
    buffer.assign(variables)
    assert are_held(buffer.pieces, variables) and buffer.in_use
    snapshot = variables[3].read_value()
    for variable in variables:
        assert buffer.in_use
        variable.assign(tf.ones(variable.shape))
        assert not are_held(buffer.pieces, variables)
    assert buffer.in_use, "a snapshot holds a part of it"
    del snapshot
    assert not buffer.in_use


def test_a_buffer_takes_over_what_variables_hold_and_what_is_seen_of_that_stays():
    buffer, variables = FlatBuffer(HostMemory(LAYOUT)), [tf.Variable(tf.fill(shape, 2.0)) for shape in LAYOUT.shapes]
    seen = [variable.read_value() for variable in variables]
    buffer.adopt(variables)
    assert are_held(buffer.pieces, variables)
    buffer.memory.flats[0][...] = 3.0
    assert all((x.numpy() == 2.0).all() for x in seen) and all((v.numpy() == 3.0).all() for v in variables)


@pytest.mark.parametrize("in_place", [False, True])
def test_programs_of_one_model_read_what_one_of_them_wrote_without_copies(in_place, monkeypatch):
    variables = [tf.Variable(tf.zeros(shape)) for shape in LAYOUT.shapes]
    one, other = [FlatVariables(variables, LAYOUT, in_place) for _ in range(2)]
    taken = []
    adopt = FlatBuffer.adopt
    monkeypatch.setattr(FlatBuffer, "adopt", lambda self, held: (taken.append(self), adopt(self, held)))
    for number, program in enumerate((one, other) * 4):
        read = program.read()
        np.testing.assert_array_equal(read.memory.flats[0], number)
        written = read if program.alone else program.begin()
        written.memory.flats[0][...] = read.memory.flats[0] + 1.0
        program.assign()
        assert (written is read) is in_place
    assert len(taken) == 1 and len({id(one) for program in (one, other) for one in program._buffers}) <= 3


def test_values_assigned_from_elsewhere_are_copied_once(monkeypatch):
    variables = [tf.Variable(tf.zeros(shape)) for shape in LAYOUT.shapes]
    program, taken = FlatVariables(variables, LAYOUT), []
    adopt = FlatBuffer.adopt
    monkeypatch.setattr(FlatBuffer, "adopt", lambda self, held: (taken.append(number), adopt(self, held)))
    for number in range(8):
        if number == 4:
            for variable in variables:
                variable.assign(tf.ones(variable.shape))
        program.begin()
        program.read()
        program.assign()
    assert taken == [0, 4]


def test_in_place_a_value_assigned_from_elsewhere_is_copied_alone_unless_another_part_is_seen():
    variables = [tf.Variable(tf.zeros(shape)) for shape in LAYOUT.shapes]
    program = FlatVariables(variables, LAYOUT, in_place=True)
    first = program.read()
    first.memory.flats[0][...] = 1.0
    variables[3].assign(tf.fill([5], 2.0))
    assert program.read() is first and [one.numpy().max() for one in (variables[0], variables[3])] == [1.0, 2.0]
    seen = variables[0].read_value()
    variables[3].assign(tf.fill([5], 3.0))
    other = program.read()
    assert other is not first and are_held(other.pieces, variables)
    other.memory.flats[0][...] = 4.0
    assert seen.numpy().max() == 1.0 and variables[0].numpy().max() == variables[3].numpy().max() == 4.0


def test_the_columns_of_a_buffer_begin_with_a_line_of_the_cache_and_are_what_variables_hold():
    for dtype in ("float32", "float64"):
        layout = Layout(LAYOUT.shapes, dtype)
        buffer = FlatBuffer(HostMemory(layout, 3))
        variables = [tf.Variable(tf.zeros(shape, dtype)) for shape in layout.shapes] * 3
        buffer.assign(variables[: len(buffer.pieces)])
        assert not (buffer.memory.addresses % ALIGNMENT).any()
        buffer.memory.flats[2][...] = np.arange(layout.size)
        found = [variable.numpy() for variable in variables[8:]]
        np.testing.assert_array_equal(np.concatenate([one.reshape(-1) for one in found]), np.arange(layout.size))
        assert [one.shape for one in found] == LAYOUT.shapes


def test_an_interrupt_within_an_assignment_gives_all_old_values_or_all_new_ones():
    """The interrupt comes before the first instruction of Python in `assign`, then before the second, and so on to the last."""
    outcomes = []
    for wanted in range(1000):
        buffer, variables = FlatBuffer(HostMemory(LAYOUT)), [tf.Variable(tf.zeros(shape)) for shape in LAYOUT.shapes]
        buffer.memory.flats[0][...] = 1.0
        try:
            with interrupt(FlatBuffer.assign, wanted):
                buffer.assign(variables)
        except KeyboardInterrupt:
            outcomes.append({float(tf.reduce_max(variable)) for variable in variables if tf.size(variable) > 0})
        else:
            break
    assert all(len(values) == 1 for values in outcomes)
    assert len(outcomes) > 40 and {0.0} in outcomes


@pytest.mark.skipif(not llvm.installed(), reason="needs llvmlite and SciPy")
def test_large_results_of_kernels_are_arrays_of_their_own_in_each_run():
    """Also where a kernel joins two arrays, another reads the result, or sees it in another shape."""

    def step(x):
        joined = tf.concat([x, tf.exp(x)], 0)
        seen = tf.reshape(tf.sin(x), [-1])
        return joined, tf.square(joined), seen, tf.cos(seen)

    compiled = tf.function(step, jit_compile=True)
    kept = []
    for number in range(4):
        x = tf.constant(np.random.default_rng(number).normal(size=(300, 200)).astype("f4"))
        kept.append((x, compiled(x)))
    for x, found in kept:  # no run has written over what an earlier one gave
        for one, expected in zip(found, step(x), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
