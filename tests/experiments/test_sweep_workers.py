"""Groups of runs in other processes: joblib's own, and those of a Dask cluster. A worker that dies costs only time."""

import os
import signal
import sys

import numpy as np
import pytest

import minikeras as tf
from minikeras.experiments import Sweep
from minikeras.experiments.runs import Training
from minikeras.experiments.sweep import carry_out
from minikeras.parallel import thread_count

joblib = pytest.importorskip("joblib")
keras, L = tf.keras, tf.keras.layers
generator = np.random.default_rng(0)
X = generator.normal(size=(40_000, 4)).astype("float32")  # more than the megabyte from which joblib shares memory
Y = X[:, :1] * 2.0
FIT = {"epochs": 1, "batch_size": 8000, "verbose": 0}


def builder():
    """A function that processes get by value, as that of a script or a notebook."""

    def build(rate, width):
        model = keras.Sequential([keras.Input((4,)), L.Dense(width, "tanh"), L.Dropout(0.1), L.Dense(1)])
        model.compile(keras.optimizers.Adam(rate), "mse")
        return model

    return build


def sweep():
    return Sweep(builder(), {"rate": [0.1, 0.01], "width": [2, 3, 4]}, seeds=2)


def assert_same(one, other):
    assert repr(one.table()) == repr(other.table())
    for a, b in zip(one, other, strict=True):
        assert a.history == b.history and a.error is None
        pairs = zip(a.model().get_weights(), b.model().get_weights(), strict=True)
        assert all(np.array_equal(left, right) for left, right in pairs)


@pytest.fixture(scope="module")
def expected():
    return sweep().fit(X, Y, **FIT)


@pytest.fixture(scope="module")
def processes():
    """Two of joblib's processes, gone afterwards."""
    from joblib.externals.loky import get_reusable_executor

    yield
    get_reusable_executor().shutdown(wait=True, kill_workers=True)


def dying(marker):
    """Callbacks by which the first worker that comes to the end of an epoch of run 3 is killed."""

    def callbacks(run):
        def die(epoch, logs):
            if not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)

        return [keras.callbacks.LambdaCallback(on_epoch_end=die)] if run.number == 3 else []

    return callbacks


def test_processes_give_the_same_numbers_though_one_is_killed(expected, processes, tmp_path, capsys):
    options = {**FIT, "n_jobs": 2, "directory": tmp_path / "sweep", "callbacks": dying(tmp_path / "died"), "verbose": 1}
    results = sweep().fit(X, Y, **options)
    assert (tmp_path / "died").exists()
    assert_same(results, expected)
    assert capsys.readouterr().err.count("sweep: 12 runs in ") == 1


@pytest.mark.slow
def test_a_run_that_kills_every_worker_is_a_row_with_its_error(expected, processes):
    def callbacks(run):
        kill = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: os.kill(os.getpid(), signal.SIGKILL))
        return [kill] if run.number == 11 else []

    results = sweep().fit(X, Y, n_jobs=2, callbacks=callbacks, **FIT)
    assert {one.parameters["width"] for one in results.failed} == {4}, "the group of that run, and no other"
    assert "WorkerDied: the worker died in each of 3 attempts" in results[11].error
    assert results[0].history == expected[0].history


def test_the_threads_of_one_process_train_in_turn(expected):
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert_same(sweep().fit(X, Y, n_jobs=None, **FIT), expected)


class AtOnce(joblib.parallel.ThreadingBackend):
    """A backend that gives results when all have ended, as that of Ray."""

    supports_return_generator = False


def test_a_backend_that_returns_all_at_once_gets_a_group_for_each_worker_at_a_time(expected, tmp_path):
    joblib.register_parallel_backend("at once", AtOnce)
    kept = []

    def callbacks(run):
        kept.append(len(Sweep.load(tmp_path)))
        return []

    with joblib.parallel_config(backend="at once", n_jobs=2):
        assert_same(sweep().fit(X, Y, n_jobs=None, directory=tmp_path, callbacks=callbacks, **FIT), expected)
    assert sorted(set(kept)) == [0, 8], "two groups of four had ended, and were written, when the third began"


def test_workers_share_the_processors(processes):
    share = max(1, thread_count() // 2)
    assert sorted(carry_out(thread_count, {0: (), 1: ()}, 2)) == [(0, share), (1, share)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the cluster's own start and end
def test_a_cluster_of_dask_gives_the_same_numbers_though_a_worker_is_killed(expected, tmp_path):
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "died"
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        results = sweep().fit(X, Y, n_jobs=-1, directory=tmp_path / "sweep", callbacks=dying(marker), **FIT)
    assert marker.exists()
    assert_same(results, expected)


def test_data_count_in_the_size_of_what_a_group_is_given():
    """Dask sends what is large to each worker once."""
    small, large = (
        Training({"epochs": 3}, "loss", True),
        Training({"x": [X, {"a": X}], "validation_data": (X, Y)}, "loss", True),
    )
    assert sys.getsizeof(small) < 1000 and sys.getsizeof(large) > 3 * X.nbytes
