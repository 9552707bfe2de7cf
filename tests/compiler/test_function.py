"""What a function of `tf.function` does at each call, and what it says about it."""

from __future__ import annotations

import array
import ast
import collections
import copy
import dataclasses
import datetime
import fractions
import weakref

import numpy as np
import pytest
from small_training import both

import minikeras as tf
from minikeras.core import bind
from minikeras.errors import CompileError, InvalidArgumentError


def test_python_runs_at_most_twice_for_each_signature(capsys):
    @tf.function
    def noted(x, factor=2.0):
        print((tuple(x.shape), x.dtype.name, factor))
        return x * factor

    for x in (tf.zeros(2), tf.ones(2), np.ones(2, "f"), tf.zeros(3), tf.zeros(2, "float64")):
        noted(x)
    for factor in (2.0, 3.0, 3, -0.0, 0.0):
        noted(tf.zeros(2), factor=factor)
    seen = [ast.literal_eval(line) for line in capsys.readouterr().out.splitlines()]
    once = [((3,), "float32", 2.0), ((2,), "float64", 2.0)]
    assert seen[:4] == [((2,), "float32", 2.0)] * 2 + once and [factor for _, _, factor in seen[4:]] == [2.0, 3.0, 3, -0.0, 0.0]
    assert noted.recordings == len(seen) - 1 == noted.experimental_get_tracing_count() and noted.replays == 2
    assert np.signbit(noted(tf.ones(2), factor=-0.0).numpy()).all() and not np.signbit(noted(tf.ones(2), factor=0.0)).any()


def test_nests_go_in_and_come_out():
    @tf.function
    def swapped(pair, *, extra):
        return {"sum": pair[0] + pair[1]["y"], "rest": (extra, 3, None, "text", pair[0])}

    for value in (1.0, 2.0):
        x, y = tf.constant(value), tf.constant(10.0 * value)
        result = swapped([x, {"y": y}], extra=y * 2.0)
        assert float(result["sum"]) == 11.0 * value and float(result["rest"][0]) == 20.0 * value
        assert result["rest"][1:4] == (3, None, "text") and float(result["rest"][4]) == value
    assert swapped.recordings == swapped.replays == 1


def test_one_tensor_given_twice_is_two_arguments():
    difference = tf.function(lambda a, b: a - b)
    x = tf.constant(3.0)
    assert [float(difference(x, x)), float(difference(x, tf.constant(1.0)))] == [0.0, 2.0]
    assert difference.replays == 1


def test_a_recording_keeps_no_values_of_its_first_call():
    step = tf.function(lambda x, y: {"sum": tf.exp(x) + tf.nn.dropout(y[0], 0.5)})
    array = np.ones((100, 100), "f")
    results = step(tf.convert_to_tensor(array), [tensor := tf.ones((100, 100))])
    gone = [weakref.ref(one) for one in (tensor.array, results["sum"].array)]
    del tensor, results
    assert [one() for one in gone] == [None, None] and step.recordings == 1


def test_objects_given_as_arguments_are_told_apart_also_after_they_are_gone():
    double = tf.function(lambda v, x: v * x)
    for value in range(200):
        assert float(double(tf.Variable(float(value)), tf.constant(2.0))) == 2.0 * value


def test_results_are_never_written_to_again():
    v = tf.Variable([0.0, 0.0])

    @tf.function
    def step(x):
        v.assign_add(x)
        return x * 2.0, v.value(), v

    kept = [step(tf.constant([1.0, i])) for i in range(5)]
    assert [one[0].numpy().tolist() for one in kept] == [[2.0, 2.0 * i] for i in range(5)]
    for place in (1, 2):  # as in TensorFlow, a Variable that is returned is its value
        found = [one[place].numpy().tolist() for one in kept]
        assert found == [[1.0, 0.0], [2.0, 1.0], [3.0, 3.0], [4.0, 6.0], [5.0, 10.0]]


