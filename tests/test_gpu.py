"""What only a GPU shows. The operations and layers run there too: `pytest -m gpu` has those; `pytest --on gpu` any test."""

import types

import gpu_guard
import numpy as np
import pytest

import minikeras as tf
from minikeras.core.arrays import probe

on_a_gpu = pytest.mark.gpu


@pytest.fixture
def gpu():
    """CuPy, with the GPU as the current device."""
    if not probe().works:
        pytest.skip(f"no GPU: {probe().reason}")
    with tf.device("GPU:0"):
        yield pytest.importorskip("cupy")


@on_a_gpu
def test_the_report_names_the_gpu(gpu):
    report = tf.config.device_report()
    assert report["gpu"] == "ok" and report["gpu_name"] and report["device"] == "GPU:0"
    assert "GPU:0" in tf.config.list_physical_devices()


@on_a_gpu
def test_numbers_go_there_and_come_back_in_every_dtype(gpu):
    for dtype in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64", "complex128"):
        values = np.arange(6).reshape(2, 3).astype(dtype)
        x = tf.constant(values)
        assert x.device == "GPU:0" and x.numpy().dtype == dtype and (x.numpy() == values).all()
    with tf.device("CPU:0"):
        assert tf.identity(x).device == "CPU:0"


@on_a_gpu
def test_gradients_of_rows_that_are_looked_up_have_the_same_bits_each_time(gpu):
    generator = np.random.default_rng(0)
    table, rows = tf.constant(generator.normal(size=(7, 33)), "float32"), tf.constant(generator.integers(0, 7, 4096), "int32")
    weights = tf.constant(generator.normal(size=(4096, 33)), "float32")

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(table)
            loss = tf.reduce_sum(tf.gather(table, rows) * weights)
        return tf.convert_to_tensor(tape.gradient(loss, table)).numpy()

    first = gradient()
    assert all(np.array_equal(gradient(), first) for _ in range(5))


@on_a_gpu
def test_products_have_float32_s_precision(gpu):
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 256, 256))
    found = (tf.constant(a, "float32") @ tf.constant(b, "float32")).numpy()
    assert np.abs(found - a @ b).max() < 1e-3


def test_what_is_no_number_passes_a_relu_of_a_compiled_step(device):
    x, w, b = tf.ones([4, 8]), tf.Variable(np.full((8, 8), np.nan, "float32")), tf.Variable(tf.zeros([8]))
    step = tf.function(lambda x: tf.nn.relu(x @ w + b))
    for _ in range(4):
        assert np.isnan(step(x).numpy()).all()


@on_a_gpu
def test_a_singular_matrix_is_an_error_there_too(gpu):
    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        tf.linalg.inv(tf.zeros([2, 2]))


@on_a_gpu
def test_a_hundred_steps_take_no_more_memory_than_ten(gpu):
    model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(3)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    x, y = np.ones((64, 16), "float32"), np.arange(64) % 3
    model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    before = gpu.get_default_memory_pool().total_bytes()
    model.fit(x, y, batch_size=8, epochs=12, verbose=0)
    assert gpu.get_default_memory_pool().total_bytes() <= before + 65536


@on_a_gpu
def test_the_limit_of_data_is_a_part_of_the_free_memory(gpu):
    assert 0 < tf.config.get_resident_data_limit() <= gpu.cuda.runtime.memGetInfo()[1] / 4


# The guard, which needs none ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "works", "outcome", "fails"),
    [
        ("gpu", True, "skipped", True),
        ("gpu", True, "passed", False),
        ("gpu", True, "failed", False),
        ("gpu", False, "skipped", False),
        ("not slow", True, "skipped", False),
    ],
)
def test_tests_for_a_gpu_that_is_there_must_run(expression, works, outcome, fails, monkeypatch):
    monkeypatch.setattr(gpu_guard, "probe", lambda: types.SimpleNamespace(works=works))
    assert gpu_guard.none_was_run(expression, {outcome: [None]}) is fails
