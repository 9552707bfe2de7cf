"""Pairs of gradient and Variable: checked, and with messages about those that are none."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from ...core import Tensor, Variable
from ...core.arrays import mixed_devices, namespace
from ...errors import ShapeError
from ...functions.publish import tensor
from ...types import Array
from .state import SlotState, Stepper, name_of, names_of


def paired(
    optimizer: Stepper, grads: Sequence[Any], variables: Sequence[Variable] | None
) -> tuple[list[Array], list[SlotState]]:
    """See `Optimizer.paired`."""
    if variables is None:
        if not optimizer.built:
            kind = type(optimizer).__name__
            raise ValueError(f"apply: {kind} is not built yet; say which variables the gradients belong to.")
        variables = [found.variable for found in optimizer.state.slots.values()]
    if len(grads) != len(variables):
        raise ValueError(
            f"apply: {len(grads)} gradients for {len(variables)} variables; give one for each, None to leave one out."
        )
    arrays: list[Array] = []
    present: list[Variable] = []
    for gradient, variable in zip(grads, variables, strict=True):
        if not isinstance(variable, Variable):
            raise TypeError(_no_variable(gradient, variable))
        if gradient is None:
            continue
        array = gradient._array if type(gradient) is Tensor else tensor(gradient)._array
        value = variable._array
        if array.shape != value.shape:
            raise ShapeError(
                f"apply: the gradient of '{name_of(variable)}' has shape {array.shape}, the variable {value.shape}."
            )
        if type(array) is not type(value) and namespace(array) is not namespace(value):
            raise mixed_devices(f"apply: a gradient and its variable '{name_of(variable)}'", [array, value])
        arrays.append(array if array.dtype == value.dtype else array.astype(value.dtype))
        present.append(variable)
    if len(present) < len(variables) or not present:
        _report_missing(grads, variables)
    known, keys = optimizer.state.slots, [variable.key for variable in present]
    if not known:
        optimizer.prepare(variables)
        known = optimizer.state.slots
    if len(set(keys)) < len(keys):
        raise ValueError(f"apply: a variable is given twice among {names_of(present)}. Add its gradients and give it once.")
    for variable in present:
        if variable.key not in known:
            raise ValueError(
                f"Unknown variable: {variable!r}. This optimizer can only be called for the variables it was originally "
                "built with. When working with a new set of variables, you should recreate a new optimizer instance, or "
                "call optimizer.build(variables) to add slots for them."
            )
    return arrays, [known[key] for key in keys]


def unzipped(pairs: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    try:
        grads, variables = zip(*pairs, strict=True)
    except (TypeError, ValueError):
        pairs = list(pairs) if isinstance(pairs, Iterable) else pairs
        if pairs == []:
            return (), ()
        raise TypeError(
            "apply_gradients: expected pairs of gradient and variable, such as zip(gradients, model.trainable_variables), "
            f"found {pairs!r:.200}."
        ) from None
    return grads, variables


def _no_variable(gradient: Any, variable: Any) -> str:
    turned = " They are the other way round." if isinstance(gradient, Variable) else ""
    return (
        "apply: expected a gradient and its Variable, such as a pair of zip(gradients, model.trainable_variables), found "
        f"{type(gradient).__name__} and {type(variable).__name__}.{turned}"
    )


def _report_missing(grads: Sequence[Any], variables: Sequence[Variable]) -> None:
    missing = [variable for gradient, variable in zip(grads, variables, strict=True) if gradient is None]
    if len(missing) == len(variables):
        raise ValueError(f"No gradients provided for any variable. Variables: {names_of(variables) or 'none'}.")
    warnings.warn(f"Gradients do not exist for variables {names_of(missing)} when minimizing the loss.", stacklevel=6)