def test_state_is_read_and_assigned_anew():
    v, w = tf.Variable(1.0), tf.Variable(0.0)

    @tf.function
    def step(x):
        w.assign(v)
        v.assign(v * x)
        v.assign_sub(1.0)
        w.assign_add(tf.constant(0.5))
        return w + v

    def by_hand(v, w, x):
        w = v
        v = v * x - 1.0
        return v, w + 0.5

    held = (1.0, 0.0)
    for x in (2.0, 3.0, 4.0, 5.0):
        result = step(tf.constant(x))
        held = by_hand(*held, x)
        assert (float(v), float(w), float(result)) == (*held, sum(held))
    v.assign(10.0)
    assert float(step(tf.constant(1.0))) == 9.0 + 10.5 and step.recordings == 1


def test_the_learning_rate_is_not_baked_in():
    w, optimizer = tf.Variable(0.0), tf.keras.optimizers.SGD(1.0)

    @tf.function
    def step(g):
        optimizer.apply([g], [w])

    for rate in (1.0, 1.0, 1.0, 0.25):
        optimizer.learning_rate = rate
        step(tf.constant(1.0))
    assert float(w) == -3.25 and step.replays == 3 and int(optimizer.iterations) == 4


def test_an_interpreter_around_it_makes_it_run_eagerly():
    cube = tf.function(lambda x: x**3)
    x = tf.Variable(2.0)
    for _ in range(2):
        cube(tf.constant(2.0))
        with tf.GradientTape() as tape:
            y = cube(x)
        assert float(tape.gradient(y, x)) == 12.0
    assert cube.eager_calls == 2 and cube.replays == 1


def test_a_function_within_a_function_is_part_of_its_program():
    inner = tf.function(lambda x: x + 1.0)
    outer = tf.function(lambda x: inner(x) * 2.0)
    assert [float(outer(tf.constant(x))) for x in (1.0, 2.0)] == [4.0, 6.0]
    assert "add(" in str(outer.program(tf.constant(1.0))) and inner.recordings == 0


def test_a_value_that_leaves_for_python_makes_the_function_eager_and_is_told_once(caplog):
    @tf.function
    def positive(x):
        if tf.reduce_sum(x) > 0.0:
            return x
        return -x

    assert [float(positive(tf.constant(x))) for x in (1.0, -2.0, 3.0)] == [1.0, 2.0, 3.0]
    assert (positive.recordings, positive.replays, positive.eager_calls) == (0, 0, 3)
    (message,) = [record.getMessage() for record in caplog.records]
    assert "positive runs eagerly: bool() of a tensor, at " in message and "test_function.py" in message


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda x: float(x[0]), r"float\(\)"),
        (lambda x: x.numpy(), r"\.numpy\(\)"),
        (lambda x: np.sum(x), "a NumPy function"),
        (lambda x: int(tf.cast(x[0], "int32")), r"int\(\)"),
        (lambda x: tf.boolean_mask(x, x > 0.0), "depends on values"),
        (lambda x: tf.linalg.expm(tf.reshape(x, (1, 1))), "depends on values"),
        (lambda x: tf.Variable([0.0]).numpy(), r"\.numpy\(\)"),
        (lambda x: object(), "returns object"),
    ],
)
def test_jit_compile_raises_where_a_function_would_run_eagerly(ask, what):
    step = tf.function(ask, jit_compile=True)
    with pytest.raises(CompileError, match=f"(?s)cannot be recorded: .*{what}.*, at .*test_function.py:.*tf.where.*eagerly"):
        step(tf.constant([1.0]))
    assert step.recordings == 0


def test_what_shapes_decide_may_leave_for_python():
    @tf.function(jit_compile=True)
    def mean(x):
        rows = tf.shape(x)[0]
        return tf.reduce_sum(x) / float(int(rows) * 2)

    assert [float(mean(tf.ones(n))) for n in (2, 2, 3)] == [0.5, 0.5, 0.5] and mean.recordings == 2


def test_scattering_into_a_variable_runs_eagerly():
    v = tf.Variable([0.0, 0.0])

    @tf.function
    def step(x):
        v[0].assign(x)
        return v.value()

    assert [step(tf.constant(x)).numpy().tolist() for x in (1.0, 2.0)] == [[1.0, 0.0], [2.0, 0.0]]
    assert "assign to a part of variable" in str(step.program(tf.constant(1.0)))


