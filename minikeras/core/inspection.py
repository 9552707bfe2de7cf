"""What a tape says about itself: why a gradient is None, what it holds, and a list of its Records.

Key idea: serial numbers tell when a Tensor was made, so a tape that notes a few moments can say 'before the block' or 'while
recording was stopped' without watching anything more. Next: `explain.py`.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import nest
from ..errors import UnconnectedGradientError
from .dispatch import Record
from .questions import UnconnectedGradients, differentiable_leaves
from .tensor import Tensor
from .trace import Trace, variable_name

if TYPE_CHECKING:
    from .variable import Variable


@dataclasses.dataclass(frozen=True, slots=True)
class TapeSummary:
    """How much a tape holds. str() is one line.

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


class Inspectable:
    """The part of a GradientTape that answers questions about the recording."""

    __slots__ = ()

    _records: list[Record]
    _tracked: set[int]
    _accessed: dict[int, Variable]
    _watched_at: dict[int, int]
    _moments: list[int]
    _answer: tuple[set[int], set[int]] | None
    _trace: Trace | None
    _spent: bool
    _was_reset: bool

    def explain(self, target: Any, sources: Any) -> Any:
        """Why `gradient` gives None for a source, or that it does not. Does not use up the tape.

        Runs the rules of derivatives once, those of custom gradients included, unless the tape is used up. Then it answers
        for the same target; a tape with `trace=True` answers for any. What an ordinary tape cannot know the text says.

        Args:
            target: Tensor, Variable or nest of them.
            sources: Tensor, Variable or nest of them.

        Returns:
            A nest like `sources` of `Explanation`: true if connected, else with `.reason`, `.op`, `.where`, `.hint`.

        Raises:
            TapeError: if an ordinary tape was used up by another target.

        >>> import minikeras as tf
        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.explain(y, x).reason)
        not_watched
        """
        from .explain import explanations

        targets, leaves = differentiable_leaves("target", target), differentiable_leaves("source", sources)
        return nest.pack(sources, explanations(self, targets, leaves))

    def memory(self) -> int:
        """Bytes of the arrays that the recording holds, each buffer counted once; 0 when it is used up.

        Arrays that others hold as well count: the value of a Variable, or an input of the computation.

        >>> import minikeras as tf
        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> tape.memory()
        16
        """
        buffers: dict[int, int] = {}
        for record in self._records:
            outputs = record.outputs if type(record.outputs) is tuple else (record.outputs,)
            for value in (*record.inputs, *outputs, *record.params.values()):
                while hasattr(value, "stacked"):
                    value = value.stacked
                array = value._array if isinstance(value, Tensor) else value
                if hasattr(array, "nbytes"):
                    while hasattr(getattr(array, "base", None), "nbytes"):
                        array = array.base
                    buffers[id(array)] = int(array.nbytes)
        return sum(buffers.values())

    def summary(self) -> TapeSummary:
        """The number of Records, the bytes that they hold and the watched Variables.

        >>> import minikeras as tf
        >>> x = tf.Variable(3.0, name="x")
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.summary())
        3 records, 8 bytes, watching x:0
        """
        names = [variable_name(self._accessed[key]) for key in sorted(self._accessed)]
        return TapeSummary(len(self._records), self.memory(), tuple(names))

    def __str__(self) -> str:
        return "\n".join([f"GradientTape: {self.summary()}", *(f"  {record}" for record in self._records)])

    # When a Tensor was made ------------------------------------------------------------------------------------------

    def _opened(self) -> int:
        """The moment at which recording began."""
        return self._moments[0] if self._moments else 0

    def _when(self, key: int) -> str:
        """When a Tensor was made, if that was not while this tape recorded. Moments alternate: resumed, paused, resumed..."""
        position = bisect.bisect(self._moments, key)
        if position % 2:
            return ""
        if position == 0:
            return "before tape.reset()" if self._was_reset else "before the block of this tape"
        return "after the block of this tape" if position == len(self._moments) else "while recording was stopped"

    # What a trace adds ------------------------------------------------------------------------------------------------------

    @property
    def _forgot(self) -> bool:
        """Whether there were Records that are gone."""
        return self._spent and self._trace is None

    def _note_line(self, error: LookupError) -> None:
        """Add to the error about an operation without gradient the line that called it, if that is known."""
        where = self._trace.line_of(str(error).rpartition(" ")[2]) if self._trace is not None else None
        if where:
            error.add_note(f"The operation was called at {where}.")

    def _refuse_unconnected(self, target: Any, sources: Sequence[Any], missing: Sequence[bool], fill: Any) -> None:
        """Raise with an explanation for every source that has no gradient, unless zeros were asked for."""
        if fill is UnconnectedGradients.ZERO or not any(missing):
            return
        leaves = [source for source, absent in zip(sources, missing, strict=True) if absent]
        found = nest.flatten(self.explain(target, leaves))
        listed = "".join(f"\n  {explanation}" for explanation in found)
        raise UnconnectedGradientError(f"{len(leaves)} of {len(sources)} sources have no gradient:{listed}", tuple(found))
