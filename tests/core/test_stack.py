"""Dispatch and the stack: order, exits in any order, exceptions, threads, what one operation costs."""

import concurrent.futures
import sys

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.core.primitive import Record
from minikeras.core.registry import operations, register
from minikeras.core.stack import BOTTOM, Frame, Interpreter, bind, current, switch


class Witness(Interpreter):
    """An interpreter that notes its name and asks below."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def process(self, primitive, inputs, params, below):
        self.log.append((self.name, "before", primitive.name))
        outputs = below.process(primitive, inputs, params)
        self.log.append((self.name, "after", primitive.name))
        return outputs


@pytest.fixture
def witnesses():
    log = []
    lower, upper = Witness("lower", log), Witness("upper", log)
    switch(Frame(upper, Frame(lower, current())))
    yield lower, upper, log
    switch(BOTTOM)


def names_on_stack():
    """The interpreters from the top of this thread's stack down to the one that computes."""
    frame, found = current(), []
    while frame is not BOTTOM:
        found.append(frame.interpreter)
        frame = frame.below
    return found


# Order -----------------------------------------------------------------------------------------------------------


def test_each_interpreter_asks_the_one_below_it(witnesses):
    _, _, log = witnesses
    y = tf.constant(2.0) * tf.constant(3.0)
    assert float(y) == 6.0
    assert log == [
        ("upper", "before", "multiply"),
        ("lower", "before", "multiply"),
        ("lower", "after", "multiply"),
        ("upper", "after", "multiply"),
    ]


def test_bare_arrays_never_reach_the_stack(witnesses):
    _, _, log = witnesses
    assert operations.multiply(np.float32(2), np.float32(3)) == 6.0
    assert operations.sin(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert log == []


def test_an_interpreter_can_be_taken_out_anywhere_and_the_others_keep_their_order(witnesses):
    lower, upper, log = witnesses
    assert [frame.name for frame in names_on_stack()] == ["upper", "lower"]
    switch(current().without(lower))
    assert names_on_stack() == [upper]
    tf.sin(tf.constant(0.0))
    assert {name for name, _, _ in log} == {"upper"}


def test_taking_out_what_is_not_there_changes_nothing(witnesses):
    before = current()
    assert before.without(Witness("stranger", [])) is before
    assert BOTTOM.without(Witness("stranger", [])) is BOTTOM


def test_tapes_are_on_the_stack_in_the_order_in_which_they_were_entered():
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        assert names_on_stack() == [inner.tape, outer.tape]
    assert names_on_stack() == []


def test_tapes_may_leave_in_another_order_than_they_came():
    """T11: the others go on recording."""
    x = tf.constant(3.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    first.watch(x)
    second.watch(x)
    y = x * x
    first.__exit__(None, None, None)
    assert names_on_stack() == [second.tape]
    z = y * x
    second.__exit__(None, None, None)
    assert names_on_stack() == []
    assert first.gradient([y, z], x).numpy() == 6.0, "z was made after the first tape had left"
    assert second.gradient(z, x).numpy() == 27.0


def test_stop_recording_returns_a_tape_to_its_place():
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        with outer.stop_recording():
            assert names_on_stack() == [inner.tape]
        assert names_on_stack() == [inner.tape, outer.tape]


def test_stop_recording_keeps_tapes_that_came_meanwhile():
    late = tf.GradientTape()
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            late.__enter__()
        assert set(names_on_stack()) == {tape.tape, late.tape}
        late.__exit__(None, None, None)


def test_an_exception_leaves_the_stack_as_it_was_before_the_blocks():
    with pytest.raises(KeyError), tf.GradientTape() as outer, tf.GradientTape(), outer.stop_recording():
        raise KeyError
    assert names_on_stack() == []


def test_an_exception_in_an_inner_block_leaves_the_outer_tape_recording():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with pytest.raises(tf.errors.InvalidArgumentError), tf.GradientTape():
            tf.ones([2]) + tf.ones([3])
        assert names_on_stack() == [outer.tape]
        y = x * x
    assert outer.gradient(y, x).numpy() == 6.0


def test_leaving_twice_is_harmless():
    tape = tf.GradientTape()
    with tape:
        pass
    tape.__exit__(None, None, None)
    assert names_on_stack() == []


# Records and the registry ----------------------------------------------------------------------------------------


def test_a_record_reads_as_one_line():
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    record = Record(operations.multiply, (x, 2.0), {}, y)
    assert str(record) == f"%{y.key}:float32[2] = multiply(%{x.key}:float32[2], 2.0)"
    v = tf.Variable(1.0, name="rate")
    assert "rate:0:float32[]" in str(Record(operations.sin, (v,), {"axis": -1}, (x, y)))
    assert "axis=-1" in str(Record(operations.sin, (v,), {"axis": -1}, (x, y)))


def test_a_primitive_names_itself():
    assert repr(operations.sin) == "<primitive sin>"


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="operation 'sin' is defined already; choose another name"):
        register("sin", None)


def test_bind_reads_variables_and_follows_the_tensors_dtype():
    v = tf.Variable(2.0, dtype="float64")
    assert bind(operations.multiply, (v, 3), {}).dtype == tf.float64
    assert bind(operations.multiply, (np.float32(2), tf.constant(3.0, "float64")), {}).dtype == tf.float64


# Threads ---------------------------------------------------------------------------------------------------------


def test_operations_in_another_thread_are_not_recorded():
    """T120: neither the operation nor the read of a Variable."""
    x, v = tf.constant(3.0), tf.Variable(2.0)
    found = {}

    def work():
        found["y"] = x * v
        found["stack"] = names_on_stack()

    with tf.GradientTape() as tape:
        tape.watch(x)
        in_threads(work)
    assert found["stack"] == []
    assert tape.watched_variables() == ()
    assert tape.gradient(found["y"], [x, v]) == [None, None]


def test_a_gradient_may_be_asked_for_in_another_thread():
    """T120, after the block and, on a tape for one use, also within it."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(tape.gradient, y, x).result().numpy() == 6.0
        with tf.GradientTape() as tape:
            y = x * x
            assert pool.submit(tape.gradient, y, x).result().numpy() == 6.0
            assert pool.submit(names_on_stack).result() == []
    assert names_on_stack() == []


def test_stop_recording_in_another_thread_does_not_bring_the_tape_there():
    def stop(tape):
        with tape.stop_recording():
            pass
        return names_on_stack()

    with concurrent.futures.ThreadPoolExecutor(1) as pool, tf.GradientTape() as tape:
        assert pool.submit(stop, tape).result() == []
        assert names_on_stack() == [tape.tape]


def gradients_of_one_tape(seed):
    """Gradients that depend on every bit of what was recorded."""
    x = tf.constant(np.random.default_rng(seed).normal(size=7).astype("float32"))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.sin(x) * tf.exp(x * 0.1))
        slope = inner.gradient(y, x)
    return slope.numpy().tobytes() + outer.gradient(slope, x).numpy().tobytes()


def test_two_thousand_tapes_on_sixteen_threads_give_the_same_bits_as_one_thread():
    """T120: tapes in parallel threads are independent. Each of the 1,000 tasks opens two tapes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            parallel = list(pool.map(gradients_of_one_tape, range(1000)))
    finally:
        sys.setswitchinterval(interval)
    assert parallel == [gradients_of_one_tape(seed) for seed in range(1000)]


def test_updates_of_one_variable_from_many_threads_are_all_kept():
    v = tf.Variable(np.zeros(3), dtype="int64")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: v.assign_add([1, 1, 1]), range(800)))
            list(pool.map(lambda _: v[0].assign(v[0]), range(50)))
    finally:
        sys.setswitchinterval(interval)
    assert v.numpy()[1:].tolist() == [800, 800]


