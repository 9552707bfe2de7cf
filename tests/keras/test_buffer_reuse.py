"""The program of an eager step writes results into arrays of two steps ago, but never into one that is still referred to."""

import copy
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from in_one_test import in_one_test
from optimizer_cases import FORMULAS
from slow import diagonal, sampled

import minikeras as tf
from minikeras.keras.optimizers import step as eager

pytestmark = pytest.mark.host
SIZE, STEPS = 65_543, eager.STEPS
OPTIMIZERS = {
    "SGD": lambda: tf.keras.optimizers.SGD(0.1),
    "momentum": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda: tf.keras.optimizers.Adam(0.1, clipnorm=1.0),
    "amsgrad": lambda: tf.keras.optimizers.Adam(0.1, amsgrad=True),
}


def gradient(step):
    return tf.constant(np.cos(np.arange(SIZE) * (step + 1)).astype("float32"))


@pytest.fixture(params=OPTIMIZERS)
def optimizer(request):
    return OPTIMIZERS[request.param]()


def test_arrays_are_reused_when_nobody_sees_them(optimizer):
    """Otherwise the tests below would test nothing: once there is a program, the addresses repeat."""
    w = tf.Variable(np.ones(SIZE, "float32"))
    addresses = []
    for step in range(STEPS + 7):
        optimizer.apply([gradient(step)], [w])
        addresses.append(w.array.ctypes.data)
    assert len(set(addresses[STEPS + 1 :])) == 2


@in_one_test(make=[*OPTIMIZERS.values(), *FORMULAS.values()])
def test_the_program_and_whole_arrays_give_the_same_numbers(make):
    results = []
    for elementwise in (make().elementwise, False):
        optimizer, w = make(), tf.Variable(np.linspace(-1, 1, SIZE, dtype="float32"))
        optimizer.elementwise = elementwise  # if not, there is no program
        for step in range(STEPS + 4):
            optimizer.apply([gradient(step)], [w])
        results.append([w.numpy(), *(variable.numpy() for variable in optimizer.variables)])
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


VIEWS = {
    "snapshot": lambda w: w.read_value(),
    "value": lambda w: w.read_value(),
    "array": lambda w: w.array,
    "view": lambda w: w.array[1:5],
    "view of a view": lambda w: w.array[::2][3:],
    "reshaped": lambda w: w.array.reshape(-1, 1),
    "memoryview": lambda w: memoryview(w.array),
    "array of a snapshot": lambda w: w.read_value().array,
    "part": lambda w: w[2:9],
    "strided part": lambda w: tf.reshape(w, [-1, 1])[::3],
    "reshape": lambda w: tf.reshape(w, [-1, 1]),
    "transposed": lambda w: tf.transpose(tf.reshape(w, [1, -1])),
    "stop_gradient": lambda w: tf.stop_gradient(w),
    "identity": lambda w: tf.identity(w),
    "copied variable": lambda w: copy.deepcopy(w),
    "other variable": lambda w: tf.Variable(w),
    "assigned variable": lambda w: tf.Variable(np.zeros(SIZE, "float32")).assign(w),
    "numpy": lambda w: w.numpy(),
    "asarray": lambda w: np.asarray(w),
    "frombuffer": lambda w: np.frombuffer(w.array, "float32"),
}


def contents(kept):
    if hasattr(kept, "numpy"):
        return kept.numpy()
    return np.array(kept)


@pytest.mark.parametrize("name, optimizer", sampled(diagonal(VIEWS, OPTIMIZERS), 2), indirect=["optimizer"])
@in_one_test(when=[0, STEPS - 1, STEPS, STEPS + 1, STEPS + 2])
def test_whatever_is_kept_of_a_variable_never_changes(name, when, optimizer):
    optimizer = copy.deepcopy(optimizer)
    w = tf.Variable(np.arange(SIZE, dtype="float32"))
    for step in range(when):
        optimizer.apply([gradient(step)], [w])
    kept = VIEWS[name](w)
    before = contents(kept).copy()
    for step in range(4):
        optimizer.apply([gradient(step)], [w])
    assert np.array_equal(contents(kept), before)