def test_variables_made_in_the_first_call_are_kept_and_in_each_call_make_it_eager():
    held = []

    @tf.function
    def once(x):
        if not held:
            held.append(tf.Variable(1.0))
        return held[0].assign_add(x)

    each = tf.function(lambda x: tf.Variable(x) * 2.0)
    assert [float(once(tf.constant(1.0))) for _ in range(4)] == [2.0, 3.0, 4.0, 5.0] and once.replays == 2
    assert [float(each(tf.constant(x))) for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert "makes Variables in each call" in str(each.program(tf.constant(1.0)))


@pytest.mark.parametrize("jit_compile", [None, True])
def test_a_variable_that_is_returned_is_its_value_at_that_moment(jit_compile):
    count = tf.Variable(0)
    step = tf.function(lambda x: {"one": count.assign_add(x), "all": [count, x]}, jit_compile=jit_compile)
    found = [step(tf.constant(1)) for _ in range(4)]  # two runs, two replays
    assert [int(one["one"]) for one in found] == [int(one["all"][0]) for one in found] == [1, 2, 3, 4]
    assert step.scan(np.ones(3, "int32"))["one"].numpy().tolist() == [5, 6, 7] and step.eager_calls == 0
    variable = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        value = tf.function(lambda: variable)()
    assert isinstance(value, tf.Tensor) and float(tape.gradient(value, variable)) == 1.0


def test_checks_are_made_at_every_call():
    table = tf.Variable([[1.0], [2.0]])
    row = tf.function(lambda i: tf.gather(table, i))
    loss = tf.function(tf.nn.sparse_softmax_cross_entropy_with_logits)
    inverse = tf.function(tf.linalg.inv)
    logits = tf.zeros((1, 2))
    for _ in range(2):  # Python carries out two runs
        row(tf.constant([0])), loss(tf.constant([1]), logits), inverse(tf.eye(2))
    with pytest.raises(InvalidArgumentError, match=r"indices = 2 is not in \[0, 2\)"):
        row(tf.constant([2]))
    with pytest.raises(InvalidArgumentError, match="label value of 5"):
        loss(tf.constant([5]), logits)
    taken = tf.function(lambda i: tf.keras.ops.take(table, i, axis=0), jit_compile=True)  # of indices that kernels compute
    for _ in range(3):
        assert taken(tf.constant([1, -2])).numpy().tolist() == [[2.0], [1.0]]
    with pytest.raises(InvalidArgumentError, match=r"indices = 5 is not in \[0, 2\)"):
        taken(tf.constant([0, 5]))
    for read in (table.sparse_read, tf.function(table.sparse_read), tf.function(table.sparse_read, jit_compile=True)):
        for _ in range(3):
            assert read(tf.constant([1, -2])).numpy().tolist() == [[2.0], [1.0]]
        with pytest.raises(InvalidArgumentError, match=r"sparse_read: indices = -3 is not in \[-2, 2\)"):
            read(tf.constant([0, -3]))
    whole = lambda i: tf.convert_to_tensor(tf.IndexedSlices([[1.0], [2.0]], i, (2, 1))) * 1.0
    for add in (whole, tf.function(whole), tf.function(whole, jit_compile=True)):
        for _ in range(3):
            assert add(tf.constant([1, -2])).numpy().tolist() == [[2.0], [1.0]]
        with pytest.raises(InvalidArgumentError, match=r"IndexedSlices: indices = 2 is not in \[-2, 2\)"):
            add(tf.constant([0, 2]))
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        inverse(tf.zeros((2, 2)))
    assert row.replays == loss.replays == inverse.replays == 2
    assert row(tf.constant([1])).numpy().tolist() == [[2.0]]


def test_an_error_while_recording_leaves_nothing():
    fails = [True]

    @tf.function
    def step(x):
        if fails[0]:
            raise KeyError("no")
        return x + 1.0

    with pytest.raises(KeyError):
        step(tf.constant(1.0))
    fails.clear()
    fails.append(False)
    assert float(step(tf.constant(1.0))) == 2.0 and step.recordings == 1


def test_an_input_signature_is_held():
    step = tf.function(
        lambda x, scale: x * scale, input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([], tf.float32)]
    )
    assert step([[1.0, 2.0]], 2.0).numpy().tolist() == [[2.0, 4.0]] and step(np.ones((3, 2), "f"), 3.0).shape == (3, 2)
    assert step([[5.0, 2.0]], 7.0).numpy().tolist() == [[35.0, 14.0]] and step.recordings == 2
    with pytest.raises(TypeError, match=r"incompatible with input_signature.*float32\[None, 2\], found float32\[2\]"):
        step(tf.ones(2), 1.0)
    with pytest.raises(TypeError, match="incompatible with input_signature"):
        step(tf.ones((1, 2), "float64"), 1.0)
    with pytest.raises(TypeError, match="has 2 arguments, the call 1"):
        step(tf.ones((1, 2)))


