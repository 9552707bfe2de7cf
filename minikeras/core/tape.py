"""GradientTape: records what happens in its block, and sweeps back over the Records.

Key idea: every derivative is the same sweep with other seeds: ones for a gradient, the rows of the identity matrix for a
Jacobian. A second derivative is the sweep once more, over Records that the first sweep has left. Recording is in
`recording.py`, the sweep in `backward.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import nest
from ..arrays import namespace
from ..errors import ShapeError, TapeError
from .backward import sweep
from .convert import convert_to_tensor
from .dispatch import BOTTOM, current
from .flat import directions, flatten, matrix_of, split_blocks, symmetric
from .jacobians import looped, row_seeds, unit_seeds
from .jacobians import rows as jacobian_rows
from .notices import warn
from .questions import (
    INSIDE_OWN_BLOCK,
    UnconnectedGradients,
    absent_jacobian,
    checked_chunk_size,
    common_batch,
    differentiable_leaves,
    finished,
    one_target,
    seeds_of,
    unconnected_choice,
)
from .recording import Recording
from .registry import operations
from .tensor import Tensor

__all__ = ["GradientTape", "UnconnectedGradients"]


class GradientTape(Recording):
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

    __slots__ = ()

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
            A nest like `sources`; each Tensor has its source's shape and dtype. For a source that was only looked up in, by
            `tf.gather` along its first axis, a `tf.IndexedSlices`, unless the sweep itself is recorded.

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
        bare = current() is BOTTOM and not self._lifted
        keys = [leaf.key for leaf in leaves]
        cotangents = seeds_of(target, targets, output_gradients, keys, bare, self._tracked)
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
                largest intermediate result. At least 1.

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
        fill, chunk_size = unconnected_choice(unconnected_gradients), checked_chunk_size(chunk_size)
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
        fill, chunk_size = unconnected_choice(unconnected_gradients), checked_chunk_size(chunk_size)
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

    def hessian(self, target: Any, sources: Any, flat: bool = True, chunk_size: int | None = None) -> Any:
        """All second derivatives of a scalar target: `jacobian` of the gradient, with the order of the two left to the tape.

        Args:
            target: a scalar Tensor or Variable.
            sources: Tensor, Variable or nest of them; P elements together.
            flat: True for one symmetric matrix (P, P), the sources raveled one after the other; False for a list of lists of
                blocks of shape s_i.shape + s_j.shape.
            chunk_size: as in `jacobian`.

        Cost: one gradient, and one backward sweep over a stack of P cotangents. Needs a tape for one use, or a persistent one.
        Sources that the target does not depend on have zeros; a strict tape raises.

        Raises:
            ShapeError: if the target is no scalar.
            TapeError: as in `gradient`.

        >>> import minikeras as tf
        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(x**3)
        >>> print(tape.hessian(y, x).numpy().tolist())
        [[6.0, 0.0], [0.0, 12.0]]
        """
        chunk_size = checked_chunk_size(chunk_size)
        leaves = self._of_scalar("hessian", target, sources)
        second, gradients = self.with_gradient(target, leaves)
        with second:
            gradient = flatten(gradients)
        matrix = second.curvature(gradient, leaves, chunk_size)
        return matrix if flat else split_blocks(matrix, leaves)

    def hvp(self, target: Any, sources: Any, vector: Any) -> Any:
        """The Hessian of a scalar target times a vector, without the Hessian: reverse over reverse.

        Args:
            target: a scalar Tensor or Variable.
            sources: Tensor, Variable or nest of them; P elements together.
            vector: a nest like the sources, or flat, of shape (P,); the result has the same form.

        Cost: two backward sweeps, the second over the Records of the first.

        Raises:
            ShapeError: if the target is no scalar, or the vector does not fit.
            TapeError: as in `gradient`.

        >>> import minikeras as tf
        >>> x = tf.Variable([1.0, 2.0])
        >>> with tf.GradientTape() as tape:
        ...     y = tf.reduce_sum(x**3)
        >>> print(tape.hvp(y, x, tf.constant([1.0, 0.0])).numpy())
        [6. 0.]
        """
        leaves = self._of_scalar("hvp", target, sources)
        parts, like = directions(vector, leaves, sources)
        second, gradients = self.with_gradient(target, leaves)
        return like([convert_to_tensor(g) for g in second.gradient(gradients, leaves, parts, "zero")])

    def _of_scalar(self, name: str, target: Any, sources: Any) -> list[Any]:
        """The leaves of the sources of a scalar target."""
        leaves = one_target(name, target, sources)
        if tuple(target.shape) != ():
            raise ShapeError(
                f"{name}: the target has shape {target.shape}; second derivatives are those of one number. Use tf.reduce_sum "
                "or tf.reduce_mean, or jacobian() of a gradient()."
            )
        return leaves

    def with_gradient(self, target: Any, leaves: Sequence[Any]) -> tuple[GradientTape, list[Tensor]]:
        """The gradients, zeros where unconnected, and a persistent tape that holds these Records and those of the sweep."""
        second = GradientTape(persistent=True, watch_accessed_variables=False)
        with second:
            second._records, second._tracked = list(self._records), set(self._tracked)
            # A strict tape raises for what is unconnected, any other one takes it for zero.
            return second, self.gradient(target, list(leaves), None, "none" if self._strict else "zero")

    def curvature(self, gradient: Any, leaves: Sequence[Any], chunk_size: int | None) -> Tensor:
        """The symmetric matrix of the derivatives of a flat gradient."""
        blocks = self.jacobian(gradient, list(leaves), unconnected_gradients="zero", chunk_size=chunk_size)
        return symmetric(matrix_of(blocks, gradient.shape[0]))

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
