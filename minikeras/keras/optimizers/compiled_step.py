"""An optimizer's step as instructions of a program: norms first, then one pass over the elements of its Variables.

A `StepFormula` is traced into loops over flattened Variables; one that is more than elementwise operations and sums is written
as operations on whole arrays, and so are Variables with a constraint. In each run Python computes the numbers of the step and
counts it. Python also takes the steps that have a user's constraint or formula of whole arrays, and those of which NumPy would
compute much twice or for nothing.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from ...compiler.ir import PLAIN, Program, Slot
from ...compiler.loops import Pass, SumScope, Untraceable, kept, loop_of_parts, sums_shape, traced_passes
from ...compiler.passes import simplified
from ...compiler.passes.expansion import TracedArray, TracedNumber, Writer
from ...compiler.passes.forward_state import forward_state
from ...compiler.planning import DEVICE_ALIGNMENT
from ...compiler.recorder import recorded
from ...core import Record, Tensor, Variable, convert_to_tensor
from ...core.arrays import is_array, namespace, to_numpy
from ...core.effects import State, effect
from ...core.effects import Write as HowToWrite
from ...core.precision import is_short
from ...core.variable import assigned, read_variable
from ...layout import Layout
from ...types import Array
from ..config import epsilon
from ..constraints import is_own
from .eager_step import take_updates
from .loss_scale import present_scale
from .optimizer import Optimizer
from .options import COMMON
from .state import Change, SlotState
from .step import (
    Flags,
    StepFormula,
    carry_out,
    changes_others,
    clipped_by_norm,
    clips_first,
    columns_of,
    counted,
    flags_of,
    groups_alike,
    numbers_of,
    shares_of,
    stepping,
)


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
    kinds = [[(target.array.dtype, target.array.shape) for target in state.targets] for state in states]
    if any(one != first for first, *others in kinds for one in others):
        return Sight.WHOLE  # slots of other shapes or dtypes
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


def _numbers(*, optimizer: Any, own: Any, decays: Sequence[float], flags: Sequence[str]) -> tuple[float, ...]:
    scale = float(optimizer.dynamic_scale.array) if optimizer.scales else 1.0
    return numbers_of(own, int(own.state.iterations.array), decays, flags, scale)


def _count(*given: Any, optimizer: Any, formulas: Sequence[tuple[TracedFormula, int]] = ()) -> tuple[()]:
    """Change the counters.

    Args:
        given: the numbers that the formulas took and, with a loss scale, the number of gradient elements that are not finite.
        optimizer: whose step it is.
        formulas: each with the count of numbers it took.
    """
    if not given:
        count = optimizer.state.iterations
        count.array = count.array + 1
        return ()
    finite = not optimizer.scales or bool(to_numpy(given[-1]) == 0)
    changes: list[Change] = optimizer.changes_of_scale(finite) if optimizer.scales else []
    if finite:
        numbers = iter(given)
        for formula, width in formulas:
            changes += formula.ended(formula.optimizer, list(itertools.islice(numbers, width)))
        changes += counted(optimizer, [formula.optimizer for formula, _ in formulas])
    optimizer.commit(changes)
    return ()


step_numbers = effect("step_numbers", _numbers, reads=(State.VARIABLES,))
asked_numbers = effect("asked_numbers", _numbers, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""The numbers of a step that a user's code computes, which may change anything."""
step_counted = effect("step_counted", _count, reads=(State.VARIABLES,), writes=(State.VARIABLES,))


def compiled_scale(writer: Writer, record: Record) -> bool:
    """Write the loss scale as a value that Python makes before all others: on the host it does not depend on the loss."""
    writer.begin(present_scale, record.params, record.outputs)
    return True


# The instructions -----------------------------------------------------------------------------------------------------------


def compiled_step(writer: Writer, record: Record) -> bool:
    """Write an optimizer's step as instructions; False if instructions cannot express it."""
    optimizer: Any = record.params["optimizer"]
    states = [optimizer.state.slots[variable.key] for variable in record.params["variables"]]
    return writer.attempt(lambda: _write_step(writer, optimizer, states, record.inputs))


