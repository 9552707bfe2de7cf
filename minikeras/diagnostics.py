"""Diagnostics: why a gradient is None, and how much a tape holds. `Inquiry` follows all that happened, which `Trace` notes,
from the source to the target, and names what cuts the path.

If even an uncut path leaves None, the source was not watched; if there is no path, another object took part.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from . import markup
from .core import Frame, Interpreter, Primitive, Record, State, Variable, call_place, innermost, seeds_of, tapes_that_track
from .core.custom import hidden_from_derivatives, is_custom
from .core.tensor import Operand, Tensor, next_key
from .errors import TapeError, UnconnectedGradientError

# The reasons why a gradient is None: a table from code to sentence and hint.

REASONS = {
    "not_watched": ("{source} {detail}{at}", "Call tape.watch(x) first in the block."),
    "not_trainable": (
        "{source} is not trainable, so the tape did not watch it when it was read",
        "Watch it with tape.watch(variable), or set trainable=True for it or its layer.",
    ),
    "integer_dtype": ("{detail}{at}; only floating and complex numbers have derivatives", "Use a float dtype."),
    "left_through_numpy": (
        "possible cause: the value left the tape through {op}{at}, and what NumPy or Python made of it came back in",
        "Use the tf function of the same name instead.",
    ),
    "through_assignment": (
        "the target depends on {source} only through an assignment to variable '{detail}'{at}, which has no derivative",
        "Keep the value as a tensor and use that.",
    ),
    "assigned_after_use": (
        "{source} is not the object that was used: {detail}{at}",
        "If `x = x + 1` re-bound the name of a Variable, write x.assign_add(1); otherwise ask for the object that was used.",
    ),
    "computed_outside": ("{op} was computed {detail}{at}, where this tape did not record it", "Move it into the block."),
    "other_tape": ("{source} is watched by another tape only: {detail}", "Watch it in this tape too."),
    "stopped": ("stop_gradient{at} lies on every path", "Leave stop_gradient out where this gradient is wanted."),
    "non_differentiable_op": (
        "the operation {op}{at} has no gradient and lies on every path",
        "Use a smooth replacement, or say with tf.custom_gradient which gradient it shall have.",
    ),
    "custom_rule_returned_none": (
        "the custom gradient of {op}{at} returned None for argument {detail}",
        "Let its grad_fn return a tensor there.",
    ),
    "no_dependence": ("the target does not depend on {source}; {detail}", "Check that the source is used for the target."),
}
"""For each code its sentence, without the full stop, and its hint. `{at}` is ' at file:line' where the line is known."""

TRACE_HINT = "Only what was recorded is known here; GradientTape(trace=True) sees the rest, with lines."


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why a gradient is None, or that it is not. True if source and target are connected; str() is a paragraph.

    Attributes:
        connected: whether `gradient` finds a path.
        reason: one of the codes of `REASONS`, the one nearest to the target; None if connected.
        op: the operation or conversion where the path is cut, if there is one.
        where: 'file:line' of the user's code; only with `strict=True` or `trace=True`.
        hint: what to do.
        text: the sentence.
        others: the further reasons that apply, each nearer to the source than the one before.
    """

    connected: bool
    reason: str | None = None
    op: str | None = None
    where: str | None = None
    hint: str | None = None
    text: str = ""
    others: tuple[Explanation, ...] = ()

    def __bool__(self) -> bool:
        return self.connected

    def __str__(self) -> str:
        further = "".join(f" Also: {other.text}." for other in self.others)
        sentence = self.text[:1].upper() + self.text[1:] + "."
        return f"{sentence} {self.hint}{further}" if self.hint else sentence

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        verdict = "A gradient flows" if self.connected else f"No gradient: {self.reason}"
        others = "".join(markup.element("li", f"{other.text}.") for other in self.others)
        lines = [markup.element("div", line) for line in (f"{self.text[:1].upper()}{self.text[1:]}.", self.hint) if line]
        return markup.element("b", verdict) + "".join(lines) + (f"<div>Also:</div><ul>{others}</ul>" if others else "")


def because(
    reason: str, source: str, op: str | None = None, where: str | None = None, detail: str = "", further_hint: str = ""
) -> Explanation:
    """The Explanation for a code of `REASONS`."""
    sentence, hint = REASONS[reason]
    text = sentence.format(source=source, op=op, at=f" at {where}" if where else "", detail=detail)
    return Explanation(False, reason, op, where, f"{hint} {further_hint}".strip(), text)


