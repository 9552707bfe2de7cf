"""An optimizer's step as instructions of a program: norms first, then one pass over the elements of its Variables.

A `StepFormula` is traced into loops over flattened Variables, or written as operations on whole arrays where it is more than
elements and their sums. Python finds the numbers of a step in each run, and counts. A step with a constraint, or of a user's
formula of whole arrays, stays Python's; so does one without kernels of which NumPy would compute much twice or for nothing.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...compiler.ir import PLAIN, Program, Slot, outputs_of
from ...compiler.loops import Pass, Sum, Untraceable, loop_of_parts, sums_shape, traced_passes
from ...compiler.passes.expansion import TracedArray, TracedNumber, Writer
from ...compiler.passes.forward_state import forward_state
from ...compiler.passes.pipeline import SIMPLIFICATIONS
from ...compiler.recorder import Recorder
from ...core import Record, Tensor, Variable
from ...core.arrays import is_array, namespace, to_numpy
from ...core.effects import State, effect
from ...core.effects import Write as HowToWrite
from ...core.precision import is_short
from ...core.variable import assigned, read_variable
from ...functions.elementwise import clip_by_value
from ...layout import Layout
from ...types import Array
from .loss_scale import LossScaleOptimizer, next_scale
from .optimizer import Optimizer
from .options import COMMON
from .per_layer import PerLayer
from .state import SlotState
from .step import (
    Flags,
    Group,
    Sight,
    TracedFormula,
    carry_out,
    changes_others,
    clipped_by_norm,
    flags_of,
    groups_alike,
    numbers_of,
    sight_of,
)
from .update_steps import take_updates


def scaler_of(optimizer: Optimizer) -> tuple[LossScaleOptimizer | None, Optimizer]:
    """The loss scale around an optimizer, if there is one, and the optimizer."""
    return (optimizer, optimizer.inner_optimizer) if isinstance(optimizer, LossScaleOptimizer) else (None, optimizer)


def _numbers(*, optimizer: Any, decays: Sequence[float], flags: Sequence[str]) -> tuple[float, ...]:
    inner, scale = (optimizer.inner_optimizer, float(optimizer.dynamic_scale._array)) if "scale" in flags else (optimizer, 1.0)
    return numbers_of(inner, int(inner.state.iterations._array), decays, flags, scale)


def _finish(*given: Any, optimizer: Optimizer, formula: TracedFormula) -> tuple[()]:
    """Change the counters. `given` are the numbers and, with a loss scale, how many elements of gradients are not finite."""
    scaler, inner = scaler_of(optimizer)
    numbers = given if scaler is None else given[:-1]
    finite = scaler is None or bool(to_numpy(given[-1]) == 0)
    changes, taken = [], inner.state.iterations
    if finite:
        changes = [*formula.ended(inner, numbers), (taken, taken._array + 1)]
    if scaler is not None:
        scale, counter = scaler.dynamic_scale, scaler.step_counter
        found = next_scale(finite, float(scale._array), int(counter._array), scaler.dynamic_growth_steps)
        changes += [(one, one._array.dtype.type(new)) for one, new in zip((scale, counter), found, strict=True)]
    optimizer.commit(changes)
    return ()


def _count(*, optimizer: Optimizer) -> tuple[()]:
    count = optimizer.state.iterations
    count._array = count._array + 1
    return ()


step_numbers = effect("step_numbers", _numbers, reads=(State.VARIABLES,))
asked_numbers = effect("asked_numbers", _numbers, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""The numbers of a step for which code of a user is asked, which may change anything."""
step_finished = effect("step_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,))
step_counted = effect("step_counted", _count, reads=(State.VARIABLES,), writes=(State.VARIABLES,))


def _scale_on_host(*, optimizer: LossScaleOptimizer, dtype: Any) -> tuple[Array]:
    with np.errstate(over="ignore"):
        return (np.asarray(optimizer.dynamic_scale._array).astype(dtype),)


scale_on_host = effect("scale_on_host", _scale_on_host, reads=(State.VARIABLES,))


def compiled_scale(writer: Writer, record: Record) -> bool:
    """Write the loss scale as a value that Python makes before all others: it does not depend on the loss."""
    y = record.outputs
    found = writer.slot((), y.dtype)
    writer.begin(scale_on_host, {"optimizer": record.params["optimizer"], "dtype": y.dtype}, (found,))
    writer.renamed[y.key] = found
    return True


# The instructions -----------------------------------------------------------------------------------------------------------

Write = Callable[[Writer, Sequence[Any]], None]
"""Writes a step, given the slots of the gradients."""


def compiled_step(writer: Writer, record: Record) -> bool:
    """Write an optimizer's step as instructions; False if it is more than they can say."""
    optimizer: Optimizer = record.params["optimizer"]
    states = [optimizer.state.slots[variable.key] for variable in record.params["variables"]]
    write = _written(optimizer, states, writer)
    if write is None:
        return False
    write(writer, record.inputs)
    return True


def _written(optimizer: Optimizer, states: Sequence[SlotState], writer: Writer) -> Write | None:
    if isinstance(optimizer, PerLayer):
        return _members_written(optimizer, states, writer)
    if (written := getattr(optimizer, "written", None)) is not None:  # it knows better
        own: Write | None = written(states, optimizer)
        return own
    _, inner = scaler_of(optimizer)
    if not is_usual(inner, states):
        return None
    if not inner.assigns:
        try:
            return CompiledStep(optimizer, states, writer).write
        except Untraceable:
            return None
    return _updates_written(inner, states) if optimizer is inner else None


def _members_written(optimizer: PerLayer, states: Sequence[SlotState], writer: Writer) -> Write | None:
    """The steps of all members in turn; None if one is more than instructions can say, or they take turns."""
    if any(member.every != 1 for member in optimizer.members):
        return None
    found = optimizer.divided(optimizer.members, states)
    known = [(_written(member, [states[place] for place in places], writer), places) for member, places in found]
    writes = [(write, places) for write, places in known if write is not None]
    if len(writes) < len(known):
        return None

    def write_all(writer: Writer, gradients: Sequence[Any]) -> None:
        for write, places in writes:
            write(writer, [gradients[place] for place in places])
        writer.write(step_counted, (), {"optimizer": optimizer})

    return write_all


class _Group(Group):
    """Variables whose steps are written together.

    Args:
        traced: the step's formula.
        decay: weight decay, 0 for none.
        given: the others, as of `Group`.
    """

    def __init__(self, traced: TracedFormula, decay: float, *given: Any) -> None:
        super().__init__(*given)
        self.traced, self.decay = traced, decay
        self.numbers: list[Slot] = []
        """The slots of the numbers that its formula takes."""
        self.operands: list[Any] = []
        """The slots of gradient and columns, once they are read."""


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

    def total(self, groups: Sequence[_Group], part: str, gradients: Sequence[Slot], sums: Flags) -> Slot:
        """A sum over each group, and the sum of these."""
        totals = [self._applied(group, part, gradients, sums, adds=True) for group in groups]
        first, *rest = [TracedArray(self._writer, one) for (one,) in totals]
        total: TracedArray = sum(rest, first)
        return total.slot

    def take(self, group: _Group, gradients: Sequence[Slot], sums: Flags) -> None:
        """The formula, and the assignment of what it gives."""
        values = self._applied(group, "__call__", gradients, sums)
        if group.is_flat:
            self._writer.assign(group.columns, values, group.layout)
            return
        for (variable,), value in zip(group.columns, values, strict=True):
            self._writer.keep(Record(assigned, [variable, value], {"conversion": HowToWrite.ASSIGN}, ()))

    def _applied(self, group: _Group, part: str, gradients: Sequence[Slot], sums: Flags, adds: bool = False) -> list[Slot]:
        """A method of the formula, given the sums that are known; if it `adds`, the sum of what that gives."""
        if not group.operands:
            self._read(group, gradients)
        writer, known = self._writer, list(sums.values())
        operands = [*group.operands, *group.numbers, *known]
        if group.is_flat:
            passes = group.traced.passes(part, [x.dtype for x in known])
            return _written_passes(writer, group.layout, passes, operands, adds)
        results = group.traced.part(part)(*[TracedNumber([x]) if x.shape is None else TracedArray(writer, x) for x in operands])
        return [results.sum().slot] if adds else [y.slot for y in results]

    def _read(self, group: _Group, gradients: Sequence[Slot]) -> None:
        """The reading of Variables, flattened."""
        writer, own = self._writer, [gradients[place] for place in group.places]
        if group.is_flat:
            group.operands = [writer.flatten(own, group.layout), *writer.read(group.columns, group.layout)]
            return
        group.operands = own
        for (variable,) in group.columns:
            y = writer.slot(variable._array.shape, variable._array.dtype)
            writer.keep(Record(read_variable, [variable], {}, y))
            group.operands.append(y)


def _written_passes(
    writer: Writer, layout: Layout, passes: Sequence[Pass], operands: Sequence[Slot], adds: bool = False
) -> list[Slot]:
    """Write passes over flat arrays: those before the last give sums over each array; if it `adds`, the last over all."""
    operands = list(operands)
    for one in passes:
        given = [operands[number] for number in one.reads]
        sums = (Sum.ALL if adds else None) if one is passes[-1] else Sum.PART
        if (sums is None and all(x.shape in (None, (), (layout.size,)) for x in given)) or not writer.graphs:
            found = writer.loop(one.body, given, layout.size)
            found = found if sums is None else [TracedArray(writer, y).sum().slot for y in found]
        else:
            dtypes, shape = one.body.dtypes, (layout.size,) if sums is None else sums_shape(layout, sums)
            outputs = tuple([writer.slot(shape, dtypes[register]) for register in one.body.outputs])
            found = list(writer.write(loop_of_parts, given, {"body": one.body, "layout": layout, "sums": sums}, outputs))
        operands += found
    return found


class CompiledStep:
    """The instructions of a step.

    Args:
        optimizer: whose step it is; perhaps a loss scale around one.
        states: of its Variables.
        writer: says for what. Without graphs each Variable whose elements are added up goes by itself.

    Raises:
        Untraceable: if it does what there are no instructions for, or what NumPy would compute twice or for nothing.
    """

    def __init__(self, optimizer: Optimizer, states: Sequence[SlotState], writer: Writer) -> None:
        scaler, inner = scaler_of(optimizer)
        self._optimizer, self._inner = optimizer, inner
        step, graphs = inner.begin_step(int(inner.state.iterations._array) + 1, inner._rate()), writer.graphs
        sight = sight_of(inner, states, step)
        if sight is Sight.WHOLE and not inner.is_own:
            raise Untraceable("a user's formula of whole arrays")
        if not writer.kernels and (scaler or inner.gradient_accumulation_steps is not None or sight is not Sight.ELEMENT):
            raise Untraceable("what is chosen of two results, or sums within a formula")
        if not inner.is_own and inner.changes_numbers and scaler is not None:
            raise Untraceable("code of a user that may not run")
        if changes_others(inner) and {state.variable.key for state in states} != {*inner.state.slots}:
            raise Untraceable("what has no gradient changes too")
        self._flags = (*flags_of(inner, 0), *(["scale"] if scaler else []))
        self._sums = ({"missing": "missing"} if scaler else {}) | (
            {"norm": "square"} if inner.global_clipnorm is not None else {}
        )
        clips = inner.clipnorm is not None and sight is not Sight.WHOLE and not graphs
        before = (scaler, inner.loss_scale_factor, inner.gradient_accumulation_steps)
        self._clips_first = clips and all(option is None for option in before)
        """Whether the gradient of each Variable is clipped before they are flattened."""
        sums = sight is Sight.SUMS or (inner.clipnorm is not None and not self._clips_first)
        self._step, self._states = step, states
        self._apart, self._is_flat = sight is Sight.WHOLE or (sums and not graphs), sight is not Sight.WHOLE
        self._unchanged = unchanged(inner, [state.variable for state in states])
        scratch = Writer(Program([], [], [], None), graphs, writer.kernels)
        self._write(scratch, [scratch.slot(state.variable._array.shape, state.variable._array.dtype) for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any]) -> None:
        """Write the step, given the slots of the gradients."""
        self._write(writer, gradients)
        writer.guards.append(self._unchanged)

    def _groups(self) -> Iterator[_Group]:
        inner, clips = self._inner, not self._clips_first
        for places, decay in groups_alike(inner, self._states, self._apart):
            names = (*(["decay"] if decay else []), *self._flags)
            traced = TracedFormula(inner, self._states[places[0]], self._step, names, self._sums, clips=clips)
            yield _Group(traced, decay, self._states, places, self._is_flat)

    def _write(self, writer: Writer, gradients: Sequence[Any]) -> None:
        groups = list(self._groups())
        first, decays = groups[0].traced, [group.decay for group in groups if group.decay]
        numbers = [writer.slot(None, float) for _ in range(first.leaves + len(decays) + len(self._flags))]
        known = self._inner.is_own and self._inner.rate_is_own
        params = {"optimizer": self._optimizer, "decays": decays, "flags": self._flags}
        writer.begin(step_numbers if known else asked_numbers, params, tuple(numbers))
        leaves, flags = numbers[: first.leaves], numbers[first.leaves + len(decays) :]
        products = iter(numbers[first.leaves :])
        for group in groups:
            group.numbers = [*leaves, *([next(products)] if group.decay else []), *flags]
        sums = carry_out(_OnSlots(writer, self._inner), groups, gradients, self._sums, self._clips_first)
        if not self._inner.changes_numbers and self._inner is self._optimizer:
            writer.write(step_counted, (), {"optimizer": self._optimizer})
            return
        finite = [sums["missing"]] if self._inner is not self._optimizer else []
        writer.write(step_finished, [*leaves, *flags, *finite], {"optimizer": self._optimizer, "formula": first})


def _updates_written(optimizer: Optimizer, states: Sequence[SlotState]) -> Write | None:
    """The operations of `update_step` for all Variables; None if Python decides in it, or an option needs more than these."""
    further = (optimizer.gradient_accumulation_steps, optimizer.clipnorm, optimizer.global_clipnorm)
    if optimizer.use_ema or any(option is not None for option in further):
        return None
    arrays = [state.variable._array for state in states]
    given = [Tensor(namespace(array).ones_like(array)) for array in arrays]
    with Recorder(given, strict=False) as recorder:
        try:
            take_updates(optimizer, [_prepared(optimizer, gradient) for gradient in given], states)
        finally:
            recorder.put_back()
    if recorder.refusal is not None or recorder.born:
        return None
    records = [*recorder.records, Record(step_counted, [], {"optimizer": optimizer}, ())]
    program = Program(recorder.arguments, records, [], None).over_numpy()
    for simplify in (forward_state, *SIMPLIFICATIONS):
        program = simplify(program)
    still_holds = unchanged(optimizer, [state.variable for state in states])

    def write(writer: Writer, gradients: Sequence[Any]) -> None:
        known = {mine.key: theirs for mine, theirs in zip(program.arguments, gradients, strict=True)}

        def placed(x: Any) -> Any:
            if isinstance(x, Slot) and x.key not in known:
                slot = known[x.key] = writer.slot(x.shape, x.dtype)
                slot.array, slot.fixed, slot.shares, slot.order = x.array, x.fixed, x.shares, x.order
            return known[x.key] if isinstance(x, Slot) else x

        for record in program.records:
            outputs = tuple([placed(y) for y in outputs_of(record)])
            results = outputs if type(record.outputs) is tuple else outputs[0]
            writer.keep(Record(record.primitive, [placed(x) for x in record.inputs], record.params, results))
        writer.guards.append(still_holds)

    return write


def _prepared(optimizer: Optimizer, gradient: Any) -> Any:
    """A gradient after division by the loss scale and clipping of its elements, see `Optimizer.changes`."""
    scale, limit = optimizer.loss_scale_factor, optimizer.clipvalue
    gradient = gradient if scale is None else gradient / scale
    return gradient if limit is None else clip_by_value(gradient, -limit, limit)


def is_usual(optimizer: Optimizer, states: Sequence[SlotState]) -> bool:
    """Whether a step is what `Optimizer` says and nothing of a subclass, on arrays of no short floats, without constraints."""
    kind = optimizer.__class__
    usual = kind.changes is Optimizer.changes and kind.commit is Optimizer.commit
    if optimizer.assigns:
        usual = usual and not optimizer.changes_numbers
    return (
        usual
        and (optimizer.gradient_accumulation_steps is None or optimizer.exchange is None)  # ranks exchange what was added up
        and all([_is_guarded(getattr(optimizer, name)) for name in (*COMMON, *optimizer.settings)])
        and all(state.variable.constraint is None for state in states)
        and all(is_array(target._array) and not is_short(target._array.dtype) for state in states for target in state.targets)
    )


def _is_guarded(option: Any) -> bool:
    """Whether it is seen if an option changes: a plain value, or a list of such."""
    return type(option) in PLAIN or (type(option) is list and all(type(one) in PLAIN for one in option))


def unchanged(optimizer: Optimizer, variables: Sequence[Variable]) -> Callable[[], bool]:
    """Whether an optimizer's options are what they are now and no Variable has a constraint; the learning rate may change."""
    options = operator.attrgetter(*optimizer._plain_options())
    now, own = options(optimizer), optimizer.rate_is_own
    kinds = list(map(type, now))  # 0.3 and NumPy's 0.3 are equal, and round differently
    lists = {name: list(held) for name in optimizer.settings if type(held := getattr(optimizer, name)) is list}
    free = [None] * len(variables)

    def still_holds() -> bool:
        found = options(optimizer)
        same = found == now and list(map(type, found)) == kinds and optimizer.rate_is_own is own
        same = same and all([getattr(optimizer, name) == held for name, held in lists.items()])
        return bool(same and [variable.constraint for variable in variables] == free)

    return still_holds