def _write_step(writer: Writer, optimizer: Any, states: Sequence[SlotState], gradients: Sequence[Any]) -> None:
    """Write the step of one optimizer, or of several in turn, perhaps under a loss scale.

    Raises:
        Untraceable: if there are no instructions for it, or if NumPy would compute values twice or for nothing.
    """
    own_parts = getattr(optimizer, "parts", None)  # an ensemble has its own
    found = (_parts_of if own_parts is None else own_parts)(optimizer, states, writer)
    parts, given = [part for part, _ in found], [[gradients[place] for place in places] for _, places in found]
    writer.guards += [part.unchanged for part in parts]
    known = {}
    if optimizer.scales:
        known["missing"] = _added_up(writer, [part.missing(writer, own) for part, own in zip(parts, given, strict=True)])
    for part, own in zip(parts, given, strict=True):
        part.write(writer, own, known)
        if not optimizer.scales:
            part.count(writer)
    if optimizer.scales or stepping(optimizer).divided(states) is not None:
        _count_up(writer, optimizer, parts if optimizer.scales else (), known.values())


class FormulaGroup:
    """Variables of one dtype and weight decay whose steps are written together: flattened, or one by itself.

    Args:
        traced: the step's formula.
        decay: weight decay, 0 for none.
        states: of all Variables of the step.
        places: the positions of those that are here.
        is_flat: whether the formula sees flattened arrays.
        projection: the constraint of the only Variable.
        graphs: whether a graph reads each array where it lies, as a factor of products.

    Attributes:
        layout: of the Variables, flattened.
        numbers: the slots of the numbers that its formula takes.
    """

    def __init__(
        self,
        traced: TracedFormula,
        decay: Any,
        states: Sequence[SlotState],
        places: Sequence[int],
        is_flat: bool,
        projection: Program | None = None,
        graphs: bool = False,
    ) -> None:
        self.places, self._is_flat, self._projection = places, is_flat, projection
        own = [states[place] for place in places]
        dtype = own[0].variable.array.dtype
        alignment = DEVICE_ALIGNMENT // dtype.itemsize if graphs else 1
        self.layout = Layout([one.variable.array.shape for one in own], dtype, alignment)
        self._columns: list[tuple[Variable, ...]] = list(zip(*map(columns_of, own), strict=True))
        """The Variables, then one slot of each, then the next."""
        self.traced: Any = traced
        self.decay = decay
        self.numbers: list[Slot] = []
        self._operands: list[Slot] = []
        """The slots of gradient and columns, once they are read."""

    def _read(self, writer: Writer, gradients: Sequence[Slot]) -> None:
        """Write the reading of gradients and columns."""
        own = [gradients[place] for place in self.places]
        if self._is_flat:
            self._operands = [writer.flatten(own, self.layout), *writer.read(self._columns, self.layout)]
            return
        self._operands = [TracedArray(writer, own[0]).reshape(self.layout.shapes[0]).slot]
        for (variable,) in self._columns:
            y = writer.slot(variable.array.shape, variable.array.dtype)
            writer.keep(Record(read_variable, [variable], {}, y))
            self._operands.append(y)

    def apply(self, writer: Writer, part: str, gradients: Sequence[Slot], sums: Flags, adds: bool = False) -> list[Slot]:
        """Write a method of the formula, given the sums that are known; if it `adds`, the sum of the results."""
        if not self._operands:
            self._read(writer, gradients)
        known = list(sums.values())
        operands = [*self._operands, *self.numbers, *known]
        if self._is_flat:
            passes = self.traced.passes(part, [x.dtype for x in known])
            return _written_passes(writer, self.layout, passes, operands, adds)
        results = self.traced.part(part)(*[TracedNumber([x]) if x.shape is None else TracedArray(writer, x) for x in operands])
        return [results.sum().slot] if adds else [y.slot for y in results]

    def assign(self, writer: Writer, values: Sequence[Slot]) -> None:
        """Write the assignment of new values to the columns."""
        if self._is_flat:
            writer.assign(self._columns, values, self.layout)
            return
        if self._projection is not None:
            values = [*writer.include(self._projection, values[:1]), *values[1:]]
        for (variable,), value in zip(self._columns, values, strict=True):
            writer.keep(Record(assigned, [variable, value], {"conversion": HowToWrite.ASSIGN}, ()))


