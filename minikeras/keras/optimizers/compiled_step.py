"""An optimizer's step as part of a program: its Variables as vectors, its formula as one loop over them.

The numbers of a step (learning rate, bias corrections) are found by Python in each run. A step with more than a formula of
each element, such as a norm, an average or a constraint, stays one instruction in Python.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...compiler.ir import PLAIN, Program, Slot, outputs_of
from ...compiler.loops import Body, kept, traced
from ...compiler.passes.expansion import Writer
from ...compiler.passes.forward_state import forward_state
from ...compiler.passes.pipeline import SIMPLIFICATIONS
from ...compiler.recorder import Recorder
from ...core import Record, Tensor, Variable
from ...core.arrays import is_array, namespace
from ...core.effects import State, effect
from ...core.precision import is_short
from ...functions.elementwise import clip_by_value
from ...layout import Layout
from .optimizer import Optimizer
from .options import COMMON
from .per_layer import PerLayer
from .state import SlotState
from .update_steps import take_updates


def _numbers(*, optimizer: Optimizer, decays: Sequence[float]) -> tuple[float, ...]:
    """What `begin_step` gives, flattened, then the products of weight decay and learning rate."""
    t, rate = int(optimizer.state.iterations._array) + 1, optimizer._rate()
    step = optimizer.begin_step(t, rate)
    own = (step,) if type(step) is float else tuple(step)
    return (*own, *[decay * rate for decay in decays]) if decays else own


def _finish(*numbers: float, optimizer: Optimizer, kind: type) -> tuple[()]:
    count = optimizer.state.iterations
    optimizer.commit([*optimizer.end_step(packed(kind, numbers)), (count, count._array + 1)])
    return ()


def _count(*, optimizer: Optimizer) -> tuple[()]:
    count = optimizer.state.iterations
    count._array = count._array + 1
    return ()


def packed(kind: type, numbers: Sequence[Any]) -> Any:
    """Numbers in the form in which `begin_step` gave them."""
    if kind is float:
        return numbers[0]
    return tuple(numbers) if kind is tuple else kind(*numbers)


step_numbers = effect("step_numbers", _numbers, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
step_finished = effect("step_finished", _finish, reads=(State.VARIABLES,), writes=(State.VARIABLES,), escapes=True)
step_counted = effect("step_counted", _count, reads=(State.VARIABLES,), writes=(State.VARIABLES,))


Write = Callable[[Writer, Sequence[Any]], None]
"""Writes a step, given the slots of the gradients."""
Written = Callable[[Optimizer, Sequence[SlotState]], Write | None]
"""What writes the step of an optimizer; None if that is more than instructions can say."""


def compiled_step(writer: Writer, record: Record, written: Written | None = None) -> bool:
    """Write an optimizer's step as such instructions, or those of `written`; False if it is more than they can say."""
    optimizer: Optimizer = record.params["optimizer"]
    states = [optimizer.state.slots[variable.key] for variable in record.params["variables"]]
    write = (written or _written)(optimizer, states)
    if write is None:
        return False
    write(writer, record.inputs)
    return True


def _written(optimizer: Optimizer, states: Sequence[SlotState]) -> Write | None:
    if isinstance(optimizer, PerLayer):
        return members_written(optimizer, states, _written)
    if (written := getattr(optimizer, "written", None)) is not None:  # it knows better
        own: Write | None = written(states, optimizer)
        return own
    if not is_plain(optimizer, states):
        return None
    write = _updates_written(optimizer, states) if optimizer.assigns else _formula_written(optimizer, states)
    if write is None:
        return None
    still_holds = unchanged(optimizer, [state.variable for state in states])

    def guarded(writer: Writer, gradients: Sequence[Any]) -> None:
        write(writer, gradients)
        writer.guards.append(still_holds)

    return guarded


def members_written(optimizer: PerLayer, states: Sequence[SlotState], written: Written) -> Write | None:
    """The steps of all members in turn; None if one is more than instructions can say, or they take turns."""
    if any(member.every != 1 for member in optimizer.members):
        return None
    found = optimizer.divided(optimizer.members, states)
    known = [(written(member, [states[place] for place in places]), places) for member, places in found]
    writes = [(write, places) for write, places in known if write is not None]
    if len(writes) < len(known):
        return None

    def write_all(writer: Writer, gradients: Sequence[Any]) -> None:
        for write, places in writes:
            write(writer, [gradients[place] for place in places])
        writer.write(step_counted, (), {"optimizer": optimizer})

    return write_all


