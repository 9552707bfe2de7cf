"""The laws of stacks: what is computed for many values at once equals what is computed for each by itself.

Notation as in `laws.py`. A pattern says which inputs are stacks: (True, False) means many first inputs beside one
second. N is the number of values in a stack.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from laws import cotangents, results, smooth_positions
from specimens import Specimen
from specimens.table import frozen

import minikeras as tf
from minikeras.core.tensor import Tensor

Array = np.ndarray
N = 3


def patterns(specimen: Specimen) -> list[tuple[bool, ...]]:
    """All ways to choose at least one input as a stack."""
    return [choice for choice in itertools.product([True, False], repeat=len(specimen.inputs)) if any(choice)]


def many(specimen: Specimen, pattern: Sequence[bool]) -> list[list[Array]]:
    """N samples of the inputs; where the pattern says so they differ, elsewhere they are those of the first."""
    generator = specimen.generator()
    samples = [[frozen(turned(sampler(generator), i)) for sampler in specimen.inputs] for i in range(N)]
    return [
        [own if stacked else first for own, first, stacked in zip(sample, samples[0], pattern, strict=True)]
        for sample in samples
    ]


def turned(array: Array, steps: int) -> Array:
    """Indices, masks and vectors with their rows in another order: those that a row fixes would not differ otherwise."""
    return np.roll(array, steps, 0) if array.ndim and (array.dtype.kind in "iub" or array.ndim == 1) else array


def mapped(function: Any, samples: Sequence[Sequence[Array]], pattern: Sequence[bool]) -> list[Any]:
    """`vectorized_map` of `function(*inputs)`, with a stack for each input that the pattern names."""
    chosen = [i for i, stacked in enumerate(pattern) if stacked]
    stacks = [Tensor(np.stack([sample[i] for sample in samples])) for i in chosen]
    alone = [Tensor(x) for x in samples[0]]

    def of_one(slices: list[Any]) -> list[Any]:
        given = dict(zip(chosen, slices, strict=True))
        return function(*[given.get(i, x) for i, x in enumerate(alone)])

    return tf.vectorized_map(of_one, stacks)


def assert_alike(actual: Sequence[Any], expected: Sequence[Sequence[Any]], what: str) -> None:
    """Each result equals the stack of the single ones, within rounding."""
    for position, whole in enumerate(actual):
        single = np.stack([np.asarray(one[position].array) for one in expected])
        assert whole.shape == single.shape, f"{what} {position}: shape {whole.shape}, looped {single.shape}"
        assert whole.dtype.name == ("string" if single.dtype == object else single.dtype.name), f"{what}: {whole.dtype}"
        scale = np.nanmax(np.abs(single), initial=0, where=np.isfinite(single)) if single.dtype.kind in "fc" else 0
        np.testing.assert_allclose(np.asarray(whole.array), single, rtol=1e-9, atol=1e-11 * scale, err_msg=f"{what} {position}")


def batched_is_looped(specimen: Specimen, pattern: Sequence[bool]) -> None:
    """f of a stack = the stack of f."""
    samples = many(specimen, pattern)

    def tensors(*xs: Any) -> list[Any]:
        return [tf.convert_to_tensor(y) for y in results(specimen, xs)]

    expected = [tensors(*[Tensor(x) for x in sample]) for sample in samples]
    assert_alike(mapped(tensors, samples, pattern), expected, "result")


def gradients_of_one(specimen: Specimen, seeds: Sequence[Any], order: int) -> Any:
    """A function of the inputs of a specimen that returns the gradients of <u, f>, or of <g, g> / 2 for these g."""
    positions = smooth_positions(specimen.sample())

    def gradients(*xs: Any) -> list[Any]:
        sources = [xs[i] for i in positions]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                targets = results(specimen, xs)
            pairs = [(y, Tensor(u)) for y, u in zip(targets, seeds, strict=True) if u is not None]
            first = tape.gradient([y for y, _ in pairs], sources, [u for _, u in pairs], unconnected_gradients="zero")
        if order == 1:
            return first
        return outer.gradient(first, sources, [tf.stop_gradient(g) for g in first], unconnected_gradients="zero")

    return gradients


def batched_gradients_are_looped_gradients(specimen: Specimen, pattern: Sequence[bool], order: int = 1) -> None:
    """J^T u inside `vectorized_map` = the stack of J^T u, also for the inputs that are no stacks."""
    samples = many(specimen, pattern)
    gradients = gradients_of_one(specimen, cotangents(specimen, samples[0]), order)
    expected = [gradients(*[Tensor(x) for x in sample]) for sample in samples]
    assert_alike(mapped(gradients, samples, pattern), expected, "gradient")


def batched_second_derivatives_are_looped(specimen: Specimen, pattern: Sequence[bool]) -> None:
    """The same for J^T u of the gradient."""
    batched_gradients_are_looped_gradients(specimen, pattern, order=2)


def tangents_of_stacks_are_stacks_of_tangents(specimen: Specimen, pattern: Sequence[bool]) -> None:
    """J v inside `vectorized_map` = the stack of J v."""
    samples = many(specimen, pattern)
    positions = smooth_positions(samples[0])

    def tangents(*xs: Any) -> list[Any]:
        primals = [xs[i] for i in positions]
        with tf.autodiff.ForwardAccumulator(primals, [tf.stop_gradient(x) * 0.5 + 1.0 for x in primals]) as accumulator:
            smooth = [y for y in results(specimen, xs) if y.dtype.is_differentiable]
        return accumulator.jvp(smooth, "zero")

    expected = [tangents(*[Tensor(x) for x in sample]) for sample in samples]
    assert_alike(mapped(tangents, samples, pattern), expected, "tangent")


def jacobian_is_its_rows(specimen: Specimen) -> None:
    """One sweep over a stack of cotangents = one sweep for each element of the result; chunks change nothing."""
    tensors = [Tensor(x) for x in specimen.sample()]
    sources = [tensors[i] for i in smooth_positions(specimen.sample())]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        targets = [y for y in results(specimen, tensors) if y.dtype.is_differentiable]
    for target in targets:
        looped = tape.jacobian(target, sources, "zero", experimental_use_pfor=False)
        for chunk_size in (None, 2):
            whole = tape.jacobian(target, sources, "zero", chunk_size=chunk_size)
            assert_alike([j[None] for j in whole], [looped], "Jacobian")


def nested_maps_are_nested_loops(specimen: Specimen) -> None:
    """f of a stack of stacks = the stack of stacks of f."""
    samples = many(specimen, [True] * len(specimen.inputs))
    first, second = [samples[0], samples[1]], [samples[2], samples[0]]
    stacks = [Tensor(np.stack([[a[i] for a in first], [b[i] for b in second]])) for i in range(len(specimen.inputs))]

    def tensors(xs: Sequence[Any]) -> list[Any]:
        return [tf.convert_to_tensor(y) for y in results(specimen, xs)]

    whole = tf.vectorized_map(lambda outer: tf.vectorized_map(tensors, outer), stacks)
    rows = [[tensors([Tensor(x) for x in sample]) for sample in half] for half in (first, second)]
    single = [[tf.stack([one[k] for one in row]) for k in range(len(row[0]))] for row in rows]
    assert_alike(whole, single, "result")
