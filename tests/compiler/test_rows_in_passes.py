"""Operations on rows, each a nest whose points go through their row several times, give NumPy's numbers."""

import numpy as np
import pytest
from interpreter import interpret
from small_training import needs_llvm

import minikeras as tf
from minikeras.compiler.executors.llvm.calls import KernelCall
from minikeras.compiler.executors.llvm.encode import TARGET, encode, in_usual_order
from minikeras.compiler.ir import outputs_of
from minikeras.compiler.loop_ir.fusion import fuse_groups
from minikeras.compiler.loop_ir.groups import ROOM, Domain, group, rows_nest
from minikeras.compiler.passes import optimized

pytestmark = needs_llvm
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def normalized(x, axes=(-1,)):
    mean = tf.reduce_mean(x, axes, keepdims=True)
    variance = tf.reduce_mean(tf.square(x - mean), axes, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-3)


def gradient(function):
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x, output_gradients=tf.sin(x))

    return both


def several(x):
    """Rows whose parts are results too: of each element, and of each row."""
    e = tf.exp(tf.tanh(x))
    total = tf.reduce_sum(e, -1)
    share = e / total[..., None]
    return e, total, share, tf.reduce_max(share * x, -1), tf.reduce_sum(x, -1) * 2.0


ROWS = {
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "softmax, gradient": gradient(tf.nn.softmax),
    "normalized": normalized,
    "normalized, gradient": gradient(normalized),
    "with a scale for each column": gradient(lambda x: normalized(x * 2.0) * tf.cos(x[:1])),
    "several results": several,
    "squares": lambda x: x / tf.sqrt(tf.reduce_sum(x * x, -1, keepdims=True)),
    "last two axes": lambda x: normalized(x[None] + x[:, None], (-2, -1)),
    "transposed": lambda x: tf.nn.softmax(tf.transpose(x)),
}
SHAPES = [(3, 16), (1, 17), (2, 40), (7, 100), (2, 3, 33), (1, 1, 16), (40, 15), (5, 1), (1, ROOM), (2, ROOM + 1)]


def given(shape, dtype):
    return tf.constant(np.random.default_rng(0).normal(size=shape).astype(dtype))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length(name, dtype):
    for shape in SHAPES:
        if name in ("last two axes", "transposed") and (len(shape) > 2 or shape[-1] > 1000):
            continue
        x, compiled = given(shape, dtype), tf.function(ROWS[name], jit_compile=True)
        compiled(x)
        pairs = zip(tf.nest.flatten(compiled(x)), tf.nest.flatten(ROWS[name](x)), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, TOLERANCE[dtype], TOLERANCE[dtype], err_msg=str(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "normalized", "several results"])
def test_what_is_no_number_stays_in_its_row(name, value):
    x = given((4, 50), "float32").numpy()
    x[1, 20] = value
    compiled = tf.function(ROWS[name], jit_compile=True)
    compiled(tf.constant(x))
    pairs = zip(tf.nest.flatten(compiled(tf.constant(x))), tf.nest.flatten(ROWS[name](tf.constant(x))), strict=True)
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, 2e-5, 2e-5)


def program_of(function, x):
    compiled = tf.function(function)
    for _ in range(2):
        compiled(x)
    return in_usual_order(optimized(compiled.program(x), native=True))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", ["softmax", "normalized", "normalized, gradient", "several results", "squares"])
def test_the_nest_means_what_its_members_give(name, backwards):
    x = given((5, 21), "float32")
    program = fuse_groups(program_of(ROWS[name], x), TARGET)
    known, seen = {program.arguments[0].key: x.numpy()}, 0
    known |= {slot.key: slot.array for slot in program.slots() if slot.array is not None}
    for record in program.records:
        operands = [known.get(getattr(one, "key", None), one) for one in record.inputs]
        results = record.primitive.kernel(np)(*operands, **record.params)
        known |= dict(zip([y.key for y in outputs_of(record)], results if type(results) is tuple else (results,), strict=True))
        if record.primitive is not group:
            continue
        domain, seen = Domain(record.params["shape"], record.params["axes"]), seen + 1
        launch = rows_nest(domain, record.params["members"], record.outputs)
        found = [np.full(y.shape, 88, y.dtype) for y in launch.results]
        arrays = [
            np.ascontiguousarray(known[one.key], array.dtype)
            for one, array in zip(launch.operands, launch.nest.arrays, strict=False)
        ]
        interpret(launch.nest, [*arrays, *found], launch.sizes, backwards)
        for y, array in zip(launch.results, found, strict=True):
            np.testing.assert_allclose(array, known[y.key], 2e-5, 2e-5)
    assert seen


@pytest.mark.parametrize(("name", "kernels"), [("softmax", 1), ("normalized", 1), ("softmax, gradient", 3)])
def test_an_operation_on_rows_is_one_kernel(name, kernels):
    calls = encode(program_of(ROWS[name], given((5, 21), "float32")))
    assert len([call for call in calls if isinstance(call, KernelCall)]) <= kernels


@pytest.mark.parametrize("other", ["float16", "int32", "float32"])
def test_one_hot_rows_of_bools_choose_in_loops_that_numpy_carries_out_too(other):
    """A choice of two ints is no condition for NumPy: it refused the loop."""
    places, x = tf.constant([0, 2, 1]), tf.cast(tf.reshape(tf.range(9), (3, 3)), other)
    step = tf.function(lambda i, x: tf.where(tf.one_hot(i, 3, dtype="bool"), x, -x), jit_compile=True)
    for _ in range(3):
        np.testing.assert_array_equal(step(places, x), tf.where(tf.one_hot(places, 3, dtype="bool"), x, -x))
