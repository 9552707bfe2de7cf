"""A list that holds Tensors stands for the Tensor that it would be stacked to: for every function, in every argument.

Each law calls an operation with a list in place of one input and compares with the input itself: the value, the tape, the
accumulator, many values at once, a recorded run, and the call of a layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from batched_laws import assert_alike, many, mapped
from in_one_test import in_one_test
from laws import results
from slow import sampled
from specimens import SPECIMENS, Specimen
from specimens.table import between, frozen, integers, normal, positive, row

import minikeras as tf
from minikeras.core import Primitive
from minikeras.core.tensor import Tensor

OPERATORS = ("pow of two", "divide of a number", "subtract from a number", "multiply by a complex number", "relu6")
"""Rows that call an operator of Python, which a list has no part in, and `is_tensor`, which asks for the difference."""

SIZED_BY_VALUES = ("boolean_mask", "unique", "where without branches")
"""The shape of the result depends on values, so many slices have none in common: refused, as for the slices themselves."""

WITH_MORE_ARGUMENTS = [
    row(tf.clip_by_value, (normal(2, 4), between(-1, -0.5, 4), between(0.5, 1, 4)), np.clip, "of bounds"),
    row(tf.clip_by_norm, (normal(2, 4), positive(1)), lambda x, c: x * c / max(np.linalg.norm(x), c), "of a norm"),
    row(
        tf.math.bincount,
        (integers(0, 4, 6), normal(6)),
        lambda i, w: np.bincount(i, w, 4),
        "with weights",
        call=lambda i, w: tf.math.bincount(i, w, minlength=4, maxlength=4),
        smooth=False,
    ),
]
"""Arguments that may be tensors and are numbers in the table."""

PUBLIC = [
    specimen
    for specimen in [*SPECIMENS, *WITH_MORE_ARGUMENTS]
    if not isinstance(specimen.operation, Primitive) and specimen.name not in (*OPERATORS, "is_tensor")
]
CASES = [(specimen, i) for specimen in PUBLIC for i, array in enumerate(specimen.sample()) if array.ndim]
SOME = [
    pytest.param(specimen, position, id=f"{specimen.name} {position}", marks=pytest.mark.slow if number % 4 else [])
    for number, (specimen, position) in enumerate(CASES)
]
"""A quarter of them in the plain run."""


def rows(x: Any) -> list[Any]:
    """The slices along the first axis."""
    return [x[i] for i in range(x.shape[0])]


def nested(x: Any) -> Any:
    """Lists within lists, down to scalars."""
    return [nested(row) for row in rows(x)] if x.ndim else x


def mixed(x: Any) -> Any:
    """Numbers, but for the first element: a Tensor."""
    numbers = x.numpy().tolist()
    inner = numbers
    while inner and isinstance(inner[0], list):
        inner = inner[0]
    if inner:
        inner[0] = x[(0,) * x.ndim]
    return numbers


FORMS = [rows, nested]


def replaced(x: np.ndarray[Any, Any], first: Any) -> np.ndarray[Any, Any]:
    """A copy with another first element."""
    copy = np.array(x)
    copy.reshape(-1)[0] = first
    return copy


def called(specimen: Specimen, position: int, form: Any) -> Any:
    """The specimen's call with one input in another form; a list of Tensors comes out."""

    def call(*xs: Any) -> list[Any]:
        given = [form(tf.convert_to_tensor(x)) if i == position else x for i, x in enumerate(xs)]
        return [tf.convert_to_tensor(y) for y in results(specimen, given)]

    return call


def samples(specimen: Specimen) -> list[Any]:
    return [Tensor(x) for x in specimen.sample()]


def smooth(ys: list[Any]) -> list[Any]:
    return [y for y in ys if y.dtype.is_differentiable]


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    assert [y.dtype for y in found] == [y.dtype for y in expected]
    for one, other in zip(found, expected, strict=True):
        if other.dtype == "string" or other.dtype == "bool":
            np.testing.assert_array_equal(one.numpy(), other.numpy())
        else:
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-13)


@in_one_test(case=CASES)
def test_a_list_gives_the_values_of_the_tensor(case):
    specimen, position = case
    xs = samples(specimen)
    expected = called(specimen, position, tf.identity)(*xs)
    for form in [*FORMS, mixed]:
        assert_equal(called(specimen, position, form)(*xs), expected)


def gradients_go_through_a_list(specimen, position):
    xs = samples(specimen)
    if not xs[position].dtype.is_differentiable or not specimen.smooth:
        pytest.skip("no gradient")

    def gradient(form):
        with tf.GradientTape() as tape:
            tape.watch(xs[position])
            ys = smooth(called(specimen, position, form)(*xs))
        return tape.gradient(ys, xs[position], unconnected_gradients="zero")

    assert_equal([gradient(rows), gradient(nested)], [gradient(tf.identity)] * 2)


def tangents_go_through_a_list(specimen, position):
    xs = samples(specimen)
    if not xs[position].dtype.is_differentiable or not specimen.smooth:
        pytest.skip("no tangent")
    direction = tf.cast(np.random.default_rng(0).normal(size=xs[position].shape), xs[position].dtype)

    def tangents(form):
        with tf.autodiff.ForwardAccumulator(xs[position], direction) as accumulator:
            ys = smooth(called(specimen, position, form)(*xs))
        return [accumulator.jvp(y, unconnected_gradients="zero") for y in ys]

    assert_equal(tangents(rows), tangents(tf.identity))


