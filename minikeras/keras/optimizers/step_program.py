"""An optimizer's step as a program: norms first, then one pass over the elements of its Variables.

Its formula is traced into loops over flattened Variables; one that is more than elementwise operations and sums is written
as operations on whole arrays, and so are Variables with a constraint. In each run Python computes the numbers of the step and
counts it. Python also takes the steps that have a user's constraint or formula of whole arrays, and those of which NumPy would
compute much twice or for nothing: on arrays, see `step.py`.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from ...compiler.ir import PLAIN, Program, Slot
from ...compiler.loops import Pass, SumScope, Untraceable, kept, loop, loop_of_parts, sums_shape, traced_passes
from ...compiler.passes import simplified
from ...compiler.passes.forward_state import NUMBERS, forward_state
from ...compiler.passes.inlining import EXPANSIONS, TracedArray, TracedNumber, Writer
from ...compiler.planning import DEVICE_ALIGNMENT
from ...compiler.recorder import recorded
from ...compiler.variable_storage import assign_flat, flatten, read_flat
from ...core import Record, State, Tensor, Variable, convert_to_tensor, effect, is_short, operations
from ...core import Write as HowToWrite
from ...core.arrays import is_array, namespace, to_numpy
from ...core.variable import are_held, assigned, read_variable, restore
from ...errors import CompileError
from ...layout import Layout
from ...types import Array
from ..config import epsilon
from ..constraints import is_own
from .loss_step import Assignments
from .options import COMMON
from .state import Change, SlotState, names_of
from .step import (
    Flags,
    clipped,
    clipped_by_norm,
    clips_first,
    columns_of,
    counted,
    flags_of,
    groups_alike,
    incoming,
    missing,
    new_values,
    numbers_of,
    optimizer_step,
    shares_of,
    square,
    stepping,
    take_updates,
)

# Variables whose steps are written together --------------------------------------------------------------------------------


class FormulaGroup:
    """Variables of one dtype and weight decay whose steps are written together: flattened, or one by itself.

    Its formula is a function of gradient, columns and then the numbers that a program computes in each run: those of
    `begin_step`, those of `settings`, the weight decay, those of `flags` and, as far as they are known, sums.

    Args:
        own: the optimizer.
        step: what its `begin_step` gives.
        states: of all Variables of the step.
        places: the positions of those that are here.
        decay: weight decay, 0 for none.
        flags: names of numbers, see `Flags`.
        sums: 'missing' and 'norm', if they count.
        settings: options that may differ from run to run.
        clips: whether gradients are still to be clipped.
        whole: whether the formula sees the array of its only Variable, not flattened ones.
        graphs: whether a graph reads each array where it lies, as a factor of products.
        projection: the constraint of the only Variable.

    Attributes:
        layout: of the Variables, flattened.
        leaves, width: the number of numbers of `begin_step`, and of columns.
        numbers: the slots of the numbers that its formula takes.

    Raises:
        Untraceable: if `begin_step` gives more than numbers.
    """

    def __init__(
        self,
        own: Any,
        step: Any,
        states: Sequence[SlotState],
        places: Sequence[int],
        decay: Any = 0.0,
        flags: Iterable[str] = (),
        sums: Iterable[str] = (),
        settings: Sequence[str] = (),
        clips: bool = True,
        whole: bool = False,
        graphs: bool = False,
        projection: Program | None = None,
    ) -> None:
        leaves = (step,) if type(step) is float else step
        if not isinstance(leaves, tuple) or any(type(one) is not float for one in leaves):
            raise Untraceable("a step that is more than numbers")
        held = [states[place] for place in places]
        self.own, self._kind, self.leaves, self._dtype = own, type(step), len(leaves), held[0].variable.array.dtype
        self.places, self.decay, self._whole, self._projection = places, decay, whole, projection
        self._names, self._sums, self._settings = (*(["decay"] if decay else []), *flags), tuple(sums), tuple(settings)
        self._clips = clips
        alignment = DEVICE_ALIGNMENT // self._dtype.itemsize if graphs else 1
        self.layout = Layout([one.variable.array.shape for one in held], self._dtype, alignment)
        self._columns: list[tuple[Variable, ...]] = list(zip(*[columns_of(own, state) for state in held], strict=True))
        """The Variables, then one slot of each, then the next."""
        self.width = len(self._columns)
        self.numbers: list[Slot] = []
        self._operands: list[Slot] = []
        """The slots of gradient and columns, once they are read."""

    # Its formula

    def _part(self, part: Callable[..., Any]) -> Callable[..., Any]:
        """A part of the step as a function of the gradient, the columns and the numbers."""
        width = self.width

        def function(gradient: Any, *others: Any) -> Any:
            numbers, own = others[width:], self.own
            settings = dict(zip(self._settings, numbers[self.leaves :], strict=False))
            if settings or not own.is_own:  # what a user's code assigns while it is traced is forgotten with the copy
                own = copy.copy(own)
                vars(own).update(settings)
            known = dict(zip((*self._names, *self._sums), numbers[self.leaves + len(settings) :], strict=False))
            known |= {} if self._clips else {"clipped": True}
            return part(own, self._packed(numbers), known, gradient, *others[:width])

        return function

    def _packed(self, numbers: Sequence[Any]) -> Any:
        """The first numbers in the form in which `begin_step` gave them."""
        if self._kind is float:
            return numbers[0]
        found = tuple(numbers[: self.leaves])
        return found if self._kind is tuple else self._kind(*found)

    def ended(self, optimizer: Any, numbers: Sequence[float]) -> list[Any]:
        """The changes of an optimizer's `end_step`, given the numbers of a step, the flags last."""
        known = dict(zip(reversed(self._names), reversed(numbers), strict=False))
        return optimizer.end_step(self._packed(numbers)) if known.get("updates", 1.0) else []

    def passes(self, part: Callable[..., Any], sums: Sequence[Any] = ()) -> list[Pass]:
        """A part of the step as passes over elements, given the dtypes of the sums that are known.

        Raises:
            Untraceable: if it is more than elements and their sums.
        """
        numbers = self.leaves + len(self._settings) + len(self._names)
        inputs = [*[self._dtype] * (1 + self.width), *[float] * numbers, *sums]
        own, function = self.own, self._part(part)
        if own.is_own:
            fixed = tuple([item for item in own.plain_options().items() if item[0] not in self._settings])
            key = self._kind, self.width, self._names, self._sums, self._settings, self._clips
            found = kept((own.__class__, part, fixed, tuple(inputs), key), lambda: traced_passes(function, inputs))
        else:
            found = traced_passes(function, inputs)  # values that a custom formula reads may have changed since it was traced
        if found is None:
            raise Untraceable("a formula that is more than elements and their sums")
        return found

    # Its instructions

    def _read(self, writer: Writer, gradients: Sequence[Slot]) -> None:
        """Write the reading of gradients and columns."""
        own = [gradients[place] for place in self.places]
        if not self._whole:
            gradient = flattened(writer, own, self.layout)
            flats = tuple([writer.slot((self.layout.size,), self._dtype) for _ in self._columns])
            variables = itertools.chain.from_iterable(self._columns)
            self._operands = [gradient, *writer.write(read_flat, [*variables], {"layout": self.layout}, flats)]
            return
        self._operands = [TracedArray(writer, own[0]).reshape(self.layout.shapes[0]).slot]
        for (variable,) in self._columns:
            y = writer.slot(variable.array.shape, variable.array.dtype)
            self._operands.append(writer.write(read_variable, [variable], {}, y))

    def apply(
        self, writer: Writer, part: Callable[..., Any], gradients: Sequence[Slot], sums: Flags, adds: bool = False
    ) -> list[Slot]:
        """Write a part of the step, given the sums that are known; if it `adds`, the sum of the results."""
        if not self._operands:
            self._read(writer, gradients)
        known = list(sums.values())
        operands = [*self._operands, *self.numbers, *known]
        if not self._whole:
            return self._write_passes(writer, self.passes(part, [x.dtype for x in known]), operands, adds)
        results = self._part(part)(*[TracedNumber([x]) if x.shape is None else TracedArray(writer, x) for x in operands])
        return [results.sum().slot] if adds else [y.slot for y in results]

    def _write_passes(self, writer: Writer, passes: Sequence[Pass], operands: list[Slot], adds: bool) -> list[Slot]:
        """Write passes over flat arrays: those before the last give sums over each array; if it `adds`, the last over all."""
        layout = self.layout
        for one in passes:
            given = [operands[number] for number in one.reads]
            sums = (SumScope.ALL if adds else None) if one is passes[-1] else SumScope.PART
            plain = not writer.graphs or (sums is None and all(x.shape in (None, (), (layout.size,)) for x in given))
            shape = (layout.size,) if plain or sums is None else sums_shape(layout, sums)
            found = [writer.slot(shape, one.body.dtypes[register]) for register in one.body.outputs]
            params = {"body": one.body} | ({} if plain else {"layout": layout, "sums": sums})
            writer.write(loop if plain else loop_of_parts, given, params, tuple(found))
            if plain and sums is not None:
                found = [TracedArray(writer, y).sum().slot for y in found]
            operands += found
        return found

    def assign(self, writer: Writer, values: Sequence[Slot]) -> None:
        """Write the assignment of new values to the columns."""
        if not self._whole:
            writer.write(assign_flat, [*itertools.chain.from_iterable(self._columns), *values], {"layout": self.layout})
            return
        if self._projection is not None:
            values = [*writer.include(self._projection, values[:1]), *values[1:]]
        for (variable,), value in zip(self._columns, values, strict=True):
            writer.write(assigned, [variable, value], {"conversion": HowToWrite.ASSIGN})


