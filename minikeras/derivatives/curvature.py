"""Second derivatives of a loss with respect to all variables of a model, in one call.

Each result comes flat, with the variables raveled in C order in turn, or as blocks. P is the number of parameters.
Source: Pearlmutter, Fast exact multiplication by the Hessian (1994); Schraudolph, Fast curvature matrix-vector products (2002).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core import ForwardAccumulator, GradientTape, Tensor, convert_to_tensor, draw_key, namespace, operations
from ..core.gradient_arguments import checked_chunk_size
from ..nn_ops import streams
from ..types import Array
from .first_order import jacobian, run_loss, scalar
from .flat import directions, listed, size_of, symmetric
from .hessian import RecordedGradient
from .output_curvature import OutputCurvature

LossFunction = Callable[[], Any]


class Estimate(NamedTuple):
    """A stochastic estimate and its standard error.

    >>> w = tf.Variable([1.0, 2.0])
    >>> trace = tf.autodiff.hessian_trace(lambda: tf.reduce_sum(w**2), [w], samples=4)
    >>> print(trace.value.numpy(), trace.standard_error.numpy())
    4.0 0.0
    """

    value: Any
    standard_error: Any


def hessian(
    loss_fn: LossFunction, variables: Any, flat: bool = True, chunk_size: int | None = None, strict: bool = False
) -> Any:
    """All second derivatives of a scalar loss, d2 loss / dw_i dw_j: a matrix that is symmetric to the last bit.

    Args:
        loss_fn: without arguments; returns a scalar.
        variables: list or nest of Variables, or a model or layer.
        flat: True for one symmetric matrix (P, P); False for a list of lists of blocks of shape v_i.shape + v_j.shape.
        chunk_size: rows carried at once; bounds memory to chunk_size times the intermediate results. None takes as many as a
            processor's cache holds, and at least P / 16; on a GPU all of a variable.
        strict: raise UnconnectedGradientError for a variable that the loss does not depend on, instead of giving zeros.

    Cost: one gradient, and backward sweeps over stacks of together P cotangents; P**2 numbers for the result. By symmetry the
    rows of a variable are swept back no further than to where the loss first read it, and the rest is transposed. Where a
    custom gradient is no derivative, that of the variable that was read first counts.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian(lambda: tf.reduce_sum(w ** 3), [w]).numpy().tolist())
    [[6.0, 0.0], [0.0, 12.0]]
    """
    chosen = listed(variables)
    tape, loss = run_loss(loss_fn, chosen, strict)
    return tape.hessian(loss, chosen, flat, chunk_size)


def block_hessian(loss_fn: LossFunction, layers: Any, chunk_size: int | None = None, strict: bool = False) -> list[Tensor]:
    """The diagonal blocks of the Hessian, one for each layer: the second derivatives within the layer.

    Args:
        loss_fn: without arguments; returns a scalar.
        layers: a list of layers or of lists of Variables; a model stands for its layers that have trainable variables.
        chunk_size, strict: as in `hessian`.

    Returns:
        For each layer a symmetric matrix (P_l, P_l). Cost: one gradient, and for each layer one backward sweep over a stack of
        P_l cotangents; the blocks between layers are never computed.

    Raises:
        ValueError: if an entry of the list has no trainable variables.

    >>> v, w = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    >>> blocks = tf.autodiff.block_hessian(lambda: w * tf.reduce_sum(v ** 3) + w**2, [[v], [w]])
    >>> [block.numpy().tolist() for block in blocks]
    [[[18.0, 0.0], [0.0, 36.0]], [[2.0]]]
    """
    parts = [part for part in layers.layers if listed(part)] if hasattr(layers, "layers") else list(layers)
    groups = [listed(part) for part in parts]
    if not all(groups):
        empty = [getattr(part, "name", "an empty list") for part, group in zip(parts, groups, strict=True) if not group]
        raise ValueError(f"block_hessian: no trainable variables in {', '.join(empty)}; leave out what has none.")
    chunk_size = checked_chunk_size(chunk_size)
    chosen = [variable for group in groups for variable in group]
    gradient = RecordedGradient(*run_loss(loss_fn, chosen, strict), chosen)
    places = iter(range(len(chosen)))
    return [gradient.matrix(list(itertools.islice(places, len(group))), chunk_size) for group in groups]


def hvp(loss_fn: LossFunction, variables: Any, vector: Any, strict: bool = False) -> Any:
    """The Hessian times a vector, without the Hessian: the gradient of the slope along the vector, reverse over forward.

    Args:
        loss_fn: without arguments; returns a scalar.
        variables, strict: as in `hessian`.
        vector: flat, of shape (P,), or a nest like the variables; the result has the same form.

    Cost: two to three gradients in time and memory. Kernels of the first layer take three products, two in a gradient.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hvp(lambda: tf.reduce_sum(w ** 3), [w], tf.constant([1.0, 1.0])).numpy())
    [ 6. 12.]
    """
    chosen = listed(variables)
    parts, like = directions(vector, chosen, variables)
    with GradientTape(persistent=strict, watch_accessed_variables=False, strict=strict) as tape:
        tape.watch(chosen)
        with ForwardAccumulator(chosen, parts) as accumulator:
            loss = scalar(loss_fn())
        slope = accumulator.jvp(loss, "zero")
    if strict:
        tape.gradient(loss, chosen)  # raises for variables on which the loss does not depend; its slope may not either
    return like([convert_to_tensor(part) for part in tape.gradient(slope, chosen, unconnected_gradients="zero")])


def gauss_newton(
    output_fn: Callable[[], Any],
    loss_of_output: Callable[[Any], Any],
    variables: Any,
    chunk_size: int | None = None,
    strict: bool = False,
) -> Tensor:
    """The generalized Gauss-Newton matrix J^T H J: J of the outputs, H the Hessian of the loss in the outputs.

    Symmetric, and positive semi-definite for a loss that is convex in the outputs.

    Args:
        output_fn: without arguments; returns the model's outputs z.
        loss_of_output: from z to a scalar.
        variables, chunk_size, strict: as in `hessian`, for what the outputs depend on.

    Returns:
        Shape (P, P). Cost: a Jacobian of n outputs and n P**2 multiplications; and a Hessian of n x n, which is made of a small
        block for each row where the rows of the outputs do not meet in the loss.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.gauss_newton(lambda: 3.0 * w, lambda z: tf.reduce_sum(z ** 2), [w]).numpy().tolist())
    [[18.0, 0.0], [0.0, 18.0]]
    """
    chosen = listed(variables)
    return OutputCurvature.run(output_fn, loss_of_output, chosen, strict=strict).matrix(None, checked_chunk_size(chunk_size))


def ggnvp(
    output_fn: Callable[[], Any], loss_of_output: Callable[[Any], Any], variables: Any, vector: Any, strict: bool = False
) -> Any:
    """The generalized Gauss-Newton matrix times a vector, J^T (H (J v)), without any of the three matrices.

    Args:
        output_fn, loss_of_output, variables, strict: as in `gauss_newton`.
        vector: flat, of shape (P,), or a nest like the variables; the result has the same form.

    Cost: one evaluation, three backward sweeps, and a Hessian-vector product of the loss in the outputs.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.ggnvp(lambda: 3.0 * w, lambda z: tf.reduce_sum(z ** 2), [w], tf.constant([1.0, 0.0])).numpy())
    [18.  0.]
    """
    chosen = listed(variables)
    parts, like = directions(vector, chosen, variables)
    return like(OutputCurvature.run(output_fn, loss_of_output, chosen, strict=strict).product(parts))


def fisher(log_likelihood_fn: Callable[[], Any], variables: Any, chunk_size: int | None = None, strict: bool = False) -> Tensor:
    """The empirical Fisher matrix: the mean over rows of g g^T, with g the gradient of a row's log-likelihood.

    Args:
        log_likelihood_fn: without arguments; returns one value for each row, shape (n,).
        variables, chunk_size, strict: as in `jacobian`.

    Returns:
        Shape (P, P). Cost: a Jacobian of n rows and n P**2 multiplications.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.fisher(lambda: tf.constant([[1.0, 0.0], [0.0, 2.0]]) @ w[:, None], [w]).numpy().tolist())
    [[0.5, 0.0], [0.0, 2.0]]
    """
    rows = jacobian(log_likelihood_fn, variables, chunk_size, strict)
    flat = operations.reshape(rows, shape=(size_of(rows) // max(rows.shape[-1], 1), rows.shape[-1]), rank=len(rows.shape))
    return symmetric(operations.transpose(flat, perm=(-1, -2)) @ flat) * (1.0 / max(flat.shape[0], 1))


def random_signs(key: Any, like: Array) -> Any:
    """A random vector of +1 and -1 for a key: a mask of 0 and 2, less 1."""
    return operations.dropout_mask(key, shape=(like.size,), dtype=like.dtype, xp=namespace(like), rate=0.5) - 1.0


def _probed(loss_fn: LossFunction, chosen: Sequence[Any], samples: int, seed: int | None, strict: bool) -> Tensor:
    """v * (H v) for random v, shape (samples, P). One recorded gradient serves all: reverse over reverse."""
    if samples < 1:
        raise ValueError(f"samples: at least one is needed, found {samples}.")
    gradient = RecordedGradient(*run_loss(loss_fn, chosen, strict), chosen)
    stream = streams.global_stream() if seed is None else streams.Stream(seed)
    probes = [random_signs(draw_key(stream.key), gradient.flat.array) for _ in range(samples)]
    return operations.stack([probe * gradient.flat_product(probe) for probe in probes])


def _mean_and_error(values: Tensor) -> Estimate:
    """Mean over the first axis, and its standard error (NaN for a single sample)."""
    count, first = values.shape[0], (-len(values.shape),)
    mean = operations.reduce_mean(values, axes=first, keepdims=False)
    if count < 2:
        return Estimate(mean, mean * float("nan"))
    squares = operations.reduce_sum((values - mean) ** 2, axes=first, keepdims=False)
    return Estimate(mean, operations.sqrt(squares * (1.0 / (count * (count - 1)))))


def hessian_diag(
    loss_fn: LossFunction,
    variables: Any,
    samples: int | None = None,
    seed: int | None = None,
    chunk_size: int | None = None,
    strict: bool = False,
) -> Any:
    """The diagonal of the Hessian, shape (P,): exact, or estimated from `samples` Hessian-vector products.

    Args:
        loss_fn, variables, chunk_size, strict: as in `hessian`.
        samples: None for the exact diagonal (the cost of the Hessian); a number for Hutchinson's estimate, which returns an
            `Estimate` with its standard error.
        seed: repeats an estimate.

    Source: Bekas, Kokiopoulou and Saad, An estimator for the diagonal of a matrix (2007), equation (2).

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian_diag(lambda: tf.reduce_sum(w ** 3), [w]).numpy())
    [ 6. 12.]
    """
    chosen = listed(variables)
    if samples is None:
        return operations.einsum(hessian(loss_fn, chosen, chunk_size=chunk_size, strict=strict), terms=("ii",), result="i")
    return _mean_and_error(_probed(loss_fn, chosen, samples, seed, strict))


def hessian_trace(
    loss_fn: LossFunction,
    variables: Any,
    samples: int | None = None,
    seed: int | None = None,
    chunk_size: int | None = None,
    strict: bool = False,
) -> Any:
    """The trace of the Hessian: exact, or estimated from `samples` Hessian-vector products. Arguments as in `hessian_diag`.

    Source: Hutchinson, A stochastic estimator of the trace of the influence matrix (1990), section 2.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian_trace(lambda: tf.reduce_sum(w ** 3), [w]).numpy())
    18.0
    """
    if samples is None:
        diagonal = hessian_diag(loss_fn, variables, chunk_size=chunk_size, strict=strict)
        return operations.reduce_sum(diagonal, axes=(-1,), keepdims=False)
    found = _probed(loss_fn, listed(variables), samples, seed, strict)
    return _mean_and_error(operations.reduce_sum(found, axes=(-1,), keepdims=False))
