"""The contract of recordings, over small programs whose Python facts change between calls.

Each is noticed at the next call, stays eager with a warning, or is a constant that the guide lists. There is no fourth kind.
"""

import builtins
import decimal
import random
import sys
import textwrap
import time
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

import minikeras as tf

TABLES = tomllib.loads((Path(__file__).parent / "programs.toml").read_text())
BEGINNINGS = {word: text.strip() for word, text in TABLES["beginnings"].items()}


def written_out(line):
    """A line of a program, or those that its first word stands for."""
    word, _, expression = line.partition(" ")
    return BEGINNINGS[word].replace("EXPRESSION", expression) if word in BEGINNINGS else line


def programs(*tables):
    """The programs of these tables by name."""
    found = {}
    for table in tables:
        for name, (before, *lines) in TABLES[table].items():
            found[name] = ("\n".join(map(written_out, before.split("\n"))), *lines)
    return found


NOTICED = programs("globals", "functions", "objects", "made_up_names", "tracked")
EAGER = {f"writes {name}": program for name, program in programs("writes").items()} | programs("draws")
CONSTANT = programs("constant")


@pytest.fixture
def x():
    return tf.constant([1.0, 2.0])


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a program of its text: the function, and how to carry out a further line of it."""
    epsilon, errors, interval = tf.keras.config.epsilon(), np.geterr(), sys.getswitchinterval()
    module = types.ModuleType("of_a_program_itself")
    (tmp_path / "file").write_text("\n".join("x" * (i + 1) for i in range(50)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(module).update(np=np, tf=tf, FILE=str(tmp_path / "file"), HELD=[])
    draws = np.random.get_state()

    def made(before, result):
        exec(textwrap.dedent(before), vars(module))
        exec(f"def of_x(x): return {result}", vars(module))
        return module.of_x, lambda line: exec(line, vars(module))

    yield made
    if hasattr(vars(module).get("k"), "close"):
        module.k.close()
    vars(module).clear()
    for name in ("of_a_program", "of_a_program.part"):
        sys.modules.pop(name, None)
    vars(builtins).pop("of_a_program", None)
    decimal.setcontext(decimal.Context())
    tf.keras.config.set_epsilon(epsilon), np.seterr(**errors), sys.setswitchinterval(interval), np.random.set_state(draws)


def same(results, expected):
    return all(np.array_equal(one.numpy(), expected.numpy(), equal_nan=True) for one in results)


@pytest.mark.parametrize("name", NOTICED)
def test_a_change_is_noticed_at_the_next_call_and_without_one_calls_are_replays(program, name, x, caplog):
    before, result, change = NOTICED[name]
    function, carry_out = program(before, result)
    compiled = tf.function(function)
    found, first = [compiled(x) for _ in range(5)], function(x)
    assert same(found, first) and (compiled.recordings, compiled.replays, compiled.eager_calls) == (1, 4, 0)
    carry_out(change)
    found = [compiled(x) for _ in range(5)]
    assert same(found, function(x)) and (compiled.recordings, compiled.replays, compiled.eager_calls) == (2, 8, 0)
    assert not caplog.records
    assert not same(found[:1], first), "the change is to change something"


@pytest.mark.parametrize("name", EAGER)
def test_what_is_impure_or_cannot_be_compared_stays_eager_and_says_so_once(program, name, x, caplog):
    expected, function = [], program(*EAGER[name])[0]
    if name.startswith("writes"):
        expected, function = [function(x) for _ in range(10)], program(*EAGER[name])[0]  # once more, from the beginning
    compiled = tf.function(function)
    found = [compiled(x) for _ in range(10)]
    assert all(same([one], other) for one, other in zip(found, expected)), "each call writes once"  # noqa: B905
    assert (compiled.recordings, compiled.replays, compiled.eager_calls) == (0, 0, 10)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "runs eagerly: " in told


@pytest.mark.parametrize("name", CONSTANT)
def test_what_the_guide_lists_is_a_constant_of_the_recording(program, name, x):
    before, result, change = CONSTANT[name]
    function, carry_out = program(before, result)
    compiled = tf.function(function)
    found = [compiled(x) for _ in range(5)]
    first = function(x)
    assert same(found, first) and compiled.replays == 4
    carry_out(change)
    assert same([compiled(x) for _ in range(5)], first) and not same([first], function(x))


def test_the_table_is_large_enough():
    assert len(NOTICED) + len(EAGER) + len(CONSTANT) >= 200 and len(EAGER) >= 40


SOURCES = {
    "random": lambda: random.random(),
    "np.random": lambda: float(np.random.rand()),
    "a clock": lambda: time.time() % 1.0,
    "a counter": lambda: float(len(COUNTED.append(1) or COUNTED)),
}
COUNTED = []


def model_with(place, source):
    """A model with a number from outside in one place."""

    class Layer(tf.keras.layers.Layer):
        def call(self, x):
            return x * source()

    class Loss(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return tf.reduce_mean(tf.abs(y_true - y_pred), -1) * source()

    class Metric(tf.keras.metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(source())

    class Model(tf.keras.Sequential):
        def train_step(self, data):
            x, y = data
            return super().train_step((x * source() if place == "train_step" else x, y))

    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(2), *([Layer()] if place == "call" else [])]
    model = Model(layers)
    loss = {"a loss": Loss(), "a function for a loss": lambda y, p: tf.reduce_mean(tf.abs(y - p)) * source()}.get(place, "mse")
    model.compile("sgd", loss, metrics=[Metric()] if place == "a metric" else [])
    return model


@pytest.mark.parametrize("place", ["call", "a loss", "a function for a loss", "a metric", "train_step"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_step_of_fit_with_a_number_from_outside_stays_eager_and_says_where_and_what_to_use(place, source, caplog):
    COUNTED.clear()
    draws, model = np.random.get_state(), model_with(place, SOURCES[source])
    model.fit(np.ones((12, 2), "f"), np.ones((12, 2), "f"), batch_size=2, epochs=2, verbose=0)
    np.random.set_state(draws)
    step = model._trainer.steps["train_step"]
    assert (step.recordings, step.replays, step.eager_calls) == (0, 0, 12)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "tf.Variable" in told and (source == "a counter" or (__file__ in told and "tf.random" in told))


def test_a_schedule_is_asked_for_its_number_at_each_step():
    class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            COUNTED.append(1)
            return 0.1 * len(COUNTED)

        def get_config(self):
            return {}

    COUNTED.clear()
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)])
    model.compile(tf.keras.optimizers.SGD(Schedule()), "mse")
    model.fit(np.ones((12, 2), "f"), np.ones((12, 2), "f"), batch_size=2, epochs=1, verbose=0)
    step = model._trainer.steps["train_step"]
    assert step.replays >= 4 and len(COUNTED) >= 6
