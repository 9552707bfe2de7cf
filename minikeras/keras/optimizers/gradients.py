"""The gradients that an optimizer is given: exchanged among ranks, on parts of a batch and by `DistributedOptimizer`, and
paired with the slots of their Variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core import Tensor, Variable, warn_caller
from ...core.arrays import mixed_devices, namespace
from ...errors import ShapeError
from ...functions.operands import tensor
from ...ranks import rows_here
from ...types import Array, TensorLike
from .state import SlotState, name_of, names_of


def is_distributed(optimizer: Any) -> bool:
    """True if `DistributedOptimizer` was given this optimizer, or the one within this loss scale."""
    return any(getattr(one, "exchange", None) is not None for one in (optimizer, getattr(optimizer, "inner_optimizer", None)))


def needs_exchange(optimizer: Any) -> bool:
    """True if the gradients of a step are those of several ranks."""
    return rows_here().exchange is not None or is_distributed(optimizer)


def exchange_of(optimizer: Any) -> Callable[[Sequence[Any]], Sequence[Any]] | None:
    """The function from a rank's own gradients to those that it steps by; None if these are the same.

    On a part of a batch it gives the mean over all parts, weighted by their rows; in `run` of a strategy the sum over all
    ranks.
    """
    here = rows_here()
    if here.rows is not None:
        return here.exchange
    exchange, inner = optimizer.exchange, getattr(optimizer, "inner_optimizer", None)
    for member in getattr(optimizer, "members", ()):
        if member.optimizer is not None and member.optimizer.exchange is not None:  # None freezes
            raise ValueError(
                f"apply: '{optimizer.name}' holds a DistributedOptimizer, whose gradients are not exchanged there. Put "
                "DistributedOptimizer around the whole."
            )
    if inner is not None and inner.exchange is not None:
        exchange = inner.exchange
        if exchange.passes > 1:
            raise ValueError(
                f"apply: '{optimizer.name}' would scale the loss before the gradients of "
                f"backward_passes_per_step={exchange.passes} are exchanged. Use 1 with mixed_float16, or mixed_bfloat16."
            )
    if exchange is None:
        return here.exchange
    return None if exchange.passes > 1 else exchange


# Pairs of gradient and Variable ------------------------------------------------------------------------------------------


def paired(
    optimizer: Any, grads: Sequence[Any], variables: Sequence[Variable] | None
) -> tuple[list[Tensor], list[Array], list[SlotState]]:
    """The gradients that are not None, of Variables that are not frozen; their arrays, in the dtypes of the Variables; and the
    Variables' states. All are checked.
    """
    if variables is not None and len(grads) == len(variables) and (places := optimizer.learning(variables)) is not None:
        if not places:
            return [], [], []
        grads, variables = [grads[place] for place in places], [variables[place] for place in places]
    return checked_pairs(optimizer, grads, variables)


def checked_pairs(
    optimizer: Any, grads: Sequence[Any], variables: Sequence[Variable] | None
) -> tuple[list[Tensor], list[Array], list[SlotState]]:
    """As `paired`, where no Variable is frozen."""
    if variables is None:
        if not optimizer.built:
            kind = type(optimizer).__name__
            raise ValueError(f"apply: {kind} is not built yet; say which variables the gradients belong to.")
        variables = [found.variable for found in optimizer.state.slots.values()]
    if len(grads) != len(variables):
        raise ValueError(
            f"apply: {len(grads)} gradients for {len(variables)} variables; give one for each, None to leave one out."
        )
    tensors: list[Tensor] = []
    arrays: list[Array] = []
    keys: list[int] = []
    for gradient, variable in zip(grads, variables, strict=True):
        if not isinstance(variable, Variable):
            raise TypeError(_no_variable(gradient, variable))
        if gradient is None:
            continue
        one = gradient if type(gradient) is Tensor else tensor(gradient)
        array, value = one.array, variable.array
        if array.shape != value.shape:
            raise ShapeError(
                f"apply: the gradient of '{name_of(variable)}' has shape {array.shape}, the variable {value.shape}."
            )
        if type(array) is not type(value) and namespace(array) is not namespace(value):
            raise mixed_devices(f"apply: a gradient and its variable '{name_of(variable)}'", [array, value])
        tensors.append(one)
        arrays.append(array if array.dtype == value.dtype else array.astype(value.dtype))
        keys.append(variable.key)
    if len(keys) < len(variables) or not keys:
        _report_missing(grads, variables)
    if not (known := optimizer.state.slots):
        optimizer.prepare(variables)
        known = optimizer.state.slots
    if len(set(keys)) < len(keys):
        names = names_of([variable for variable in variables if variable.key in keys])
        raise ValueError(f"apply: a variable is given twice among {names}. Add its gradients and give it once.")
    try:
        return tensors, arrays, [known[key] for key in keys]
    except KeyError as error:
        unknown = next(variable for variable in variables if error.args == (variable.key,))
        raise ValueError(
            f"Unknown variable: {unknown!r}. This optimizer can only be called for the variables it was originally built "
            "with. When working with a new set of variables, you should recreate a new optimizer instance, or call "
            "optimizer.build(variables) to add slots for them."
        ) from None


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


def _no_variable(gradient: TensorLike, variable: Any) -> str:
    turned = " They are the other way round." if isinstance(gradient, Variable) else ""
    return (
        "apply: expected a gradient and its Variable, such as a pair of zip(gradients, model.trainable_variables), found "
        f"{type(gradient).__name__} and {type(variable).__name__}.{turned}"
    )


def _report_missing(grads: Sequence[Any], variables: Sequence[Variable]) -> None:
    missing = [variable for gradient, variable in zip(grads, variables, strict=True) if gradient is None]
    if len(missing) == len(variables):
        raise ValueError(f"No gradients provided for any variable. Variables: {names_of(variables) or 'none'}.")
    warn_caller(f"Gradients do not exist for variables {names_of(missing)} when minimizing the loss.")
