"""Optimizers and assignments from several threads: each update reads what the one before has left."""

import copy
import functools
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from faults.children import exit_code, forked
from in_threads import PATIENCE, errors_in_threads, in_threads

import minikeras as tf
from minikeras.core import locks
from minikeras.core.arrays import current_device
from minikeras.core.locks import HeldLocks, UpdateLocks, acquired
from minikeras.nn_ops import streams

THREADS, STEPS = 4, 50


@pytest.fixture(autouse=True)
def quick_switches():
    """Threads take turns after every few instructions, so that what is not one step is torn apart."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def repeated(*functions, steps=STEPS):
    """Run each function several times in a thread of its own, on this one's device; all begin together."""
    in_threads(*[functools.partial(repeat, function, steps, current_device()) for function in functions])


def repeat(function, steps, device):
    with tf.device(device):
        for _ in range(steps):
            function()


def values(*variables):
    return [np.unique(variable.numpy()).tolist() for variable in variables]


@pytest.mark.parametrize("built", [True, False])
def test_no_step_of_one_optimizer_is_lost(built):
    v, w = tf.Variable(tf.zeros([300])), tf.Variable(tf.zeros([7]))
    optimizer = tf.keras.optimizers.SGD(1.0)
    if built:
        optimizer.build([v, w])
    ones = [tf.ones([300]), tf.ones([7])]
    repeated(*[lambda: optimizer.apply_gradients(zip(ones, [v, w], strict=True))] * THREADS)
    assert values(v, w) == [[-THREADS * STEPS]] * 2 and int(optimizer.iterations) == THREADS * STEPS


def test_no_step_of_adam_is_lost():
    def trained(threads):
        v, optimizer = tf.Variable(tf.zeros([40])), tf.keras.optimizers.Adam(0.1)
        if threads:
            repeated(*[lambda: optimizer.apply([tf.ones([40])], [v])] * THREADS)
        else:
            for _ in range(THREADS * STEPS):
                optimizer.apply([tf.ones([40])], [v])
        return v.numpy()

    np.testing.assert_array_equal(trained(True), trained(False))


def test_a_step_that_fails_keeps_the_slots_that_another_thread_built_while_it_waited():
    v, optimizer = tf.Variable(tf.zeros([3])), tf.keras.optimizers.SGD(1.0, momentum=0.5)
    errors = []

    def refused():
        with pytest.raises(ValueError, match="has shape") as error:
            optimizer.apply([tf.ones([4])], [v])
        errors.append(error)

    waiting = threading.Thread(target=refused, daemon=True)
    with HeldLocks(optimizer.state.locks.all):
        waiting.start()
        while waiting.is_alive() and waiting.ident not in locks._waiting:
            time.sleep(0.001)
        optimizer.apply([tf.ones([3])], [v])
    waiting.join(timeout=PATIENCE)
    optimizer.apply([tf.ones([3])], [v])
    assert errors and values(v) == [[-2.5]], "the momentum of the first step counts in the second"


def test_optimizers_that_share_variables_lose_no_step():
    a, b, c = (tf.Variable(tf.zeros([100])) for _ in range(3))
    one = tf.ones([100])

    def stepping(*variables):
        optimizer = tf.keras.optimizers.SGD(1.0)
        return lambda: optimizer.apply([one] * len(variables), variables)

    repeated(stepping(a, b), stepping(b, c), stepping(c, a), stepping(a, b, c))
    assert values(a, b, c) == [[-3 * STEPS]] * 3


def test_assignments_between_steps_are_not_lost():
    v = tf.Variable(tf.zeros([100]))
    optimizer, one = tf.keras.optimizers.SGD(1.0), tf.ones([100])
    repeated(
        lambda: optimizer.apply([one], [v]),
        lambda: v.assign_add(3.0 * one),
        lambda: v.assign_sub(one),
        lambda: v.scatter_add(tf.IndexedSlices(tf.ones([100]), tf.range(100))),
    )
    assert values(v) == [[2 * STEPS]]


def test_slots_are_assigned_between_two_steps():
    w = tf.Variable(tf.zeros([3]))
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build([w])
    optimizer.apply([tf.ones([3])], [w])
    for variable in optimizer.variables[2:]:
        with HeldLocks(optimizer.state.locks.all):  # as in the middle of a step
            other = threading.Thread(target=variable.assign, args=(tf.zeros([3]),))
            other.start()
            other.join(0.05)
            assert other.is_alive() and variable.numpy().all()
        other.join(PATIENCE)
        assert not variable.numpy().any()


