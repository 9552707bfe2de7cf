"""The step of a first-order optimizer, written once: on arrays it computes, on the elements of a trace it becomes a program.

The order: loss scale, accumulation, clipping, weight decay, formula, moving average. `StepFormula` has it for one Variable,
`carry_out` puts before it what looks at several. Flags that are truth values of Python choose a branch, so that nothing is
computed twice; where a program finds them anew in each run, both branches are computed and one is chosen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from ...compiler.loops import Pass, Untraceable, kept, traced_passes
from ...core import Variable
from ...core.arrays import namespace
from ...types import Array
from .state import BESIDE, SlotState

Flags = Mapping[str, Any]
"""Numbers of a step beside those of its formula, as far as it needs them:

updates     whether the gradients that were accumulated are used now
momentum    of the moving averages
overwrites  whether weights become their averages
scale       that gradients are divided by, if a `LossScaleOptimizer` is around the optimizer
decay       weight decay times learning rate
missing     the number of gradient elements that are not finite
norm        the sum of the squares of all gradients
"""


# Parts of the step -------------------------------------------------------------------------------------------------------


def decayed(weight: Array, factor: Any) -> Array:
    """A weight after decoupled weight decay, w <- w - w * factor, with factor = weight_decay * lr.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (2019), algorithm 2, line 12, as a step of its own.
    """
    return weight - weight * factor


def averaged(average: Array, weight: Array, momentum: Any) -> Array:
    """A moving average, a <- momentum * a + (1 - momentum) * w."""
    return average * momentum + weight * (1.0 - momentum)


def clipped_by_value(gradient: Array, limit: float) -> Array:
    """g <- min(max(g, -limit), limit), element by element."""
    xp = namespace(gradient)
    return xp.minimum(xp.maximum(gradient, -limit), limit)


def clipped_by_norm(gradient: Array, limit: float) -> Array:
    """g <- g * limit / max(|g|, limit), with the Euclidean norm of the gradient."""
    return scaled(gradient, limit / _at_least((gradient * gradient).sum(), limit)[1])


def clipped_by_global_norm(gradient: Array, squares: Array, limit: float) -> Array:
    """g <- g * limit / max(|G|, limit), with the norm of all gradients together, whose square is `squares`; NaN if that is not
    finite.

    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (2013), algorithm 1.
    """
    norm, divisor = _at_least(squares, limit)
    return scaled(gradient, limit / divisor + (norm - norm))


def scaled(gradient: Array, factor: Array) -> Array:
    """A gradient times a factor, in its own dtype."""
    return (gradient * factor).astype(gradient.dtype, copy=False)


def _at_least(squares: Array, limit: float) -> tuple[Array, Array]:
    """A norm, given its square, and the norm but not less than the limit."""
    xp = namespace(squares)
    norm = xp.sqrt(squares)
    return norm, xp.maximum(norm, limit)


def chosen(flag: Any, now: Any, then: Any) -> Any:
    """One of two values: a branch of Python for a bool, a select for a flag that a program computes."""
    return (now if flag else then) if type(flag) is bool else np.where(flag, now, then)


# The step of one Variable ------------------------------------------------------------------------------------------------


def columns_of(state: SlotState) -> list[Variable]:
    """The Variables that a step changes for one Variable: itself, the slots of its formula, its accumulator and its average."""
    return [*state.targets, *[state.slots[name] for name in BESIDE if name in state.slots]]


class StepFormula:
    """The step of one Variable, on its elements or on the whole arrays.

    Args:
        targets: the number of columns that are the Variable and its formula's slots.
        clips: whether gradients are still to be clipped.
    """

    __slots__ = ("clips", "targets")

    def __init__(self, targets: int, clips: bool = True) -> None:
        self.targets, self.clips = targets, clips

    def __call__(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> tuple[Any, ...]:
        """New values of the columns, see `columns_of`.

        Args:
            own: the optimizer.
            step: what its `begin_step` gave.
            known: further numbers.
            gradient, before: the gradient, and the values of the columns.
        """
        columns, updates = before[: self.targets], known.get("updates", True)
        gradient, total = self.incoming(own, known, gradient, before)
        new = columns
        if updates is not False:
            gradient = self.clipped(own, known, gradient)
            weight = decayed(columns[0], known["decay"]) if "decay" in known else columns[0]
            new = own.formula(step, gradient, weight, *columns[1:])
        return self.finished(own, known, new, total, before)

    def incoming(self, own: Any, known: Flags, gradient: Any, before: Sequence[Any]) -> tuple[Any, Any]:
        """The gradient that is clipped next, and the sum of all gradients since the last update."""
        steps = own.gradient_accumulation_steps
        if "gathered" in known:
            return gradient, None if steps is None else before[self.targets]
        if "scale" in known:
            gradient = gradient / known["scale"]
        if own.loss_scale_factor is not None:
            gradient = gradient / own.loss_scale_factor
        if steps is None:
            return gradient, None
        total = gradient + before[self.targets]
        return total / steps, total

    def clipped(self, own: Any, known: Flags, gradient: Any) -> Any:
        """The gradient that the formula takes."""
        if own.clipvalue is not None:
            return clipped_by_value(gradient, own.clipvalue)
        if own.clipnorm is not None and self.clips:
            return clipped_by_norm(gradient, own.clipnorm)
        if own.global_clipnorm is not None and self.clips:
            return clipped_by_global_norm(gradient, known["norm"], own.global_clipnorm)
        return gradient

    def finished(self, own: Any, known: Flags, new: Sequence[Any], total: Any, before: Sequence[Any]) -> tuple[Any, ...]:
        """New values of the columns, given what the formula made of the first of them, and the sum of gradients."""
        updates = known.get("updates", True)
        new = [chosen(updates, now, then) for now, then in zip(new, before[: self.targets], strict=True)]
        if total is not None:
            new.append(chosen(updates, namespace(total).zeros_like(total) if updates is True else 0.0, total))
        if own.use_ema:
            average = averaged(before[-1], new[0], known["momentum"])
            new[0] = chosen(known.get("overwrites", False), average, new[0])
            new.append(average)
        if "missing" in known:
            new = [np.where(known["missing"] == 0, now, then) for now, then in zip(new, before, strict=True)]
        return tuple(new)

    def square(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
        """The square of the gradient that is clipped: the sum of all is 'norm'."""
        gradient, _ = self.incoming(own, known, gradient, before)
        return gradient * gradient

    def missing(self, own: Any, step: Any, known: Flags, gradient: Any, *before: Any) -> Any:
        """0 for a gradient that is finite, else 1: the sum of all is 'missing'."""
        return (~np.isfinite(gradient)).astype(gradient.dtype)


def carry_out(
    on: Any, groups: Sequence[Any], gradients: Sequence[Any], sums: Mapping[str, str], clips_first: bool, known: Flags
) -> None:
    """Carry out a step: first what looks at several elements, then the formula.

    Args:
        on: what computes, or writes a program: `clipped` gives a gradient clipped by its norm, `total` the sum of what a method
            of the formula gives for all elements, `take` gives a group's Variables their new values.
        groups: of the Variables.
        gradients: of all Variables.
        sums: names of the sums that the formula needs, in their order, and the methods that give what is added up.
        clips_first: whether gradients are clipped by their own norms before all else.
        known: sums that are known already.
    """
    gradients = [on.clipped(gradient) for gradient in gradients] if clips_first else gradients
    for name, part in sums.items():
        known = {**known, name: on.total(groups, part, gradients, known)}
    for group in groups:
        on.take(group, gradients, known)


def stepping(optimizer: Any) -> Any:
    """The optimizer within a loss scale, else the optimizer itself."""
    return optimizer.inner_optimizer if optimizer.scales else optimizer


def shares_of(optimizer: Any, states: Sequence[SlotState]) -> Sequence[tuple[Any, Sequence[int]]]:
    """The optimizers whose formulas a step takes, each with the positions of its Variables."""
    inner = stepping(optimizer)
    divided = inner.divided(states)
    return [(inner, range(len(states)))] if divided is None else divided


def groups_alike(optimizer: Any, states: Sequence[SlotState], apart: bool = False) -> list[tuple[list[int], float]]:
    """The positions of Variables of one dtype, device and weight decay, or each `apart`; and that decay, 0 for none."""
    groups: dict[Any, tuple[list[int], float]] = {}
    for place, state in enumerate(states):
        decay = (optimizer.decay_of(state.variable) or 0.0) if state.decays else 0.0
        array = state.variable.array
        key = place if apart else (array.dtype, namespace(array), decay)
        groups.setdefault(key, ([], decay))[0].append(place)
    return list(groups.values())


def have_like_slots(states: Sequence[SlotState]) -> bool:
    """True if the formula's slots have the shapes and dtypes of their Variables."""
    kinds = [[(target.array.dtype, target.array.shape) for target in state.targets] for state in states]
    return all(one == first for first, *others in kinds for one in others)


