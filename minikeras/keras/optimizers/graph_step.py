"""An optimizer's whole step as instructions, where one of Python's would end a graph: norms, averages, accumulation, scales.

A formula of each element is one pass over flattened Variables, with a pass before it for norms; another one becomes
instructions for each Variable. Python gives the numbers of a step, and counts. Results are the eager step's to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.ir import Program, Slot
from ...compiler.loops import Pass, Sum, Untraceable, loop_of_parts, sums_shape, traced_passes
from ...compiler.passes.expansion import TracedArray, TracedNumber, Writer
from ...core import Record
from ...core.arrays import to_numpy
from ...core.effects import State, effect
from ...core.effects import Write as HowToWrite
from ...core.variable import assigned, read_variable
from ...layout import Layout
from ...types import Array
from .compiled_step import Write, compiled_step, groups_of, is_usual, members_written, packed, unchanged
from .loss_scale import LossScaleOptimizer, next_scale
from .optimizer import Optimizer
from .options import global_factor, scaled
from .per_layer import PerLayer
from .state import SlotState


class Flags(NamedTuple):
    """Numbers of a step that are not the formula's.

    Attributes:
        updates: 1 if the gradients that were accumulated are used now, else 0.
        momentum: of the moving averages.
        overwrites: 1 if weights become their averages, else 0.
        scale: that gradients are divided by.
        goes: 1 if all gradients are finite, else 0 and nothing changes.
    """

    updates: Any
    momentum: Any
    overwrites: Any
    scale: Any = 1.0
    goes: Any = 1.0


def _numbers(*finite: Array, optimizer: Optimizer, decays: Sequence[float], scaler: LossScaleOptimizer | None) -> Any:
    """What `begin_step` gives, flattened, the products of weight decay and learning rate, and the flags."""
    steps, taken = optimizer.gradient_accumulation_steps or 1, int(optimizer.state.iterations._array)
    count, rate = taken // steps, optimizer._rate()
    step = optimizer.begin_step(count + 1, rate)
    every = optimizer.ema_overwrite_frequency
    flags = Flags(
        float((taken + 1) % steps == 0),
        optimizer.ema_momentum if count else 0.0,
        float(every is not None and (count + 1) % every == 0),
        1.0 if scaler is None else float(scaler.dynamic_scale._array),
        float(all(np.isfinite(to_numpy(one)) for one in finite)),
    )
    return (*((step,) if type(step) is float else step), *[decay * rate for decay in decays], *flags)


def _finish(*numbers: float, optimizer: Optimizer, kind: type, scaler: LossScaleOptimizer | None) -> tuple[()]:
    flags, taken = Flags(*numbers[-len(Flags._fields) :]), optimizer.state.iterations
    changes = []
    if flags.goes:
        changes = [*(optimizer.end_step(packed(kind, numbers)) if flags.updates else ()), (taken, taken._array + 1)]
    if scaler is not None:
        scale, counter = scaler.dynamic_scale, scaler.step_counter
        found = next_scale(bool(flags.goes), flags.scale, int(counter._array), scaler.dynamic_growth_steps)
        changes += [(one, one._array.dtype.type(new)) for one, new in zip((scale, counter), found, strict=True)]
    optimizer.commit(changes)
    return ()


graph_step_numbers = effect("graph_step_numbers", _numbers, reads=(State.VARIABLES,))
graph_step_finished = effect("graph_step_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,))


def graph_step(writer: Writer, record: Record) -> bool:
    """Write an optimizer's step as such instructions; False if it is more than they can say."""
    return compiled_step(writer, record) or compiled_step(writer, record, _written)


def _written(optimizer: Optimizer, states: Sequence[SlotState]) -> Write | None:
    if isinstance(optimizer, PerLayer):
        return members_written(optimizer, states, _written)
    scaler = optimizer if type(optimizer) is LossScaleOptimizer else None
    inner = optimizer if scaler is None else scaler.inner_optimizer
    if inner.assigns or not type(inner).__module__.startswith("minikeras.") or not is_usual(inner, states):
        return None
    if inner.gradient_accumulation_steps is not None and inner.exchange is not None:
        return None  # ranks exchange what they have added up
    known = {state.variable.key for state in states}
    if (inner.use_ema or inner.gradient_accumulation_steps is not None) and known != {*inner.state.slots}:
        return None  # what has no gradient changes too
    try:
        return GraphStep(inner, states, scaler).write
    except Untraceable:
        return None