class _OnSlots(NamedTuple):
    """Carries out a step by writing instructions."""

    writer: Writer

    def total(self, groups: Sequence[FormulaGroup], part: str, gradients: Sequence[Slot], sums: Flags) -> Slot:
        """A sum over each group, and the sum of these."""
        totals = [group.apply(self.writer, part, gradients, sums, adds=True) for group in groups]
        return _added_up(self.writer, [one for (one,) in totals])

    def take(self, group: FormulaGroup, gradients: Sequence[Slot], sums: Flags) -> None:
        """The formula, and the assignment of what it gives."""
        group.assign(self.writer, group.apply(self.writer, "__call__", gradients, sums))


def _added_up(writer: Writer, numbers: Sequence[Slot]) -> Slot:
    """The sum of numbers."""
    first, *rest = [TracedArray(writer, one) for one in numbers]
    total: TracedArray = sum(rest, first)
    return total.slot


def _written_passes(
    writer: Writer, layout: Layout, passes: Sequence[Pass], operands: Sequence[Slot], adds: bool = False
) -> list[Slot]:
    """Write passes over flat arrays: those before the last give sums over each array; if it `adds`, the last over all."""
    operands = list(operands)
    for one in passes:
        given = [operands[number] for number in one.reads]
        sums = (SumScope.ALL if adds else None) if one is passes[-1] else SumScope.PART
        if (sums is None and all(x.shape in (None, (), (layout.size,)) for x in given)) or not writer.graphs:
            found = writer.loop(one.body, given, layout.size)
            found = found if sums is None else [TracedArray(writer, y).sum().slot for y in found]
        else:
            dtypes, shape = one.body.dtypes, (layout.size,) if sums is None else sums_shape(layout, sums)
            outputs = tuple([writer.slot(shape, dtypes[register]) for register in one.body.outputs])
            found = list(writer.write(loop_of_parts, given, {"body": one.body, "layout": layout, "sums": sums}, outputs))
        operands += found
    return found


def _recorded(function: Callable[[Sequence[Tensor]], Sequence[Tensor]], arrays: Sequence[Array]) -> Program:
    """A function of Tensors, which may assign Variables, as a program, given arrays of the shapes and dtypes of its operands.

    Raises:
        Untraceable: if it does what a program cannot repeat.
    """
    program = recorded(function, [Tensor(namespace(array).ones_like(array)) for array in arrays])
    if program is None:
        raise Untraceable("what a program cannot repeat")
    return simplified(forward_state(program.over_numpy()))


def _projection_of(variable: Variable) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """The constraint of a Variable, as a function of its value; Untraceable if it changes shape or dtype."""

    def project(given: Sequence[Tensor]) -> list[Tensor]:
        assert variable.constraint is not None
        found = convert_to_tensor(variable.constraint(given[0]))
        if (found.array.shape, found.array.dtype) != (variable.array.shape, variable.array.dtype):
            raise Untraceable("a constraint that changes shape or dtype")
        return [found]

    return project


def _parts_of(optimizer: Any, states: Sequence[SlotState], writer: Writer) -> list[tuple[Any, Sequence[int]]]:
    """The steps of the optimizers that step, each with the positions of its Variables."""
    inner, parts = stepping(optimizer), list[tuple[Any, Sequence[int]]]()
    if optimizer.__class__.changes is not Optimizer.changes or any(one.every != 1 for one in getattr(inner, "members", ())):
        raise Untraceable("what only Python does, or does at some steps")
    for own, places in shares_of(optimizer, states):
        part, of_part = AssigningPart if own.assigns else FormulaPart, [states[place] for place in places]
        if not is_usual(own, of_part):
            raise Untraceable("what a subclass or a constraint does")
        parts.append((part(optimizer, own, of_part, writer), places))
    return parts