Refused = set[tuple[int, int]]
"""Pairs of the keys of a result and an operand for which the operation's rule returned None."""


class Inquiry:
    """A question to a tape: what it knows, and the targets.

    Args:
        tape: the tape.
        targets: Tensors and Variables.
    """

    def __init__(self, tape: Any, targets: Sequence[Any]) -> None:
        self.tape = tape
        self.targets = targets
        self.trace: Trace | None = tape.trace
        self.events = [self._with_moment(s) for s in self.trace.events] if self.trace else [*map(_event, tape.tape.records)]
        self.made = {key: event for event in self.events for key in event.outputs}
        self.refused: Refused = set()
        self.without_rule: str | None = None
        self.known = not tape.spent or self.trace is not None

    def _with_moment(self, event: Event) -> Event:
        """The Event, cut if it happened while the tape did not record."""
        when = self._when(event.moment)
        return event._replace(cut="computed_outside", detail=when) if when and event.cut is None else event

    def _when(self, key: int) -> str:
        """The time when a Tensor was made, if the tape did not record then. Moments alternate: resumed, paused, resumed..."""
        moments = self.tape.moments
        position = bisect.bisect(moments, key)
        if position % 2:
            return ""
        if position == 0:
            return "before tape.reset()" if self.tape.was_reset else "before the block of this tape"
        return "after the block of this tape" if position == len(moments) else "while recording was stopped"

    def explanations(self, sources: Sequence[Any]) -> list[Explanation]:
        """An Explanation for each source."""
        found = self.connected(sources)
        connected = Explanation(True, text="the target depends on the source, and a gradient flows")
        return [connected if source.key in found else self.explanation(source) for source in sources]

    def refuse(self, missing: Sequence[Any], asked: int) -> None:
        """Raise for sources of a strict tape that have no gradient, with the explanation of each."""
        found = self.explanations(missing)
        listed = "".join(f"\n  {explanation}" for explanation in found)
        raise UnconnectedGradientError(f"{len(missing)} of {asked} sources have no gradient:{listed}", tuple(found))

    # Is there a gradient? --------------------------------------------------------------------------------------------

    def connected(self, sources: Sequence[Any]) -> set[int]:
        """Keys of the sources for which `gradient` gives more than None, found by a sweep that leaves no trace."""
        keys = [source.key for source in sources]
        smooth = {target.key for target in self.targets if target.dtype.is_differentiable or target.key in keys}
        if not self.known:
            return self._remembered({target.key for target in self.targets}, smooth, set(keys))
        refused: list[tuple[Record, int]] = []
        with hidden_from_derivatives():
            bare = self.tape.tape.bare
            seeds = seeds_of(self.targets, self.targets, None, keys, bare)
            try:
                found = set(self.tape.tape.gradients(seeds, keys, bare, refused))
            except LookupError as error:
                self.without_rule = getattr(error, "operation", str(error))
                found = smooth & set(keys)
        for record, position in refused:
            for output in record.outputs if type(record.outputs) is tuple else (record.outputs,):
                self.refused.add((output.key, record.inputs[position].key))
        return found

    def _remembered(self, targets: set[int], smooth: set[int], sources: set[int]) -> set[int]:
        """As `connected`, of a tape whose Records are gone, from its last answer."""
        asked, found = self.tape.answer
        if targets == asked or not smooth & self.tape.tape.tracked:
            return sources & (found if targets == asked else smooth)
        raise TapeError(
            "explain: the tape was used up by another target, and its Records are gone. Explain that target, ask before "
            "gradient(), or use GradientTape(trace=True)."
        )

    # Why not? --------------------------------------------------------------------------------------------------------

    def explanation(self, source: Any) -> Explanation:
        """The reasons for a source without gradient: the one nearest to the target, holding the others."""
        reasons = list({(reason.reason, reason.text): reason for reason in self._reasons(source)}.values())
        if not reasons:
            hint = "" if self.trace else TRACE_HINT
            name = described(source, self.trace)
            reasons = [because("no_dependence", name, detail=self._ancestors(), further_hint=hint)]
        return dataclasses.replace(reasons[0], others=tuple(reasons[1:]))

    def _reasons(self, source: Any) -> Iterator[Explanation]:
        name = described(source, self.trace)
        if not source.dtype.is_differentiable:
            yield because("integer_dtype", name, detail=f"{name} is a source of dtype {source.dtype.name}")
            return
        if self.without_rule:
            where = self.trace.line_of(self.without_rule) if self.trace else None
            yield because("non_differentiable_op", name, self.without_rule, where)
            return
        smooth, _ = self._path(source, uncut=True)
        passed, cuts = (True, []) if smooth else self._path(source)
        if cuts:
            for event in cuts:
                yield self._cut(event, name)
        elif not passed:
            yield from self._no_path(source, name)
            if self.trace:
                return
        unwatched = list(self._not_watched(source, name, passed))
        yield from unwatched
        if smooth and not unwatched:
            where = next((event.where for event in self.events if source.key in event.inputs), None)
            yield because("not_watched", name, where=where, detail="was watched only after it had been used")

    def _cut(self, event: Event, source: str) -> Explanation:
        """The reason that one Event gives."""
        if event.cut is not None:
            op = "a tensor on the way" if event.cut == "computed_outside" else event.name
            return because(event.cut, source, op, event.where, event.detail)
        if event.custom:
            refused = [str(i) for i, key in enumerate(event.inputs) if any((y, key) in self.refused for y in event.outputs)]
            return because("custom_rule_returned_none", source, event.name, event.where, ", ".join(refused))
        return because("non_differentiable_op", source, event.name, event.where)

    def _no_path(self, source: Any, name: str) -> Iterator[Explanation]:
        """Reasons why the source is not among what the target was made of."""
        dtypes = [target.dtype for target in self.targets]
        if not any(dtype.is_differentiable for dtype in dtypes):
            where = self.made[self.targets[0].key].where if self.targets[0].key in self.made else None
            yield because("integer_dtype", name, where=where, detail=f"the target has dtype {dtypes[0].name}")
        known = self.made.keys() | self.tape.tape.tracked
        unseen = [target for target in self.targets if isinstance(target, Tensor) and target.key not in known]
        for target in unseen[:1]:
            when = self._when(target.key)
            if when:
                yield because("computed_outside", name, "the target", detail=when)
            elif self.trace:
                yield because("computed_outside", name, "the target", detail="in another thread, or from plain numbers")
        if all(self._older(target, source) for target in self.targets):
            where = self.trace.where_made(source.key) if self.trace else None
            detail = "it was made after the target" + self._really_used(source)
            yield because("assigned_after_use", name, where=where, detail=detail)
        elif isinstance(source, Tensor) and not any(source.key in event.inputs for event in self.events):
            used = self._really_used(source)
            if used:
                where = self.trace.where_made(source.key) if self.trace else None
                yield because("assigned_after_use", name, where=where, detail="nothing was made of it" + used)

    def _older(self, target: Any, source: Any) -> bool:
        """True if the target's value was final before the source existed. A Variable has no final value."""
        return isinstance(target, Tensor) and bool(target.key < source.key)

    def _really_used(self, source: Any) -> str:
        """The Variables that both the source and the target were made of."""
        common = self._made_of([source.key]) & self._made_of([target.key for target in self.targets])
        names = sorted(self._name(key) for key in common if self._name(key))
        return f", and the target used {', '.join(names)}, which it was made of" if names else ""

    def _not_watched(self, source: Any, name: str, passed: bool) -> Iterator[Explanation]:
        """Reasons that lie in the source itself."""
        tape = self.tape
        if source.key in tape.tape.tracked:
            late = source.key in tape.watched_at and all(t.key < tape.watched_at[source.key] for t in self.targets)
            if late and not passed:
                yield because("not_watched", name, detail="was watched only after the target had been computed")
            return
        if any(self._older(target, source) for target in self.targets) and not passed:
            return
        variable = isinstance(source, Variable)
        others = [other for other in tapes_that_track(source.key) if other is not tape]
        if others:
            opened, *others_opened = [one.moments[0] if one.moments else 0 for one in (tape, *others)]
            order = "around" if min(others_opened) < opened else "inside or after"
            yield because("other_tape", name, detail=f"one that was entered {order} this one")
        elif variable and not source.trainable:
            yield because("not_trainable", name)
        elif not variable:
            detail = "is a Tensor that was never watched; tapes watch only Variables by themselves"
            rebound = "If `x = x + 1` put it in the place of a Variable, write x.assign_add(1)."
            yield because("not_watched", name, detail=detail, further_hint=rebound)
        elif not tape.tape.watch_accessed:
            yield because("not_watched", name, detail="was never watched, and the tape has watch_accessed_variables=False")

    # Following what happened -----------------------------------------------------------------------------------------

    def _path(self, source: Any, uncut: bool = False) -> tuple[bool, list[Event]]:
        """True if the source reaches a target, and the Events on the way that no gradient passes, the last one first.

        Args:
            source: the Tensor or Variable to start from.
            uncut: True to follow only what a gradient passes.
        """
        reached, carrying, links = self._forward(source.key, uncut)
        needed = {target.key for target in self.targets}
        cuts, conversions = [], {links[key] for key in needed if key in links}
        for i in range(len(self.events) - 1, -1, -1):
            event = self.events[i]
            wanted = i in conversions or not needed.isdisjoint(event.outputs)
            if wanted and i in carrying:
                conversions |= {links[key] for key in (*event.inputs, -1 - i) if key in links}
                needed |= reached.intersection(event.inputs)
                if self._blocks(event, reached):
                    cuts.append(event)
            if wanted and event.name == "assign" and source.key not in event.outputs:
                needed.difference_update(event.outputs)
        return source.key in needed, cuts

    def _forward(self, source: int, uncut: bool) -> tuple[set[int], set[int], dict[int, int]]:
        """Keys that depend on the source, the positions of the Events that carry it on, and links through NumPy.

        A link leads from a key of unknown origin (or from -1 - i for a number that went into Event i) to the conversion of a
        dependent value before it.
        """
        reached, carrying, links = {source}, set(), {}
        left: list[int] = []
        for i, event in enumerate(self.events):
            for key in event.inputs if left else ():
                if key not in self.made and key not in reached and key > self.events[left[0]].moment:
                    links[key] = max(c for c in left if self.events[c].moment < key)
                    reached.add(key)
            matching = [c for c in left if self.events[c].value is not None and self.events[c].value in event.numbers]
            if matching:
                links[-1 - i] = matching[-1]
            if matching or not reached.isdisjoint(event.inputs):
                if uncut and self._blocks(event, reached):
                    continue
                carrying.add(i)
                if event.cut == "left_through_numpy":
                    left.append(i)
                reached.update(event.outputs)
            elif event.name == "assign" and source not in event.outputs:
                reached.difference_update(event.outputs)
        for target in self.targets if left else ():
            if target.key not in self.made and target.key > self.events[left[0]].moment and target.key != source:
                links[target.key] = max(c for c in left if self.events[c].moment < target.key)
        return reached, carrying, links

    def _blocks(self, event: Event, reached: set[int]) -> bool:
        """True if no gradient passes an Event from any of its inputs that depend on the source."""
        inputs = reached.intersection(event.inputs)
        return event.cut is not None or (
            bool(inputs) and any(all((y, x) in self.refused for x in inputs) for y in event.outputs)
        )

    def _made_of(self, keys: Sequence[int]) -> set[int]:
        """Everything that some results were made of, themselves included."""
        needed = set(keys)
        for event in reversed(self.events):
            if not needed.isdisjoint(event.outputs):
                needed.update(event.inputs)
        return needed

    def _ancestors(self) -> str:
        """The Variables that the target does depend on, in words."""
        if not self.known:
            return "the tape was used up, so its Records are gone"
        found = self._made_of([target.key for target in self.targets])
        names = [self._name(key) for key in sorted(found) if self._name(key)]
        return f"it depends on {', '.join(names)}" if names else "it depends on nothing that was watched"

    def _name(self, key: int) -> str:
        """The name of a Variable in quotes, or nothing."""
        if key in self.tape.tape.accessed:
            return f"'{variable_name(self.tape.tape.accessed[key])}'"
        return f"'{self.trace.names[key]}'" if self.trace and key in self.trace.names else ""


