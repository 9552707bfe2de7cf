"""The recording half of a GradientTape: an interpreter that watches, and keeps a Record of what depends on what it watches.

Key idea: a tape holds nothing but the keys of what it watches and the list of Records that depend on them. Nesting,
persistence and the order of tapes follow from the stack in `dispatch.py`. Next: `tape.py`, the other half.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self

from ..errors import TapeError
from .dispatch import Frame, Primitive, Record, current, switch
from .inspection import Inspectable
from .notices import warn
from .outliving import tell_of_tapes_that_outlive
from .questions import watchable_leaves
from .tensor import next_key
from .trace import Trace
from .variable import Variable, read_variable


class NeverEnteredError(TapeError, AttributeError):
    """A tape was asked to watch before its `with` block; an AttributeError too, as in TensorFlow."""


class Recording(Inspectable):
    """What happens in the block of a tape, and the controls of it."""

    __slots__ = (
        *("__weakref__", "_accessed", "_active", "_answer", "_entered", "_lifted", "_moments", "_persistent", "_records"),
        *("_spent", "_strict", "_trace", "_tracked", "_was_reset", "_watch_accessed", "_watched_at"),
    )

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, strict: bool = False, trace: bool = False
    ) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._strict = strict
        self._lifted = False  # whether rules need Tensors: a bare bfloat16 array beside a number would turn into float32
        self._trace = Trace() if strict or trace else None
        self._entered = self._active = False
        self._forget()

    # Recording ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._active:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape. "
                "Use a second tape, or leave the block first."
            )
        self._entered = True
        if self._persistent:
            tell_of_tapes_that_outlive(self)
        if self._trace is not None:
            switch(Frame(self._trace, current()))
        self._resume(Frame(self, current()))
        return self

    def __exit__(self, *exception: object) -> None:
        self._pause()
        if self._trace is not None:
            switch(current().without(self._trace))

    def _resume(self, frame: Frame) -> None:
        """Record in this thread, from the given place on its stack; a tape that is used up starts afresh."""
        if self._spent:
            self._forget()
        switch(frame)
        self._active = True
        self._moments.append(next_key())

    def _pause(self) -> None:
        """Leave this thread's stack. Harmless if the tape is not on it: `gradient` may have been called elsewhere."""
        switch(current().without(self))
        if self._active:
            self._active = False
            self._moments.append(next_key())

    def _forget(self) -> None:
        self._records, self._tracked, self._accessed, self._spent = [], set(), {}, False
        self._watched_at, self._moments, self._answer, self._was_reset = {}, [], None, False

    def _use_up(self) -> None:
        """Let go of the Records after the only use, unless they were to be kept for explanations."""
        if not self._persistent:
            self._spent = True
            if self._trace is None:
                self._records = []

    def process(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], below: Frame) -> Any:
        """Ask below, and watch."""
        outputs = below.interpreter.process(primitive, inputs, params, below.below)
        self.observe(primitive, inputs, params, outputs, below)
        return outputs

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Keep a Record if an input is tracked."""
        tracked = self._tracked
        if primitive is read_variable and self._watch_accessed and inputs[0]._trainable:
            self._accessed[inputs[0].key] = inputs[0]
            tracked.add(inputs[0].key)
        if not primitive.differentiable:
            return
        for x in inputs:
            if getattr(x, "key", None) in tracked:
                if type(outputs) is tuple:
                    smooth = [y.key for y in outputs if y._array.dtype.kind in "fc"]
                else:
                    smooth = [outputs.key] if outputs._array.dtype.kind in "fc" else []
                if smooth or (smooth := self._unusual(primitive, outputs)):
                    self._records.append(Record(primitive, inputs, params, outputs))
                    tracked.update(smooth)
                return

    def _unusual(self, primitive: Primitive, outputs: Any) -> list[int]:
        """Keys of results worth a Record though NumPy calls none a float: of bfloat16, and of what is to refuse a gradient."""
        results = outputs if type(outputs) is tuple else (outputs,)
        smooth = [y.key for y in results if y.dtype.is_differentiable]
        self._lifted = self._lifted or bool(smooth)
        return smooth if primitive.vjp is not None else [y.key for y in results]

    def watch(self, tensor: Any) -> None:
        """Track a Tensor, a Variable or any nest of them from now on.

        Raises:
            ValueError: for anything else, naming the value and its type.
            TapeError: if the tape was never entered; an AttributeError too.
        """
        leaves = watchable_leaves(tensor)
        if not self._entered:
            raise NeverEnteredError("watch: enter the tape with `with` first: `with tf.GradientTape() as tape:`.")
        moment = next_key()
        for leaf in leaves:
            if leaf.dtype.is_differentiable:
                if leaf.key not in self._tracked:
                    self._watched_at[leaf.key] = moment
                self._tracked.add(leaf.key)
            else:
                warn(5, "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", leaf.dtype)
            if isinstance(leaf, Variable):
                self._accessed[leaf.key] = leaf

    def watched_variables(self) -> tuple[Variable, ...]:
        """The Variables watched so far, in the order of their construction."""
        return tuple(self._accessed[key] for key in sorted(self._accessed))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Let operations within the block go unrecorded on this tape; other tapes go on.

        Raises:
            TapeError: if the tape was never entered or is used up.
            ValueError: if it is not recording for another reason.
        """
        if not self._entered or self._spent:
            raise TapeError("Trying to stop recording a tape which is not recording.")
        if not self._active:
            raise ValueError("Tape is not recording.")
        before = current()
        self._pause()
        without = current()
        try:
            yield
        finally:
            # The place on the stack has a meaning, so the tape returns to it unless others came or went meanwhile.
            self._resume(before if current() is without else Frame(self, current()))

    def reset(self) -> None:
        """Forget all Records and watches, and record afresh.

        Raises:
            ValueError: outside the tape's block.
        """
        if not self._active:
            raise ValueError("Tape is not recording.")
        self._forget()
        self._was_reset = True
        self._moments.append(next_key())
