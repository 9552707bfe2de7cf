"""Derivatives of a loss with respect to all variables of a model, in one call.

Key idea: a loss is a function without arguments. It is run once, however many derivatives are taken of that run, so a layer's
state moves once and a random mask is the same in all of them. Each result comes flat, with the variables raveled in C order
one after the other, or as blocks for each (pair of) variables. P is the number of parameters.
Source: Pearlmutter, Fast exact multiplication by the Hessian (1994); Schraudolph, Fast curvature matrix-vector products (2002).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import nest
from ..arrays import namespace, to_device
from ..arrays import random as streams
from ..errors import ShapeError
from .convert import convert_to_tensor
from .forward import ForwardAccumulator
from .registry import operations
from .tape import GradientTape
from .tensor import Tensor
from .variable import Variable

LossFunction = Callable[[], Any]


class Estimate(NamedTuple):
    """A stochastic estimate and its standard error."""

    value: Any
    standard_error: Any


def _listed(variables: Any) -> list[Variable]:
    """The variables of a list, a nest, or of anything with `trainable_variables`."""
    return list(variables.trainable_variables) if hasattr(variables, "trainable_variables") else nest.flatten(variables)


def _size(value: Any) -> int:
    return math.prod(value.shape)


def flatten(values: Sequence[Any]) -> Tensor:
    """Tensors raveled and joined into one vector."""
    parts = [operations.reshape(convert_to_tensor(value), shape=(_size(value),), rank=len(value.shape)) for value in values]
    return operations.concat(*parts, axis=-1) if len(parts) > 1 else parts[0]


def unflatten(vector: Any, variables: Sequence[Any]) -> list[Tensor]:
    """The parts of a vector, shaped like the variables."""
    whole = convert_to_tensor(vector)
    if tuple(whole.shape) != (sum(map(_size, variables)),):
        raise ShapeError(f"a flat vector needs {sum(map(_size, variables))} elements here, found shape {whole.shape}.")
    parts, start = [], 0
    for variable in variables:
        stop = start + _size(variable)
        parts.append(operations.reshape(whole[start:stop], shape=tuple(variable.shape), rank=1))
        start = stop
    return parts


def _gradients(loss_fn: LossFunction, variables: Sequence[Variable]) -> list[Tensor]:
    """The gradient of a scalar loss, zeros where it does not depend on a variable."""
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(list(variables))
        loss = loss_fn()
        if loss.shape != ():
            raise ShapeError(f"loss_fn must return a scalar, found shape {loss.shape}; use tf.reduce_mean or tf.reduce_sum.")
    return tape.gradient(loss, list(variables), unconnected_gradients="zero")


def _matrix(rows: Sequence[Any], count: int) -> Tensor:
    """Jacobian blocks (count, *shape) side by side as a matrix (count, P)."""
    return operations.concat(
        *[operations.reshape(row, shape=(count, -1 if _size(row) else 0), rank=len(row.shape)) for row in rows], axis=-1
    )


def _symmetric(matrix: Tensor) -> Tensor:
    """(A + A^T) / 2."""
    turned = operations.transpose(matrix, perm=(-1, -2))
    return (matrix + turned) * 0.5


def jacobian(function: Callable[[], Any], variables: Any, chunk_size: int | None = None) -> Tensor:
    """The Jacobian of a function's result with respect to all variables: shape (*result.shape, P).

    Args:
        function: without arguments; returns one tensor.
        variables: list or nest of Variables, or a model or layer.
        chunk_size: rows carried at once.

    Cost: one evaluation and one backward sweep over a stack of as many cotangents as the result has elements.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.jacobian(lambda: w * w, [w]).numpy().tolist())
    [[2.0, 0.0], [0.0, 4.0]]
    """
    return _evaluated(function, _listed(variables), chunk_size)[1]


def _evaluated(function: Callable[[], Any], chosen: Sequence[Variable], chunk_size: int | None) -> tuple[Tensor, Tensor]:
    """The function's result and its Jacobian, from one run."""
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(list(chosen))
        result = convert_to_tensor(function())
    count = _size(result)
    blocks = tape.jacobian(result, list(chosen), unconnected_gradients="zero", chunk_size=chunk_size)
    flat = [
        operations.reshape(block, shape=(count, *variable.shape), rank=len(block.shape))
        for block, variable in zip(blocks, chosen, strict=True)
    ]
    return result, operations.reshape(_matrix(flat, count), shape=(*result.shape, sum(map(_size, chosen))), rank=2)


