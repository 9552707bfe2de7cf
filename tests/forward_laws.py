"""The laws of forward mode: tangents by ForwardAccumulator, alone and together with tapes. Notation as in `laws.py`."""

from typing import Any

import numpy as np
import pytest
from laws import (
    assert_near,
    cotangents,
    directions_for,
    inner,
    numerical_slope,
    results,
    size_of_terms,
    smooth_positions,
)
from specimens import Specimen

import minikeras as tf
from minikeras.core.tensor import Tensor
from minikeras.errors import InvalidArgumentError


def tangent_is_the_derivative(specimen: Specimen) -> None:
    """<u, J v>, by ForwardAccumulator = d/ds <u, f(x + s v)> at s = 0; by the complex step where f is analytic."""
    arrays = specimen.sample()
    seeds, directions = cotangents(specimen, arrays), directions_for(specimen, arrays)
    tensors = [Tensor(x) for x in arrays]
    primals = [tensors[i] for i in smooth_positions(arrays)]
    with tf.autodiff.ForwardAccumulator(primals, [Tensor(v) for v in directions]) as accumulator:
        found = results(specimen, tensors)
    pairs = [(u, np.asarray(accumulator.jvp(y).array)) for u, y in zip(seeds, found, strict=True) if u is not None]
    actual = sum(inner(u, t) for u, t in pairs)
    expected, tolerance = numerical_slope(specimen, arrays, seeds, directions)
    assert_near(actual, expected, size_of_terms(*zip(*pairs, strict=True)), tolerance, "<u, J v>")


def hessian_products_agree(specimen: Specimen) -> None:
    """Forward over reverse = reverse over forward = reverse over reverse: H v, with H the Hessian of <u, f(x)>.

    For complex x, H is that of a real function of (Re x, Im x); the three agree for it as well.
    """
    arrays = specimen.sample()
    tensors = [Tensor(x) for x in arrays]
    sources = [tensors[i] for i in smooth_positions(arrays)]
    seeds = [None if u is None else Tensor(u) for u in cotangents(specimen, arrays)]
    directions = [Tensor(v) for v in directions_for(specimen, arrays)]

    def gradient() -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            pairs = [(y, u) for y, u in zip(results(specimen, tensors), seeds, strict=True) if u is not None]
        return tape.gradient([y for y, _ in pairs], sources, [u for _, u in pairs])

    with tf.autodiff.ForwardAccumulator(sources, directions) as accumulator:
        first = gradient()
    forward_over_reverse = accumulator.jvp(first, "zero")
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.autodiff.ForwardAccumulator(sources, directions) as accumulator:
            found = results(specimen, tensors)
        pairs = [(accumulator.jvp(y), u) for y, u in zip(found, seeds, strict=True) if u is not None]
    reverse_over_forward = outer.gradient([t for t, _ in pairs], sources, [u for _, u in pairs], "zero")
    with tf.GradientTape() as outer:
        outer.watch(sources)
        first = gradient()
    reverse_over_reverse = outer.gradient(first, sources, directions, "zero")
    for a, b, c in zip(forward_over_reverse, reverse_over_forward, reverse_over_reverse, strict=True):
        scale = max(float(np.abs(a.numpy()).max(initial=0)), 1e-3)
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-9, atol=1e-11 * scale, err_msg="reverse over forward")
        np.testing.assert_allclose(c.numpy(), a.numpy(), rtol=1e-9, atol=1e-11 * scale, err_msg="reverse over reverse")


def derivatives_keep_the_dtype(specimen: Specimen, dtype: str) -> None:
    """J v has the dtypes of f(x), J^T u and its change along v those of x; also with a number for either of two inputs."""
    made = [tf.convert_to_tensor(x) for x in specimen.sample("float64" if dtype == "float64" else "float32")]
    tensors = [tf.cast(x, dtype) if x.dtype.is_floating else x for x in made]
    cases = [tensors]
    if specimen.elementwise and len(tensors) == 2 and all(x.dtype.is_floating for x in tensors):
        cases += [[tensors[0], 2.0], [1, tensors[1]], [2.0, tensors[1]]]
    for inputs in cases:
        sources = [x for x in inputs if isinstance(x, Tensor) and x.dtype.is_differentiable]
        try:
            results(specimen, inputs)
        except InvalidArgumentError:
            pytest.skip("not for this dtype")
        with tf.autodiff.ForwardAccumulator(sources, list(map(tf.ones_like, sources))) as accumulator:
            with tf.GradientTape() as tape:
                tape.watch(sources)
                found = [y for y in results(specimen, inputs) if y.dtype.is_differentiable]
            slopes = tape.gradient(found, sources, list(map(tf.ones_like, found)))
        for y in found:
            assert accumulator.jvp(y) is None or accumulator.jvp(y).dtype == y.dtype, "J v"
        for x, slope in zip(sources, slopes, strict=True):
            assert slope is None or slope.dtype == x.dtype, "J^T u"
            change = None if slope is None else accumulator.jvp(slope)
            assert change is None or change.dtype == x.dtype, "the change of J^T u"