@pytest.mark.parametrize(
    "copied", [lambda x: x, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["", "deep", "file"]
)
@pytest.mark.parametrize("kind", ["Nadam", "PerLayer", "LossScaleOptimizer", "LevenbergMarquardt"])
def test_what_a_step_counts_is_assigned_between_two_steps(kind, copied):
    w = tf.Variable(tf.zeros([3]), name="w")
    given = {"PerLayer": [{"*": "sgd"}], "LossScaleOptimizer": [tf.keras.optimizers.SGD(0.1)]}.get(kind, [])
    optimizer = getattr(tf.keras.optimizers, kind)(*given)
    optimizer.build([w])
    optimizer, _ = copied((optimizer, w))
    rates = [one for one in optimizer.counters if "learning_rate" in one.name]
    counted = [one for one in optimizer.counters if not any(one is rate for rate in rates)]
    assert len(counted) > 1 and all(one.update_lock in optimizer.state.locks.all for one in counted)


@pytest.mark.parametrize("jit", [False, None])
def test_no_compiled_step_is_lost(jit):
    v, w = tf.Variable(tf.zeros([64])), tf.Variable(tf.zeros([3]))
    optimizer = tf.keras.optimizers.SGD(1.0)
    optimizer.build([v, w])

    @tf.function(jit_compile=jit)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * x) + tf.reduce_sum(w)
        optimizer.apply(tape.gradient(loss, [v, w]), [v, w])
        return loss

    x = tf.ones([64])
    step(x), step(x)
    repeated(*[lambda: step(x)] * 3, lambda: v.assign_add(2.0 * x))
    assert values(v, w) == [[-2 - STEPS], [-2 - 3 * STEPS]]
    assert step.replays > 3 * STEPS / 2


def test_steps_with_the_loss_as_a_function_are_not_lost():
    v = tf.Variable([8.0])
    optimizer = tf.keras.optimizers.Newton(0.5)
    repeated(*[lambda: optimizer.minimize(lambda: tf.reduce_sum(v * v), [v])] * 2)
    assert int(optimizer.iterations) == 2 * STEPS


def test_a_failed_step_lets_the_next_one_go_on():
    v, optimizer = tf.Variable([1.0]), tf.keras.optimizers.SGD(1.0)
    with pytest.raises(ValueError, match="shape"):
        optimizer.apply([tf.ones([2])], [v])
    repeated(lambda: optimizer.apply([tf.ones([1])], [v]))
    assert values(v) == [[1.0 - STEPS]]


def test_copies_of_optimizers_and_models_have_locks_of_their_own():
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        locks = copied.optimizer.state.locks
        assert not set(locks.all) & set(model.optimizer.state.locks.all)
        assert {v.update_lock for v in copied.trainable_variables} <= set(locks.all)
        assert locks.own in locks.all and list(locks.all) == sorted(locks.all, key=lambda lock: lock.number)


def test_optimizers_that_share_a_variable_have_a_lock_in_common_and_take_locks_in_one_order():
    a, b, c = (tf.Variable(0.0) for _ in range(3))
    first, second, third = UpdateLocks(), UpdateLocks(), UpdateLocks()
    third.join([a])
    first.join([a, b])
    second.join([b, c])
    assert [v.update_lock for v in (a, b, c)] == [third.own, first.own, second.own]
    assert third.all == (third.own,)
    assert first.all == (first.own, third.own)
    assert second.all == (first.own, second.own)
    with HeldLocks(second.all), HeldLocks(second.all):
        assert [free_for_another_thread(v.update_lock) for v in (a, b, c)] == [True, False, False]
    assert all(free_for_another_thread(v.update_lock) for v in (a, b, c))


def test_optimizers_that_begin_to_share_variables_at_once_do_not_wait_for_each_other():
    one = tf.ones([3])
    for _ in range(200):  # merging locks while others take them met in a circle once in about a hundred times
        a, b, c = (tf.Variable(tf.zeros([3])) for _ in range(3))

        def stepping(*variables):
            optimizer = tf.keras.optimizers.SGD(1.0)
            return lambda: optimizer.apply([one] * len(variables), variables)

        repeated(stepping(a, b), stepping(b, c), stepping(c, a), stepping(a, b, c), steps=3)
        assert values(a, b, c) == [[-9.0]] * 3


def test_locks_that_threads_include_at_once_are_all_held():
    for _ in range(100):
        locks, others = UpdateLocks(), [UpdateLocks() for _ in range(4)]
        repeated(*[functools.partial(locks.include, other.all) for other in others], steps=1)
        assert locks.all == (locks.own, *(other.own for other in others))