def flattened(writer: Writer, arrays: Sequence[Slot], layout: Layout) -> Slot:
    """Write one flat array of all; one array alone is only reshaped."""
    alone, whole = len(arrays) == 1 and arrays[0].dtype == layout.dtype, writer.slot((layout.size,), layout.dtype)
    params = {"shape": whole.shape, "rank": len(arrays[0].shape)} if alone else {"layout": layout}
    return cast(Slot, writer.write(operations.reshape if alone else flatten, arrays, params, whole))


def _added_up(writer: Writer, numbers: Sequence[Slot]) -> Slot:
    """The sum of numbers."""
    first, *rest = [TracedArray(writer, one) for one in numbers]
    total: TracedArray = sum(rest, first)
    return total.slot


# The step of one optimizer -------------------------------------------------------------------------------------------------


def tried_step(own: Any) -> Any:
    """What `begin_step` gives, to see its form, at any rate where that comes from a user, whose function may count its calls.
    What a user's code assigns is forgotten.
    """
    rate = own._rate_now() if own.rate_is_own else 0.001
    return (own if own.is_own else copy.copy(own)).begin_step(int(own.state.iterations.array) + 1, rate)


def passes_of(optimizer: Any, states: Sequence[SlotState], step: Any) -> int:
    """The number of passes over elements that an optimizer's formula takes: as its class says, or as a trace shows if the class
    is a user's. One without sums over its Variable, several with them, 0 if it reads whole arrays.

    A formula that assigns a Variable is one of whole arrays: Python calls it in each step.
    """
    kinds = [[(one.array.dtype, one.array.shape) for one in columns_of(optimizer, state)] for state in states]
    if any(one != first for first, *others in kinds for one in others):
        return 0  # slots of other shapes or dtypes
    if optimizer.elementwise:
        return 1
    if optimizer.is_own:
        return 2 if optimizer.sums else 0
    watcher = Assignments()
    try:
        with watcher:
            passes = FormulaGroup(optimizer, step, states, [0], flags=("updates", "momentum"), clips=False).passes(new_values)
    except Exception:  # of a user's formula that takes arrays alone
        return 0
    finally:
        restore(watcher.before)
    return 0 if watcher.before else len(passes)