def test_an_input_signature_binds_by_name_and_by_default():
    number = tf.TensorSpec([], tf.float32)

    @tf.function(input_signature=[number, number])
    def difference(a, b=2.0, *, negative=False):
        return b - a if negative else a - b

    assert [float(difference(3.0, 1.0)), float(difference(b=1.0, a=3.0)), float(difference(3.0, b=1.0))] == [2.0] * 3
    assert [float(difference(5.0)), float(difference(a=5.0)), float(difference(5.0, negative=True))] == [3.0, 3.0, -3.0]
    assert (difference.recordings, difference.replays) == (2, 4)

    class Scale:
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
        def times(self, x, factor=3.0):
            return x * factor

    assert Scale().times([1.0]).numpy().tolist() == Scale().times(x=[1.0]).numpy().tolist() == [3.0]
    for arguments, options, message in (
        ((), {}, "missing a required argument: 'a'; the input_signature has 2 arguments, the call 0"),
        ((1.0, 2.0, 3.0), {}, "too many positional arguments; the input_signature has 2 arguments, the call 3"),
        ((1.0,), {"c": 2.0}, "unexpected keyword argument 'c'"),
        ((1.0,), {"a": 2.0}, "multiple values for argument 'a'"),
    ):
        with pytest.raises(TypeError, match=message):
            difference(*arguments, **options)


def test_python_numbers_come_back_as_tensors_also_from_eager_calls():
    @tf.function
    def recorded(x):
        return {"a": 2, "b": [x, 2.5, True], "c": (np.float32(1.5), np.arange(2), None, "text")}

    @tf.function
    def eager(x):
        return int(x), float(x) * 0.5

    for _ in range(2):
        found = recorded(tf.constant(1.0))
        leaves = [found["a"], *found["b"], *found["c"][:2]]
        assert all(isinstance(leaf, tf.Tensor) for leaf in leaves)
        assert [leaf.dtype.name for leaf in leaves] == ["int32", "float32", "float32", "bool", "float32", "int64"]
        assert found["c"][2:] == (None, "text") and float(found["b"][1]) == 2.5
        whole, half = eager(tf.constant(3.0))
        assert isinstance(whole, tf.Tensor) and (int(whole), whole.dtype.name, float(half)) == (3, "int32", 1.5)
    assert recorded.replays == 1 and eager.replays == 0


def by_content():
    return {
        "a set": ({2.0}, lambda one: (one.clear(), one.add(3.0)), lambda one: sum(one)),
        "a frozenset": (frozenset({2.0}), None, lambda one: sum(one)),
        "a deque": (collections.deque([2.0]), lambda one: one.__setitem__(0, 3.0), lambda one: one[0]),
        "a bytearray": (bytearray(b"\2"), lambda one: one.__setitem__(0, 3), lambda one: float(one[0])),
        "an array of strings": (np.array(["2"]), lambda one: one.__setitem__(0, "3"), lambda one: float(one[0])),
        "an array of objects": (np.array([2.0, "a"], object), lambda one: one.__setitem__(0, 3.0), lambda one: one[0]),
        "an array of Python's": (array.array("d", [2.0]), lambda one: one.__setitem__(0, 3.0), lambda one: one[0]),
        "a set in a list": ([{2.0}], lambda one: one[0].update({1.0}), lambda one: sum(one[0])),
        "a frozen dataclass": (Fixed(2.0), None, lambda one: one.k),
        "a slice": (slice(2, 3), None, lambda one: float(one.start)),
        "a date": (datetime.date(2, 2, 2), None, lambda one: float(one.year)),
        "a fraction": (fractions.Fraction(2), None, lambda one: float(one)),
    }