def hessian(loss_fn: LossFunction, variables: Any, flat: bool = True, chunk_size: int | None = None) -> Any:
    """All second derivatives of a scalar loss.

    Args:
        loss_fn: without arguments; returns a scalar.
        variables: list or nest of Variables, or a model or layer.
        flat: True for one symmetric matrix (P, P); False for a list of lists of blocks of shape v_i.shape + v_j.shape.
        chunk_size: rows carried at once; bounds memory to chunk_size times the intermediate results.

    Cost: one gradient, and one backward sweep over a stack of P cotangents; P**2 numbers for the result.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian(lambda: tf.reduce_sum(w ** 3), [w]).numpy().tolist())
    [[6.0, 0.0], [0.0, 12.0]]
    """
    chosen = _listed(variables)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(chosen)
        gradient = flatten(_gradients(loss_fn, chosen))
    blocks = tape.jacobian(gradient, chosen, unconnected_gradients="zero", chunk_size=chunk_size)
    matrix = _symmetric(_matrix(blocks, gradient.shape[0]))
    return matrix if flat else split_blocks(matrix, chosen)


def split_blocks(matrix: Tensor, variables: Sequence[Any]) -> list[list[Tensor]]:
    """A matrix (P, P) as blocks of shape v_i.shape + v_j.shape."""
    stops = np.cumsum([_size(variable) for variable in variables]).tolist()
    bounds = [slice(stop - _size(variable), stop) for stop, variable in zip(stops, variables, strict=True)]
    return [
        [
            operations.reshape(matrix[rows, columns], shape=(*first.shape, *second.shape), rank=2)
            for columns, second in zip(bounds, variables, strict=True)
        ]
        for rows, first in zip(bounds, variables, strict=True)
    ]


def hvp(loss_fn: LossFunction, variables: Any, vector: Any) -> Any:
    """The Hessian times a vector, without the Hessian: forward over reverse.

    Args:
        loss_fn: without arguments; returns a scalar.
        variables: list or nest of Variables, or a model or layer.
        vector: flat, of shape (P,), or a nest like the variables; the result has the same form.

    Cost: about two gradients in time and memory.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hvp(lambda: tf.reduce_sum(w ** 3), [w], tf.constant([1.0, 1.0])).numpy())
    [ 6. 12.]
    """
    chosen = _listed(variables)
    single = not nest.is_nested(vector) and (
        len(chosen) > 1 or nest.is_nested(variables) or hasattr(variables, "trainable_variables")
    )
    tangents = unflatten(vector, chosen) if single else nest.flatten(vector)
    with ForwardAccumulator(chosen, tangents) as accumulator:
        gradient = _gradients(loss_fn, chosen)
    products = accumulator.jvp(gradient, "zero")
    return flatten(products) if single else nest.pack(vector, list(products))