class FormulaPart:
    """The step of an optimizer that has a formula, as a part of the step that is being written.

    All parts write the reading of their numbers when they are made, before any counter changes, which another's learning rate
    may depend on.

    Args:
        optimizer: whose step it is a part of: `own`, one of several, or a loss scale.
        own: the optimizer.
        states: of its Variables.
        writer: of the program. Without graphs, each Variable whose elements are added up steps by itself.

    Attributes:
        own: the optimizer.
        unchanged: a guard.
        groups: of its Variables.
        ending: the slots of the numbers that its `end_step` needs.
    """

    own: Any
    unchanged: Callable[[], bool]
    groups: Sequence[FormulaGroup]
    ending: Sequence[Slot] = ()
    _clips_all = _clips_first = False
    """Whether gradients are clipped together, or each before they are flattened."""

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self.own, self.unchanged = own, unchanged(own, [state.variable for state in states])
        step, scales = tried_step(own), optimizer.scales
        passes = passes_of(own, states, step)
        self._check(states, passes, scales, writer)
        self._clips_all, is_flat = own.global_clipnorm is not None, passes > 0
        self._clips_first = clips_first(own, scales) and is_flat and not writer.graphs
        flags = (*flags_of(own, 0), *(["scale"] if scales else []))
        sums = [*(["missing"] if scales else []), *(["norm"] if self._clips_all else [])]

        def grouped(places: Sequence[int], decay: float, projection: Program | None = None) -> FormulaGroup:
            whole, clips = projection is not None or not is_flat, not self._clips_first
            return FormulaGroup(own, step, states, places, decay, flags, sums, (), clips, whole, writer.graphs, projection)

        adds = passes > 1 or (own.clipnorm is not None and not self._clips_first)
        self.groups = groups = list[FormulaGroup]()
        for alike, decay in groups_alike(own, states, not is_flat or (adds and not writer.graphs)):
            limited = [place for place in alike if states[place].variable.constraint is not None]
            if free := [place for place in alike if place not in limited]:
                groups.append(grouped(free, decay))
            groups += [grouped([place], decay, _projection_of(states[place].variable)) for place in limited]
        leaves, decays = groups[0].leaves, [group.decay for group in groups if group.decay]
        numbers = [writer.slot(None, float) for _ in range(leaves + len(decays) + len(flags))]
        params = {"optimizer": optimizer if scales else own, "own": own, "decays": decays, "flags": flags}
        if own.is_own and own.rate_is_own:
            writer.begin(step_numbers, params, tuple(numbers))
        else:
            asks = own.overrides("begin_step") or not own.rate_is_own
            before = writer.records if writer.is_at_beginning else []  # which then come after the numbers
            read = [x for record in before for x in record.inputs if isinstance(x, Variable)]
            used = {one.key: one for one in (*[state.variable for state in states], *read)} if asks else {}
            writer.begin(asked_numbers, {**params, "used": [*used.values()]}, tuple(numbers))
        last, products = numbers[leaves + len(decays) :], iter(numbers[leaves:])
        for group in groups:
            group.numbers = [*numbers[:leaves], *([next(products)] if group.decay else []), *last]
        self.ending = [*numbers[:leaves], *last] if own.changes_numbers else []

    def _check(self, states: Sequence[SlotState], passes: int, scales: bool, writer: Writer) -> None:
        """Refuse what instructions cannot express, and of what NumPy would compute much twice or for nothing."""
        own, steps = self.own, self.own.gradient_accumulation_steps
        if not passes and not own.is_own:
            raise Untraceable("a user's formula of whole arrays")
        if not writer.kernels and (scales or steps is not None or passes != 1):
            raise Untraceable("what is chosen of two results, or sums within a formula")
        is_limited = any(state.variable.constraint is not None for state in states)
        if is_limited and (scales or steps is not None or own.global_clipnorm is not None):
            raise Untraceable("a constraint that may not be applied, or norms of groups without these Variables")
        if not own.is_own and own.changes_numbers and scales:
            raise Untraceable("code of a user that may not run")
        if own._beside and {state.variable.key for state in states} != {*own.state.slots}:
            raise Untraceable("what has no gradient changes too")

    def total(self, writer: Writer, part: Callable[..., Any], gradients: Sequence[Any], known: Flags) -> Slot:
        """Write the sum over each group of what a part of the step gives, and the sum of these."""
        return _added_up(writer, [y for group in self.groups for y in group.apply(writer, part, gradients, known, adds=True)])

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        """Write the update of the Variables, given sums that are known."""
        if self._clips_first:
            arrays = [clipped_by_norm(TracedArray(writer, gradient), self.own.clipnorm) for gradient in gradients]
            gradients = [array.slot for array in arrays]
        if self._clips_all:
            known = {**known, "norm": self.total(writer, square, gradients, known)}
        for group in self.groups:
            group.assign(writer, group.apply(writer, new_values, gradients, known))


