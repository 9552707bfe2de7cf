"""What a step of an optimizer makes of one element, written once for loops of NumPy, LLVM and GPUs and for ensembles.

Its numbers (learning rate, bias corrections, flags) are found by Python in each run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from ...compiler.loops import Pass, Untraceable, kept, traced_passes
from ...core import Variable
from .loss_scale import LossScaleOptimizer
from .optimizer import Optimizer
from .options import averaged, decayed, global_factor, scaled
from .state import BESIDE, Change, SlotState


def scaler_of(optimizer: Optimizer) -> tuple[LossScaleOptimizer | None, Optimizer]:
    """The loss scale around an optimizer, if there is one, and the optimizer."""
    return (optimizer, optimizer.inner_optimizer) if isinstance(optimizer, LossScaleOptimizer) else (None, optimizer)


def flag_names(optimizer: Optimizer) -> tuple[str, ...]:
    """Which numbers a step needs that are not the formula's.

    updates     1 if the gradients that were accumulated are used now, else 0
    momentum    of the moving averages
    overwrites  1 if weights become their averages, else 0
    scale       that gradients are divided by
    """
    scaler, inner = scaler_of(optimizer)
    found = {
        "updates": inner.gradient_accumulation_steps is not None,
        "momentum": inner.use_ema,
        "overwrites": inner.use_ema and inner.ema_overwrite_frequency is not None,
        "scale": scaler is not None,
    }
    return tuple([name for name, needed in found.items() if needed])


def numbers_of(optimizer: Any, taken: int, decays: Sequence[float], flags: Sequence[str]) -> tuple[float, ...]:
    """What `begin_step` gives, flattened, then the products of weight decay and learning rate, then the flags.

    Args:
        optimizer: perhaps a loss scale around one.
        taken: how many steps were taken.
        decays: weight decays.
        flags: their names.
    """
    inner: Optimizer = optimizer.inner_optimizer if "scale" in flags else optimizer
    steps, rate = inner.gradient_accumulation_steps or 1, inner._rate()
    count = taken // steps
    step = inner.begin_step(count + 1, rate)
    own = (step,) if type(step) is float else tuple(step)
    if not decays and not flags:
        return own
    every = inner.ema_overwrite_frequency
    known = {
        "updates": float((taken + 1) % steps == 0),
        "momentum": inner.ema_momentum if count else 0.0,
        "overwrites": float(every is not None and (count + 1) % every == 0),
        "scale": float(optimizer.dynamic_scale._array) if "scale" in flags else 1.0,
    }
    return (*own, *[decay * rate for decay in decays], *[known[name] for name in flags])


def packed(kind: type, numbers: Sequence[Any]) -> Any:
    """Numbers in the form in which `begin_step` gave them."""
    if kind is float:
        return numbers[0]
    return tuple(numbers) if kind is tuple else kind(*numbers)


class StepFormula:
    """A step for one element, or for whole arrays: loss scale, accumulation, clipping, weight decay, formula, moving average.

    It is called with the gradient, the values of `columns`, the numbers that `begin_step` gives, those of `settings`, those of
    `names` and, as far as they are known, those of `sums`; it returns the new values of the columns.

    Args:
        optimizer: whose step it is.
        state: of a Variable: the columns are that Variable and its slots, then its accumulator and its average.
        step: what `begin_step` gives.
        names: of further numbers: 'decay', the product of weight decay and learning rate, and flags.
        sums: 'missing', how many elements of gradients are not finite, and 'norm', the sum of their squares, if they count.
        settings: options that each run may have others for.
        clips: whether gradients are still to be clipped.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        state: SlotState,
        step: Any,
        names: Sequence[str],
        sums: Sequence[str] = (),
        settings: Sequence[str] = (),
        clips: bool = True,
    ) -> None:
        self._optimizer, self._kind, self._settings = optimizer, type(step), tuple(settings)
        self._names, self._sums, self._clips = tuple(names), tuple(sums), clips
        leaves = (step,) if type(step) is float else step
        if not isinstance(leaves, tuple) or any(type(one) is not float for one in leaves):
            raise Untraceable("a step that is more than numbers")
        self.leaves, self._targets = len(leaves), len(state.targets)
        self._dtype, self.width = state.variable._array.dtype, len(self.columns_of(state))

    @staticmethod
    def columns_of(state: SlotState) -> list[Variable]:
        """A Variable, the slots of its formula, its accumulator and its average."""
        return [*state.targets, *[state.slots[name] for name in BESIDE if name in state.slots]]

    def __call__(self, gradient: Any, *others: Any) -> tuple[Any, ...]:
        own, before, step, known = self._taken_apart(others)
        columns = before[: self._targets]
        gradient, total = self._prepared(own, gradient, before, known)
        if "norm" in known and own.global_clipnorm is not None:
            gradient = scaled(gradient, global_factor(np.sqrt(known["norm"]), own.global_clipnorm))
        elif self._clips:
            (gradient,) = own._clipped([gradient])
        weight, *slots = columns
        weight = decayed(weight, known["decay"]) if "decay" in known else weight
        new = list(own.formula(step, gradient, weight, *slots))
        if total is not None:
            new = [np.where(known["updates"], now, then) for now, then in zip(new, columns, strict=True)]
            new.append(np.where(known["updates"], 0.0, total))
        if own.use_ema:
            average = averaged(before[-1], new[0], known["momentum"])
            if "overwrites" in known:
                new[0] = np.where(known["overwrites"], average, new[0])
            new.append(average)
        if "missing" in known:
            new = [np.where(known["missing"] == 0, now, then) for now, then in zip(new, before, strict=True)]
        return tuple(new)

    def square(self, gradient: Any, *others: Any) -> Any:
        """The square of the gradient that is clipped: the sum of all is 'norm'."""
        own, before, _, known = self._taken_apart(others)
        gradient, _ = self._prepared(own, gradient, before, known)
        return gradient * gradient

    def missing(self, gradient: Any, *others: Any) -> Any:
        """0 for a gradient that is finite, else 1: the sum of all is 'missing'."""
        return (~np.isfinite(gradient)).astype(gradient.dtype)

    def _taken_apart(self, others: Sequence[Any]) -> tuple[Optimizer, Sequence[Any], Any, dict[str, Any]]:
        """The optimizer with its options of this run, the columns, what `begin_step` gave, and further numbers by name."""
        numbers, own = others[self.width :], self._optimizer
        settings = dict(zip(self._settings, numbers[self.leaves :], strict=False))
        if settings:
            own = copy.copy(own)
            vars(own).update(settings)
        known = dict(zip((*self._names, *self._sums), numbers[self.leaves + len(settings) :], strict=False))
        return own, others[: self.width], packed(self._kind, numbers[: self.leaves]), known

    def _prepared(self, own: Optimizer, gradient: Any, before: Sequence[Any], known: dict[str, Any]) -> tuple[Any, Any]:
        """The gradient that is clipped next, and what the accumulator would hold."""
        if "scale" in known:
            gradient = gradient / known["scale"]
        if own.loss_scale_factor is not None:
            gradient = gradient / own.loss_scale_factor
        if own.gradient_accumulation_steps is None:
            return gradient, None
        total = gradient + before[self._targets]
        return total / own.gradient_accumulation_steps, total

    def changes_beside(self, optimizer: Optimizer, numbers: Sequence[float]) -> list[Change]:
        """What `end_step` of an optimizer changes, given numbers of a step of which the flags are the last."""
        known = dict(zip(reversed(self._names), reversed(numbers), strict=False))
        return optimizer.end_step(packed(self._kind, numbers[: self.leaves])) if known.get("updates", 1.0) else []

    def passes(self, part: Callable[..., Any], sums: Sequence[Any] = ()) -> list[Pass]:
        """This formula, or its `square` or `missing`, as passes over elements, given the dtypes of the sums that are known.

        Raises:
            Untraceable: if it is more than elements and their sums.
        """
        numbers = self.leaves + len(self._settings) + len(self._names)
        inputs = [*[self._dtype] * (1 + self.width), *[float] * numbers, *sums]
        optimizer = self._optimizer
        if optimizer.is_own:
            fixed = tuple([item for item in optimizer._plain_options().items() if item[0] not in self._settings])
            own = self._kind, self._targets, self._names, self._sums, self._settings, self._clips
            found = kept((optimizer.__class__, part.__name__, fixed, tuple(inputs), own), lambda: traced_passes(part, inputs))
        else:
            found = traced_passes(part, inputs)  # what a custom formula reads may have changed since it was traced
        if found is None:
            raise Untraceable("a formula that is more than elements and their sums")
        return found