def described(operand: Any, trace: Trace | None) -> str:
    """A Tensor or Variable in a sentence."""
    if isinstance(operand, Variable):
        return f"variable '{variable_name(operand)}'"
    where = trace.where_made(operand.key) if trace else None
    shape = ",".join(map(str, operand.shape))
    return f"the tensor {operand.dtype.name}[{shape}]" + (f" made at {where}" if where else "")


# What happened, as Trace notes it below the tape: by keys, names and lines ------------------------------------------------


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        name: of the operation, conversion or assignment.
        inputs: keys of the Tensors and Variables that went in.
        numbers: Python numbers that went in.
        outputs: keys of what came out; of a Variable, if it was assigned; none for a conversion to Python or NumPy.
        cut: the reason why no gradient passes, one of the codes of `REASONS`; None if it does.
        detail: what the explanation adds to the reason.
        where: 'file:line' of the user's code.
        moment: a serial number; a Tensor with a higher key was made later.
        custom: whether the user wrote the rule.
        value: the number that a conversion gave, or None.
    """

    name: str
    inputs: tuple[int, ...]
    numbers: tuple[Any, ...]
    outputs: tuple[int, ...]
    cut: str | None = None
    detail: str = ""
    where: str | None = None
    moment: int = 0
    custom: bool = False
    value: Any = None


class Trace(Interpreter):
    """The interpreter that keeps Events. It stays on the stack while its tape stops recording."""

    __slots__ = ("events", "names")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.names: dict[int, str] = {}

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Note what went in, what came out and where; of effects, conversions to Python and assignments."""
        if primitive.effect and (not primitive.escapes or State.VARIABLES in primitive.writes):
            return
        results = outputs if type(outputs) is tuple else (outputs,)
        for x in inputs:
            if hasattr(x, "read_value"):
                self.names[x.key] = variable_name(x)
        cut, detail = _cut(primitive, inputs, params, results)
        event, moment, where = _event(Record(primitive, inputs, params, outputs)), next_key(), call_place()
        self.events.append(event._replace(cut=cut, detail=detail, where=where, moment=moment, value=params.get("value")))

    def where_made(self, key: int) -> str | None:
        """The line that made a Tensor, if it was seen."""
        return next((event.where for event in reversed(self.events) if key in event.outputs), None)

    def note_line(self, error: LookupError) -> None:
        """Add to the error about an operation without gradient the line that called it, if it was seen."""
        where = self.line_of(getattr(error, "operation", ""))
        if where:
            error.add_note(f"The operation was called at {where}.")

    def line_of(self, name: str) -> str | None:
        """The last line that called an operation, if there is one."""
        return next((event.where for event in reversed(self.events) if event.name == name), None)