class AssigningPart:
    """The operations of `update_step` for all Variables; Untraceable if Python decides in it, or an option needs more."""

    ending = ()

    def __init__(self, optimizer: Any, own: Any, states: Sequence[SlotState], writer: Writer) -> None:
        self.own, self.unchanged = own, unchanged(own, [state.variable for state in states])
        further = (own.gradient_accumulation_steps, own.clipnorm, own.global_clipnorm)
        if optimizer.scales or own.use_ema or any(option is not None for option in further):
            raise Untraceable("an option around `update_step`")

        def update(gradients: Sequence[Tensor]) -> tuple[()]:
            take_updates(copy.copy(own), gradients, states)
            return ()

        self._update = _recorded(update, [state.variable.array for state in states])

    def write(self, writer: Writer, gradients: Sequence[Any], known: Flags) -> None:
        arrays = [incoming(self.own, known, TracedArray(writer, gradient), ())[0] for gradient in gradients]
        writer.include(self._update, [clipped(self.own, known, array).slot for array in arrays])


def is_usual(optimizer: Any, states: Sequence[SlotState]) -> bool:
    """True if no subclass overrides the step of `Optimizer`, no array has 16-bit floats, and no constraint is a user's."""
    constraints = [state.variable.constraint for state in states if state.variable.constraint is not None]
    return not (
        optimizer.overrides("changes", "commit", "divided")
        or optimizer.scales
        or (optimizer.assigns and (optimizer.changes_numbers or constraints))
        or (optimizer.gradient_accumulation_steps is not None and optimizer.exchange is not None)  # ranks exchange the sums
        or not all([_is_guarded(getattr(optimizer, name)) for name in (*COMMON, *optimizer.settings)])
        or not all(map(is_own, constraints))
        or any(not is_array(one.array) or is_short(one.array.dtype) for state in states for one in columns_of(optimizer, state))
    )


