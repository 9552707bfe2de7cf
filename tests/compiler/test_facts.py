"""What a function reads and writes in Python beside its arguments, beyond the kinds of the programs of `test_contract.py`."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import logging
import math
import subprocess
import sys
import weakref

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.compiler.guards import Fact

X = tf.constant([1.0, 2.0])


class Box:
    """A plain object."""

    factor = 2.0

    def __init__(self, k=2.0):
        self.k = k

    def times(self, x):
        return x * self.k

    def __call__(self, x):
        return x * self.k


@dataclasses.dataclass
class Settings:
    k: float = 2.0


class Mode(enum.Enum):
    TWICE = 2.0
    THRICE = 3.0


number = 2.0


def helper(x):
    return x * 2.0


def test_an_object_that_is_gone_is_a_change():
    box = Box()
    fact = Fact(lambda owner: len(vars(owner())), weakref.ref(box), ("k",), "attribute {} of Box", lambda name: True)
    then = fact.now()
    assert fact.difference(then) is None
    del box
    assert fact.difference(then) == "attribute 'k' of Box"


def test_an_equal_value_is_no_change():
    state = Box(1000.0)
    step = tf.function(lambda x: x * state.k)
    for _ in range(5):
        state.k = float("1000.0")
        step(X)
    assert (step.recordings, step.replays) == (1, 4)
    for other in (1000, -0.0, 0.0):
        state.k = other
        expected = (X * other).numpy()
        np.testing.assert_array_equal(np.signbit(step(X).numpy()), np.signbit(expected))
        np.testing.assert_array_equal(step(X).numpy(), expected)


@pytest.mark.parametrize("held", [[1000.0], {"k": 1000.0}, collections.deque([1000.0])], ids=["list", "dict", "deque"])
def test_a_change_after_an_equal_value_counts(held):
    where = "k" if isinstance(held, dict) else 0
    f = tf.function(lambda x: x * held[where])
    f(X), f(X)
    held[where] = float("1000.0")  # equal, and another object
    f(X)
    assert (f.recordings, f.replays) == (1, 2)
    held[where] = 3.0
    assert f(X).numpy().tolist() == [3.0, 6.0] and f.recordings == 2


def test_an_element_that_goes_from_one_list_to_the_next_counts():
    first, second = [2.0, 3.0], [5.0]
    f = tf.function(lambda x: x * sum(first) * 10.0 + sum(second))
    f(X), f(X)
    second.insert(0, first.pop())
    assert f(X).numpy().tolist() == [28.0, 48.0]


def test_what_no_code_reads_does_not_count():
    state = Box()
    step = tf.function(lambda x: x * state.k)
    for i in range(20):
        state.note, state.log = i, [i]
        step(X)
    assert (step.recordings, step.replays) == (1, 19)


def test_an_attribute_of_a_module_that_only_its_constructor_names_does_not_count():
    class Counted(tf.Module):
        def __init__(self):
            super().__init__()
            self.factor, self.calls = 2.0, 0

        @tf.function
        def __call__(self, x):
            return x * self.factor

    one = Counted()
    for i in range(5):
        one.calls = i
        one(X)
    assert (Counted.__call__.recordings, Counted.__call__.replays) == (1, 4)


def test_objects_that_answer_every_question_with_an_error_make_a_function_eager(caplog):
    class Unwilling:
        @property
        def __class__(self):
            raise RuntimeError("nothing is bound to this proxy")

    unwilling = Unwilling()
    runs_eagerly(lambda x: x if unwilling is not None else -x, caplog, "cannot be looked at (RuntimeError: nothing is bound")


# Writing -------------------------------------------------------------------------------------------------------------------


def runs_eagerly(function, caplog, *words, results=None):
    """A function that is carried out by Python at each call, and says so once with these words."""
    step = tf.function(function)
    found = [step(X) for _ in range(6)]
    assert step.replays == 0 and step.recordings == 0 and step.eager_calls == 6
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and "runs eagerly" in told[0], told
    assert all(word in told[0] for word in words), told
    if results is not None:
        assert [float(one[0]) for one in found] == results
    return found


def test_a_global_counter_makes_a_function_eager(caplog, monkeypatch):
    monkeypatch.setitem(globals(), "number", 0.0)

    def step(x):
        global number
        number += 1.0
        return x * number

    runs_eagerly(step, caplog, "it changes global variable 'number'", results=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_a_counter_in_a_closure_makes_a_function_eager(caplog):
    count = 0.0

    def step(x):
        nonlocal count
        count += 1.0
        return x * count

    runs_eagerly(step, caplog, "it changes variable 'count' around function step", results=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_writing_in_a_helper_or_a_nested_function_is_seen(caplog):
    state = Box([])

    class Keeper:
        def __init__(self):
            self.kept = []

        def keep(self, value):
            self.kept.append(value)

    keeper = Keeper()

    def step(x):
        def note(value):
            keeper.keep(value)

        note(x)
        state.k.append(1)
        return x

    runs_eagerly(step, caplog, "it changes the elements of attribute")
    assert len(keeper.kept) == len(state.k) == 6


def test_what_is_set_once_is_no_obstacle():
    state, memo = Box(None), {}

    def step(x):
        if state.k is None:
            state.k = 2.0
        if "power" not in memo:
            memo["power"] = 3
        return x * state.k ** memo["power"]

    compiled = tf.function(step)
    assert [compiled(X).numpy().tolist() for _ in range(5)] == [[8.0, 16.0]] * 5
    assert compiled.recordings == 1 and compiled.replays == 4, "the second run finds what the first has set"


def test_what_is_put_back_or_belongs_to_the_run_is_no_obstacle():
    state = Box()

    class Sum:
        def __init__(self):
            self.total, self.parts = 0.0, []

        def add(self, value):
            self.total = self.total + value
            self.parts.append(value)

    def gather(parts, value):
        parts.append(value)

    def step(x):
        kept, state.k = state.k, 5.0
        total, parts, count = Sum(), [], 0

        def more(value):
            nonlocal count
            count += 1
            gather(parts, value)

        for _ in range(3):
            total.add(x)
            more(x)
        state.k = kept
        return total.total * float(count) + tf.add_n(parts) + Box(4.0)(x)

    compiled = tf.function(step)
    assert [compiled(X).numpy().tolist() for _ in range(4)] == [[16.0, 32.0]] * 4
    assert (compiled.recordings, compiled.replays) == (1, 3)


def test_jit_compile_raises_where_a_step_changes_what_it_reads_and_changes_nothing():
    state, v = Box(0), tf.Variable(0.0)

    @tf.function(jit_compile=True)
    def step(x):
        state.k += 1
        v.assign_add(1.0)
        return x

    step(X)
    for _ in range(3):
        with pytest.raises(tf.errors.CompileError, match="it changes attribute 'k' of Box"):
            step(X)
    assert (float(v), state.k) == (1.0, 4), "the calls that raised left the Variable as it was"


def test_a_value_that_changes_all_the_time_ends_in_eager_calls(caplog):
    state = Box()
    step = tf.function(lambda x: x * state.k)
    for i in range(40):
        state.k = float(i)
        assert float(step(X)[0]) == i
    assert step.recordings == 8 and step.eager_calls == 32
    (told,) = [record.getMessage() for record in caplog.records]
    assert "goes on eagerly" in told and "attribute 'k' of Box" in told
    assert float(step(X)[0]) == 39.0


def ordinary():
    """Functions as people write them; none has state that a program would lose."""
    log, constants = logging.getLogger("ordinary"), np.arange(2, dtype="f")

    @contextlib.contextmanager
    def scaled():
        yield 2.0

    def in_context(x):
        with scaled() as factor:
            return x * factor

    class Parts:
        def __init__(self):
            self.values, self.by_name = [], {}

        def add(self, name, value):
            self.values.append(value)
            self.by_name[name] = value
            self.count = len(self.values)
            return self

    class Owner:
        def __init__(self, inner):
            self.inner, inner.owner = inner, self

    def in_a_cycle(x):
        parts = Parts()
        Owner(parts).inner.add("first", x).add("second", x)
        result = parts.values[0] + parts.by_name["second"] * float(parts.count)
        del parts.owner  # tests are to leave no cycles
        return result

    def recursive(x):
        gathered = []

        def halved(y, depth):
            gathered.append(y)
            return y if depth == 0 else halved(y * 0.5, depth - 1)

        result = halved(x, 3) + tf.add_n(gathered)
        gathered.clear()
        return result

    def catching(x):
        try:
            raise ValueError("no")
        except ValueError as error:
            return x * float(len(str(error)))

    def by_default(x):
        groups = collections.defaultdict(list)
        groups["a"].append(x)
        return groups["a"][0] * sum(value for value in (1.0, 2.0))

    Pair = collections.namedtuple("Pair", "one other")
    return {
        "logging": lambda x: (log.info("shape %s", x.shape), log.debug("further"))[0] or x,
        "a context manager": in_context,
        "objects of its own in a cycle": in_a_cycle,
        "recursion that gathers": recursive,
        "an exception": catching,
        "a defaultdict": by_default,
        "a generator": lambda x: sum(x * float(i) for i in range(3)),
        "an iterator of its own": lambda x: x * next(iter([1.0, 2.0])),
        "a namedtuple": lambda x: Pair(x, 1.0).one,
        "a dataclass": lambda x: x * Settings(3.0).k,
        "an enum": lambda x: x if Mode(2.0) is Mode.TWICE else -x,
        "NumPy's constants": lambda x: x * constants + np.pi * math.e,
        "a loss made within": lambda x: tf.keras.losses.MeanSquaredError()(x, x * 2.0),
    }


@pytest.mark.parametrize("kind", ordinary())
def test_ordinary_functions_replay(kind, caplog):
    step = tf.function(ordinary()[kind])
    results = [step(X).numpy().tolist() for _ in range(4)]
    assert (step.recordings, step.replays) == (1, 3) and not caplog.records and results == results[:1] * 4


# What comes from outside -----------------------------------------------------------------------------------------------------


def test_a_generator_that_is_an_argument_is_drawn_from_anew():
    step = tf.function(lambda x, g: x * g.random())
    generator = np.random.default_rng(0)
    assert len({float(step(X, generator)[0]) for _ in range(5)}) == 5


# Arrays ----------------------------------------------------------------------------------------------------------------------


def test_a_large_array_makes_a_function_eager_and_a_tensor_of_it_does_not(caplog):
    large = np.ones((1200, 1000), "f")
    step = tf.function(lambda x: x * tf.reduce_sum(large))
    for value in (1.0, 2.0):
        large[:] = value
        assert float(step(X)[0]) == 1_200_000.0 * value
    assert "an array of 5 MB, too large" in caplog.text and "make a tensor of it once" in caplog.text
    held = tf.constant(large)
    other = tf.function(lambda x: x * tf.reduce_sum(held))
    other(X), other(X)
    assert other.replays == 1


def test_a_profiler_of_the_users_goes_on():
    seen = []

    def profiler(frame, event, argument):
        seen.append(event)

    step = tf.function(lambda x: x * number)
    sys.setprofile(profiler)
    try:
        step(X)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)

    import cProfile

    profile = cProfile.Profile()
    profile.enable()
    tf.function(lambda x: helper(x))(X)
    helper(X)
    profile.disable()
    assert any("helper" in str(entry.code) for entry in profile.getstats())


def test_threads_record_and_compare_by_themselves():
    state = Box()
    step = tf.function(lambda x: x * state.k)
    found = []
    in_threads(*[lambda: found.extend(float(step(X)[0]) for _ in range(50))] * 4)
    assert found == [2.0] * 200


def test_threads_may_begin_to_record_at_the_same_time():
    script = """
import threading
import minikeras as tf
found = []
def record():
    for _ in range(3):
        found.append(float(tf.function(lambda x: x * 2.0)(tf.constant(1.0))))
threads = [threading.Thread(target=record) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found == [2.0] * 12)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout == "True\n", result.stderr


def test_what_is_read_after_an_operation_that_fails_is_a_fact():
    state = Box()

    def scaled(x):
        return x * state.k

    hidden = {"scaled": scaled}

    @tf.function
    def step(x):
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            tf.matmul(tf.ones((2, 2)), tf.ones((3, 3)))
        return next(iter(hidden.values()))(x)

    assert float(step(X)[0]) == 2.0
    state.k = 3.0
    assert float(step(X)[0]) == 3.0