@pytest.mark.parametrize("jit", [False, None])
def test_compiled_steps_that_assign_what_the_other_optimizer_has_taken_do_not_wait_for_each_other(jit):
    a, b = tf.Variable(tf.zeros([3])), tf.Variable(tf.zeros([3]))

    def compiled(mine, other):
        optimizer = tf.keras.optimizers.SGD(1.0)
        optimizer.build([mine])

        @tf.function(jit_compile=jit)
        def step(x):
            optimizer.apply([x], [mine])
            other.assign_add(2.0 * x)

        return step

    steps, one = [compiled(a, b), compiled(b, a)], tf.ones([3])
    for step in steps:
        step(one), step(one)
    repeated(*[lambda step=step: step(one) for step in steps], steps=500)  # waited in a circle within ten steps
    assert values(a, b) == [[502.0]] * 2 and all(step.replays > 500 for step in steps)


def test_steps_within_steps_raise_where_two_threads_wait_for_each_other():
    """Each takes a step of the other's optimizer within its own: one of them gives up, whole, and the other goes on."""
    variables = [tf.Variable(tf.ones([3])), tf.Variable(tf.ones([3]))]
    optimizers = [tf.keras.optimizers.Newton(0.5), tf.keras.optimizers.Newton(0.5)]
    inside, outside = threading.Barrier(2), {0, 1}

    def loss(number):
        return tf.reduce_sum(variables[number] ** 2)

    def step(number):
        def with_a_step_of_the_other():
            if number in outside:
                outside.discard(number)
                inside.wait(timeout=30)  # both are in the middle of their own step
            optimizers[1 - number].minimize(lambda: loss(1 - number), [variables[1 - number]])
            return loss(number)

        optimizers[number].minimize(with_a_step_of_the_other, [variables[number]])

    (error,) = errors_in_threads(lambda: step(0), lambda: step(1))
    assert isinstance(error, RuntimeError) and "Two threads wait for each other" in str(error)
    assert min(int(optimizer.iterations) for optimizer in optimizers) == 1  # an outer step counts once, none of the other
    repeated(*[lambda n=n: optimizers[n].minimize(lambda: loss(n), [variables[n]]) for n in (0, 1)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_waits_for_no_lock_of_its_parents_threads():
    v, w = tf.Variable([0.0]), tf.Variable([0.0])
    optimizer, stream = tf.keras.optimizers.SGD(1.0), tf.random.Generator.from_seed(1)
    optimizer.build([v])
    held, done = threading.Event(), threading.Event()

    def hold():
        with HeldLocks(optimizer.state.locks.all), streams._lock:
            lock = acquired(w)
            held.set()
            done.wait(60)
            lock.release()

    def work():
        stream.normal([2])
        w.assign_add([1.0])
        optimizer.apply([tf.ones([1])], [v])
        assert values(v, w) == [[-1.0], [1.0]]

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    assert held.wait(30)
    child = forked(work)
    try:
        assert exit_code(child, patience=30) == 0
    finally:
        done.set()
        holder.join(timeout=30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_process_that_forks_in_the_middle_of_a_step_ends_the_step():
    def work():
        v = tf.Variable([1.0])
        optimizer = tf.keras.optimizers.Newton(0.5)
        children = []

        def loss():
            if not children:
                children.append(os.fork())
            return tf.reduce_sum(v * v)

        optimizer.minimize(loss, [v])
        if children[0]:
            assert exit_code(children[0], patience=30) == 0 and int(optimizer.iterations) == 1
        else:
            repeated(lambda: optimizer.minimize(loss, [v]), steps=1)
            assert int(optimizer.iterations) == 2

    assert exit_code(forked(work), patience=60) == 0  # whatever fails ends a child, not a copy of this process


def free_for_another_thread(lock):
    """Whether another thread could take a lock right now."""
    found = []

    def ask():
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(timeout=30)
    return found[0]


def test_a_shallow_copy_of_a_variable_is_the_variable_and_references_are_weak_keys():
    v = tf.Variable([1.0])
    copied = copy.copy(v)
    copied.assign([2.0])
    assert v.numpy().tolist() == [2.0]
    reference = v.ref()
    table = weakref.WeakKeyDictionary({reference: "kept"})
    assert table[v.ref()] == "kept"
    del reference
    assert not table


@pytest.mark.parametrize("jit", [True, None])
@pytest.mark.parametrize("make", [tf.keras.optimizers.SGD, tf.keras.optimizers.Adam])
def test_a_step_that_several_threads_record_at_once_happens_once_each(jit, make):
    for _ in range(5):  # native recordings that put back what they found undid or repeated steps of others in every run
        optimizer, w, count, total = make(1.0), tf.Variable(tf.zeros([3])), tf.Variable(0), tf.keras.metrics.Sum()

        def step(x, optimizer=optimizer, w=w, count=count, total=total):
            count.assign_add(1)
            total.update_state(x[0])
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * x)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        compiled = tf.function(jit_compile=jit)(step)
        repeated(*[lambda compiled=compiled: compiled(tf.ones([3]))] * 8)
        assert [int(optimizer.iterations), int(count), float(total.result())] == [8 * STEPS] * 3
        assert make is not tf.keras.optimizers.SGD or values(w) == [[-8.0 * STEPS]]


@pytest.mark.parametrize("jit", [True, None])
def test_functions_that_are_recorded_while_others_step_lose_no_step_of_two_optimizers(jit):
    first, second = tf.keras.optimizers.SGD(1.0), tf.keras.optimizers.Adam()
    w, u = tf.Variable(tf.zeros([3])), tf.Variable(tf.zeros([5]))

    @tf.function(jit_compile=jit)
    def forwards(x):
        first.apply_gradients([(x[:3], w)])
        second.apply_gradients([(x, u)])

    @tf.function(jit_compile=jit)
    def backwards(x):
        second.apply_gradients([(x, u)])
        first.apply_gradients([(x[:3], w)])

    x = tf.ones([5])
    repeated(*[lambda: forwards(x), lambda: backwards(x), lambda: first.apply_gradients([(x[:3], w)])] * 2)
    assert (int(first.iterations), int(second.iterations)) == (6 * STEPS, 4 * STEPS) and values(w) == [[-6.0 * STEPS]]


@pytest.mark.parametrize("jit", [True, None, False])
def test_of_assignments_in_several_threads_the_last_one_stays_whole(jit):
    """Beside compiled steps too: one that reads the value before an assignment does not end after it."""
    v, optimizer = tf.Variable(tf.zeros([1000])), tf.keras.optimizers.SGD(1.0)

    @tf.function(jit_compile=jit)
    def step(x):
        optimizer.apply_gradients([(x, v)])

    zeros = tf.zeros([1000])
    step(zeros), step(zeros)
    seen = []
    repeated(
        lambda: v.assign(tf.fill([1000], 100.0)),
        lambda: v.assign(tf.fill([1000], 200.0)),
        lambda: step(zeros),
        lambda: seen.extend(values(v)),
    )
    assert len(values(v)[0]) == 1 and all(one in ([0.0], [100.0], [200.0]) for one in seen)
    repeated(lambda: v.assign(tf.zeros([1000])), lambda: step(tf.ones([1000])))
    v.assign(tf.fill([1000], 5.0))
    assert values(v) == [[5.0]]


FORKING = """
import itertools, os, random, threading, time, warnings
import numpy as np
import minikeras as tf
from faults.children import exit_code, forked

warnings.simplefilter("ignore")  # Python's, of forking a process with threads
L = tf.keras.layers
width, ends, errors = itertools.count(3), threading.Event(), []
shared, optimizer = tf.Variable(tf.zeros([500])), tf.keras.optimizers.SGD(1.0)
step = tf.function(lambda: optimizer.apply([tf.ones([500])], [shared]), jit_compile=True)

def fit(jit, n):
    model = tf.keras.Sequential([tf.keras.Input((n,)), L.Dense(n + 1, "relu"), L.Dropout(0.5), L.Dense(2)])
    model.compile("adam", "mse", jit_compile=jit)
    model.fit(np.ones((32, n), "float32"), np.ones((32, 2), "float32"), batch_size=8, epochs=2, verbose=0)

def trace():
    n = next(width)
    tf.function(lambda x: tf.reduce_sum(tf.sin(x) * n), jit_compile=True)(tf.ones([n]))

def again(work):
    try:
        while not ends.is_set():
            work()
    except BaseException as error:
        errors.append(error)

def child():
    before = shared.numpy()
    assert (before == -int(optimizer.iterations)).all(), "no step is half done"
    step()
    assert (shared.numpy() == before - 1).all()
    fit(True, 50 + os.getpid() % 20)
    fit("auto", 7)
    trace()

works = [lambda: fit(True, next(width) % 40 + 3), lambda: fit("auto", next(width) % 40 + 3), trace, step]
threads = [threading.Thread(target=again, args=(work,), daemon=True) for work in works]
for thread in threads:
    thread.start()
pauses, codes = random.Random(1), []
for _ in range(FORKS):
    time.sleep(0.05 * pauses.random())
    codes.append(exit_code(forked(child), patience=120))
ends.set()
for thread in threads:
    thread.join(120)
assert not errors, errors
print(codes.count(0))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("forks", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_processes_that_are_forked_while_threads_compile_and_fit_compile_and_fit_too(forks):
    """In a process of its own, whose first imports they meet too."""
    script = FORKING.replace("FORKS", str(forks))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.dirname(__file__)), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=1200, env=environment)
    assert done.returncode == 0 and done.stdout.split() == [str(forks)], done.stderr[-3000:]