def test_slots_that_are_kept_never_change():
    w, optimizer = tf.Variable(np.ones(SIZE, "float32")), tf.keras.optimizers.Adam(0.1)
    kept = []
    for step in range(STEPS + 5):
        optimizer.apply([gradient(step)], [w])
        kept.append([(slot.array[3:9], slot.array[3:9].copy()) for slot in optimizer.variables[2:]])
    assert all(np.array_equal(view, values) for pairs in kept for view, values in pairs)


def test_a_tape_differentiates_at_the_values_it_read():
    w, optimizer = tf.Variable(np.full(SIZE, 2.0, "float32")), tf.keras.optimizers.SGD(0.5)
    tapes = []
    for _ in range(STEPS + 4):
        with tf.GradientTape() as tape:
            cube = w * w * w
        tapes.append((tape, cube, w.numpy()))
        optimizer.apply([tf.ones([SIZE])], [w])
    for tape, cube, at in tapes:
        np.testing.assert_allclose(tape.gradient(cube, w).numpy(), 3.0 * at**2, rtol=1e-6)


def test_variables_that_were_given_one_tensor_do_not_share_what_is_written():
    shared = tf.constant(np.ones(SIZE, "float32"))
    first, second = tf.Variable(np.zeros(SIZE, "float32")), tf.Variable(np.zeros(SIZE, "float32"))
    first.assign(shared), second.assign(shared)
    mine, theirs = tf.keras.optimizers.SGD(1.0), tf.keras.optimizers.SGD(1.0)
    del shared
    for step in range(STEPS + 4):
        mine.apply([tf.ones([SIZE])], [first])
        assert (second.numpy() == 1.0 - step).all() and (first.numpy() == -step).all()
        theirs.apply([tf.ones([SIZE])], [second])


def test_a_tensor_of_which_a_variable_was_assigned_a_view_is_not_written():
    whole, v = tf.constant(np.ones((1, SIZE), "float32")), tf.Variable(np.zeros(SIZE, "float32"))
    v.assign(tf.reshape(whole, [-1]))
    optimizer = tf.keras.optimizers.SGD(1.0)
    for step in range(STEPS + 4):
        optimizer.apply([tf.ones([SIZE])], [v])
        assert (v.numpy() == -step).all() and (whole.numpy() == 1.0).all()


def test_a_gradient_that_is_a_view_of_the_variable_is_read_before_it_is_written():
    w, optimizer = tf.Variable(np.arange(SIZE, dtype="float32")), tf.keras.optimizers.SGD(0.5)
    expected = np.arange(SIZE, dtype="float32")
    for _ in range(STEPS):
        optimizer.apply([w.read_value()], [w])
        expected = expected - np.float32(0.5) * expected
        assert np.array_equal(w.numpy(), expected)
        reversed_view = tf.reverse(w, [0])
        optimizer.apply([reversed_view], [w])
        expected = expected - np.float32(0.5) * expected[::-1]
        assert np.array_equal(w.numpy(), expected)


