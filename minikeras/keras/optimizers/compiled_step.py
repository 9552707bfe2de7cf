"""An optimizer's step as instructions of a program: norms first, then one pass over the elements of its Variables.

A `StepFormula` is traced into loops over flattened Variables; one that is more than elementwise operations and sums is written
as operations on whole arrays, and so are Variables with a constraint. In each run Python computes the numbers of the step and
counts it. Python also takes the steps that have a user's constraint or formula of whole arrays, and those of which NumPy would
compute much twice or for nothing.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...compiler.ir import PLAIN, Program, Slot, outputs_of
from ...compiler.loops import Pass, SumScope, Untraceable, loop_of_parts, sums_shape, traced_passes
from ...compiler.passes import SIMPLIFICATIONS
from ...compiler.passes.expansion import TracedArray, TracedNumber, Writer
from ...compiler.passes.forward_state import forward_state
from ...compiler.planning import DEVICE_ALIGNMENT
from ...compiler.recorder import Recorder
from ...core import Record, Tensor, Variable, convert_to_tensor
from ...core.arrays import is_array, namespace, to_numpy
from ...core.effects import State, effect
from ...core.effects import Write as HowToWrite
from ...core.precision import is_short
from ...core.variable import assigned, read_variable
from ...functions.elementwise import clip_by_value
from ...layout import Layout
from ...types import Array
from ..config import epsilon
from ..constraints import is_own
from .loss_scale import present_scale
from .optimizer import Optimizer
from .options import COMMON
from .state import Change, SlotState
from .step import (
    Flags,
    Sight,
    TracedFormula,
    carry_out,
    changes_others,
    clipped_by_norm,
    columns_of,
    flags_of,
    groups_alike,
    numbers_of,
    shares_of,
    sight_of,
    stepping,
)
from .update_steps import take_updates


def _numbers(*, optimizer: Any, own: Any, decays: Sequence[float], flags: Sequence[str]) -> tuple[float, ...]:
    scale = float(optimizer.dynamic_scale.array) if optimizer.scales else 1.0
    return numbers_of(own, int(own.state.iterations.array), decays, flags, scale)


def _finish(*given: Any, optimizer: Any, formulas: Sequence[tuple[TracedFormula, int]]) -> tuple[()]:
    """Change the counters.

    Args:
        given: the numbers that the formulas took and, with a loss scale, the number of gradient elements that are not finite.
        optimizer: whose step it is.
        formulas: each with the count of numbers it took.
    """
    finite = not optimizer.scales or bool(to_numpy(given[-1]) == 0)
    changes: list[Change] = optimizer.changes_of_scale(finite) if optimizer.scales else []
    if finite:
        numbers, taken = iter(given), [stepping(optimizer).state.iterations]
        for formula, width in formulas:
            changes += formula.ended(formula.optimizer, list(itertools.islice(numbers, width)))
            taken.append(formula.optimizer.state.iterations)
        changes += {count.key: (count, count.array + 1) for count in taken}.values()
    optimizer.commit(changes)
    return ()


def _count(*, optimizer: Optimizer) -> tuple[()]:
    count = optimizer.state.iterations
    count.array = count.array + 1
    return ()


step_numbers = effect("step_numbers", _numbers, reads=(State.VARIABLES,))
asked_numbers = effect("asked_numbers", _numbers, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""The numbers of a step that a user's code computes, which may change anything."""
step_finished = effect("step_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,))
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
    try:
        step = CompiledStep(optimizer, states, writer)
    except Untraceable:
        return False
    step.write(writer, record.inputs)
    return True


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
        columns: the Variables, then one slot of each, then the next.
        layout: of one column.
    """

    def __init__(
        self,
        traced: TracedFormula,
        decay: Any,
        states: Sequence[SlotState],
        places: Sequence[int],
        is_flat: bool,
        projection: Recording | None = None,
        graphs: bool = False,
    ) -> None:
        self.places, self.is_flat, self.projection = places, is_flat, projection
        own = [states[place] for place in places]
        dtype = own[0].variable.array.dtype
        alignment = DEVICE_ALIGNMENT // dtype.itemsize if graphs else 1
        self.layout = Layout([one.variable.array.shape for one in own], dtype, alignment)
        self.columns: list[tuple[Variable, ...]] = list(zip(*map(columns_of, own), strict=True))
        self.traced, self.decay = traced, decay
        self.numbers: list[Slot] = []
        """The slots of the numbers that its formula takes."""
        self.operands: list[Any] = []
        """The slots of gradient and columns, once they are read."""


def _added_up(writer: Writer, numbers: Sequence[Slot]) -> Slot:
    """The sum of numbers."""
    first, *rest = [TracedArray(writer, one) for one in numbers]
    total: TracedArray = sum(rest, first)
    return total.slot


class _OnSlots:
    """Carries out the parts of a step by writing instructions.

    Args:
        writer: of the program.
        own: the optimizer.
    """

    def __init__(self, writer: Writer, own: Any) -> None:
        self._writer, self._own = writer, own

    def clipped(self, gradient: Slot) -> Slot:
        """One gradient, clipped by its norm."""
        layout = Layout([gradient.shape], gradient.dtype)
        passes = traced_passes(functools.partial(clipped_by_norm, limit=self._own.clipnorm), [gradient.dtype])
        assert passes is not None
        (found,) = _written_passes(self._writer, layout, passes, [self._writer.flatten([gradient], layout)])
        return found

    def total(self, groups: Sequence[FormulaGroup], part: str, gradients: Sequence[Slot], sums: Flags) -> Slot:
        """A sum over each group, and the sum of these."""
        totals = [self._applied(group, part, gradients, sums, adds=True) for group in groups]
        return _added_up(self._writer, [one for (one,) in totals])

    def take(self, group: FormulaGroup, gradients: Sequence[Slot], sums: Flags) -> None:
        """The formula, and the assignment of what it gives."""
        values = self._applied(group, "__call__", gradients, sums)
        if group.is_flat:
            self._writer.assign(group.columns, values, group.layout)
            return
        if group.projection is not None:
            values = [*group.projection.write(self._writer, values[:1]), *values[1:]]
        for (variable,), value in zip(group.columns, values, strict=True):
            self._writer.keep(Record(assigned, [variable, value], {"conversion": HowToWrite.ASSIGN}, ()))

    def _applied(
        self, group: FormulaGroup, part: str, gradients: Sequence[Slot], sums: Flags, adds: bool = False
    ) -> list[Slot]:
        """Apply a method of the formula, given the sums that are known; if it `adds`, sum the results."""
        if not group.operands:
            self._read(group, gradients)
        writer, known = self._writer, list(sums.values())
        operands = [*group.operands, *group.numbers, *known]
        if group.is_flat:
            passes = group.traced.passes(part, [x.dtype for x in known])
            return _written_passes(writer, group.layout, passes, operands, adds)
        results = group.traced.part(part)(*[TracedNumber([x]) if x.shape is None else TracedArray(writer, x) for x in operands])
        return [results.sum().slot] if adds else [y.slot for y in results]

    def _read(self, group: FormulaGroup, gradients: Sequence[Slot]) -> None:
        """The reading of Variables, flattened."""
        writer, own = self._writer, [gradients[place] for place in group.places]
        if group.is_flat:
            group.operands = [writer.flatten(own, group.layout), *writer.read(group.columns, group.layout)]
            return
        group.operands = [TracedArray(writer, own[0]).reshape(group.layout.shapes[0]).slot]
        for (variable,) in group.columns:
            y = writer.slot(variable.array.shape, variable.array.dtype)
            writer.keep(Record(read_variable, [variable], {}, y))
            group.operands.append(y)


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


class Recording:
    """A function of arrays as instructions.

    Args:
        function: from Tensors to Tensors; it may assign Variables.
        arrays: of the shapes and dtypes of its operands.

    Raises:
        Untraceable: if it does what a program cannot repeat.
    """

    def __init__(self, function: Callable[[list[Tensor]], Sequence[Tensor]], arrays: Sequence[Array]) -> None:
        given = [Tensor(namespace(array).ones_like(array)) for array in arrays]
        with Recorder(given, strict=False) as recorder:
            try:
                results = [recorder.slot(result) for result in function(given)]
            finally:
                recorder.put_back()
        if recorder.refusal is not None or recorder.born:
            raise Untraceable("what a program cannot repeat")
        program = Program(recorder.arguments, recorder.records, results, None).over_numpy()
        for simplify in (forward_state, *SIMPLIFICATIONS):
            program = simplify(program)
        self._program = program

    def write(self, writer: Writer, operands: Sequence[Slot]) -> list[Slot]:
        """Write the instructions; the slots of the results."""
        slots = {mine.key: theirs for mine, theirs in zip(self._program.arguments, operands, strict=True)}

        def placed(x: Any) -> Any:
            if isinstance(x, Slot) and x.key not in slots:
                slot = slots[x.key] = writer.slot(x.shape, x.dtype)
                slot.array, slot.fixed, slot.shares, slot.order = x.array, x.fixed, x.shares, x.order
            return slots[x.key] if isinstance(x, Slot) else x

        for record in self._program.records:
            outputs = tuple([placed(y) for y in outputs_of(record)])
            results = outputs if type(record.outputs) is tuple else outputs[0]
            writer.keep(Record(record.primitive, [placed(x) for x in record.inputs], record.params, results))
        return [placed(one) for one in self._program.results]


def _projection_of(variable: Variable) -> Callable[[list[Tensor]], list[Tensor]]:
    """The constraint of a Variable, as a function of its value; Untraceable if it changes shape or dtype."""

    def project(given: list[Tensor]) -> list[Tensor]:
        assert variable.constraint is not None
        found = convert_to_tensor(variable.constraint(given[0]))
        if (found.array.shape, found.array.dtype) != (variable.array.shape, variable.array.dtype):
            raise Untraceable("a constraint that changes shape or dtype")
        return [found]

    return project


class CompiledStep:
    """The instructions of a step: of one optimizer's, or of several in turn, perhaps under a loss scale.

    Args:
        optimizer: whose step it is.
        states: of its Variables.
        writer: of the program. Without graphs, each Variable whose elements are added up steps by itself.

    Raises:
        Untraceable: if there are no instructions for it, or if NumPy would compute values twice or for nothing.
    """

    def __init__(self, optimizer: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self._optimizer, self._is_several = optimizer, stepping(optimizer).divided(states) is not None
        parts = getattr(optimizer, "parts", None)  # an ensemble has its own
        self._parts = _parts_of(optimizer, states, writer) if parts is None else parts(states, optimizer)
        scratch = Writer(Program([], [], [], None), writer.graphs, writer.kernels)
        self.write(scratch, [scratch.slot(state.variable.array.shape, state.variable.array.dtype) for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any]) -> None:
        """Write the step, given the slots of the gradients."""
        scales, parts = self._optimizer.scales, [part for part, _ in self._parts]
        given = [[gradients[place] for place in places] for _, places in self._parts]
        for part in parts:  # before any counter changes, which another's learning rate may depend on
            writer.guards.append(part.unchanged)
            part.begin(writer)
        known = {}
        if scales:
            known["missing"] = _added_up(writer, [part.missing(writer, own) for part, own in zip(parts, given, strict=True)])
        for part, own in zip(parts, given, strict=True):
            part.write(writer, own, known)
            if not scales:
                part.count(writer)
        if scales or self._is_several:
            _count_up(writer, self._optimizer, parts if scales else (), known.values())


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
        writer.write(step_counted, (), {"optimizer": optimizer})
        return
    params = {"optimizer": optimizer, "formulas": [(part.formula, len(part.counted)) for part in parts]}
    writer.write(step_finished, [*(number for part in parts for number in part.counted), *missing], params)


class StepPart:
    """The step of an optimizer, as a part of a `CompiledStep`.

    Attributes:
        own: the optimizer.
        unchanged: a guard.
        formula, counted: its formula, and the slots of the numbers that `_finish` takes, if it has any.
    """

    own: Any
    unchanged: Callable[[], bool]
    formula: Any = None
    counted: Sequence[Slot] = ()

    def begin(self, writer: Writer) -> None:
        """Write what comes before any counter changes."""

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
        writer: as of `CompiledStep`.
    """

    _sums: Flags = {}
    _clips_first = False
    """True if the gradient of each Variable is clipped before they are flattened."""

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self._optimizer, self.own, self._states = optimizer if optimizer.scales else own, own, states
        self.unchanged = unchanged(own, [state.variable for state in states])
        step, graphs, scales = (
            own.begin_step(int(own.state.iterations.array) + 1, own._rate()),
            writer.graphs,
            optimizer.scales,
        )
        sight = sight_of(own, states, step)
        if sight is Sight.WHOLE and not own.is_own:
            raise Untraceable("a user's formula of whole arrays")
        if not writer.kernels and (scales or own.gradient_accumulation_steps is not None or sight is not Sight.ELEMENT):
            raise Untraceable("what is chosen of two results, or sums within a formula")
        constrained = {state.variable.key: state.variable for state in states if state.variable.constraint is not None}
        if constrained and (scales or own.gradient_accumulation_steps is not None or own.global_clipnorm is not None):
            raise Untraceable("a constraint that may not be applied, or norms of groups without these Variables")
        self._projections = {key: Recording(_projection_of(one), [one.array]) for key, one in constrained.items()}
        if not own.is_own and own.changes_numbers and scales:
            raise Untraceable("code of a user that may not run")
        if changes_others(own) and {state.variable.key for state in states} != {*own.state.slots}:
            raise Untraceable("what has no gradient changes too")
        self._flags = (*flags_of(own, 0), *(["scale"] if scales else []))
        self._sums = {"norm": "square"} if own.global_clipnorm is not None else {}
        clips = own.clipnorm is not None and sight is not Sight.WHOLE and not graphs
        before = (own.loss_scale_factor, own.gradient_accumulation_steps)
        self._clips_first = clips and not scales and all(option is None for option in before)
        sums = sight is Sight.SUMS or (own.clipnorm is not None and not self._clips_first)
        self._step = step
        self._apart, self._is_flat = sight is Sight.WHOLE or (sums and not graphs), sight is not Sight.WHOLE

    def begin(self, writer: Writer) -> None:
        """Write the instruction that computes the numbers of the step."""
        own, self._groups = self.own, list[FormulaGroup]()
        sums, clips = [*(["missing"] if self._optimizer.scales else []), *self._sums], not self._clips_first
        for alike, decay in groups_alike(own, self._states, self._apart):
            names = (*(["decay"] if decay else []), *self._flags)
            traced = TracedFormula(own, self._states[alike[0]], self._step, names, sums, clips=clips)
            found = {place: self._projections.get(self._states[place].variable.key) for place in alike}
            if free := [place for place in alike if found[place] is None]:
                self._groups.append(FormulaGroup(traced, decay, self._states, free, self._is_flat, graphs=writer.graphs))
            for place, projection in found.items():
                if projection is not None:
                    self._groups.append(FormulaGroup(traced, decay, self._states, [place], False, projection))
        self.formula, decays = self._groups[0].traced, [group.decay for group in self._groups if group.decay]
        leaves = self.formula.leaves
        numbers = [writer.slot(None, float) for _ in range(leaves + len(decays) + len(self._flags))]
        known = own.is_own and own.rate_is_own
        params = {"optimizer": self._optimizer, "own": own, "decays": decays, "flags": self._flags}
        writer.begin(step_numbers if known else asked_numbers, params, tuple(numbers))
        flags, products = numbers[leaves + len(decays) :], iter(numbers[leaves:])
        for group in self._groups:
            group.numbers = [*numbers[:leaves], *([next(products)] if group.decay else []), *flags]
        self.counted = [*numbers[:leaves], *flags]

    def missing(self, writer: Writer, gradients: Sequence[Any]) -> Slot:
        """Write the count of gradient elements that are not finite."""
        return _OnSlots(writer, self.own).total(self._groups, "missing", gradients, {})

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        carry_out(_OnSlots(writer, self.own), self._groups, gradients, self._sums, self._clips_first, known)


class AssigningPart(StepPart):
    """The operations of `update_step` for all Variables; Untraceable if Python decides in it, or an option needs more."""

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self.own, self.unchanged = own, unchanged(own, [state.variable for state in states])
        further = (own.gradient_accumulation_steps, own.clipnorm, own.global_clipnorm)
        if optimizer.scales or own.use_ema or any(option is not None for option in further):
            raise Untraceable("an option around `update_step`")

        def update(gradients: Sequence[Tensor]) -> tuple[()]:
            take_updates(own, [_prepared(own, gradient) for gradient in gradients], states)
            return ()

        self._recording = Recording(update, [state.variable.array for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        self._recording.write(writer, gradients)


def _prepared(optimizer: Optimizer, gradient: Any) -> Any:
    """A gradient after division by the loss scale and clipping of its elements, see `Optimizer.changes`."""
    scale, limit = optimizer.loss_scale_factor, optimizer.clipvalue
    gradient = gradient if scale is None else gradient / scale
    return gradient if limit is None else clip_by_value(gradient, -limit, limit)


def is_usual(optimizer: Optimizer, states: Sequence[SlotState]) -> bool:
    """True if no subclass overrides the step of `Optimizer`, no array has 16-bit floats, and no constraint is a user's."""
    kind = optimizer.__class__
    usual = kind.changes is Optimizer.changes and kind.commit is Optimizer.commit and not optimizer.scales
    usual = usual and kind.divided is Optimizer.divided
    if optimizer.assigns:
        usual = usual and not optimizer.changes_numbers
    return (
        usual
        and (optimizer.gradient_accumulation_steps is None or optimizer.exchange is None)  # ranks exchange what was added up
        and all([_is_guarded(getattr(optimizer, name)) for name in (*COMMON, *optimizer.settings)])
        and all(_is_known(state.variable.constraint, optimizer) for state in states)
        and all(is_array(target.array) and not is_short(target.array.dtype) for state in states for target in state.targets)
    )


def _is_known(constraint: Any, optimizer: Optimizer) -> bool:
    """True for no constraint, and for one of the package after a formula."""
    return constraint is None or (is_own(constraint) and not optimizer.assigns)


def _is_guarded(option: Any) -> bool:
    """True if a guard sees it when the option changes: a plain value, or a list of such."""
    return type(option) in PLAIN or (type(option) is list and all(type(one) in PLAIN for one in option))


def unchanged(optimizer: Optimizer, variables: Sequence[Variable]) -> Callable[[], bool]:
    """A guard: an optimizer's options and constraints are what they are now; the learning rate may change."""
    options = operator.attrgetter(*optimizer.plain_options())
    now, own = options(optimizer), optimizer.rate_is_own
    kinds = list(map(type, now))  # 0.3 and NumPy's 0.3 are equal, and round differently
    lists = {name: list(held) for name in optimizer.settings if type(held := getattr(optimizer, name)) is list}
    constraints = _constraints(variables)

    def still_holds() -> bool:
        found = options(optimizer)
        same = found == now and list(map(type, found)) == kinds and optimizer.rate_is_own is own
        same = same and all([getattr(optimizer, name) == held for name, held in lists.items()])
        return bool(same and _constraints(variables) == constraints)

    return still_holds


def _constraints(variables: Sequence[Variable]) -> list[Any]:
    """The constraints of Variables, with what they depend on."""
    held = [variable.constraint for variable in variables]
    return [one and (one, getattr(one, "get_config", dict)(), epsilon()) for one in held]
