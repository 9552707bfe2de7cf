"""Training steps of whole models leave LLVM's kernels for nothing: what Python does comes before them or after."""

import numpy as np
import pytest
from slow import sampled

import minikeras as tf
from minikeras.compiler import executors
from minikeras.compiler.executors import llvm
from minikeras.compiler.executors.llvm.encode import NARROW, encode
from minikeras.compiler.passes import optimized

layers = tf.keras.layers
pytestmark = pytest.mark.skipif(not llvm.installed(), reason="needs llvmlite and SciPy")

PYTHONS = {"read_variable", "assign", "read_flat", "assign_flat", "flatten", "step_numbers", "step_counted", "check"}
"""Instructions that Python carries out in a step that is otherwise one call of kernels."""


def convnet():
    return tf.keras.Sequential(
        [
            layers.Input((12, 12, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(8, 3, activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.5),
            layers.Dense(3),
        ]
    )


def resnet():
    inputs = layers.Input((8, 8, 3))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same", use_bias=False)(inputs)))
    x = layers.Add()([layers.DepthwiseConv2D(3, padding="same")(x), layers.AveragePooling2D(3, 1, padding="same")(x)])
    y = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same", use_bias=False)(y))
    x = layers.ReLU()(layers.Add()([layers.Conv2D(8, 1, strides=2, use_bias=False)(x), y]))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling2D()(x)))


def autoencoder():
    return tf.keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(4, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(1, 3, padding="same"),
        ]
    )


def transformer():
    inputs = layers.Input((6,), dtype="int32")
    x = layers.Embedding(20, 8)(inputs)
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(2, 4)(y, y)
    y = layers.Dense(8)(layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x)))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x + y)))