class Group:
    """Variables whose steps are written together: flattened, or one alone.

    Args:
        states: of the Variables.
        places: of their gradients.
        decay: weight decay, 0 for none.
        is_flat: whether the formula sees elements.
    """

    def __init__(self, states: Sequence[SlotState], places: Sequence[int], decay: float, is_flat: bool) -> None:
        own = [states[place] for place in places]
        self.places, self.decay, self.is_flat = places, decay, is_flat
        self.targets = len(own[0].targets)
        first = own[0].variable._array
        self.dtype, self.layout = first.dtype, Layout([one.variable._array.shape for one in own], first.dtype)
        extras = [name for name in ("gradient_accumulator", "average") if name in own[0].slots]
        self.columns = list(zip(*[[*one.targets, *[one.slots[name] for name in extras]] for one in own], strict=True))
        self.operands: list[Any] = []
        """The slots of gradient and columns, once they are read."""

    def read(self, writer: Writer, gradients: Sequence[Slot]) -> None:
        """Write the reading of Variables, and flatten them."""
        own = [gradients[place] for place in self.places]
        if self.is_flat:
            self.operands = [writer.flatten(own, self.layout), *writer.read(self.columns, self.layout)]
            return
        self.operands = own
        for (variable,) in self.columns:
            y = writer.slot(variable._array.shape, variable._array.dtype)
            writer.keep(Record(read_variable, [variable], {}, y))
            self.operands.append(y)

    def assign(self, writer: Writer, values: Sequence[Slot]) -> None:
        """Write the assignment of new values."""
        if self.is_flat:
            writer.assign(self.columns, values, self.layout)
            return
        for (variable,), value in zip(self.columns, values, strict=True):
            writer.keep(Record(assigned, [variable, value], {"conversion": HowToWrite.ASSIGN}, ()))


