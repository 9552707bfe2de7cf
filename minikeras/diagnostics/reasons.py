"""The reasons why a gradient is None: a table from code to sentence and hint."""

from __future__ import annotations

import dataclasses

from .. import markup

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
    """Why a gradient is None, or that it is not. True if source and target are connected; str() is a readable paragraph.

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
        """What a notebook shows."""
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
