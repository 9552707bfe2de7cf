"""First derivatives with respect to all variables of a model, in one call.

A function without arguments is run once, however many derivatives are taken of that run, so a layer's state moves once and a
random mask is the same in all of them. Rows of matrices are flat over all variables. P is the number of parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import nest
from ..core import Batch, BatchedTensor, ForwardAccumulator, GradientTape, Tensor, convert_to_tensor, operations
from ..errors import ShapeError
from .flat import directions, listed, matrix_of, size_of


def run_once(function: Callable[[], Any], chosen: Sequence[Any], strict: bool = False) -> tuple[GradientTape, Tensor]:
    """A tape that recorded the function and watches nothing but the chosen variables, and the result."""
    with GradientTape(watch_accessed_variables=False, strict=strict) as tape:
        tape.watch(list(chosen))
        result = convert_to_tensor(function())
    return tape, result


def run_loss(loss_fn: Callable[[], Any], chosen: Sequence[Any], strict: bool = False) -> tuple[GradientTape, Tensor]:
    """A tape that recorded the loss, and the loss, which has to be a scalar."""
    tape, loss = run_once(loss_fn, chosen, strict)
    return tape, scalar(loss)


def scalar(loss: Any) -> Tensor:
    """The result of a loss function, as a Tensor without axes."""
    loss = convert_to_tensor(loss)
    if tuple(loss.shape) != ():
        raise ShapeError(f"loss_fn must return a scalar, found shape {loss.shape}; use tf.reduce_mean or tf.reduce_sum.")
    return loss


def unconnected(strict: bool) -> str:
    """The gradient of a variable that the result does not depend on: zeros, or none, so that a strict tape raises."""
    return "none" if strict else "zero"


def jacobian(function: Callable[[], Any], variables: Any, chunk_size: int | None = None, strict: bool = False) -> Tensor:
    """The Jacobian of a function's result with respect to all variables: shape (*result.shape, P).

    Args:
        function: without arguments; returns one tensor.
        variables: list or nest of Variables, or a model or layer.
        chunk_size: rows carried at once.
        strict: raise UnconnectedGradientError for a variable that the result does not depend on, instead of giving zeros.

    Cost: one evaluation and one backward sweep over a stack of as many cotangents as the result has elements.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.jacobian(lambda: w * w, [w]).numpy().tolist())
    [[2.0, 0.0], [0.0, 4.0]]
    """
    chosen = listed(variables)
    tape, result = run_once(function, chosen, strict)
    blocks = tape.jacobian(result, chosen, unconnected(strict), chunk_size=chunk_size)
    return operations.reshape(matrix_of(blocks, size_of(result)), shape=(*result.shape, sum(map(size_of, chosen))), rank=2)


def jvp(function: Callable[[], Any], variables: Any, vector: Any) -> Tensor:
    """The Jacobian times a vector: the derivative of a function's result along one direction, by forward mode.

    Args:
        function: without arguments; returns one tensor.
        variables: list or nest of Variables, or a model or layer.
        vector: flat, of shape (P,), or a nest like the variables.

    Returns:
        Shape of the result; zeros if it does not depend on the variables. Cost: about two evaluations.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.jvp(lambda: w * w, [w], tf.constant([1.0, 1.0])).numpy())
    [2. 4.]
    """
    chosen = listed(variables)
    parts, _ = directions(vector, chosen, variables)
    with ForwardAccumulator(chosen, parts) as accumulator:
        result = convert_to_tensor(function())
    tangent: Tensor = accumulator.jvp(result, "zero")
    return tangent


def vjp(function: Callable[[], Any], variables: Any, cotangent: Any, strict: bool = False) -> Any:
    """A vector times the Jacobian: the gradient of <cotangent, result>, by reverse mode.

    Args:
        function: without arguments; returns one tensor.
        variables, strict: as in `jacobian`.
        cotangent: of the shape of the result.

    Returns:
        A nest like the variables (a list, for a model or layer). Cost: one evaluation and one backward sweep.

    >>> w = tf.Variable([1.0, 2.0])
    >>> print(tf.autodiff.vjp(lambda: w * w, [w], tf.constant([1.0, 10.0]))[0].numpy())
    [ 2. 40.]
    """
    chosen = listed(variables)
    tape, result = run_once(function, chosen, strict)
    found = [convert_to_tensor(g) for g in tape.gradient(result, chosen, cotangent, unconnected(strict))]
    return found if hasattr(variables, "trainable_variables") else nest.pack(variables, found)


def per_example_gradients(loss_fn: Callable[..., Any], variables: Any, *examples: Any, strict: bool = False) -> list[Tensor]:
    """The gradient of each row's loss: for each variable a Tensor of shape (n, *variable.shape), equal to a loop over rows.

    Args:
        loss_fn: from one row of each of `examples` to a scalar.
        variables, strict: as in `jacobian`.
        examples: tensors with one first axis of size n.

    Cost: one forward and one backward pass over the stack of rows.

    >>> w = tf.Variable([1.0, 2.0])
    >>> rows = tf.constant([[1.0, 0.0], [0.0, 3.0]])
    >>> print(tf.autodiff.per_example_gradients(lambda row: tf.reduce_sum(row * w), [w], rows)[0].numpy().tolist())
    [[1.0, 0.0], [0.0, 3.0]]
    """
    chosen = listed(variables)
    tensors = [convert_to_tensor(example) for example in examples]
    batch = Batch(tensors[0].shape[0])
    with batch:
        tape, loss = run_once(lambda: loss_fn(*[BatchedTensor(tensor, batch) for tensor in tensors]), chosen, strict)
        found = tape.gradient(loss, chosen, unconnected_gradients=unconnected(strict))
    return [batch.stack_of(gradient) for gradient in found]