def mixer():
    inputs = layers.Input((8, 8, 3))
    x = layers.Reshape((4, 8))(layers.Conv2D(8, 4, strides=4)(inputs))
    for _ in range(2):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        x = x + layers.Permute((2, 1))(layers.Dense(4)(layers.Dense(4, activation="gelu")(y)))
        x = x + layers.Dense(8)(layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x)))
    return tf.keras.Model(inputs, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def wide_and_deep():
    numbers, inputs = layers.Input((2,)), layers.Input((6,), dtype="int32")
    deep = layers.Concatenate()([layers.Flatten()(layers.Embedding(20, 3)(inputs)), numbers])
    deep = layers.Dense(3)(layers.Dense(8, activation="relu")(deep))
    return tf.keras.Model([inputs, numbers], layers.Add()([deep, layers.Dense(3)(numbers)]))


def compiled_step(monkeypatch, model):
    """A native step of training, and the loss after three."""
    found = []
    compile_program = executors.by_llvm

    def compile_and_keep(program):
        found.append(compile_program(program))
        return found[-1]

    monkeypatch.setattr(executors, "by_llvm", compile_and_keep)
    tf.random.set_seed(1)
    model = model()
    random = np.random.default_rng(0)
    shapes = [tuple(x.shape[1:]) for x in model.inputs]
    kinds = [x.dtype for x in model.inputs]
    xs = [
        random.integers(0, 20, (4, *shape)).astype("int32")
        if "int" in str(dtype)
        else random.normal(size=(4, *shape)).astype("f4")
        for shape, dtype in zip(shapes, kinds, strict=True)
    ]
    is_picture = len(model.outputs[0].shape) == 4
    y = xs[0] if is_picture else random.integers(0, 3, 4).astype("int32")
    loss = "mse" if is_picture else tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    values = []
    for native in (True, False):
        tf.random.set_seed(1)
        again = tf.keras.models.clone_model(model)
        again.set_weights(model.get_weights())
        again.compile("adam", loss, jit_compile=native)
        values.append([again.train_on_batch(xs if len(xs) > 1 else xs[0], y) for _ in range(3)])
    np.testing.assert_allclose(*values, rtol=1e-3)
    return found[-1]


@pytest.mark.parametrize("model", sampled([convnet, resnet, autoencoder, wide_and_deep, transformer, mixer], 2))
def test_a_step_of_a_model_is_one_call_of_kernels(monkeypatch, model):
    from minikeras.compiler.executors.llvm.calls import KernelCall
    from minikeras.compiler.executors.llvm.encode import encode
    from minikeras.compiler.executors.numpy.blocks import copied, put
    from minikeras.compiler.executors.numpy.lowering import Bind, Call, View

    step = compiled_step(monkeypatch, model)
    calls = encode(step.program)
    left = [
        call.record.primitive.name
        for call in calls
        if not isinstance(call, (KernelCall, View, Bind)) and not (isinstance(call, Call) and call.function in (copied, put))
    ]
    assert set(left) <= PYTHONS
    kernels = [number for number, call in enumerate(calls) if isinstance(call, KernelCall)]
    between = [call for call in calls[kernels[0] : kernels[-1]] if not isinstance(call, (KernelCall, View))]
    assert {call.record.primitive.name for call in between} <= {"flatten"}


def test_a_scalar_weight_is_what_the_step_before_has_made_of_it():
    """Kernels are given a copy of it, so its steps are not taken in a row."""

    class Scale(tf.keras.layers.Layer):
        def build(self, shape):
            self.factor = self.add_weight((), "ones", name="factor")

        def call(self, x):
            return x * self.factor

    def trained(**options):
        dense = tf.keras.layers.Dense(2, use_bias=False, kernel_initializer="ones")
        model = tf.keras.Sequential([tf.keras.Input((5,)), dense, Scale()])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", **options)
        x = np.random.default_rng(0).normal(size=(16, 5)).astype("float32")
        model.fit(x, x[:, :2], batch_size=4, epochs=3, shuffle=False, verbose=0)
        for _ in range(3):
            model.train_on_batch(x[:4], x[:4, :2])
        return model.get_weights()

    for found, expected in zip(trained(jit_compile=True), trained(run_eagerly=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [4, 16, 40])
def test_wide_parts_of_a_matrix_are_read_where_they_lie(width):
    def gated(x, kernel):
        a, b, c = tf.split(x @ kernel, 3, axis=-1)
        return tf.sigmoid(b) * tf.tanh(c) + a + kernel[0, width : 2 * width]

    random = np.random.default_rng(2)
    x, kernel = (tf.constant(random.normal(size=size).astype("float32")) for size in ((5, 7), (7, 3 * width)))
    native = tf.function(gated, jit_compile=True)
    for _ in range(3):
        np.testing.assert_allclose(native(x, kernel), gated(x, kernel), rtol=1e-5, atol=1e-6)
    kernels = [call for call in encode(optimized(native.program(x, kernel), native=True)) if call.addressed]
    assert len(kernels) == (6 if width < NARROW else 3)  # the product, copies, and one loop; a row of the kernel is copied


@pytest.mark.parametrize("columns", [slice(None), slice(None, None, -1)])
def test_a_loop_does_not_write_over_what_it_reads_in_another_order(columns):
    """The sum of a value and its rows in reverse: in the memory of the value, half of the rows would be sums already."""
    x = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")

    @tf.function(jit_compile=True)
    def step(x):
        z = tf.exp(x) * 2.0
        y = (z + z[::-1, columns]) * 0.5 + 1.0
        return tf.matmul(y, y)

    z = np.exp(x) * 2.0
    y = (z + z[::-1, columns]) * 0.5 + 1.0
    for _ in range(3):
        np.testing.assert_allclose(step(tf.constant(x)), y @ y, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "int8", "bool"])
@pytest.mark.parametrize("name", ["concat", "stack", "split", "unstack"])
def test_arrays_that_llvm_has_no_type_for_are_joined_and_cut_by_numpy(name, dtype):
    function = {
        "concat": lambda x: tf.concat([x, x], -1),
        "stack": lambda x: tf.stack([x, x]),
        "split": lambda x: tf.split(x, 2, 0),
        "unstack": lambda x: tf.unstack(x),
    }[name]
    x = tf.cast(tf.constant(np.arange(24.0).reshape(2, 3, 4)), dtype)
    found, expected = tf.nest.flatten(tf.function(function, jit_compile=True)(x)), tf.nest.flatten(function(x))
    for own, other in zip(found, expected, strict=True):
        assert own.dtype == other.dtype and own.numpy().tobytes() == other.numpy().tobytes()