def changes_others(optimizer: Any) -> bool:
    """True if a step also changes slots of Variables without a gradient: averages and accumulators."""
    return optimizer.use_ema or optimizer.gradient_accumulation_steps is not None


# Numbers of the step -----------------------------------------------------------------------------------------------------


def flags_of(optimizer: Any, taken: int) -> dict[str, Any]:
    """The flags of a step, given the number of steps taken before: see `Flags`."""
    steps, every = optimizer.gradient_accumulation_steps, optimizer.ema_overwrite_frequency
    count = taken // (steps or 1)
    flags: dict[str, Any] = {} if steps is None else {"updates": (taken + 1) % steps == 0}
    if optimizer.use_ema:
        flags["momentum"] = optimizer.ema_momentum if count else 0.0
        if every is not None:
            flags["overwrites"] = (count + 1) % every == 0
    return flags


def numbers_of(inner: Any, taken: int, decays: Sequence[float], flags: Sequence[str], scale: float = 1.0) -> tuple[float, ...]:
    """The numbers of `begin_step`, flattened, then the products of weight decay and learning rate, then the flags.

    Args:
        inner: the optimizer.
        taken: the number of steps taken.
        decays: weight decays.
        flags: their names.
        scale: the divisor of gradients.
    """
    rate = inner._rate()
    step = inner.begin_step(taken // (inner.gradient_accumulation_steps or 1) + 1, rate)
    own = (step,) if type(step) is float else tuple(step)
    if not decays and not flags:
        return own
    known = {"scale": scale, **flags_of(inner, taken)}
    return (*own, *[decay * rate for decay in decays], *[float(known[name]) for name in flags])


class TracedFormula:
    """A step's formula as a function of gradient, columns and then the numbers that a program computes in each run: those of
    `begin_step`, those of `settings`, those of `names` and, as far as they are known, those of `sums`.

    Args:
        optimizer: whose step it is.
        state: of a Variable.
        step: what `begin_step` gives.
        names: of further numbers, see `Flags`.
        sums: 'missing' and 'norm', if they count.
        settings: options that may differ from run to run.
        clips: whether gradients are still to be clipped.

    Raises:
        Untraceable: if `begin_step` gives more than numbers.
    """

    def __init__(
        self,
        optimizer: Any,
        state: SlotState,
        step: Any,
        names: Iterable[str],
        sums: Iterable[str] = (),
        settings: Sequence[str] = (),
        clips: bool = True,
    ) -> None:
        leaves = (step,) if type(step) is float else step
        if not isinstance(leaves, tuple) or any(type(one) is not float for one in leaves):
            raise Untraceable("a step that is more than numbers")
        self.formula = StepFormula(len(state.targets), clips)
        self.leaves, self.width = len(leaves), len(columns_of(state))
        self.optimizer, self._kind, self._dtype = optimizer, type(step), state.variable.array.dtype
        self._names, self._sums, self._settings = tuple(names), tuple(sums), tuple(settings)

    def part(self, name: str) -> Callable[..., Any]:
        """A method of the formula as a function of the gradient, the columns and the numbers."""
        method = getattr(self.formula, name)

        def function(gradient: Any, *others: Any) -> Any:
            numbers, own = others[self.width :], self.optimizer
            settings = dict(zip(self._settings, numbers[self.leaves :], strict=False))
            if settings:
                own = copy.copy(own)
                vars(own).update(settings)
            known = dict(zip((*self._names, *self._sums), numbers[self.leaves + len(settings) :], strict=False))
            return method(own, self.packed(numbers), known, gradient, *others[: self.width])

        return function

    def packed(self, numbers: Sequence[Any]) -> Any:
        """The first numbers in the form in which `begin_step` gave them."""
        if self._kind is float:
            return numbers[0]
        found = tuple(numbers[: self.leaves])
        return found if self._kind is tuple else self._kind(*found)

    def ended(self, optimizer: Any, numbers: Sequence[float]) -> list[Any]:
        """The changes of an optimizer's `end_step`, given the numbers of a step, the flags last."""
        known = dict(zip(reversed(self._names), reversed(numbers), strict=False))
        return optimizer.end_step(self.packed(numbers)) if known.get("updates", 1.0) else []

    def passes(self, name: str, sums: Sequence[Any] = ()) -> list[Pass]:
        """A method of the formula as passes over elements, given the dtypes of the sums that are known.

        Raises:
            Untraceable: if it is more than elements and their sums.
        """
        numbers = self.leaves + len(self._settings) + len(self._names)
        inputs = [*[self._dtype] * (1 + self.width), *[float] * numbers, *sums]
        optimizer, part = self.optimizer, self.part(name)
        if optimizer.is_own:
            fixed = tuple([item for item in optimizer.plain_options().items() if item[0] not in self._settings])
            own = self._kind, self.formula.targets, self._names, self._sums, self._settings, self.formula.clips
            found = kept((optimizer.__class__, name, fixed, tuple(inputs), own), lambda: traced_passes(part, inputs))
        else:
            found = traced_passes(part, inputs)  # values that a custom formula reads may have changed since it was traced
        if found is None:
            raise Untraceable("a formula that is more than elements and their sums")
        return found


class Sight(StrEnum):
    """The values that a formula reads for a new element."""

    ELEMENT = "element"
    SUMS = "sums"
    """The old element and sums over its Variable."""
    WHOLE = "whole"


def sight_of(optimizer: Any, states: Sequence[SlotState], step: Any) -> Sight:
    """The values that an optimizer's formula reads: as its class says, or as a trace shows if the class is a user's.

    A formula that changes an attribute of the optimizer is one of whole arrays: Python is to call it in each step.
    """
    if not have_like_slots(states):
        return Sight.WHOLE
    if optimizer.elementwise:
        return Sight.ELEMENT
    if optimizer.is_own:
        return Sight.SUMS if optimizer.sums else Sight.WHOLE
    before = vars(optimizer).copy()
    try:
        passes = TracedFormula(optimizer, states[0], step, ("updates", "momentum"), clips=False).passes("__call__")
    except Exception:  # of a user's formula that takes arrays alone
        return Sight.WHOLE
    if vars(optimizer) != before:
        vars(optimizer).update(before)
        return Sight.WHOLE
    return Sight.ELEMENT if len(passes) == 1 else Sight.SUMS
