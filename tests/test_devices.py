"""Where arrays are made, and that they stay there."""

import sys
import types

import numpy as np
import pytest
from in_threads import in_threads

import minikeras as tf
from minikeras.compiler.signature import key_of
from minikeras.core.arrays import devices, namespace
from minikeras.core.convert import adopt
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


def test_the_cpu_stands_in_for_a_gpu_where_soft_placement_was_asked_for(without_gpu):
    assert tf.config.get_soft_device_placement() is False
    tf.config.set_soft_device_placement(True)
    try:
        with (
            pytest.warns(UserWarning, match="device: '/GPU:1' cannot be used, the CPU stands in: the reason"),
            tf.device("/GPU:1"),
        ):
            assert tf.zeros([2]).device == "CPU:0"
        with tf.device("CPU:0"):
            assert tf.zeros([2]).device == "CPU:0"
    finally:
        tf.config.set_soft_device_placement(False)


def test_without_a_gpu_only_the_cpu_is_listed(without_gpu):
    assert tf.config.list_physical_devices() == ["CPU:0"]
    assert tf.config.list_physical_devices("GPU") == tf.config.list_physical_devices("gpu") == []
    report = tf.config.device_report()
    assert report["gpu"] == "the reason" and report["numpy"] == np.__version__ and report["device"] == "CPU:0"


