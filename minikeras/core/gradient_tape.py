"""GradientTape: TensorFlow's rules around a `Tape`: nests, one use or many, zeros or None or an error.

Every derivative is the same sweep with other seeds; second derivatives sweep over the Records that a sweep has left.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Self

from .. import nest
from ..errors import TapeError
from .gradient_arguments import (
    INSIDE_OWN_BLOCK,
    UnconnectedGradients,
    differentiable_leaves,
    finished,
    seeds_of,
    unconnected_choice,
    watchable_leaves,
)
from .registry import hook
from .stack import Frame, current, switch
from .tape import Tape
from .tensor import next_key
from .variable import Variable
from .warnings import tell_of_tapes_that_outlive, warn

__all__ = ["GradientTape", "UnconnectedGradients"]


class NeverEnteredError(TapeError, AttributeError):
    """A tape was asked to watch before its `with` block; an AttributeError too, as in TensorFlow."""


class GradientTape:
    """Records operations for automatic differentiation.

    Within its block a tape records every operation that depends on what it watches. Trainable Variables are watched when
    they are read, anything else by `watch`. Cost: about a microsecond and one Record for each operation.

    Args:
        persistent: keep the Records after a `gradient`, so that it may be called again; they go with the tape.
        watch_accessed_variables: whether trainable Variables are watched when they are read.
        strict: raise UnconnectedGradientError, with the reasons, instead of giving None; traces as well.
        trace: note everything that happens in the block, with its line, for `explain`; costs some microseconds for each
            operation, and the Records stay until the tape goes.

    Source: Griewank and Walther, Evaluating Derivatives (2008), section 3.2 (reverse mode).

    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    __slots__ = (
        *("__weakref__", "_active", "_entered", "persistent", "answer", "moments", "spent", "strict", "tape", "trace"),
        *("was_reset", "watched_at"),
    )

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, strict: bool = False, trace: bool = False
    ) -> None:
        self.persistent = persistent
        self.strict = strict
        self.tape = Tape(watch_accessed_variables)
        self.trace = hook("Trace")() if strict or trace else None
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
        _alive[id(self)] = weakref.ref(self)
        if len(_alive) > 256:
            for identity in [key for key, reference in list(_alive.items()) if reference() is None]:
                _alive.pop(identity, None)
        if self.persistent:
            tell_of_tapes_that_outlive(self)
        if self.trace is not None:
            self.trace.__enter__()
        self._resume(Frame(self.tape, current()))
        return self

    def __exit__(self, *exception: object) -> None:
        self._pause()
        if self.trace is not None:
            self.trace.__exit__()

    def _resume(self, frame: Frame) -> None:
        """Record in this thread, from the given place on its stack; a tape that is used up starts afresh."""
        if self.spent:
            self._forget()
        switch(frame)
        self._active = True
        self.moments.append(next_key())

    def _pause(self) -> None:
        """Leave this thread's stack. Harmless if the tape is not on it: `gradient` may have been called elsewhere."""
        switch(current().without(self.tape))
        if self._active:
            self._active = False
            self.moments.append(next_key())

    def _forget(self) -> None:
        self.tape.clear()
        self.watched_at: dict[int, int] = {}
        self.moments: list[int] = []  # serial numbers at which recording began, stopped, began again, ...
        self.answer: tuple[set[int], set[int]] | None = None  # keys of the last targets, and of what had a gradient
        self.spent = self.was_reset = False

    def _use_up(self) -> None:
        """Let go of the Records after the only use, unless they were to be kept for explanations."""
        if not self.persistent:
            self.spent = True
            if self.trace is None:
                self.tape.records = []

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
                if leaf.key not in self.tape.tracked:
                    self.watched_at[leaf.key] = moment
                self.tape.tracked.add(leaf.key)
            else:
                warn(5, "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r", leaf.dtype)
            if isinstance(leaf, Variable):
                self.tape.accessed[leaf.key] = leaf

    def watched_variables(self) -> tuple[Variable, ...]:
        """The Variables watched so far, in the order of their construction."""
        accessed = self.tape.accessed
        return tuple(accessed[key] for key in sorted(accessed))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Let operations within the block go unrecorded on this tape; other tapes go on.

        Raises:
            TapeError: if the tape was never entered or is used up.
            ValueError: if it is not recording for another reason.
        """
        if not self._entered or self.spent:
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
            self._resume(before if current() is without else Frame(self.tape, current()))

    def reset(self) -> None:
        """Forget all Records and watches, and record afresh.

        Raises:
            ValueError: outside the tape's block.
        """
        if not self._active:
            raise ValueError("Tape is not recording.")
        self._forget()
        self.was_reset = True
        self.moments.append(next_key())

    # Derivatives --------------------------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of the sum of all elements of `target`, for each source: v^T J with seeds v of ones by default.

        Args:
            target: Tensor, Variable or nest of them.
            sources: Tensor, Variable or nest of them; intermediate results as well.
            output_gradients: the seeds, one for each target and of its shape.
            unconnected_gradients: 'none' gives None, 'zero' zeros, for a source the target does not depend on.

        Returns:
            A nest like `sources`; each Tensor has its source's shape and dtype. For a source that was only looked up in, by
            `tf.gather` along its first axis, a `tf.IndexedSlices`, unless the sweep itself is recorded.

        Raises:
            TapeError: at the second call on a tape that is not persistent.
            LookupError: if an operation on the way has no gradient; the tape stays usable for another target.
            TypeError: if a target or source is no Tensor or Variable.

        >>> w, b = tf.Variable(2.0), tf.Variable(1.0)
        >>> with tf.GradientTape() as tape:
        ...     loss = (3.0 * w + b) ** 2
        >>> [float(g) for g in tape.gradient(loss, [w, b])]
        [42.0, 14.0]
        """
        fill = unconnected_choice(unconnected_gradients)
        targets, leaves = differentiable_leaves("target", target), differentiable_leaves("source", sources)
        self._use()
        bare, keys = self.tape.bare, [leaf.key for leaf in leaves]
        found = self.tape.planned(targets, leaves) if bare and output_gradients is None else None
        if found is None:
            seeds = seeds_of(target, targets, output_gradients, keys, bare, self.tape.tracked)
            try:
                cotangents = self.tape.gradients(seeds, keys, bare)
            except LookupError as error:
                if self.trace is not None:
                    self.trace.note_line(error)
                raise
            found = [cotangents.get(key) for key in keys]
        else:
            bare = False
        connected = {key for key, cotangent in zip(keys, found, strict=True) if cotangent is not None}
        self.answer = {leaf.key for leaf in targets}, connected
        self._use_up()
        self._check_connected(target, leaves, connected, fill)
        return nest.pack(sources, [finished(one, leaf, fill, bare) for one, leaf in zip(found, leaves, strict=True)])

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        chunk_size: int | None = None,
    ) -> Any:
        """The derivative of every element of one target, for each source: Tensors of shape target.shape + source.shape.

        Args, results and errors not named here are those of `gradient`.

        Args:
            parallel_iterations: accepted for compatibility, ignored.
            experimental_use_pfor: False sweeps back once for each element instead of once over all; needs a persistent tape.
            chunk_size: most elements of the target to carry at once, to bound memory: chunk_size times the size of the
                largest intermediate result. At least 1.

        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy().tolist())
        [[2.0, 0.0], [0.0, 4.0]]
        """
        return hook("DerivativesOfTape")(self).jacobian(
            target, sources, unconnected_gradients, experimental_use_pfor, chunk_size
        )

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        chunk_size: int | None = None,
    ) -> Any:
        """The derivative of each row of `target`, (n, ...), by the row of `source`, (n, ...), at the same place.

        Each row of the target is taken to depend on its own row of the source only; what it gets from others is added in. An
        unconnected source gives zeros, else arguments are those of `jacobian`. Shape (n, *target.shape[1:], *source.shape[1:]).

        Raises:
            ValueError: if the first axes differ or are missing.

        >>> x = tf.constant([[1.0], [3.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().ravel())
        [2. 6.]
        """
        return hook("DerivativesOfTape")(self).batch_jacobian(
            target, source, unconnected_gradients, experimental_use_pfor, chunk_size
        )

    def hessian(self, target: Any, sources: Any, flat: bool = True, chunk_size: int | None = None) -> Any:
        """All second derivatives of a scalar target; zeros for sources that it does not depend on.

        Cost: one gradient, and backward sweeps over stacks of together P cotangents, where the sources have P elements.

        Args:
            target: a scalar Tensor or Variable.
            sources: Tensor, Variable or nest of them.
            flat: True for one symmetric matrix (P, P), the sources raveled in turn; False for a list of lists of
                blocks of shape s_i.shape + s_j.shape.
            chunk_size: as in `jacobian`; None takes as many rows as a processor's cache holds, and at least P / 16.

        Raises:
            ShapeError: if the target is no scalar.

        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(x**3)
        >>> print(tape.hessian(y, x).numpy().tolist())
        [[6.0, 0.0], [0.0, 12.0]]
        """
        return hook("DerivativesOfTape")(self).hessian(target, sources, flat, chunk_size)

    def hvp(self, target: Any, sources: Any, vector: Any) -> Any:
        """The Hessian of a scalar target times a vector, at the cost of two backward sweeps.

        The vector is a nest like the sources, or flat, of shape (P,); the result has the same form.

        Raises:
            ShapeError: if the target is no scalar, or the vector does not fit.

        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(x**3)
        >>> print(tape.hvp(y, x, tf.constant([1.0, 0.0])).numpy())
        [6. 0.]
        """
        return hook("DerivativesOfTape")(self).hvp(target, sources, vector)

    def _check_connected(self, target: Any, leaves: Sequence[Any], found: Any, fill: UnconnectedGradients) -> None:
        """A strict tape refuses sources without a gradient, with the reasons, unless zeros were asked for."""
        missing = [leaf for leaf in leaves if leaf.key not in found] if self.strict else []
        if missing and fill is not UnconnectedGradients.ZERO:
            hook("Inquiry")(self, differentiable_leaves("target", target)).refuse(missing, len(leaves))

    def _use(self) -> None:
        """Check that the tape may be differentiated now; inside its own block a tape for one use stops recording."""
        if self.spent or not self._entered:
            raise TapeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians). "
                "Ask for all sources in one call, or use GradientTape(persistent=True)."
            )
        if not self._active:
            return
        if self.persistent:
            warn(1, INSIDE_OWN_BLOCK)
        else:
            self._pause()

    # Questions about the recording ------------------------------------------------------------------------------------

    @property
    def found_any(self) -> bool:
        """True if the last target depends on any of the sources that the tape was asked for."""
        return self.answer is not None and bool(self.answer[1])

    def explain(self, target: Any, sources: Any) -> Any:
        """The reason why a source has no gradient: an `Explanation`, true if it has one, else with `.reason`, `.op`, `.where`.

        Does not use up the tape. Runs the rules of derivatives once, those of custom gradients included, unless the tape is
        used up. Then it answers for the same target; a tape with `trace=True` answers for any.

        Args:
            target: Tensor, Variable or nest of them.
            sources: Tensor, Variable or nest of them; the result is a nest like it.

        Raises:
            TapeError: if an ordinary tape was used up by another target.

        >>> x = tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.explain(y, x).reason)
        not_watched
        """
        targets, leaves = differentiable_leaves("target", target), differentiable_leaves("source", sources)
        return nest.pack(sources, hook("Inquiry")(self, targets).explanations(leaves))

    def memory(self) -> int:
        """The bytes of the arrays that the Records hold, each buffer counted once, even if others hold it as well.

        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> tape.memory()
        16
        """
        return int(self.summary().bytes)

    def summary(self) -> Any:
        """The number of Records, the bytes that they hold and the watched Variables: a `TapeSummary`.

        >>> x = tf.Variable(3.0, name="x")
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.summary())
        3 records, 8 bytes, watching x:0
        """
        return hook("summary_of_tape")(self)

    def __str__(self) -> str:
        return "\n".join([f"GradientTape: {self.summary()}", *(f"  {record}" for record in self.tape.records)])


_alive: dict[int, weakref.ref[GradientTape]] = {}
"""The tapes that were entered, so that an explanation can name another one that watches a source. A loop's tapes have few
identities, one after another, so those that are gone need not be removed at once, which takes a microsecond a tape."""


def tapes_that_track(key: int) -> list[GradientTape]:
    """The tapes, whatever thread they belong to, that track a Tensor or Variable."""
    tapes = [reference() for reference in list(_alive.values())]
    return [tape for tape in tapes if tape is not None and key in tape.tape.tracked]
