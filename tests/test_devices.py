"""Where arrays are made, and that they stay there."""

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.arrays import devices, namespace
from minikeras.errors import DeviceUnavailableError


@pytest.fixture
def without_gpu(monkeypatch):
    """As on a machine where the probe failed."""
    monkeypatch.setattr(devices, "probe", lambda: devices.Probe(False, "the reason"))


@pytest.mark.parametrize("name", ["CPU", "cpu", "CPU:0", "/CPU:0", "/device:CPU:0", "/device:cpu:0"])
def test_every_spelling_of_a_device_is_understood(name):
    with tf.device(name):
        assert tf.zeros([2]).device == "CPU:0"


@pytest.mark.parametrize("name", ["TPU", "", "CPU:x", "CPU:-1", "device"])
def test_what_names_no_device_is_refused(name):
    with pytest.raises(ValueError, match="names no device; write one of CPU, GPU"), tf.device(name):
        pass


@pytest.mark.parametrize("name", ["GPU", "gpu:0", "/GPU:1"])
def test_a_gpu_that_does_not_work_is_an_error_with_the_reason(without_gpu, name):
    with pytest.raises(DeviceUnavailableError, match=r"no GPU can be used: the reason. Use tf.device"), tf.device(name):
        pass
    assert tf.zeros([1]).device == "CPU:0", "the failed request changed nothing"


def test_without_a_gpu_only_the_cpu_is_listed(without_gpu):
    assert tf.config.list_physical_devices() == ["CPU:0"]
    assert tf.config.list_physical_devices("GPU") == tf.config.list_physical_devices("gpu") == []
    report = tf.config.device_report()
    assert report["gpu"] == "the reason" and report["numpy"] == np.__version__ and report["device"] == "CPU:0"


@pytest.mark.parametrize("kind", ["CPU", "cpu"])
def test_listing_the_cpu_does_not_try_the_gpu(kind, monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: pytest.fail("the GPU was tried"))
    assert tf.config.list_physical_devices(kind) == ["CPU:0"]


def test_the_probe_names_a_reason_either_way():
    works, reason = devices.probe()
    assert reason == "ok" if works else reason


def library(x):
    """Which library's array a Tensor or Variable holds; the test double has no device of its own to name."""
    return namespace(x._array)


def test_a_device_holds_within_its_block_also_if_that_raises():
    with tf.device("CPU:0"):
        with pytest.raises(KeyError), tf.device("STRICT:0"):
            assert library(tf.zeros([2])) is not np
            raise KeyError
        assert library(tf.zeros([2])) is np


def test_a_device_holds_in_its_own_thread_only():
    found = []
    with tf.device("STRICT:0"):
        in_threads(lambda: found.append(library(tf.zeros([1]))))
    assert found == [np]


def test_what_is_computed_stays_where_its_operands_are():
    with tf.device("STRICT:0"):
        x = tf.constant([1.0, 2.0])
    assert library(x) is not np
    assert library(x * 2.0 + [1.0, 1.0]) is library(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    assert library(tape.gradient(y, x)) is library(x)


WRITES = {
    "assign a list": lambda v: v.assign([5.0, 6.0]),
    "assign an array": lambda v: v.assign(np.array([5.0, 6.0])),
    "assign a tensor": lambda v: v.assign(tf.constant([5.0, 6.0])),
    "assign_add": lambda v: v.assign_add([4.0, 4.0]),
    "assign_sub": lambda v: v.assign_sub(tf.constant([-4.0, -4.0])),
    "assign a part": lambda v: v[:].assign(tf.constant([5.0, 6.0])),
    "scatter": lambda v: v.scatter_nd_update([[0], [1]], [5.0, 6.0]),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(("home", "elsewhere"), [("STRICT:0", "CPU:0"), ("CPU:0", "STRICT:0")])
def test_a_variable_stays_on_its_device_whatever_is_assigned(write, home, elsewhere):
    with tf.device(home):
        v = tf.Variable([1.0, 2.0])
    before = library(v)
    with tf.device(elsewhere):
        write(v)
    assert library(v) is before and v.numpy().tolist() == [5.0, 6.0]