def test_weights_handed_out_by_a_model_never_change_while_it_trains():
    model = tf.keras.Sequential([tf.keras.Input((256,)), tf.keras.layers.Dense(256), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    x, y = np.ones((4, 256), "float32"), np.ones((4, 1), "float32")
    kept = []

    def keep(batch, logs):
        tensors = [variable.read_value() for variable in model.variables]
        kept.append([(tensor, tensor.numpy()) for tensor in tensors])

    callback = tf.keras.callbacks.LambdaCallback(on_train_batch_end=keep)
    model.fit(x, y, batch_size=1, epochs=2, callbacks=[callback], verbose=0)
    assert len(kept) == 8
    assert all(np.array_equal(tensor.numpy(), values) for pairs in kept for tensor, values in pairs)
    assert not np.array_equal(kept[0][0][1], kept[-1][0][1])


def test_other_threads_read_whole_values_only():
    """Every value that a reader sees is constant over the array, whatever the writer does meanwhile."""
    w, optimizer = tf.Variable(np.zeros(SIZE, "float32")), tf.keras.optimizers.SGD(1.0)
    done, torn = threading.Event(), []

    def read():
        while not done.is_set():
            tensor = w.read_value()
            first = tensor.array.copy()
            if (first != first[0]).any() or not np.array_equal(first, tensor.array):
                torn.append(tensor)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(150):
        optimizer.apply([tf.ones([SIZE])], [w])
    done.set()
    for reader in readers:
        reader.join(timeout=60)
    assert not torn and (w.numpy() == -150.0).all()


def test_a_step_that_fails_after_the_first_variable_changes_none():
    class Fails(tf.keras.optimizers.Adam):
        fails = False

        def formula(self, step, gradient, value, *slots):
            if Fails.fails and value.size < SIZE:
                raise FloatingPointError
            return super().formula(step, gradient, value, *slots)

    w, b, optimizer = tf.Variable(np.ones(SIZE, "float32")), tf.Variable([1.0]), Fails(0.1)
    for step in range(3):
        optimizer.apply([gradient(step), tf.ones([1])], [w, b])
    held = [w, b, *optimizer.variables]
    before = [variable.numpy() for variable in held]
    Fails.fails = True
    with pytest.raises(FloatingPointError):
        optimizer.apply([gradient(3), tf.ones([1])], [w, b])
    assert all(np.array_equal(variable.numpy(), value) for variable, value in zip(held, before, strict=True))


def test_a_formula_that_is_not_elementwise_sees_whole_arrays():
    class Normalized(tf.keras.optimizers.Optimizer):
        def formula(self, step, gradient, value):
            return (value - step * gradient / np.sqrt((gradient * gradient).sum()),)

    w = tf.Variable(np.zeros(SIZE, "float32"))
    Normalized(1.0).apply([tf.ones([SIZE])], [w])
    np.testing.assert_allclose(w.numpy(), -1.0 / np.sqrt(SIZE), rtol=1e-5)


class TwoVariables(RuleBasedStateMachine):
    """Steps, reads, assignments and releases in any order: the variables follow plain NumPy, what is kept never changes."""

    def __init__(self):
        super().__init__()
        self.variables = [tf.Variable(np.full(SIZE, float(i), "float32")) for i in range(2)]
        self.expected = [np.full(SIZE, np.float32(i)) for i in range(2)]
        self.optimizer = tf.keras.optimizers.SGD(0.5)
        self.optimizer.build(self.variables)
        self.kept = []

    def teardown(self):
        vars(self).clear()  # Hypothesis keeps its state machine in a cycle

    @rule(which=st.sampled_from([[0], [1], [0, 1]]), number=st.integers(-3, 3))
    def step(self, which, number):
        self.optimizer.apply([tf.fill([SIZE], float(number))] * len(which), [self.variables[i] for i in which])
        for i in which:
            self.expected[i] = self.expected[i] - np.float32(0.5 * number)

    @rule(which=st.integers(0, 1), how=st.sampled_from(sorted(VIEWS)))
    def keep(self, which, how):
        kept = VIEWS[how](self.variables[which])
        self.kept.append((kept, contents(kept).copy()))

    @rule()
    def release(self):
        del self.kept[::2]

    @rule(source=st.integers(0, 1))
    def share(self, source):
        self.variables[1 - source].assign(self.variables[source].read_value())
        self.expected[1 - source] = self.expected[source]

    @rule(which=st.integers(0, 1))
    def differentiate(self, which):
        with tf.GradientTape() as tape:
            y = self.variables[which] * self.variables[which]
        self.step([which], 1)
        after = tape.gradient(y, self.variables[which]).numpy()
        assert np.array_equal(after, 2.0 * (self.expected[which] + np.float32(0.5)))

    @invariant()
    def variables_follow_numpy(self):
        for variable, value in zip(self.variables, self.expected, strict=True):
            assert np.array_equal(variable.array, value)

    @invariant()
    def what_is_kept_never_changes(self):
        assert all(np.array_equal(contents(kept), before) for kept, before in self.kept)


TestTwoVariables = TwoVariables.TestCase
TestTwoVariables.settings = settings(max_examples=40, stateful_step_count=25)
