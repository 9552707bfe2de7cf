"""The numbers of threads, and work shared among them: the same results on one thread and on two, in every surrounding."""

import logging
import os
import subprocess
import sys
import threading
import types
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minikeras as tf
from minikeras import parallel
from minikeras.parallel import in_parallel, thread_count

settings = tf.config.threading


@pytest.fixture(autouse=True)
def settings_as_before():
    """The settings hold for the whole process, so a test that leaves others is put right."""
    yield
    for function in (settings.set_intra_op_parallelism_threads, settings.set_inter_op_parallelism_threads):
        function(0)


@pytest.fixture
def two_threads():
    settings.set_intra_op_parallelism_threads(2)


def parts_of(count, **options):
    """The parts that some work is carried out in, sorted, and the threads that did so."""
    parts, names = [], set()

    def work(start, stop):
        parts.append((start, stop))
        names.add(threading.current_thread().name)

    in_parallel(work, count, **options)
    return sorted(parts), names


def meeting(action=lambda start: None):
    """Work of two parts that wait for one another, so that both are under way at the same time in two threads."""
    both = threading.Barrier(2, timeout=30)

    def work(start, stop):
        both.wait()
        action(start)

    return work


# Numbers -------------------------------------------------------------------------------------------------------------


def test_the_number_of_threads_is_automatic_unless_it_is_set():
    assert settings.get_intra_op_parallelism_threads() == 0
    assert thread_count() == (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    settings.set_intra_op_parallelism_threads(3)
    assert settings.get_intra_op_parallelism_threads() == thread_count() == 3


def test_the_number_between_operations_is_kept():
    settings.set_inter_op_parallelism_threads(np.int64(4))
    assert settings.get_inter_op_parallelism_threads() == 4
    assert settings.get_intra_op_parallelism_threads() == 0


@pytest.mark.parametrize("name", ["set_intra_op_parallelism_threads", "set_inter_op_parallelism_threads"])
@pytest.mark.parametrize(
    ("given_number", "kind", "message"),
    [
        (-1, ValueError, "num_threads is -1; give 0, which is automatic, or a number from 1"),
        (1.0, TypeError, "num_threads is 1.0, a float; give an integer"),
        (None, TypeError, "num_threads is None, a NoneType; give an integer"),
    ],
)
def test_what_is_no_number_of_threads_is_refused(name, given_number, kind, message):
    with pytest.raises(kind, match=f"{name}: {message}"):
        getattr(settings, name)(given_number)
    assert settings.get_intra_op_parallelism_threads() == settings.get_inter_op_parallelism_threads() == 0


def blas_threads():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    numbers = [one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    return numbers or pytest.skip("threadpoolctl knows no BLAS library here")


def test_blas_gets_the_number_and_with_automatic_what_it_had():
    before = blas_threads()
    for number in (1, 2, 1):
        settings.set_intra_op_parallelism_threads(number)
        assert set(blas_threads()) == {number}
    settings.set_intra_op_parallelism_threads(0)
    assert blas_threads() == before


def test_without_threadpoolctl_the_blas_of_numpys_wheel_is_told(monkeypatch, caplog):
    before = blas_threads()
    import threadpoolctl

    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    if not (found := parallel.libraries()):
        pytest.skip("NumPy is not installed from a wheel with OpenBLAS")
    settings.set_intra_op_parallelism_threads(3)
    assert [library.get_num_threads() for library in found] == [3] * len(found)
    assert 3 in [one["num_threads"] for one in threadpoolctl.threadpool_info()] and caplog.text == ""
    settings.set_intra_op_parallelism_threads(0)
    assert blas_threads() == before


def test_a_blas_that_cannot_be_told_is_reported(monkeypatch, caplog):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    none = types.SimpleNamespace(lib_controllers=[])
    monkeypatch.setattr(threadpoolctl.ThreadpoolController, "select", lambda *_, **__: none)
    with caplog.at_level(logging.WARNING, "minikeras"):
        settings.set_intra_op_parallelism_threads(1)
    assert "matrix products keep their own number of threads, because no BLAS library is known" in caplog.text
    assert "pip install 'minikeras[threads]'" in caplog.text and "OPENBLAS_NUM_THREADS" in caplog.text
    assert thread_count() == 1, "the rest is set"


def test_with_threadpoolctl_nothing_is_logged(caplog):
    blas_threads()
    settings.set_intra_op_parallelism_threads(1)
    assert caplog.text == ""


# Products --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def not_chosen(monkeypatch):
    """As where neither the environment nor the program says how many threads BLAS has."""
    monkeypatch.setattr(parallel, "chosen_by_user", lambda: False)
    if parallel.on_one_thread() is None:
        pytest.skip("the BLAS library cannot be told")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "shapes", [((300, 400), (400, 300)), ((2, 128, 96), (96, 64)), ((3, 4), (4, 2)), ((1, 2048), (2048, 9000))]
)
def test_a_product_is_that_of_numpy_whatever_the_number_of_threads(monkeypatch, not_chosen, number, shapes):
    monkeypatch.setattr(parallel, "thread_count", lambda: number)
    monkeypatch.setattr(parallel, "_pool", None)
    monkeypatch.setattr(parallel, "PART", 1 << 22)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32) for shape in shapes)
    out = np.empty_like(a @ b)
    assert parallel.product(a, b, out) is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(parallel.product(a, b), out)
    transposed = np.ascontiguousarray(b.T).T
    np.testing.assert_allclose(parallel.product(a, transposed), a @ b, rtol=1e-4, atol=1e-4)