def gauss_newton(
    output_fn: Callable[[], Any], loss_of_output: Callable[[Any], Any], variables: Any, chunk_size: int | None = None
) -> Tensor:
    """The generalized Gauss-Newton matrix J^T H J: J of the outputs, H the Hessian of the loss in the outputs.

    Symmetric, and positive semi-definite for a loss that is convex in the outputs.

    Args:
        output_fn: without arguments; returns the model's outputs z.
        loss_of_output: from z to a scalar.
        variables: list or nest of Variables, or a model or layer.
        chunk_size: rows carried at once.

    Returns:
        Shape (P, P). Cost: a Jacobian of n outputs, a Hessian of n x n, and 2 n**2 P + n P**2 multiplications.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.gauss_newton(lambda: 3.0 * w, lambda z: tf.reduce_sum(z ** 2), [w]).numpy().tolist())
    [[18.0, 0.0], [0.0, 18.0]]
    """
    chosen = _listed(variables)
    outputs, outer = _evaluated(output_fn, chosen, chunk_size)
    parameters = outer.shape[-1]
    rows = operations.reshape(outer, shape=(_size(outer) // max(parameters, 1), parameters), rank=len(outer.shape))
    inner = hessian(lambda: loss_of_output(outputs), [outputs], chunk_size=chunk_size)
    return _symmetric(operations.transpose(rows, perm=(-1, -2)) @ (inner @ rows))


def fisher(log_likelihood_fn: Callable[[], Any], variables: Any, chunk_size: int | None = None) -> Tensor:
    """The empirical Fisher matrix: the mean over rows of g g^T, with g the gradient of a row's log-likelihood.

    Args:
        log_likelihood_fn: without arguments; returns one value for each row, shape (n,).
        variables: list or nest of Variables, or a model or layer.
        chunk_size: rows carried at once.

    Returns:
        Shape (P, P). Cost: a Jacobian of n rows and n P**2 multiplications.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.fisher(lambda: tf.constant([[1.0, 0.0], [0.0, 2.0]]) @ w[:, None], [w]).numpy().tolist())
    [[0.5, 0.0], [0.0, 2.0]]
    """
    rows = jacobian(log_likelihood_fn, variables, chunk_size)
    flat = operations.reshape(rows, shape=(_size(rows) // max(rows.shape[-1], 1), rows.shape[-1]), rank=len(rows.shape))
    return _symmetric(operations.transpose(flat, perm=(-1, -2)) @ flat) * (1.0 / max(flat.shape[0], 1))


def _probes(like: Sequence[Variable], samples: int, seed: int | None) -> list[Tensor]:
    """Random vectors of +1 and -1."""
    stream = streams.global_stream() if seed is None else streams.Stream(seed)
    dtype = like[0].dtype.numpy
    length = sum(map(_size, like))
    return [
        Tensor(to_device(stream.generator().integers(0, 2, length).astype(dtype) * 2 - 1, namespace(like[0]._array)))
        for _ in range(samples)
    ]


def _probed(loss_fn: LossFunction, chosen: Sequence[Variable], samples: int, seed: int | None) -> Tensor:
    """v * (H v) for random v, shape (samples, P). One recorded gradient serves all: reverse over reverse."""
    if samples < 1:
        raise ValueError(f"samples: at least one is needed, found {samples}.")
    with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
        tape.watch(list(chosen))
        gradient = flatten(_gradients(loss_fn, chosen))
    products = [
        probe * flatten(tape.gradient(gradient, list(chosen), probe, unconnected_gradients="zero"))
        for probe in _probes(chosen, samples, seed)
    ]
    return operations.stack(products)


def _mean_and_error(values: Tensor) -> Estimate:
    """Mean over the first axis, and its standard error (NaN for a single sample)."""
    count = values.shape[0]
    mean = operations.reduce_mean(values, axes=(-len(values.shape),), keepdims=False)
    if count < 2:
        return Estimate(mean, mean * float("nan"))
    squares = operations.reduce_sum((values - mean) ** 2, axes=(-len(values.shape),), keepdims=False)
    return Estimate(mean, operations.sqrt(squares * (1.0 / (count * (count - 1)))))


def hessian_diag(
    loss_fn: LossFunction, variables: Any, samples: int | None = None, seed: int | None = None, chunk_size: int | None = None
) -> Any:
    """The diagonal of the Hessian, shape (P,): exact, or estimated from `samples` Hessian-vector products.

    Args:
        loss_fn: without arguments; returns a scalar.
        variables: list or nest of Variables, or a model or layer.
        samples: None for the exact diagonal (the cost of the Hessian); a number for Hutchinson's estimate, which returns an
            `Estimate` with its standard error.
        seed: repeats an estimate.
        chunk_size: rows carried at once.

    Source: Bekas, Kokiopoulou and Saad, An estimator for the diagonal of a matrix (2007), equation (2).

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian_diag(lambda: tf.reduce_sum(w ** 3), [w]).numpy())
    [ 6. 12.]
    """
    chosen = _listed(variables)
    if samples is None:
        return operations.einsum(hessian(loss_fn, chosen, chunk_size=chunk_size), terms=("ii",), result="i")
    return _mean_and_error(_probed(loss_fn, chosen, samples, seed))


def hessian_trace(
    loss_fn: LossFunction, variables: Any, samples: int | None = None, seed: int | None = None, chunk_size: int | None = None
) -> Any:
    """The trace of the Hessian: exact, or estimated from `samples` Hessian-vector products. Arguments as in `hessian_diag`.

    Source: Hutchinson, A stochastic estimator of the trace of the influence matrix (1990), section 2.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.hessian_trace(lambda: tf.reduce_sum(w ** 3), [w]).numpy())
    18.0
    """
    chosen = _listed(variables)
    if samples is None:
        return operations.reduce_sum(hessian_diag(loss_fn, chosen, chunk_size=chunk_size), axes=(-1,), keepdims=False)
    return _mean_and_error(operations.reduce_sum(_probed(loss_fn, chosen, samples, seed), axes=(-1,), keepdims=False))


def per_example_gradients(loss_fn: Callable[..., Any], variables: Any, *examples: Any) -> list[Tensor]:
    """The gradient of each row's loss: for each variable a Tensor of shape (n, *variable.shape), equal to a loop over rows.

    Args:
        loss_fn: from one row of each of `examples` to a scalar.
        variables: list or nest of Variables, or a model or layer.
        examples: tensors with one first axis of size n.

    Cost: one forward and one backward pass over the stack of rows.

    >>> import minikeras as tf
    >>> w = tf.Variable([1.0, 2.0])
    >>> rows = tf.constant([[1.0, 0.0], [0.0, 3.0]])
    >>> print(tf.autodiff.per_example_gradients(lambda row: tf.reduce_sum(row * w), [w], rows)[0].numpy().tolist())
    [[1.0, 0.0], [0.0, 3.0]]
    """
    from .batch import Batch, Stack

    chosen = _listed(variables)
    tensors = [convert_to_tensor(example) for example in examples]
    batch = Batch(tensors[0].shape[0])
    with batch.on_top():
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(chosen)
            loss = loss_fn(*[Stack(tensor, batch) for tensor in tensors])
        found = tape.gradient(loss, chosen, unconnected_gradients="zero")
    return [batch.stack_of(gradient) for gradient in found]
