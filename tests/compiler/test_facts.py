"""What a function reads and writes in Python beside its arguments: never ignored, whatever it is."""

from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import dataclasses
import datetime
import enum
import functools
import importlib
import itertools
import logging
import math
import operator
import os
import queue as queues
import random
import subprocess
import sys
import threading
import time
import types
import uuid
import weakref

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.compiler.guards.facts import Fact

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


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


@dataclasses.dataclass
class Settings:
    k: float = 2.0


class Mode(enum.Enum):
    TWICE = 2.0
    THRICE = 3.0


number, text, pair, items, table, chosen = 2.0, "twice", (2.0, 1.0), [2.0], {"k": 2.0}, {2.0}
values, box, mode, queue = np.array([2.0], "f"), Box(), Mode.TWICE, collections.deque([2.0])
nested = {"boxes": [Box()], "deep": [[2.0]]}
module = types.ModuleType("settings_of_a_test")
module.k = 2.0


def helper(x):
    return x * 2.0


def replayed_and_changed(function, change, expected=3.0, once=2.0):
    """A change of what a function reads is seen by the very next call; without one the calls are replays."""
    step = tf.function(function)
    for _ in range(3):
        assert step(X).numpy().tolist() == [once, 2.0 * once]
    assert (step.recordings, step.replays, step.eager_calls) == (1, 2, 0)
    change()
    for _ in range(3):
        assert step(X).numpy().tolist() == [expected, 2.0 * expected]
    assert (step.recordings, step.replays, step.eager_calls) == (2, 4, 0)


@pytest.fixture
def here(monkeypatch):
    """Sets names of this module, and puts them back."""
    return functools.partial(monkeypatch.setattr, sys.modules[__name__])


def imported_by_a_statement(x):
    import settings_of_a_test

    return x * settings_of_a_test.rate


BY_IMPORT = {
    "a statement": imported_by_a_statement,
    "import_module": lambda x: x * importlib.import_module("settings_of_a_test").rate,
    "import_module of a part": lambda x: x * importlib.import_module("settings_of_a_test.part").rate,
    "__import__": lambda x: x * __import__("settings_of_a_test").rate,
}


@pytest.mark.parametrize("how", BY_IMPORT)
def test_a_number_of_a_module_that_is_imported_within_the_function_is_a_fact(monkeypatch, how):
    module, part = types.ModuleType("settings_of_a_test"), types.ModuleType("settings_of_a_test.part")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, part.__name__, part)
    module.rate = part.rate = 2.0
    step = tf.function(BY_IMPORT[how])
    assert [float(step(tf.constant(1.0))) for _ in range(4)] == [2.0] * 4
    module.rate = part.rate = 3.0
    assert [float(step(tf.constant(1.0))) for _ in range(4)] == [3.0] * 4


GLOBALS = {
    "a number": ("number", lambda x: x * number, 3.0),
    "a string": ("text", lambda x: x * (2.0 if text == "twice" else 3.0), "thrice"),
    "a tuple": ("pair", lambda x: x * pair[0], (3.0, 1.0)),
    "a list, another one": ("items", lambda x: x * items[0], [3.0]),
    "a dict, another one": ("table", lambda x: x * table["k"], {"k": 3.0}),
    "an array, another one": ("values", lambda x: x * values, np.array([3.0], "f")),
    "a member of an enum": ("mode", lambda x: x * mode.value, Mode.THRICE),
    "a function": ("helper", lambda x: helper(x), lambda x: x * 3.0),
    "an object": ("box", lambda x: box(x), Box(3.0)),
    "within a helper": ("number", lambda x: (lambda: x * number)(), 3.0),
    "within a comprehension": ("number", lambda x: sum([x * number for _ in range(1)]), 3.0),
}


@pytest.mark.parametrize("kind", GLOBALS)
def test_a_global_that_is_set_counts(here, kind):
    name, function, value = GLOBALS[kind]
    replayed_and_changed(function, lambda: here(name, value))