class GraphStep:
    """The instructions of a step.

    Args:
        optimizer: whose step it is.
        states: of its Variables.
        scaler: the loss scale around it, or None.

    Raises:
        Untraceable: if it does what there are no instructions for.
    """

    def __init__(self, optimizer: Optimizer, states: Sequence[SlotState], scaler: LossScaleOptimizer | None) -> None:
        self._optimizer, self._scaler = optimizer, scaler
        step = optimizer.begin_step(int(optimizer.state.iterations._array) + 1, optimizer._rate())
        self._kind, leaves = type(step), (step,) if type(step) is float else step
        if not isinstance(leaves, tuple) or any(type(one) is not float for one in leaves):
            raise Untraceable("a step that is more than numbers")
        self._leaves = len(leaves)
        self._groups = list(self._grouped(states))
        self._decays = [group.decay for group in self._groups]
        self._unchanged = unchanged(optimizer, [state.variable for state in states])
        scratch = Writer(Program([], [], [], None))
        self._write(scratch, [scratch.slot(state.variable._array.shape, state.variable._array.dtype) for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any]) -> None:
        """Write the step, given the slots of the gradients."""
        self._write(writer, gradients)
        writer.guards.append(self._unchanged)

    def _grouped(self, states: Sequence[SlotState]) -> Iterator[Group]:
        flat = self._optimizer.elementwise or self._optimizer.sums
        for places, decay in groups_of(self._optimizer, states):
            for own in [places] if flat else [[place] for place in places]:
                yield Group(states, own, decay, flat)

    def _write(self, writer: Writer, gradients: Sequence[Any]) -> None:
        for group in self._groups:
            group.read(writer, gradients)
        count = self._leaves + len(self._decays) + len(Flags._fields)
        numbers = [writer.slot(None, float) for _ in range(count)]
        params = {"optimizer": self._optimizer, "scaler": self._scaler}
        if self._scaler is None:
            writer.begin(graph_step_numbers, params | {"decays": self._decays}, tuple(numbers))
        else:
            finite = self._total(writer, [self._over(writer, group, numbers, _missing, Sum.ALL) for group in self._groups])
            writer.write(graph_step_numbers, [finite], params | {"decays": self._decays}, tuple(numbers))
        norm = []
        if self._optimizer.global_clipnorm is not None:
            norm = [self._total(writer, [self._over(writer, group, numbers, self._square, Sum.ALL) for group in self._groups])]
        for number, group in enumerate(self._groups):
            decay = [numbers[self._leaves + number]]
            group.assign(writer, self._over(writer, group, [*numbers, *decay, *norm], self._new_values))
        writer.write(graph_step_finished, numbers, params | {"kind": self._kind})

    def _over(
        self, writer: Writer, group: Group, further: Sequence[Slot], function: Callable[..., Any], sums: Sum | None = None
    ) -> list[Slot]:
        """Write a function of gradient, columns and further operands; with `sums` of the first result's sum."""
        count = len(group.operands)

        def called(*given: Any) -> Any:
            return function(group, given[:count], given[count:])

        operands = [*group.operands, *further]
        if group.is_flat:
            return _flat_passes(writer, group, operands, called, sums)
        given = [TracedNumber([x]) if x.shape is None else TracedArray(writer, x) for x in operands]
        results = called(*given)
        return [y.slot for y in ([one.sum() for one in results] if sums else results)]

    def _total(self, writer: Writer, sums: Sequence[Sequence[Slot]]) -> Slot:
        """The sum of the sums of all groups."""
        first, *rest = [TracedArray(writer, one) for (one,) in sums]
        total: TracedArray = sum(rest, first)
        return total.slot

    # What is done to elements, or to arrays -----------------------------------------------------------------------------------

    def _prepared(self, group: Group, values: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, Any]:
        """The gradient that is clipped next, and what the accumulator would hold."""
        optimizer, flags, gradient = self._optimizer, self._flags(numbers), values[0]
        if self._scaler is not None:
            gradient = gradient / flags.scale
        if optimizer.loss_scale_factor is not None:
            gradient = gradient / optimizer.loss_scale_factor
        if (steps := optimizer.gradient_accumulation_steps) is None:
            return gradient, None
        total = gradient + values[1 + group.targets]
        return total / steps, total

    def _square(self, group: Group, values: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        gradient, _ = self._prepared(group, values, numbers)
        return (gradient * gradient,)

    def _new_values(self, group: Group, values: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
        """What the columns are going to hold; see `Optimizer.changes` for the order."""
        optimizer, flags = self._optimizer, self._flags(numbers)
        (decay, *norm) = numbers[self._leaves + len(self._decays) + len(Flags._fields) :]
        before = values[1 : 1 + group.targets]
        gradient, total = self._prepared(group, values, numbers)
        if norm and optimizer.global_clipnorm is not None:
            gradient = scaled(gradient, global_factor(np.sqrt(norm[0]), optimizer.global_clipnorm))
        else:
            (gradient,) = optimizer._clipped([gradient])
        weight, *slots = before
        weight = weight - weight * decay if group.decay else weight
        new = list(optimizer.formula(packed(self._kind, numbers[: self._leaves]), gradient, weight, *slots))
        if total is not None:
            new = [np.where(flags.updates, now, then) for now, then in zip(new, before, strict=True)]
            new.append(np.where(flags.updates, 0.0, total))
        if optimizer.use_ema:
            average = values[-1] * flags.momentum + new[0] * (1.0 - flags.momentum)
            if optimizer.ema_overwrite_frequency is not None:
                new[0] = np.where(flags.overwrites, average, new[0])
            new.append(average)
        if self._scaler is not None:
            new = [np.where(flags.goes, now, then) for now, then in zip(new, values[1:], strict=True)]
        return tuple(new)

    def _flags(self, numbers: Sequence[Any]) -> Flags:
        first = self._leaves + len(self._decays)
        return Flags(*numbers[first : first + len(Flags._fields)])


def _missing(group: Group, values: Sequence[Any], numbers: Sequence[Any]) -> tuple[Any, ...]:
    """0 for each element that is finite, else NaN."""
    return (values[0] - values[0],)


def _flat_passes(
    writer: Writer, group: Group, operands: Sequence[Slot], function: Callable[..., Any], sums: Sum | None
) -> list[Slot]:
    """Passes over flat arrays, of which those before the last give sums over each Variable."""
    passes = traced_passes(function, [x.dtype for x in operands])
    if passes is None:
        raise Untraceable("a formula that is more than elements and their sums")
    operands = list(operands)
    for one in passes:
        is_last = one is passes[-1]
        found = _pass(writer, group.layout, one, [operands[number] for number in one.reads], sums if is_last else Sum.PART)
        operands += found
    return found


def _pass(writer: Writer, layout: Layout, one: Pass, operands: Sequence[Slot], sums: Sum | None) -> list[Slot]:
    if sums is None and all(x.shape in (None, (), (layout.size,)) for x in operands):
        return writer.loop(one.body, operands, layout.size)
    shape, dtypes = (layout.size,) if sums is None else sums_shape(layout, sums), one.body.dtypes
    outputs = tuple([writer.slot(shape, dtypes[register]) for register in one.body.outputs])
    writer.write(loop_of_parts, operands, {"body": one.body, "layout": layout, "sums": sums}, outputs)
    return list(outputs)


# The loss scale --------------------------------------------------------------------------------------------------------------


def _scale_on_host(*, optimizer: LossScaleOptimizer, dtype: Any) -> tuple[Array]:
    with np.errstate(over="ignore"):
        return (np.asarray(optimizer.dynamic_scale._array).astype(dtype),)


scale_on_host = effect("scale_on_host", _scale_on_host, reads=(State.VARIABLES,))


def graph_scale(writer: Writer, record: Record) -> bool:
    """Write the loss scale as a value that Python makes before all others: it does not depend on the loss."""
    y = record.outputs
    found = writer.slot((), y.dtype)
    writer.begin(scale_on_host, {"optimizer": record.params["optimizer"], "dtype": y.dtype}, (found,))
    writer.renamed[y.key] = found
    return True