def variable_name(variable: Any) -> str:
    """The path of a layer's weight, the name of another Variable."""
    return str(getattr(variable, "path", None) or variable.name)


def _event(record: Record) -> Event:
    """The Event that a Record amounts to: no line, and nothing that was not recorded."""
    return Event(
        str(record.params.get("conversion", record.primitive.name)),
        tuple([x.key for x in record.inputs if hasattr(x, "key")]),
        tuple([x for x in record.inputs if type(x) in (int, float, complex)]),
        tuple([y.key for y in (record.outputs if type(record.outputs) is tuple else (record.outputs,))]),
        custom=is_custom(record.primitive),
    )


def _cut(primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], results: Sequence[Any]) -> tuple[str | None, str]:
    """The reason why no gradient passes an operation, and a detail; None if one does, or none arrives from its inputs."""
    if primitive.escapes:
        return "through_assignment" if primitive.writes else "left_through_numpy", ", ".join(map(variable_name, results))
    if not any(isinstance(x, Operand) and x.dtype.is_differentiable for x in inputs):
        return None, ""
    if not primitive.differentiable:
        return ("stopped" if primitive.name == "stop_gradient" else "non_differentiable_op"), ""
    if not any(y.dtype.is_differentiable for y in results):
        return "integer_dtype", f"the operation {primitive.name} made a tensor of dtype {results[0].dtype.name}"
    return None, ""