def test_a_long_product_is_shared_and_blas_has_one_thread_for_each_part(monkeypatch, not_chosen):
    monkeypatch.setattr(parallel, "thread_count", lambda: 2)
    monkeypatch.setattr(parallel, "_pool", None)
    seen, multiply = [], np.matmul
    libraries = parallel.libraries()
    before = [library.get_num_threads() for library in libraries]

    def watched(a, b, out=None):
        seen.append((len(a), min(library.get_num_threads() for library in libraries)))
        return multiply(a, b, out=out)

    monkeypatch.setattr(parallel.np, "matmul", watched)
    x = np.ones((512, 512), np.float32)
    parallel.product(x, x)
    assert sorted(seen) == [(256, 1), (256, 1)]
    assert [library.get_num_threads() for library in libraries] == before


def test_what_the_environment_says_about_blas_is_left_alone():
    program = """
import os, numpy as np
from minikeras import parallel
x = np.ones((512, 512), np.float32)
parallel.product(x, x)
print(parallel.chosen_by_user(), parallel.on_one_thread.cache_info().currsize)
"""
    for number, expected in (("2", "True 0"), ("", "False 1")):
        environment = {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}
        environment["OPENBLAS_NUM_THREADS"] = number
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
        assert done.stdout.strip() == expected, done.stderr


# Parts ---------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 5000), st.integers(1, 500), st.integers(1, 64), st.integers(1, 5))
def test_parts_cover_the_range_once_and_are_neither_too_small_nor_misaligned(count, least, align, number):
    settings.set_intra_op_parallelism_threads(number)
    parts, _ = parts_of(count, least=least, align=align)
    assert [0, *(stop for _, stop in parts)] == [*(start for start, _ in parts), count], "each begins where another ended"
    assert len(parts) <= number
    assert len(parts) == 1 or all(stop - start >= least for start, stop in parts)
    assert all(start % align == 0 for start, _ in parts)


def test_a_long_range_is_shared_by_as_many_parts_as_threads():
    for number in (1, 2, 3):
        settings.set_intra_op_parallelism_threads(number)
        parts, _ = parts_of(10_000, least=100)
        assert len(parts) == number


def test_two_threads_compute_what_one_computes():
    x = np.random.default_rng(1).standard_normal(100_001)
    results = []
    for number in (1, 2):
        settings.set_intra_op_parallelism_threads(number)
        y = np.empty_like(x)
        in_parallel(lambda start, stop, y=y: np.tanh(x[start:stop], out=y[start:stop]), x.size, least=1000)
        results.append(y)
    assert np.array_equal(*results) and np.array_equal(results[0], np.tanh(x))


def test_parts_run_at_the_same_time(two_threads):
    names = set()
    in_parallel(meeting(lambda start: names.add(threading.current_thread().name)), 100, least=32)
    assert len(names) == 2 and threading.current_thread().name in names


def test_a_short_range_starts_no_thread(two_threads, monkeypatch):
    monkeypatch.setattr(parallel, "_new_pool", lambda: pytest.fail("a thread was asked for"))
    assert parts_of(63, least=32) == ([(0, 63)], {threading.current_thread().name})
    settings.set_intra_op_parallelism_threads(1)
    assert parts_of(6400, least=32) == ([(0, 6400)], {threading.current_thread().name})


