"""Specimens times laws: every law of `laws.py` holds for every row of `specimens/`."""

import laws
import pytest
from specimens import SMOOTH, SPECIMENS

with_reference = [s for s in SPECIMENS if s.reference is not None]
float32 = [s for s in SPECIMENS if s.float32]
twice = [s for s in SMOOTH if s.second_order]
unsmooth = [s for s in SPECIMENS if not s.smooth]


def each(specimens):
    return pytest.mark.parametrize("specimen", specimens, ids=lambda specimen: specimen.name)


@each(with_reference)
def test_the_value_is_that_of_an_independent_reference(specimen):
    laws.forward_is_the_reference(specimen)


@each(float32)
def test_float32_stays_float32(specimen):
    laws.float32_stays_float32(specimen)


@each(SPECIMENS)
def test_strides_do_not_matter(specimen):
    laws.strides_do_not_matter(specimen)


@each(SPECIMENS)
def test_inputs_stay_as_they_are(specimen):
    laws.inputs_stay_as_they_are(specimen)


@each(SPECIMENS)
def test_bare_arrays_give_what_tensors_give(specimen):
    laws.arrays_give_what_tensors_give(specimen)


@each(SMOOTH)
def test_the_gradient_is_the_numerical_derivative(specimen):
    laws.gradient_is_the_derivative(specimen)


@each(unsmooth)
def test_there_is_no_gradient_where_nothing_is_smooth(specimen):
    laws.no_gradient_where_nothing_is_smooth(specimen)


@each(SMOOTH)
def test_the_gradient_is_the_same_under_an_outer_tape(specimen):
    laws.gradient_is_the_same_under_an_outer_tape(specimen)


@each(SMOOTH)
def test_forward_and_backward_rules_are_transposes(specimen):
    laws.forward_and_backward_are_transposes(specimen)


@each(twice)
def test_third_derivatives_are_derivatives_of_the_second(specimen):
    laws.third_derivative_is_the_derivative_of_the_second(specimen)


@each(twice)
def test_second_derivatives_are_derivatives_of_the_gradient(specimen):
    laws.second_derivative_is_the_derivative_of_the_gradient(specimen)