def _is_guarded(option: Any) -> bool:
    """True if a guard sees it when the option changes: a plain value, or a list of such."""
    return type(option) in PLAIN or (type(option) is list and all(type(one) in PLAIN for one in option))


def unchanged(optimizer: Any, variables: Sequence[Variable]) -> Callable[[], bool]:
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


def _recorded(function: Callable[[Sequence[Tensor]], Sequence[Tensor]], arrays: Sequence[Array]) -> Program:
    """A function of Tensors, which may assign Variables, as a program, given arrays of the shapes and dtypes of its operands.

    Raises:
        Untraceable: if it does what a program cannot repeat.
    """
    program = recorded(function, [Tensor(namespace(array).ones_like(array)) for array in arrays])
    if program is None:
        raise Untraceable("what a program cannot repeat")
    return simplified(forward_state(program.over_numpy()))


def _projection_of(variable: Variable) -> Program:
    """The constraint of a Variable, as a program from its value; Untraceable if it changes shape or dtype."""

    def project(given: Sequence[Tensor]) -> list[Tensor]:
        assert variable.constraint is not None
        found = convert_to_tensor(variable.constraint(given[0]))
        if (found.array.shape, found.array.dtype) != (variable.array.shape, variable.array.dtype):
            raise Untraceable("a constraint that changes shape or dtype")
        return [found]

    return _recorded(project, [variable.array])


# The whole step --------------------------------------------------------------------------------------------------------------