@dataclasses.dataclass(frozen=True)
class Fixed:
    k: float


@pytest.mark.parametrize("kind", by_content())
def test_arguments_that_hold_values_are_told_by_their_values(kind):
    value, change, read = by_content()[kind]
    step = tf.function(lambda x, one: x * read(one))
    for _ in range(3):
        assert float(step(tf.constant(1.0), copy.deepcopy(value))) == 2.0
    assert (step.recordings, step.replays) == (1, 2)
    if change is not None:
        for _ in range(2):
            changed = copy.deepcopy(value)
            change(changed)
            assert float(step(tf.constant(1.0), changed)) == 3.0
        change(value)
        assert float(step(tf.constant(1.0), value)) == 3.0
        assert (step.recordings, step.replays) == (2, 4)


def test_objects_given_as_arguments_are_known_by_what_was_read_of_them():
    @dataclasses.dataclass
    class Settings:
        k: float = 2.0
        note: str = ""

    step = tf.function(lambda x, one: x * one["settings"][0].k)
    settings = Settings()
    for k in (2.0, 2.0, 3.0, 3.0):
        settings.k, settings.note = k, f"set to {k}"
        assert float(step(tf.constant(1.0), {"settings": [settings]})) == k
    assert (step.recordings, step.replays) == (2, 2)


def test_what_a_function_does_to_an_argument_is_done_at_each_call(caplog):
    @tf.function
    def kept(x, log, table):
        log.append(x)
        table["nested"]["last"] = x
        return x * 2.0

    log, table, given = [], {"nested": {}}, [tf.constant(float(i)) for i in range(12)]
    for x in given:
        kept(x, log, table)
    assert all(one is x for one, x in zip(log, given, strict=True)) and len(log) == 12
    assert table["nested"]["last"] is given[-1] and kept.replays == 0
    assert "it changes an argument" in caplog.text


def test_an_iterator_that_is_an_argument_makes_a_call_eager(caplog):
    step = tf.function(lambda x, numbers: x * next(numbers))
    numbers = iter([1.0, 2.0, 3.0])
    assert [float(step(tf.constant(1.0), numbers)) for _ in range(3)] == [1.0, 2.0, 3.0]
    assert "an argument is a list_iterator, which gives something else each time" in caplog.text


def test_methods_are_recorded_for_each_object():
    class Scale:
        def __init__(self, factor):
            self.factor = tf.Variable(factor)

        @tf.function
        def __call__(self, x):
            return self.factor * x

    one, two = Scale(2.0), Scale(3.0)
    assert [float(f(tf.constant(1.0))) for f in (one, two, one, two)] == [2.0, 3.0, 2.0, 3.0]


def test_a_tensor_with_a_mask_is_an_argument_for_an_eager_run(caplog):
    step = tf.function(lambda x: x + 1.0)
    masked = tf.keras.layers.Masking()(tf.constant([[[1.0], [0.0]]]))
    assert step(masked).numpy().tolist() == [[[2.0], [1.0]]] and step.eager_calls == 1 and step.recordings == 0
    assert "an argument is a tensor with a mask" in caplog.text


@pytest.mark.parametrize(
    "structure",
    [
        lambda a, b: a,
        lambda a, b: {"a": a, "b": b},
        lambda a, b: {"b": (a, None), "a": [b]},
        lambda a, b: collections.OrderedDict(b=a, a=b),
        lambda a, b: (a, {"b": 2.5}),
        lambda a, b: {},
    ],
)
def test_a_replay_gives_the_structure_of_the_recorded_run(structure):
    step = tf.function(lambda x: structure(x + 1.0, x * 2.0))
    first, replayed = step(tf.constant(3.0)), step(tf.constant(3.0))
    assert step.replays == 1 and repr(first) == repr(replayed)