def _formula_written(optimizer: Optimizer, states: Sequence[SlotState]) -> Write | None:
    step = optimizer.begin_step(int(optimizer.state.iterations._array) + 1, optimizer._rate())
    leaves = (step,) if type(step) is float else step
    if not isinstance(leaves, tuple) or any(type(one) is not float for one in leaves):
        return None
    groups = groups_of(optimizer, states)
    decays = [decay for _, decay in groups if decay]
    traces = [formula_body(optimizer, states[places[0]], step, decay) for places, decay in groups]
    bodies = [body for body in traces if body is not None]
    if len(bodies) < len(groups):
        return None

    def write(writer: Writer, gradients: Sequence[Any]) -> None:
        numbers = [writer.slot(None, float) for _ in range(len(leaves) + len(decays))]
        writer.begin(step_numbers, {"optimizer": optimizer, "decays": decays}, tuple(numbers))
        own, remaining = numbers[: len(leaves)], iter(numbers[len(leaves) :])
        for (places, decay), body in zip(groups, bodies, strict=True):
            first = states[places[0]].variable._array
            layout = Layout([states[place].variable._array.shape for place in places], first.dtype)
            columns = list(zip(*[states[place].targets for place in places], strict=True))
            gradient = writer.flatten([gradients[place] for place in places], layout)
            operands = [gradient, *writer.read(columns, layout), *own, *([next(remaining)] if decay else [])]
            writer.assign(columns, writer.loop(body, operands, layout.size), layout)
        if optimizer.__class__.end_step is Optimizer.end_step:
            writer.write(step_counted, (), {"optimizer": optimizer})
        else:
            writer.write(step_finished, own, {"optimizer": optimizer, "kind": type(step)})

    return write


def _updates_written(optimizer: Optimizer, states: Sequence[SlotState]) -> Write | None:
    """The operations of `update_step` for all Variables; None if Python decides in it."""
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

    return write


def _prepared(optimizer: Optimizer, gradient: Any) -> Any:
    """A gradient after division by the loss scale and clipping of its elements, see `Optimizer.changes`."""
    scale, limit = optimizer.loss_scale_factor, optimizer.clipvalue
    gradient = gradient if scale is None else gradient / scale
    return gradient if limit is None else clip_by_value(gradient, -limit, limit)


def is_plain(optimizer: Optimizer, states: Sequence[SlotState]) -> bool:
    """Whether a step is the formula, and that needs no more than an element at a time; or what `update_step` assigns."""
    further = (optimizer.gradient_accumulation_steps, optimizer.clipnorm, optimizer.global_clipnorm)
    return (
        (optimizer.elementwise or optimizer.assigns)
        and not optimizer.use_ema
        and all(option is None for option in further)
        and is_usual(optimizer, states)
        and all(
            (array.dtype, array.shape) == (state.variable._array.dtype, state.variable._array.shape)
            for state in states
            for array in [target._array for target in state.targets]
        )
    )


def is_usual(optimizer: Optimizer, states: Sequence[SlotState]) -> bool:
    """Whether a step is what `Optimizer` says and nothing of a subclass, on arrays of no short floats, without constraints."""
    kind = optimizer.__class__
    usual = kind.changes is Optimizer.changes and kind._updates is Optimizer._updates and kind.commit is Optimizer.commit
    if optimizer.assigns:
        usual = usual and kind.end_step is Optimizer.end_step
    return (
        usual
        and all([_is_guarded(getattr(optimizer, name)) for name in (*COMMON, *optimizer.settings)])
        and all(state.variable.constraint is None for state in states)
        and all(is_array(target._array) and not is_short(target._array.dtype) for state in states for target in state.targets)
    )


def _is_guarded(option: Any) -> bool:
    """Whether it is seen if an option changes: a plain value, or a list of such."""
    return type(option) in PLAIN or (type(option) is list and all(type(one) in PLAIN for one in option))


def groups_of(optimizer: Optimizer, states: Sequence[SlotState]) -> list[tuple[list[int], float]]:
    """The positions of Variables of one dtype and weight decay, and that decay."""
    groups: dict[Any, tuple[list[int], float]] = {}
    for place, state in enumerate(states):
        decay = (optimizer.decay_of(state.variable) or 0.0) if state.decays else 0.0
        groups.setdefault((state.variable._array.dtype, decay), ([], decay))[0].append(place)
    return list(groups.values())


def formula_body(optimizer: Optimizer, state: SlotState, step: Any, decay: float, settings: Sequence[str] = ()) -> Body | None:
    """Loss scale, clipping of each element, weight decay and the formula for one element.

    Its inputs are elements of the gradient, the Variable and the slots; then the numbers of the step, those of `settings`,
    which each run may have others for, and the product of weight decay and learning rate if there is a decay.
    """
    count, leaves = len(state.targets), 1 if type(step) is float else len(step)

    def formula(gradient: Any, *others: Any) -> Any:
        value, *slots = others[:count]
        numbers = list(others[count:])
        own = copy.copy(optimizer) if settings else optimizer
        vars(own).update(zip(settings, numbers[leaves:], strict=False))
        if own.loss_scale_factor is not None:
            gradient = gradient / own.loss_scale_factor
        (gradient,) = own._clipped([gradient])
        if decay:
            value = value - value * numbers[-1]
        return own.formula(packed(type(step), numbers[:leaves]), gradient, value, *slots)

    numbers = leaves + len(settings) + bool(decay)
    inputs = [*[state.variable._array.dtype] * (1 + count), *[float] * numbers]
    if not optimizer.__class__.__module__.startswith("minikeras."):
        return traced(formula, inputs)  # what a custom formula reads may have changed since it was traced
    fixed = [item for item in optimizer._plain_options().items() if item[0] not in settings]
    key = optimizer.__class__, tuple(fixed), tuple(inputs), type(step), bool(decay), tuple(settings)
    return kept(key, lambda: traced(formula, inputs))


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