@in_one_test(form=FORMS)
def a_list_of_slices_is_another_one_for_each_slice(specimen, position, form):
    pattern = [i == position for i in range(len(specimen.inputs))]
    given = many(specimen, pattern)
    expected = [called(specimen, position, tf.identity)(*map(Tensor, sample)) for sample in given]
    if specimen.name.startswith(SIZED_BY_VALUES) and position == len(pattern) - 1:
        with pytest.raises(tf.errors.InvalidArgumentError, match="stands for 3 values at once"):
            mapped(called(specimen, position, form), given, pattern)
        return
    assert_alike(mapped(called(specimen, position, form), given, pattern), expected, "result")


def a_slice_may_stand_in_a_list_of_numbers(specimen, position):
    xs = [np.array(x) for x in specimen.sample()]
    if not xs[position].size or specimen.name.startswith((*SIZED_BY_VALUES, "invert_permutation")):
        pytest.skip("no elements, as many results as the values say, or no element may be another one")

    def with_first(x: Any, first: Any) -> Any:
        return [with_first(x[0], first), *x[1:]] if isinstance(x, list) else first

    firsts = np.unique(xs[position])[:3]  # values that an input of this operation may have
    given = [[frozen(replaced(x, first)) if i == position else x for i, x in enumerate(xs)] for first in firsts]
    numbers = xs[position].tolist()

    def call(*ys: Any) -> list[Any]:
        lists = [with_first(numbers, y) if i == position else y for i, y in enumerate(ys)]
        return [tf.convert_to_tensor(y) for y in results(specimen, lists)]

    expected = [[tf.convert_to_tensor(y) for y in results(specimen, [Tensor(x) for x in sample])] for sample in given]
    found = tf.vectorized_map(
        lambda first: call(*[first if i == position else Tensor(x) for i, x in enumerate(xs)]), Tensor(firsts)
    )
    assert_alike(found, expected, "result")


def a_recorded_run_sees_new_values_in_a_list(specimen, position):
    if specimen.reference is None:
        pytest.skip("a random draw")
    first, second, _ = ([Tensor(x) for x in sample] for sample in many(specimen, [True] * len(specimen.inputs)))
    call = called(specimen, position, nested)
    recorded = tf.function(call)
    for xs in (first, second, second, first):
        assert_equal(recorded(*xs), called(specimen, position, tf.identity)(*xs))


class Call(tf.keras.layers.Layer):
    """A function of one tensor as a layer."""

    def __init__(self, function: Any) -> None:
        super().__init__(dtype="float64")
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(x)


def a_functional_model_may_make_lists_in_a_layer(specimen, position):
    if specimen.reference is None:
        pytest.skip("a random draw")
    xs = samples(specimen)
    x = tf.keras.Input(xs[position].shape[1:], batch_size=xs[position].shape[0], dtype=xs[position].dtype)

    def layer(form: Any) -> Call:
        return Call(lambda x: called(specimen, position, form)(*[x if i == position else y for i, y in enumerate(xs)]))

    try:
        layer(tf.identity)(x)
    except tf.errors.InvalidArgumentError:
        pytest.skip("shapes are found by trying zeros, which this operation refuses")
    model = tf.keras.Model(x, layer(nested)(x))
    found = model(xs[position])
    assert_equal(tf.nest.flatten(found), called(specimen, position, tf.identity)(*xs))


NO_STEPS = ("where with a number", "adaptive", "logaddexp", "compute_average_loss", "scale_regularization_loss")
"""Specimens that are no functions of tf, or ask how many ranks there are, which a model does not know."""


def a_function_of_a_symbol_is_a_step_of_a_model(specimen, position):
    if specimen.reference is None or specimen.name.startswith(NO_STEPS):
        pytest.skip("a random draw, or no step of a model")
    xs: list[Any] = samples(specimen)
    x = tf.keras.Input(xs[position].shape[1:], batch_size=xs[position].shape[0], dtype=xs[position].dtype)
    for form in (lambda x: x, lambda x: [x[i] for i in range(x.shape[0])]):
        try:
            outputs = specimen.call(*[form(x) if i == position else y for i, y in enumerate(xs)])
        except tf.errors.InvalidArgumentError:
            pytest.skip("shapes are found by trying zeros, which this operation refuses")
        found = tf.keras.Model(x, outputs)(xs[position])
        assert_equal(tf.nest.flatten(found), called(specimen, position, tf.identity)(*xs))


LAWS = [
    gradients_go_through_a_list,
    tangents_go_through_a_list,
    a_list_of_slices_is_another_one_for_each_slice,
    a_slice_may_stand_in_a_list_of_numbers,
    a_recorded_run_sees_new_values_in_a_list,
    a_functional_model_may_make_lists_in_a_layer,
    a_function_of_a_symbol_is_a_step_of_a_model,
]


@pytest.mark.parametrize("specimen, position", sampled(SOME, 2))
@in_one_test(law=LAWS)
def test_a_list_obeys_the_laws(specimen, position, law):
    law(specimen=specimen, position=position)
