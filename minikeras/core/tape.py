"""GradientTape: an interpreter that watches, keeps Records, and sweeps back over them.

Key idea: a tape holds nothing but the keys of what it watches and the list of Records that depend on them. Nesting,
persistence and the order of tapes follow from the stack in `dispatch.py`. The sweep is in `backward.py`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..arrays import namespace
from ..errors import TapeError
from .backward import sweep
from .dispatch import BOTTOM, Frame, Primitive, Record, current, switch
from .inspection import Inspectable
from .jacobians import looped, row_seeds, unit_seeds
from .jacobians import rows as jacobian_rows
from .notices import logger, warn
from .questions import (
    INSIDE_OWN_BLOCK,
    UnconnectedGradients,
    absent_jacobian,
    common_batch,
    differentiable_leaves,
    finished,
    one_target,
    seeds_of,
    unconnected_choice,
    watchable_leaves,
)
from .registry import operations
from .tensor import Tensor, next_key
from .trace import Trace
from .variable import Variable, read_variable

__all__ = ["GradientTape", "UnconnectedGradients", "logger"]


class NeverEnteredError(TapeError, AttributeError):
    """A tape was asked to watch before its `with` block; an AttributeError too, as in TensorFlow."""


class GradientTape(Inspectable):
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

    >>> import minikeras as tf
    >>> x = tf.Variable(3.0)
    >>> with tf.GradientTape() as tape:
    ...     y = x * x
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    __slots__ = (
        *("__weakref__", "_accessed", "_active", "_answer", "_entered", "_moments", "_persistent", "_records"),
        *("_spent", "_strict", "_trace", "_tracked", "_was_reset", "_watch_accessed", "_watched_at"),
    )

    def __init__(
        self, persistent: bool = False, watch_accessed_variables: bool = True, strict: bool = False, trace: bool = False
    ) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._strict = strict
        self._trace = Trace() if strict or trace else None
        self._entered = self._active = False
        self._forget()

    # Recording ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._active:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an already-active tape. "
                "Use a second tape, or leave the block first."
            )
        self._entered = True
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
                if smooth:
                    self._records.append(Record(primitive, inputs, params, outputs))
                    tracked.update(smooth)
                return

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

    # Differentiating ---------------------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of the sum of all elements of `target`, for each source.

        In terms of a vector v, the seeds: v^T J, with J the Jacobian of the targets; v is ones by default.

        Args:
            target: Tensor, Variable or nest of them.
            sources: Tensor, Variable or nest of them; intermediate results as well.
            output_gradients: seeds, one for each target and of its shape.
            unconnected_gradients: 'none' gives None, 'zero' zeros, for a source the target does not depend on.

        Returns:
            A nest like `sources`; each Tensor has its source's shape and dtype.

        Raises:
            TapeError: at the second call on a tape that is not persistent.
            LookupError: if an operation on the way has no gradient; the tape stays usable for another target.
            TypeError: if a target or source is no Tensor or Variable.

        >>> import minikeras as tf
        >>> w, b = tf.Variable(2.0), tf.Variable(1.0)
        >>> with tf.GradientTape() as tape:
        ...     loss = (3.0 * w + b) ** 2
        >>> [float(g) for g in tape.gradient(loss, [w, b])]
        [42.0, 14.0]
        """
        fill = unconnected_choice(unconnected_gradients)
        targets, leaves = differentiable_leaves("target", target), differentiable_leaves("source", sources)
        self._use()
        bare = current() is BOTTOM
        keys = [leaf.key for leaf in leaves]
        cotangents = seeds_of(target, targets, output_gradients, keys, bare)
        with np.errstate(all="ignore"):
            # An operand that nobody watches may stand in a Record beside one that is watched; it gets no gradient.
            known = [key for key in keys if key in self._tracked or key in cotangents]
            try:
                found = sweep(self._records, cotangents, known, bare)
            except LookupError as error:
                self._note_line(error)
                raise
        self._answer = {leaf.key for leaf in targets}, set(found)
        self._use_up()
        if self._strict:
            self._refuse_unconnected(target, leaves, [leaf.key not in found for leaf in leaves], fill)
        return nest.pack(sources, [finished(found.get(leaf.key), leaf, fill, bare) for leaf in leaves])

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        chunk_size: int | None = None,
    ) -> Any:
        """The derivative of every element of `target`, for each source.

        Args:
            target: one Tensor or Variable.
            sources: Tensor, Variable or nest of them.
            unconnected_gradients: as in `gradient`.
            parallel_iterations: accepted for compatibility, ignored.
            experimental_use_pfor: False sweeps back once for each element instead of once over all; needs a persistent tape.
            chunk_size: carry at most so many elements of the target at once, to bound memory: chunk_size times the size of the
                largest intermediate result.

        Returns:
            A nest like `sources` of Tensors of shape target.shape + source.shape.

        Raises:
            TypeError: if the target is no Tensor or Variable.
            TapeError: as in `gradient`.

        >>> import minikeras as tf
        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy().tolist())
        [[2.0, 0.0], [0.0, 4.0]]
        """
        fill = unconnected_choice(unconnected_gradients)
        leaves = one_target("jacobian", target, sources)
        found = self._rows(target, leaves, unit_seeds, experimental_use_pfor, chunk_size)
        if self._strict:
            self._refuse_unconnected(target, leaves, [leaf.key not in found for leaf in leaves], fill)
        results = []
        for leaf in leaves:
            whole = (*target.shape, *leaf.shape)
            if leaf.key in found:
                rows = found[leaf.key]
                results.append(operations.reshape(rows, shape=whole, rank=len(rows.shape)))
            else:
                results.append(absent_jacobian(whole, leaf, fill))
        return nest.pack(sources, results)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
        chunk_size: int | None = None,
    ) -> Any:
        """The derivative of each row of `target` with respect to the row of `source` at the same place.

        Each row of the target is taken to depend on its own row of the source only; what it gets from others is added in.

        Args:
            target: shape (batch, ...).
            source: shape (batch, ...).
            unconnected_gradients: accepted for compatibility; an unconnected source gives zeros.
            parallel_iterations, experimental_use_pfor, chunk_size: as in `jacobian`.

        Returns:
            A Tensor of shape (batch, *target.shape[1:], *source.shape[1:]).

        Raises:
            ValueError: if the first axes differ or are missing.

        >>> import minikeras as tf
        >>> x = tf.constant([[1.0], [3.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().ravel())
        [2. 6.]
        """
        fill = unconnected_choice(unconnected_gradients)
        (leaf,) = one_target("batch_jacobian", target, source, single=True)
        batch = common_batch(target, leaf)
        found = self._rows(target, [leaf], row_seeds, experimental_use_pfor, chunk_size)
        if self._strict:
            self._refuse_unconnected(target, [leaf], [leaf.key not in found], fill)
        whole = (*target.shape, *leaf.shape[1:])
        if leaf.key not in found:
            return operations.zeros_like(Tensor(namespace(leaf._array).zeros(whole, dtype=leaf._array.dtype)))
        rows = found[leaf.key]
        columns = operations.reshape(rows, shape=(rows.shape[0], batch, -1 if rows._array.size else 0), rank=len(rows.shape))
        turned = operations.transpose(columns, perm=(-2, -3, -1))
        return operations.reshape(turned, shape=whole, rank=3)

    def _rows(self, target: Any, leaves: Sequence[Any], seeds: Any, vectorized: bool, chunk_size: int | None) -> dict[int, Any]:
        """The gradients for a stack of seeds, by key of the source; uses the tape up."""
        if not vectorized and not self._persistent:
            raise TapeError(
                "GradientTape must be created with persistent=True to compute the jacobian with eager execution enabled and "
                "with  experimental_use_pfor set to False."
            )
        self._use()
        records = self._records
        self._use_up()
        found: dict[int, Any] = {}
        if target.dtype.is_differentiable:
            carry = functools.partial(jacobian_rows, chunk_size=chunk_size) if vectorized else looped
            with np.errstate(all="ignore"):
                known = [leaf.key for leaf in leaves if leaf.key in self._tracked or leaf.key == target.key]
                found = carry(records, target, known, seeds(target))
        self._answer = {target.key}, set(found)
        return found

    def _use(self) -> None:
        """Check that the tape may be differentiated now; inside its own block a tape for one use stops recording."""
        if self._spent or not self._entered:
            raise TapeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians). "
                "Ask for all sources in one call, or use GradientTape(persistent=True)."
            )
        if not self._active:
            return
        if self._persistent:
            warn(1, INSIDE_OWN_BLOCK)
        else:
            self._pause()