def _count_up(writer: Writer, optimizer: Any, parts: Sequence[Any], missing: Iterable[Slot] = ()) -> None:
    """Write the instruction that changes the counters of an optimizer."""
    if not any(part.own.changes_numbers for part in parts) and not missing:
        parts = ()
    formulas = {"formulas": [(part.formula, len(part.counted)) for part in parts]} if parts else {}
    numbers = [*(number for part in parts for number in part.counted), *missing]
    writer.write(step_counted, numbers, {"optimizer": optimizer, **formulas})


class StepPart:
    """The step of an optimizer, as a part of the step that is being written.

    All parts write the reading of their numbers when they are made, before any counter changes, which another's learning rate
    may depend on.

    Attributes:
        own: the optimizer.
        unchanged: a guard.
        formula, counted: its formula, and the slots of the numbers that `step_counted` takes, if it has any.
    """

    own: Any
    unchanged: Callable[[], bool]
    formula: Any = None
    counted: Sequence[Slot] = ()

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        """Write the update of the Variables, given sums that are known."""
        raise NotImplementedError

    def count(self, writer: Writer) -> None:
        """Write the change of the counters."""
        _count_up(writer, self.own, [self])


class FormulaPart(StepPart):
    """The step of an optimizer that has a formula.

    Args:
        optimizer: whose step it is a part of: `own`, one of several, or a loss scale.
        own: the optimizer.
        states: of its Variables.
        writer: of the program. Without graphs, each Variable whose elements are added up steps by itself.
    """

    _sums: Flags = {}
    _clips_first = False
    """True if the gradient of each Variable is clipped before they are flattened."""

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self.own, self.unchanged = own, unchanged(own, [state.variable for state in states])
        step, scales = own.begin_step(int(own.state.iterations.array) + 1, own._rate()), optimizer.scales
        sight, steps = sight_of(own, states, step), own.gradient_accumulation_steps
        if sight is Sight.WHOLE and not own.is_own:
            raise Untraceable("a user's formula of whole arrays")
        if not writer.kernels and (scales or steps is not None or sight is not Sight.ELEMENT):
            raise Untraceable("what is chosen of two results, or sums within a formula")
        projections = {i: state.variable for i, state in enumerate(states) if state.variable.constraint is not None}
        if projections and (scales or steps is not None or own.global_clipnorm is not None):
            raise Untraceable("a constraint that may not be applied, or norms of groups without these Variables")
        if not own.is_own and own.changes_numbers and scales:
            raise Untraceable("code of a user that may not run")
        if changes_others(own) and {state.variable.key for state in states} != {*own.state.slots}:
            raise Untraceable("what has no gradient changes too")
        flags = (*flags_of(own, 0), *(["scale"] if scales else []))
        self._sums = {"norm": "square"} if own.global_clipnorm is not None else {}
        self._clips_first = clips_first(own, scales) and sight is not Sight.WHOLE and not writer.graphs
        adds = sight is Sight.SUMS or (own.clipnorm is not None and not self._clips_first)
        is_flat, sums = sight is not Sight.WHOLE, [*(["missing"] if scales else []), *self._sums]
        self._groups = []
        for alike, decay in groups_alike(own, states, not is_flat or (adds and not writer.graphs)):
            names = (*(["decay"] if decay else []), *flags)
            traced = TracedFormula(own, states[alike[0]], step, names, sums, clips=not self._clips_first)
            if free := [place for place in alike if place not in projections]:
                self._groups.append(FormulaGroup(traced, decay, states, free, is_flat, graphs=writer.graphs))
            for place in [place for place in alike if place in projections]:
                projection = _recorded(_projection_of(projections[place]), [projections[place].array])
                self._groups.append(FormulaGroup(traced, decay, states, [place], False, projection))
        self.formula, decays = self._groups[0].traced, [group.decay for group in self._groups if group.decay]
        leaves = self.formula.leaves
        numbers = [writer.slot(None, float) for _ in range(leaves + len(decays) + len(flags))]
        known = own.is_own and own.rate_is_own
        params = {"optimizer": optimizer if scales else own, "own": own, "decays": decays, "flags": flags}
        writer.begin(step_numbers if known else asked_numbers, params, tuple(numbers))
        last, products = numbers[leaves + len(decays) :], iter(numbers[leaves:])
        for group in self._groups:
            group.numbers = [*numbers[:leaves], *([next(products)] if group.decay else []), *last]
        self.counted = [*numbers[:leaves], *last]

    def missing(self, writer: Writer, gradients: Sequence[Any]) -> Slot:
        """Write the count of gradient elements that are not finite."""
        return _OnSlots(writer).total(self._groups, "missing", gradients, {})

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        if self._clips_first:
            arrays = [clipped_by_norm(TracedArray(writer, gradient), self.own.clipnorm) for gradient in gradients]
            gradients = [array.slot for array in arrays]
        carry_out(_OnSlots(writer), self._groups, gradients, self._sums, known)