def test_a_part_that_no_thread_has_begun_is_taken_back(two_threads):
    """The one other thread is held up in one call, so that another call does all its work itself."""
    begun, released = threading.Event(), threading.Event()

    def hold(start, stop):
        if start:
            begun.set()
            assert released.wait(30)
        else:
            assert begun.wait(30)  # else this part would be done first, and take the other back

    holder = threading.Thread(target=in_parallel, args=(hold, 100, 32), daemon=True)
    holder.start()
    assert begun.wait(30)
    parts, names = parts_of(100, least=32)
    released.set()
    holder.join(timeout=30)
    assert len(parts) == 2 and names == {threading.current_thread().name}


def test_work_begun_within_a_part_stays_in_its_thread(two_threads):
    inner = []
    in_parallel(meeting(lambda start: inner.append((parts_of(6400, least=32), threading.current_thread().name))), 100, least=32)
    assert len(inner) == 2
    for (parts, names), thread in inner:
        assert parts == [(0, 6400)] and names == {thread}
    assert len(parts_of(6400, least=32)[0]) == 2, "after it, work is shared as before"


def test_a_part_sees_the_error_state_of_the_caller(two_threads):
    zeros, states = np.zeros(100), []
    with np.errstate(divide="raise", over="ignore"):
        in_parallel(meeting(lambda start: states.append(np.geterr())), 100, least=32)
        assert states == [np.geterr()] * 2
    with np.errstate(all="ignore"):
        in_parallel(lambda start, stop: np.log(zeros[start:stop]), 100, least=32)  # a warning would be an error


# Errors, processes ---------------------------------------------------------------------------------------------------


def test_the_first_error_is_raised_when_all_parts_have_ended(two_threads):
    ended = []

    def fail(start):
        ended.append(start)
        raise ValueError(f"the part from {start}")

    with pytest.raises(ValueError, match="the part from 0"):
        in_parallel(meeting(fail), 100, least=32)
    assert len(ended) == 2


class Failure(Exception):
    """An error that can be watched, which Python's own cannot."""


@pytest.mark.parametrize("failing", [{0}, {48}, {0, 48}])
def test_an_error_reaches_the_caller_and_nothing_is_kept_of_it(two_threads, failing):
    """Errors know the frames that they passed, so a frame that kept one would be freed by the cycle collector only."""
    alive = []

    def fail(start):
        if start in failing:
            failure = Failure()
            alive.append(weakref.ref(failure))
            try:
                raise failure
            finally:
                del failure

    try:
        in_parallel(meeting(fail), 96, least=32)
    except Failure:
        pass
    else:
        pytest.fail("no error was raised")
    for _ in range(2):
        in_parallel(meeting(), 96, least=32)  # the other thread has let go of the part before, and what it made is freed there
    assert len(alive) == len(failing) and not any(failure() for failure in alive)


def test_where_no_thread_can_be_started_the_caller_does_the_work(two_threads, monkeypatch):
    def refuse():
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(parallel, "_new_pool", refuse)
    parts, names = parts_of(100, least=32)
    assert len(parts) == 2 and names == {threading.current_thread().name}


ALONE = """
import os, threading
from minikeras import parallel
parallel.set_intra_op_parallelism_threads(2)

def names():
    both, found = threading.Barrier(2, timeout=30), []
    def work(start, stop):
        both.wait()
        found.append(threading.current_thread().name)
    parallel.in_parallel(work, 100, least=32)
    return len(set(found))
"""


def run(script):
    """What a Python of its own prints."""
    command = [sys.executable, "-W", "error", "-c", ALONE + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_makes_threads_of_its_own():
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of forking a process with threads
first = names()
child = os.fork()
if child == 0:
    os._exit(40 + names())
print(first, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), names())
"""
    assert run(script) == ["2", "42", "2"]


@pytest.mark.parametrize("before", ["names()", "pass"])
def test_a_thread_that_outlives_the_main_one_can_go_on(before):
    script = """
def later():
    threading.main_thread().join()
    done = []
    parallel.in_parallel(lambda start, stop: done.append(stop - start), 100, least=32)
    print(sum(done))
threading.Thread(target=later).start()
"""
    assert run(before + script) == ["100"]


def test_another_number_ends_the_threads_there_were():
    script = """
names()
before = threading.active_count()
parallel.set_intra_op_parallelism_threads(1)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(30)
print(before, threading.active_count())
"""
    assert run(script) == ["2", "1"]