# What one operation costs ----------------------------------------------------------------------------------------


def python_calls(function):
    """How many Python functions, and how many functions written in C, run while `function` does."""
    counts = {"call": 0, "c_call": 0}

    def note(frame, event, argument):
        if event in counts:
            counts[event] += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counts["call"] - 1, counts["c_call"] - 1


def test_one_operation_makes_a_stated_number_of_calls():
    """Dispatch, the evaluator, the namespace, the kernel's lookup, the result; a tape adds itself and a Record."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    calls, _ = python_calls(lambda: operations.multiply(x, y))
    assert calls <= 7
    with tf.GradientTape() as tape:
        tape.watch(x)
        recorded, _ = python_calls(lambda: operations.multiply(x, y))
    assert recorded - calls <= 4


def test_each_further_tape_adds_the_same_number_of_calls():
    x, y = tf.constant(2.0), tf.constant(3.0)

    def under(tapes):
        for tape in tapes:
            tape.__enter__()
            tape.watch(x)
        try:
            return sum(python_calls(lambda: operations.multiply(x, y)))
        finally:
            for tape in tapes:
                tape.__exit__(None, None, None)

    costs = [under([tf.GradientTape() for _ in range(depth)]) for depth in range(4)]
    assert len(set(np.diff(costs))) == 1


def test_an_unwatched_operation_costs_no_record():
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        unwatched, _ = python_calls(lambda: operations.multiply(x, y))
        tape.watch(x)
        watched, _ = python_calls(lambda: operations.multiply(x, y))
    assert unwatched < watched


def test_a_recorded_operation_keeps_a_stated_number_of_memory_blocks():
    """A Tensor, its key, its scalar, a Record, the tuple and the dict of its arguments, and the tape's two entries."""
    y = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(y)
        operations.multiply(y, y)
        before = sys.getallocatedblocks()
        for _ in range(1000):
            y = operations.multiply(y, y)
        kept = sys.getallocatedblocks() - before
    assert kept <= 7 * 1000