INSIDE = {
    "an element of a list": (lambda x: x * items[0], lambda: items.__setitem__(0, 3.0), lambda: items.__setitem__(0, 2.0)),
    "one more element": (lambda x: x * (1.0 + len(items)), lambda: items.append(0.0), lambda: items.pop()),
    "a value of a dict": (lambda x: x * table["k"], lambda: table.update(k=3.0), lambda: table.update(k=2.0)),
    "one more key": (lambda x: x * (1.0 + len(table)), lambda: table.update(z=0.0), lambda: table.pop("z")),
    "a set": (lambda x: x * sum(chosen), lambda: chosen.add(1.0), lambda: chosen.discard(1.0)),
    "a deque": (lambda x: x * queue[-1], lambda: queue.append(3.0), lambda: queue.pop()),
    "an array": (lambda x: x * values, lambda: values.fill(3.0), lambda: values.fill(2.0)),
    "an attribute": (lambda x: x * box.k, lambda: setattr(box, "k", 3.0), lambda: setattr(box, "k", 2.0)),
    "an attribute by name": (
        lambda x: x * getattr(box, "k"),  # noqa: B009
        lambda: setattr(box, "k", 3.0),
        lambda: setattr(box, "k", 2.0),
    ),
    "an attribute by a name made up": (
        lambda x: x * getattr(box, f"{'k'}"),
        lambda: setattr(box, "k", 3.0),
        lambda: setattr(box, "k", 2.0),
    ),
    "an attribute in its dict": (
        lambda x: x * vars(box)["k"],
        lambda: setattr(box, "k", 3.0),
        lambda: setattr(box, "k", 2.0),
    ),
    "an attribute read in a method": (
        lambda x: box.times(x),
        lambda: setattr(box, "k", 3.0),
        lambda: setattr(box, "k", 2.0),
    ),
    "an attribute of the class": (
        lambda x: x * box.factor,
        lambda: setattr(Box, "factor", 3.0),
        lambda: setattr(Box, "factor", 2.0),
    ),
    "an attribute in the place of the class's": (
        lambda x: x * box.factor,
        lambda: setattr(box, "factor", 3.0),
        lambda: delattr(box, "factor"),
    ),
    "an object in a list in a dict": (
        lambda x: x * nested["boxes"][0].k,
        lambda: setattr(nested["boxes"][0], "k", 3.0),
        lambda: setattr(nested["boxes"][0], "k", 2.0),
    ),
    "a list in a list": (
        lambda x: x * nested["deep"][0][0],
        lambda: nested["deep"][0].__setitem__(0, 3.0),
        lambda: nested["deep"][0].__setitem__(0, 2.0),
    ),
    "a module": (lambda x: x * module.k, lambda: setattr(module, "k", 3.0), lambda: setattr(module, "k", 2.0)),
}


@pytest.mark.parametrize("kind", INSIDE)
def test_a_change_within_a_global_counts(kind):
    function, change, undo = INSIDE[kind]
    try:
        replayed_and_changed(function, change)
    finally:
        undo()


def in_a_closure(value, read):
    return lambda x: x * read(value)