class AssigningPart(StepPart):
    """The operations of `update_step` for all Variables; Untraceable if Python decides in it, or an option needs more."""

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self.own, self.unchanged = own, unchanged(own, [state.variable for state in states])
        further = (own.gradient_accumulation_steps, own.clipnorm, own.global_clipnorm)
        if optimizer.scales or own.use_ema or any(option is not None for option in further):
            raise Untraceable("an option around `update_step`")

        def update(gradients: Sequence[Tensor]) -> tuple[()]:
            take_updates(own, gradients, states)
            return ()

        self._update = _recorded(update, [state.variable.array for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        formula, arrays = StepFormula(0), [TracedArray(writer, gradient) for gradient in gradients]
        incoming = [formula.incoming(self.own, known, array, ())[0] for array in arrays]
        writer.include(self._update, [formula.clipped(self.own, known, array).slot for array in incoming])


def is_usual(optimizer: Optimizer, states: Sequence[SlotState]) -> bool:
    """True if no subclass overrides the step of `Optimizer`, no array has 16-bit floats, and no constraint is a user's."""
    constraints = [state.variable.constraint for state in states if state.variable.constraint is not None]
    return not (
        any(getattr(optimizer.__class__, name) is not getattr(Optimizer, name) for name in ("changes", "commit", "divided"))
        or optimizer.scales
        or (optimizer.assigns and (optimizer.changes_numbers or constraints))
        or (optimizer.gradient_accumulation_steps is not None and optimizer.exchange is not None)  # ranks exchange the sums
        or not all([_is_guarded(getattr(optimizer, name)) for name in (*COMMON, *optimizer.settings)])
        or not all(map(is_own, constraints))
        or any(not is_array(one.array) or is_short(one.array.dtype) for state in states for one in state.targets)
    )


def _is_guarded(option: Any) -> bool:
    """True if a guard sees it when the option changes: a plain value, or a list of such."""
    return type(option) in PLAIN or (type(option) is list and all(type(one) in PLAIN for one in option))


def unchanged(optimizer: Optimizer, variables: Sequence[Variable]) -> Callable[[], bool]:
    """A guard: an optimizer's options and constraints are what they are now; the learning rate may change."""
    options = operator.attrgetter(*optimizer.plain_options())
    lists = [name for name in optimizer.settings if type(getattr(optimizer, name)) is list]

    def facts() -> tuple[Any, ...]:
        found, held = options(optimizer), [copy.copy(getattr(optimizer, name)) for name in lists]
        kinds = list(map(type, found))  # 0.3 and NumPy's 0.3 are equal, and round differently
        return found, kinds, held, optimizer.rate_is_own, _constraints(variables)

    now = facts()
    return lambda: facts() == now


def _constraints(variables: Sequence[Variable]) -> list[Any]:
    """The constraints of Variables, with what they depend on."""
    held = [variable.constraint for variable in variables]
    return [one and (one, getattr(one, "get_config", dict)(), epsilon()) for one in held]