def test_signatures_that_never_come_back_end_in_eager_calls_and_that_is_told_once(caplog):
    step = tf.function(lambda x, n: x * n)
    for n in range(70):
        assert float(step(tf.constant(2.0), n)) == 2.0 * n
    assert (step.recordings, step.eager_calls) == (8, 62)
    assert float(step(tf.constant(3.0), 3)) == 9.0 and step.replays == 1, "what is known is replayed"
    (told,) = [record.getMessage() for record in caplog.records]
    assert "goes on eagerly where it has no program: there are 8 programs for 0 replays" in told


def test_replays_pay_for_further_recordings():
    step = tf.function(lambda x: x + 1.0)
    for _ in range(40):
        for n in range(20):
            assert step(tf.ones(n)).shape == (n,)
    assert step.recordings == 20 and step.replays > step.eager_calls


def test_old_signatures_are_forgotten():
    step = tf.function(lambda x: x + 1.0)
    for n in range(70):
        for _ in range(17):
            step(tf.ones(n))
    assert step.recordings == 70 and len(step._cache) == 64


def test_a_program_prints_as_its_operations():
    v = tf.Variable(2.0, name="v")

    @tf.function
    def step(x):
        v.assign_add(x)
        return tf.sin(v * x)

    with pytest.raises(LookupError, match="not called with such arguments yet"):
        step.program(tf.constant(1.0))
    step(tf.constant(1.0))
    assert str(step.program(tf.constant(1.0))).splitlines() == [
        "%0:float32[] = argument()",
        "assign(v:0:float32[], %0:float32[], conversion='assign_add')",
        "%1:float32[] = read_variable(v:0:float32[])",
        "%2:float32[] = multiply(%1:float32[], %0:float32[])",
        "%3:float32[] = sin(%2:float32[])",
        "return %3:float32[]",
    ]
    assert repr(step.program(tf.constant(1.0))) == "<Program of 4 instructions, 1 variables>"
    assert repr(step) == "<tf.function step: 1 recordings, 0 replays, 0 eager calls>"


def test_arguments_that_are_more_than_their_values_make_a_call_eager():
    double = tf.function(lambda x: x * 2.0)
    v = tf.Variable([1.0, 2.0])
    assert [float(double(v[1])) for _ in range(2)] == [4.0, 4.0] and double.eager_calls == 2


def test_it_runs_on_every_device(device):
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    step = tf.function(lambda x: tf.nn.softmax(x @ w) + tf.random.normal([2]) * 0.0)
    with tf.device("CPU:0"):
        host = tf.Variable(0.0)
    for value in (1.0, 2.0, 3.0):
        x = tf.constant([[value, -value]])
        np.testing.assert_array_equal(step(x).numpy(), tf.nn.softmax(x @ w).numpy())
        assert step(x).device == x.device
    store = tf.function(lambda x: host.assign(tf.reduce_sum(x)))
    for value in (1.0, 2.0):
        store(tf.constant([value]))
    assert float(host) == 2.0 and host.device.endswith("CPU:0") and store.replays == 1


def test_an_own_kernel_that_reads_shapes_is_no_loop():
    own = tf.autodiff.elementwise("share", lambda xp, x: x / x.shape[-1], lambda x, y: 1.0 / x.shape[-1])
    recorded = tf.function(lambda x: bind(own, (x,), {}) * 2.0)
    for _ in range(2):
        assert recorded(tf.constant([1.0, 2.0])).numpy().tolist() == [1.0, 2.0]


def test_what_an_own_kernel_reads_is_read_anew_by_a_new_function():
    state = [1.0]
    own = tf.autodiff.elementwise("times_state", lambda xp, x: x * state[0], 1)

    def step(x):
        return bind(own, (x,), {}) * 2.0

    assert tf.function(step)(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    state[0] = 5.0
    renewed = tf.function(step)
    for _ in range(2):
        assert renewed(tf.constant([1.0, 2.0])).numpy().tolist() == [10.0, 20.0]


@both
def test_what_the_first_run_prints_is_printed_once(fast, capsys):
    step = tf.function(lambda x: tf.print(x) or tf.exp(x) + 1.0, jit_compile=fast)
    step(tf.fill([40], 3.0))
    assert capsys.readouterr().err.count("[3") == 1