def test_the_report_has_all_that_tells_one_gpu_from_another(monkeypatch):
    runtime = types.SimpleNamespace(
        runtimeGetVersion=lambda: 13020,
        driverGetVersion=lambda: 13000,
        getDevice=lambda: 1,
        getDeviceProperties=lambda number: {"name": f"number {number}".encode()},
        memGetInfo=lambda: (2_500_000_000, 10_000_000_000),
    )
    cupy = types.SimpleNamespace(__version__="14.2.0", cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(devices, "probe", lambda: devices.Probe(True, "ok"))
    report = tf.config.device_report()
    assert report["cupy"] == "14.2.0" and report["gpu_name"] == "number 1"
    assert report["cuda"] == "runtime 13020, driver 13000" and report["gpu_memory"] == "2.5 of 10.0 GB free"


@pytest.mark.parametrize("kind", ["CPU", "cpu"])
def test_listing_the_cpu_does_not_try_the_gpu(kind, monkeypatch):
    monkeypatch.setattr(devices, "probe", lambda: pytest.fail("the GPU was tried"))
    assert tf.config.list_physical_devices(kind) == ["CPU:0"]


def test_the_probe_names_a_reason_either_way():
    works, reason = devices.probe()
    assert reason == "ok" if works else reason


def library(x):
    """Which library's array a Tensor or Variable holds; the test double has no device of its own to name."""
    return namespace(x.array)


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


# Operands on several devices ---------------------------------------------------------------------------------------------


def on(name, values):
    with tf.device(name):
        return tf.constant(values)


OPERATIONS = {
    "a sum": lambda here, there: here + there,
    "the other way round": lambda here, there: there * here,
    "a product": lambda here, there: tf.matmul(here[None], there[:, None]),
    "a choice": lambda here, there: tf.where(here > 0.0, here, there),
    "one behind the other": lambda here, there: tf.concat([here, there], 0),
    "a stack": lambda here, there: tf.stack([here, there]),
    "a list": lambda here, there: tf.constant([here, there]),
    "rows by number": lambda here, there: tf.gather(here, tf.cast(there, "int32")),
    "a contraction": lambda here, there: tf.einsum("i,i->", here, there),
    "a Variable": lambda here, there: tf.Variable(here) + there,
    "a compiled function": lambda here, there: tf.function(lambda a, b: a * b)(here, there),
    "a loss": lambda here, there: tf.keras.losses.MeanSquaredError()(here, there),
    "a layer": lambda here, there: tf.keras.layers.Add()([here, there]),
    "an optimizer": lambda here, there: tf.keras.optimizers.SGD().apply([there], [tf.Variable(here)]),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_arrays_on_two_devices_are_an_error_that_names_both_and_the_move(operation):
    here, there = on("STRICT:0", [1.0, 2.0]), on("CPU:0", [0.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="on different devices") as caught:
        operation(here, there)
    for part in ("[2] on CPU:0", "on STRICT:0", "Bring them to one: with tf.device('STRICT:0'): x = tf.identity(x)."):
        assert part in str(caught.value).replace("[2,1]", "[2]")


@pytest.mark.parametrize("number", [3.0, np.float32(3.0), np.array(3.0, "float32"), [3.0], "tensor"])
def test_numbers_and_what_is_no_tensor_yet_follow_the_tensor_beside_them(number):
    x = on("STRICT:0", [1.0, 2.0])
    number = tf.constant(3.0) if isinstance(number, str) else number
    for result in (x * number, number * x):
        assert result.device == "STRICT:0" and result.numpy().tolist() == [3.0, 6.0]


@pytest.mark.parametrize("number", [3.0, "tensor"])
def test_a_recorded_step_brings_numbers_to_the_device_too(number):
    with tf.device("STRICT:0"):
        step = tf.function(lambda x, y: x * y + 1.0)
        x = tf.constant([1.0, 2.0])
    number = tf.constant(3.0) if isinstance(number, str) else number
    for _ in range(3):
        assert step(x, number).numpy().tolist() == [4.0, 7.0]


def test_identity_moves_and_its_gradient_comes_back():
    x = on("STRICT:0", [1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.device("CPU:0"):
            y = tf.identity(x)
        loss = tf.reduce_sum(y * tf.constant([3.0, 4.0]))
    gradient = tape.gradient(loss, x)
    assert (x.device, y.device, loss.device, gradient.device) == ("STRICT:0", "CPU:0", "CPU:0", "STRICT:0")
    assert gradient.numpy().tolist() == [3.0, 4.0]
    assert tf.identity(x).device == "STRICT:0", "outside of a block nothing moves"


def test_a_recorded_move_moves_in_each_run():
    @tf.function
    def moved(x):
        with tf.device("CPU:0"):
            return tf.identity(x) * 2.0

    x = on("STRICT:0", [1.0, 2.0])
    for _ in range(3):
        y = moved(x)
        assert y.device == "CPU:0" and y.numpy().tolist() == [2.0, 4.0]


def test_a_function_is_recorded_anew_for_arrays_of_another_gpu(monkeypatch):
    x = on("STRICT:0", [1.0, 2.0])
    here = key_of([x], [])
    assert key_of([x], []) == here
    monkeypatch.setattr(type(x.array), "device", types.SimpleNamespace(id=1))
    assert key_of([x], []) != here


def test_text_stays_on_the_cpu_whatever_the_block_says():
    with tf.device("STRICT:0"):
        words = [tf.constant(["a", "b"]), tf.constant(np.array(["a", "b"])), tf.identity(tf.constant(["a"])), tf.fill([2], "c")]
    assert {one.device for one in words} == {"CPU:0"}


def test_seeds_of_a_gradient_come_to_the_target():
    x = on("STRICT:0", [1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0])).numpy().tolist() == [2.0, 40.0]


def test_an_inner_block_gives_the_outer_device_back_to_the_library(monkeypatch):
    chosen = []
    monkeypatch.setitem(devices._BACKENDS, "STRICT", lambda index: chosen.append(index) or np)
    monkeypatch.setattr(devices, "np", None)
    with devices.device("STRICT:0"), devices.device("STRICT:1"):
        pass
    assert chosen[:3] == [0, 1, 0]


def test_what_another_gpu_holds_is_adopted_there_and_the_present_one_stays(monkeypatch):
    chosen, library = [], types.SimpleNamespace(from_dlpack=lambda value: f"adopted on {chosen[-1]}")
    monkeypatch.setitem(devices._BACKENDS, "GPU", lambda index: chosen.append(index) or library)
    with devices.device("GPU:0"):
        there = adopt(types.SimpleNamespace(__dlpack__=None, __dlpack_device__=lambda: (2, 1)))
        assert there == "adopted on 1" and chosen == [0, 1, 0]


def test_a_move_from_one_gpu_to_another_is_a_copy():
    array = on("STRICT:0", [1.0, 2.0]).array
    assert devices.moved(array, "STRICT:0") is array
    assert devices.moved(array, "STRICT:1") is not array


# Training ----------------------------------------------------------------------------------------------------------------

ROWS = 24
X, Y = np.linspace(-1.0, 1.0, ROWS * 3).reshape(ROWS, 3).astype("float32"), np.arange(ROWS) % 2


def classifier(**options):
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.Dense(2)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
    return model


def copies_of(call):
    with tf.debugging.count_transfers() as copies:
        call()
    return copies


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_data_set_is_moved_once_and_batches_are_gathered_on_the_device(shuffle):
    def bytes_and_copies(epochs):
        with tf.device("STRICT:0"):
            model = classifier(run_eagerly=True)
            model.fit(X, Y, batch_size=4, verbose=0)
            copies = copies_of(lambda: model.fit(X, Y, batch_size=4, epochs=epochs, verbose=0, shuffle=shuffle))
        return copies.bytes_to_device, copies.to_device

    (once, few), (thrice, many) = bytes_and_copies(1), bytes_and_copies(3)
    steps, row_numbers = ROWS // 4, 8 * ROWS * shuffle
    assert thrice - once == 2 * row_numbers, "an epoch moves row numbers and nothing else"
    assert many - few == 2 * steps * shuffle
    assert once == X.nbytes + Y.nbytes + row_numbers


def test_a_data_set_beyond_the_limit_is_moved_batch_by_batch(monkeypatch):
    tf.config.set_resident_data_limit(X.nbytes)
    try:
        with tf.device("STRICT:0"):
            model = classifier(run_eagerly=True)
            model.fit(X, Y, batch_size=4, verbose=0)
            found = copies_of(lambda: model.fit(X, Y, batch_size=4, epochs=3, verbose=0, shuffle=True))
    finally:
        tf.config.set_resident_data_limit(None)
    assert found.bytes_to_device == 3 * (X.nbytes + Y.nbytes) and found.to_device == 3 * 2 * ROWS // 4


@pytest.mark.parametrize("limit", [None, 0])
def test_float64_arrays_in_files_give_what_those_in_memory_give(limit, tmp_path):
    np.save(tmp_path / "x.npy", X.astype(float) / 3.0)

    def work(mode):
        tf.random.set_seed(1)
        model, x = classifier(), np.load(tmp_path / "x.npy", mmap_mode=mode)
        losses = model.fit(x, Y, batch_size=4, epochs=3, validation_split=0.2, verbose=0).history
        return losses, model.predict(x, verbose=0).tolist(), model.weights[0].numpy().tolist()

    tf.config.set_resident_data_limit(limit)
    try:
        with tf.device("STRICT:0"):
            assert work("r") == work(None)
    finally:
        tf.config.set_resident_data_limit(None)


@pytest.mark.parametrize("limit", [-1, "much"])
def test_a_limit_of_data_is_a_number_of_bytes(limit):
    with pytest.raises(ValueError, match="set_resident_data_limit: a number of bytes from 0 on or None is needed, found"):
        tf.config.set_resident_data_limit(limit)


def test_training_prediction_and_measuring_follow_the_weights():
    with tf.device("STRICT:0"):
        model = classifier()
    model.fit(X, Y, batch_size=8, verbose=0)
    model.train_on_batch(X, Y), model.test_on_batch(X, Y), model.evaluate(X, Y, verbose=0)
    assert type(model.predict(X, verbose=0)) is np.ndarray
    assert {weight.device for weight in model.weights} == {"STRICT:0"}
    assert model.predict_on_batch(X).shape == (ROWS, 2)


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"])
def test_a_block_that_contradicts_the_weights_is_an_error(call):
    model = classifier()
    arguments = [X] if call.startswith("predict") else [X, Y]
    with tf.device("STRICT:0"), pytest.raises(tf.errors.InvalidArgumentError, match=f"{call}: the weights of model .* CPU:0"):
        getattr(model, call)(*arguments)


def test_a_program_counts_what_it_copies_there_and_back():
    with tf.debugging.count_transfers() as copies, tf.device("STRICT:0"):
        x = tf.constant([1.0, 2.0, 3.0])
        float(tf.reduce_sum(x))
    assert (copies.to_device, copies.bytes_to_device, copies.to_host, copies.bytes_to_host) == (1, 12, 1, 4)
    assert repr(copies) == "<Transfers to devices: 1 of 12 bytes, to the host: 1 of 4 bytes>"
    tf.identity(x).numpy()
    assert copies.to_host == 1, "outside of the block nothing is counted"


def test_counters_of_optimizers_stay_on_the_cpu_when_they_are_copied():
    import copy
    import pickle

    with tf.device("STRICT:0"):
        optimizer = tf.keras.optimizers.Adam()
        optimizer.build([tf.Variable([1.0])])
        for one in (optimizer, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            assert one.iterations.device == one.learning_rate.device == "CPU:0"


def test_programs_may_begin_with_what_they_say_of_gpus():
    for gpu in tf.config.experimental.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    assert tf.config.experimental.list_logical_devices() == tf.config.list_logical_devices() == tf.config.get_visible_devices()
    with pytest.raises(ValueError, match="of GPUs only; found 'CPU:0', True"):
        tf.config.experimental.set_memory_growth("CPU:0", True)


def test_devices_that_are_not_visible_are_not_listed():
    tf.config.set_visible_devices([], "CPU")
    try:
        assert tf.config.list_logical_devices("CPU") == [] and tf.config.list_physical_devices("CPU") == ["CPU:0"]
    finally:
        tf.config.set_visible_devices("CPU:0", "CPU")
    assert tf.config.list_logical_devices("CPU") == ["CPU:0"]
    with pytest.raises(ValueError, match=r"there are \['CPU:0'\], found \['GPU:7'\]"):
        tf.config.set_visible_devices(["GPU:7"], "CPU")