def have_like_slots(states: Sequence[SlotState]) -> bool:
    """Whether the formula's slots have the shapes and dtypes of their Variables."""
    kinds = [[(target._array.dtype, target._array.shape) for target in state.targets] for state in states]
    return all(one == first for first, *others in kinds for one in others)


def changes_others(optimizer: Optimizer) -> bool:
    """Whether a step changes what is beside Variables without a gradient: averages, and what was gathered."""
    return optimizer.use_ema or optimizer.gradient_accumulation_steps is not None


class Sight(StrEnum):
    """What a formula looks at to find a new element."""

    ELEMENT = "element"
    SUMS = "sums"
    """That element and sums over its Variable."""
    WHOLE = "whole"


def sight_of(optimizer: Optimizer, states: Sequence[SlotState], step: Any) -> Sight:
    """What the formula of an optimizer looks at: as its class says, or as it is seen to do if the class is a user's.

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
        formula = StepFormula(optimizer, states[0], step, ("updates", "momentum"), clips=False)
        passes = formula.passes(formula.__call__)
    except Exception:  # of a user's formula that takes arrays alone
        return Sight.WHOLE
    if vars(optimizer) != before:
        vars(optimizer).update(before)
        return Sight.WHOLE
    return Sight.ELEMENT if len(passes) == 1 else Sight.SUMS