# How much a tape holds: `GradientTape.memory` and `summary`.


@dataclasses.dataclass(frozen=True, slots=True)
class TapeSummary:
    """The size of a tape's recording. str() is one line.

    Attributes:
        records: number of Records.
        bytes: held by the recording, each buffer counted once.
        variables: names of the watched Variables.
    """

    records: int
    bytes: int
    variables: tuple[str, ...]

    def __str__(self) -> str:
        names = ", ".join(self.variables) or "no variables"
        return f"{self.records} records, {self.bytes} bytes, watching {names}"


def summary_of_tape(tape: Any) -> TapeSummary:
    """The number of Records, the bytes of the arrays that they hold, each buffer counted once, and the watched Variables."""
    buffers: dict[int, int] = {}
    for record in tape.tape.records:
        outputs = record.outputs if type(record.outputs) is tuple else (record.outputs,)
        for value in (*record.inputs, *outputs, *record.params.values()):
            value = innermost(value)
            array = value.array if isinstance(value, Tensor) else value
            if hasattr(array, "nbytes"):
                while hasattr(getattr(array, "base", None), "nbytes"):
                    array = array.base
                buffers[id(array)] = int(array.nbytes)
    names = [variable_name(tape.tape.accessed[key]) for key in sorted(tape.tape.accessed)]
    return TapeSummary(len(tape.tape.records), sum(buffers.values()), tuple(names))
