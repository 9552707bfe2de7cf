"""Convolutions as products of matrices give what convolutions give, with their gradients."""

import itertools

import numpy as np
import pytest
import recorded

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.nodes import Emitter
from minikeras.compiler.ir import outputs_of
from minikeras.compiler.passes import optimized
from minikeras.compiler.passes.device import lower_convolutions, windows_as_rows
from minikeras.core.registry import operations

GEOMETRIES = {
    "plain": {"sizes": (7, 6), "window": (3, 2), "strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)},
    "padded": {"sizes": (4, 5), "window": (3, 3), "strides": (1, 1), "padding": ((1, 1), (2, 0)), "dilation": (1, 1)},
    "strided": {"sizes": (9, 8), "window": (2, 3), "strides": (2, 3), "padding": ((0, 1), (1, 1)), "dilation": (1, 1)},
    "dilated": {"sizes": (9,), "window": (3,), "strides": (1,), "padding": ((4, 0),), "dilation": (2,)},
    "pointwise": {
        "sizes": (3, 2, 2),
        "window": (1, 1, 1),
        "strides": (1, 1, 1),
        "padding": ((0, 0),) * 3,
        "dilation": (1,) * 3,
    },
    "gaps": {"sizes": (7,), "window": (1,), "strides": (3,), "padding": ((0, 0),), "dilation": (1,)},
}


def recorded_gradients(geometry, dtype="float32", groups=1):
    """The program of a convolution and its gradients, and its inputs."""
    random, geometry = np.random.default_rng(3), dict(geometry)
    sizes, window = geometry.pop("sizes"), geometry.pop("window")
    x = tf.constant(random.normal(size=(2, *sizes, 4)), dtype)
    kernel = tf.constant(random.normal(size=(*window, 4 // groups, 6)), dtype)

    def step(x, kernel):
        with tf.GradientTape() as tape:
            tape.watch([x, kernel])
            y = operations.convolve(x, kernel, groups=groups, **geometry)
            loss = tf.reduce_sum(y * y)
        return loss, *tape.gradient(loss, [x, kernel])

    function = tf.function(step)
    function(x, kernel)
    return function.program(x, kernel), [x.array, kernel.array]


def results(program, inputs):
    values = {
        y.key: z
        for case in recorded.replayed("", program, inputs)
        for y, z in zip(outputs_of(case.record), case.expected, strict=True)
    }
    return [values[y.key] for y in program.results]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_products_give_the_convolution_and_its_gradients(name, dtype):
    program, inputs = recorded_gradients(GEOMETRIES[name], dtype)
    lowered = lower_convolutions(optimized(program))
    names = {record.primitive.name for record in lowered.records}
    assert "matrix_product" in names and not names & {"convolve", "correlate_windows", "spread_windows"}
    for found, expected in zip(results(lowered, inputs), results(optimized(program), inputs), strict=True):
        scale = np.abs(expected).max().astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=0, atol=20 * float(np.finfo(dtype).eps) * scale)


def test_windows_of_one_element_are_read_where_they_lie():
    program, _ = recorded_gradients(GEOMETRIES["pointwise"])
    assert all(record.primitive is not windows_as_rows for record in lower_convolutions(optimized(program)).records)


def test_convolutions_of_groups_stay_what_they_are_and_have_kernels():
    program, _ = recorded_gradients(GEOMETRIES["padded"], groups=2)
    lowered = lower_convolutions(optimized(program))
    emitter = Emitter(itertools.count(1 << 20))
    kept = [one for one in lowered.records if one.primitive.name in ("convolve", "correlate_windows", "spread_windows")]
    assert len(kept) == 3 and all(emitter.kernels(one) for one in kept)