def compiled_step(writer: Writer, record: Record) -> bool:
    """Write an optimizer's step as instructions; False if instructions cannot express it."""
    optimizer: Any = record.params["optimizer"]
    keys = [variable.key for variable in record.params["variables"]]
    states = [optimizer.state.slots[key] for key in keys]
    writer.guards.append(lambda: list(map(optimizer.state.slots.get, keys)) == states)  # `built = False` drops them
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
        counts = [part.total(writer, missing, own, {}) for part, own in zip(parts, given, strict=True)]
        known["missing"] = _added_up(writer, counts)
    for part, own in zip(parts, given, strict=True):
        part.write(writer, own, known)
    if own_parts is not None:
        for part in parts:
            part.count(writer)
        return
    ending = [(part.groups[0], len(part.ending)) for part in parts if part.ending]
    owns = [part.own for part in parts if part.own is not optimizer]
    params = {"optimizer": optimizer, **({"owns": owns} if owns else {}), **({"ending": ending} if ending else {})}
    writer.write(step_counted, [*known.values(), *(number for part in parts for number in part.ending)], params)


def _parts_of(optimizer: Any, states: Sequence[SlotState], writer: Writer) -> list[tuple[Any, Sequence[int]]]:
    """The steps of the optimizers that step, each with the positions of its Variables."""
    inner, parts = stepping(optimizer), list[tuple[Any, Sequence[int]]]()
    if optimizer.overrides("changes") or any(one.every != 1 for one in getattr(inner, "members", ())):
        raise Untraceable("what only Python does, or does at some steps")
    if optimizer.scales and not states:
        raise Untraceable("a scale without gradients")
    for own, places in shares_of(optimizer, states):
        part, of_part = AssigningPart if own.assigns else FormulaPart, [states[place] for place in places]
        if not is_usual(own, of_part):
            raise Untraceable("what a subclass or a constraint does")
        parts.append((part(optimizer, own, of_part, writer), places))
    return parts


def _numbers(
    *, optimizer: Any, own: Any, decays: Sequence[float], flags: Sequence[str], used: Sequence[Variable] = ()
) -> tuple[float, ...]:
    """The numbers of a step, before the loss: a user's code must not assign the Variables that this reads."""
    before = [variable.array for variable in used]
    scale = float(optimizer.dynamic_scale.array) if "scale" in flags else 1.0
    numbers = numbers_of(own, int(own.state.iterations.array), decays, flags, scale)
    if used and not are_held(before, used):
        pairs = list(zip(used, before, strict=True))
        changed = names_of(variable for variable, array in pairs if variable.array is not array)
        restore(pairs)
        raise CompileError(
            f"{own.name}: its learning rate or `begin_step` assigns {changed}, which the step uses. A compiled step asks "
            "for these numbers before the loss. Assign it outside of the step, or let the step run eagerly."
        )
    return numbers


def _count(*given: Any, optimizer: Any, owns: Sequence[Any] = (), ending: Sequence[tuple[FormulaGroup, int]] = ()) -> tuple[()]:
    """Change the counters.

    Args:
        given: with a loss scale the number of gradient elements that are not finite, then the numbers that formulas took.
        optimizer: whose step it is.
        owns: other optimizers whose steps were taken.
        ending: formulas that a change of further numbers follows, each with the count of numbers it took.
    """
    if not given:
        for one in (optimizer, *owns):
            count = one.state.iterations
            count.array = count.array + 1
        return ()
    changes, numbers, finite = list[Change](), iter(given), True
    if optimizer.scales:
        finite = bool(to_numpy(next(numbers)) == 0)
        changes += optimizer.changes_of_scale(finite)
    if finite:
        for formula, width in ending:
            changes += formula.ended(formula.own, list(itertools.islice(numbers, width)))
        changes += counted(optimizer, owns)
    optimizer.commit(changes)
    return ()


step_numbers = effect("step_numbers", _numbers, reads=(State.VARIABLES,))
asked_numbers = effect("asked_numbers", _numbers, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
"""The numbers of a step that a user's code computes, which may change anything."""
NUMBERS.update((step_numbers, asked_numbers))
step_counted = effect("step_counted", _count, reads=(State.VARIABLES,), writes=(State.VARIABLES,))
EXPANSIONS[optimizer_step] = compiled_step