@pytest.mark.parametrize(
    ("value", "read", "change"),
    [
        ([2.0], lambda v: v[0], lambda v: v.__setitem__(0, 3.0)),
        ({"k": 2.0}, lambda v: v["k"], lambda v: v.update(k=3.0)),
        (collections.defaultdict(float, k=2.0), lambda v: v["k"], lambda v: v.update(k=3.0)),
        (collections.Counter(a=2), lambda v: float(v["a"]), lambda v: v.update(a=1)),
        (collections.UserDict(k=2.0), lambda v: v["k"], lambda v: v.update(k=3.0)),
        (bytearray(b"\2"), lambda v: float(v[0]), lambda v: v.__setitem__(0, 3)),
        (array.array("d", [2.0]), lambda v: v[0], lambda v: v.__setitem__(0, 3.0)),
        (np.array([2.0, "a"], object), lambda v: v[0], lambda v: v.__setitem__(0, 3.0)),
        (np.array(["2"]), lambda v: float(v[0]), lambda v: v.__setitem__(0, "3")),
        (np.array(2.0), lambda v: float(v), lambda v: v.fill(3.0)),
        (types.SimpleNamespace(k=2.0), lambda v: v.k, lambda v: setattr(v, "k", 3.0)),
        (Settings(), lambda v: v.k, lambda v: setattr(v, "k", 3.0)),
        (Slotted(), lambda v: v.k, lambda v: setattr(v, "k", 3.0)),
        ([Box()], lambda v: v[0].k, lambda v: setattr(v[0], "k", 3.0)),
        (Box(Box()), lambda v: v.k.k, lambda v: setattr(v.k, "k", 3.0)),
        (threading.local(), lambda v: getattr(v, "k", 2.0), lambda v: setattr(v, "k", 3.0)),
        (functools.partial(lambda b: b.k, Box()), lambda v: v(), lambda v: setattr(v.args[0], "k", 3.0)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_change_within_what_a_closure_holds_counts(value, read, change):
    replayed_and_changed(in_a_closure(value, read), lambda: change(value))


def test_variables_of_functions_around_count():
    k = 2.0

    def inner(x):
        return x * k

    def change():
        nonlocal k
        k = 3.0

    replayed_and_changed(lambda x: inner(x), change)


def test_what_a_decorated_function_reads_counts():
    scale = Box()

    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x) * 1.0

        return wrapper

    @twice
    def step(x):
        return x * scale.k

    replayed_and_changed(step, lambda: setattr(scale, "k", 3.0))


def test_an_object_that_is_returned_or_referred_to_weakly_counts():
    held, weak = Box(), Box()
    ref = weakref.ref(weak)

    def given():
        return held

    replayed_and_changed(lambda x: x * given().k, lambda: setattr(held, "k", 3.0))
    replayed_and_changed(lambda x: x * ref().k, lambda: setattr(weak, "k", 3.0))


def test_an_object_that_is_gone_is_a_change():
    box = Box()
    fact = Fact(lambda owner: len(vars(owner())), weakref.ref(box), ("k",), "attribute {} of Box", lambda name: True)
    then = fact.now()
    assert fact.difference(then) is None
    del box
    assert fact.difference(then) == "attribute 'k' of Box"


def test_defaults_and_attributes_of_functions_count():
    def scaled(x, by=[2.0]):  # noqa: B006
        return x * by[0]

    replayed_and_changed(lambda x: scaled(x), lambda: scaled.__defaults__[0].__setitem__(0, 3.0))

    def labelled(x):
        return x * labelled.k

    labelled.k = 2.0
    replayed_and_changed(labelled, lambda: setattr(labelled, "k", 3.0))


def test_methods_of_plain_objects_count():
    one = Box()
    replayed_and_changed(one.times, lambda: setattr(one, "k", 3.0))


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


def hidden():
    """Values that are reached otherwise than by a name and a dot: a function, and how to change what it reads."""

    class Thing:
        factors = [2.0]

        def __init__(self):
            self._k, self.k0, self.d = 2.0, 2.0, {"k": 2.0}

        @property
        def k(self):
            return self._k

        @classmethod
        def factor(cls):
            return cls.factors[0]

        def method(self):
            return 2.0

        def __getitem__(self, key):
            return self.d[key]

    class Delegating:
        def __init__(self):
            self.__dict__["inner"] = {"k": 2.0}

        def __getattr__(self, name):
            return self.inner[name]

    thing, other, delegating, context = Thing(), Thing(), Delegating(), contextvars.ContextVar("context", default=2.0)
    data, table, base, cached_from = bytearray(b"\2"), {"a": 2.0}, np.full((3, 3), 2.0, "f"), [2.0]
    shown, view, read_only, getter = memoryview(data), table.values(), base[1:, 1], operator.attrgetter("k0")
    read_only.flags.writeable = False
    named, environment = {"tf": tf, "k": 2.0}, os.environ
    exec("def executed(x):\n    return x * k", named)
    environment["OF_A_TEST"] = "2"

    def by_name(owner, name):
        return getattr(owner, name)

    def patched():
        return 2.0

    def defaulted(k=2.0, *, more=0.0):
        return k + more

    @functools.lru_cache
    def cached():
        return cached_from[0]

    return {
        "a property": (lambda x: x * thing.k, lambda: setattr(thing, "_k", 3.0)),
        "a class method": (lambda x: x * thing.factor(), lambda: Thing.factors.__setitem__(0, 3.0)),
        "__getitem__": (lambda x: x * thing["k"], lambda: thing.d.update(k=3.0)),
        "__getattr__": (lambda x: x * delegating.k, lambda: delegating.inner.update(k=3.0)),
        "getattr of a name put together": (lambda x: x * by_name(thing, "k" + str(0)), lambda: setattr(thing, "k0", 3.0)),
        "an attrgetter": (lambda x: x * getter(thing), lambda: setattr(thing, "k0", 3.0)),
        "a context variable": (lambda x: x * context.get(), lambda: context.set(3.0)),
        "a memoryview": (lambda x: x * shown[0], lambda: data.__setitem__(0, 3)),
        "a view of a dict": (lambda x: x * sum(view), lambda: table.update(b=1.0)),
        "a view of an array": (lambda x: x * read_only[0], lambda: base.fill(3.0)),
        "the environment": (lambda x: x * float(os.environ["OF_A_TEST"]), lambda: environment.update(OF_A_TEST="3")),
        "a method of a class": (lambda x: x * other.method(), lambda: setattr(Thing, "method", lambda self: 3.0)),
        "a method of an object": (lambda x: x * thing.method(), lambda: setattr(thing, "method", lambda: 3.0)),
        "the code of a function": (lambda x: x * patched(), lambda: setattr(patched, "__code__", (lambda: 3.0).__code__)),
        "defaults": (lambda x: x * defaulted(), lambda: setattr(defaulted, "__defaults__", (3.0,))),
        "defaults by name": (lambda x: x * defaulted(), lambda: defaulted.__kwdefaults__.update(more=1.0)),
        "a cache": (lambda x: x * cached(), lambda: (cached_from.__setitem__(0, 3.0), cached.cache_clear())),
        "code that was executed": (named["executed"], lambda: named.update(k=3.0)),
    }


@pytest.mark.parametrize("kind", hidden())
def test_a_change_of_what_is_read_by_another_way_counts(kind):
    try:
        replayed_and_changed(*hidden()[kind])
    finally:
        os.environ.pop("OF_A_TEST", None)


def test_globals_by_their_dict_count(here):
    replayed_and_changed(lambda x: x * globals()["number"], lambda: here("number", 3.0))


def test_a_setting_of_keras_counts():
    before = tf.keras.config.epsilon()
    try:
        tf.keras.config.set_epsilon(2.0)
        replayed_and_changed(lambda x: x * tf.keras.config.epsilon(), lambda: tf.keras.config.set_epsilon(3.0))
    finally:
        tf.keras.config.set_epsilon(before)


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


def test_a_counter_in_an_attribute_makes_a_function_eager(caplog):
    state = Box(0)

    def step(x):
        state.k += 1
        return x * float(state.k % 2)

    runs_eagerly(step, caplog, "it changes attribute 'k' of Box", "tf.Variable", results=[1.0, 0.0] * 3)
    assert state.k == 6


def test_a_global_counter_makes_a_function_eager(caplog, here):
    here("number", 0.0)

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


def holders():
    log, record, state, found, waiting = [], {}, Box(), set(), collections.deque()
    counts, buffer, total = collections.Counter(), bytearray(1), np.zeros(1)

    def numbered(x):
        numbered.calls += 1
        return x

    numbered.calls = 0
    return {
        "appends to a list": (lambda x: log.append(1) or x, lambda: len(log)),
        "stores a tensor in an attribute": (lambda x: setattr(state, "last", x) or x, lambda: 6 * (state.last is not None)),
        "sets a key": (lambda x: record.__setitem__(len(record), x) or x, lambda: len(record)),
        "adds to a set": (lambda x: found.add(len(found)) or x, lambda: len(found)),
        "appends to a deque": (lambda x: waiting.append(x) or x, lambda: len(waiting)),
        "counts in a Counter": (lambda x: counts.update("a") or x, lambda: counts["a"]),
        "writes to an array": (lambda x: total.__iadd__(1.0) is None or x, lambda: int(total[0])),
        "writes bytes": (lambda x: buffer.append(1) or x, lambda: len(buffer) - 1),
        "counts in its own attribute": (numbered, lambda: numbered.calls),
    }


@pytest.mark.parametrize("kind", holders())
def test_what_outlives_the_run_is_written_at_each_call(caplog, kind):
    function, count = holder_of(kind)
    runs_eagerly(function, caplog, "it changes")
    assert count() == 6


def holder_of(kind):
    return holders()[kind]


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


def outside():
    generator, legacy, own = np.random.default_rng(0), np.random.RandomState(0), random.Random(0)
    count, lines = itertools.count(), iter([float(i) for i in range(100)])

    def numbers():
        yield from range(100)

    running, waiting = numbers(), queues.Queue()
    for i in range(100):
        waiting.put(float(i))
    return {
        "a queue": lambda x: x * waiting.get(),
        "np.random": lambda x: x * float(np.random.rand()),
        "np.random.normal": lambda x: x + np.random.normal(size=2).astype("f"),
        "random": lambda x: x * random.random(),
        "random.choice": lambda x: x * random.choice([1.0, 2.0]),
        "a generator": lambda x: x * generator.random(),
        "a RandomState": lambda x: x * legacy.rand(),
        "a Random": lambda x: x * own.random(),
        "time": lambda x: x * (time.time() % 1.0),
        "perf_counter": lambda x: x * time.perf_counter(),
        "datetime": lambda x: x * datetime.datetime.now().timestamp(),
        "urandom": lambda x: x * float(os.urandom(1)[0]),
        "uuid": lambda x: x * float(uuid.uuid4().int % 7),
        "itertools.count": lambda x: x * float(next(count)),
        "an iterator": lambda x: x * next(lines),
        "a running generator": lambda x: x * float(next(running)),
    }


@pytest.mark.parametrize("kind", outside())
def test_numbers_from_outside_make_a_function_eager(caplog, kind):
    state = np.random.get_state()
    try:
        runs_eagerly(outside()[kind], caplog, "it ")
    finally:
        np.random.set_state(state)


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
