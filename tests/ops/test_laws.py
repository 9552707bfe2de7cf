"""Specimens times laws: every law of `laws.py` holds for every row of `specimens/`."""

import laws
import pytest
from specimens import SPECIMENS

LAWS = {
    laws.forward_is_the_reference: lambda specimen: specimen.reference is not None,
    laws.float32_stays_float32: lambda specimen: specimen.float32,
    laws.strides_do_not_matter: lambda specimen: True,
    laws.inputs_stay_as_they_are: lambda specimen: True,
    laws.arrays_give_what_tensors_give: lambda specimen: True,
    laws.gradient_is_the_derivative: lambda specimen: specimen.smooth,
    laws.no_gradient_where_nothing_is_smooth: lambda specimen: not specimen.smooth,
    laws.gradient_is_the_same_under_an_outer_tape: lambda specimen: specimen.smooth,
    laws.forward_and_backward_are_transposes: lambda specimen: specimen.smooth,
    laws.second_derivative_is_the_derivative_of_the_gradient: lambda specimen: specimen.smooth and specimen.second_order,
    laws.third_derivative_is_the_derivative_of_the_second: lambda specimen: specimen.smooth and specimen.second_order,
}
"""Each law and the specimens that it is about."""


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
def test_a_specimen_obeys_the_laws(specimen):
    laws.obeys(*[(law, specimen) for law, is_about in LAWS.items() if is_about(specimen)])
