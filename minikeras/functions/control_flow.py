"""TensorFlow's functional control flow, which in an eager framework is Python's own.

Key idea: only the branch or the iterations that happen are recorded, so gradients follow what was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import nest
from ..core import Tensor
from ..types import TensorLike
from .publish import tensor
from .shaping import stack


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if the scalar predicate holds, else of `false_fn()`.

    >>> import minikeras as tf
    >>> tf.cond(tf.constant(True), lambda: 1, lambda: 2)
    1
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("cond: true_fn and false_fn must be functions without arguments.")
    return true_fn() if bool(tensor(pred)) else false_fn()


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    >>> import minikeras as tf
    >>> tf.case([(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2)])
    2
    """
    for predicate, function in pred_fn_pairs:
        if bool(tensor(predicate)):
            return function()
    if default is None:
        raise ValueError("case: no predicate holds and there is no default.")
    return default()


def switch_case(
    branch_index: TensorLike, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """The result of the function with that index; the last one (or `default`) if there is none.

    >>> import minikeras as tf
    >>> tf.switch_case(tf.constant(1), [lambda: "a", lambda: "b"])
    'b'
    """
    branches = (
        dict(branch_fns)
        if isinstance(branch_fns, Mapping) or (branch_fns and isinstance(branch_fns[0], tuple))
        else dict(enumerate(branch_fns))
    )
    fallback: Callable[[], Any] = branches[max(branches)] if default is None else default
    return branches.get(int(tensor(branch_index)), fallback)()


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None, **options: Any
) -> Any:
    """Apply `body` to the loop variables as long as `cond` of them holds.

    >>> import minikeras as tf
    >>> [int(v) for v in tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])]
    [3]
    """
    values, steps = loop_vars, 0
    while (maximum_iterations is None or steps < maximum_iterations) and bool(tensor(cond(*values))):
        result = body(*values)
        values = result if isinstance(result, (list, tuple)) else [result]
        steps += 1
    return values


def _unstacked(elems: Any) -> list[Any]:
    """The nests of first slices, second slices, and so on."""
    leaves = [tensor(leaf) for leaf in nest.flatten(elems)]
    return [nest.pack(elems, [leaf[i] for leaf in leaves]) for i in range(leaves[0].shape[0])]


def _stacked(results: Sequence[Any]) -> Any:
    """One nest whose leaves are stacks of the leaves of many."""
    columns = zip(*(nest.flatten(result) for result in results), strict=True)
    return nest.pack(results[0], [stack(list(column)) for column in columns])


def map_fn(fn: Callable[[Any], Any], elems: Any, **options: Any) -> Any:
    """`fn` of each slice along the first axis, stacked.

    >>> import minikeras as tf
    >>> print(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0])).numpy())
    [1. 4.]
    """
    return _stacked([fn(element) for element in _unstacked(elems)])


def scan(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, reverse: bool = False, **options: Any) -> Any:
    """All intermediate results of folding `fn(accumulated, element)` over the slices, stacked.

    >>> import minikeras as tf
    >>> print(tf.scan(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy())
    [1. 3. 6.]
    """
    steps = _unstacked(elems)[:: -1 if reverse else 1]
    results = []
    if initializer is None:
        accumulated, steps = steps[0], steps[1:]
        results.append(accumulated)
    else:
        accumulated = nest.map_structure(tensor, initializer)
    for element in steps:
        accumulated = fn(accumulated, element)
        results.append(accumulated)
    return _stacked(results[:: -1 if reverse else 1])


def foldl(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, **options: Any) -> Any:
    """The last result of folding `fn(accumulated, element)` over the slices.

    >>> import minikeras as tf
    >>> print(tf.foldl(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy())
    6.0
    """
    steps = _unstacked(elems)
    accumulated = steps.pop(0) if initializer is None else nest.map_structure(tensor, initializer)
    for element in steps:
        accumulated = fn(accumulated, element)
    return accumulated


def grad_pass_through(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function with the values of `f` and the gradient of the identity.

    >>> import minikeras as tf
    >>> x = tf.Variable(2.5)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.grad_pass_through(tf.round)(x)
    >>> print(y.numpy(), tape.gradient(y, x).numpy())
    2.0 1.0
    """
    from ..ops.arithmetic import stop_gradient

    def passed(x: TensorLike, *rest: Any, **options: Any) -> Tensor:
        value = tensor(x)
        return value + stop_gradient(tensor(f(value, *rest, **options)) - value)

    return passed


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """`fn` of each slice along the first axis, stacked, computed for all slices at once.

    `fn` runs once, on tensors that look like one slice; every operation is carried out on the whole stack. Operations without
    a rule for stacks are carried out slice by slice and counted in `tf.autodiff.loop_fallbacks`.

    Args:
        fn: a function of one slice (a nest like `elems`) that returns a nest of tensors.
        elems: tensor or nest of tensors with one size of the first axis.
        fallback_to_while_loop, warn: accepted for compatibility, ignored.

    Raises:
        ShapeError: if the first axes differ.
        InvalidArgumentError: if `fn` asks for the Python value of a slice.

    >>> import minikeras as tf
    >>> rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> print(tf.vectorized_map(lambda row: tf.reduce_sum(row * row), rows).numpy())
    [ 5. 25.]
    """
    from ..core.batch import Batch, Stack
    from ..errors import ShapeError

    leaves = [tensor(leaf) for leaf in nest.flatten(elems)]
    sizes = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
    if len(sizes) != 1 or None in sizes:
        raise ShapeError(
            f"vectorized_map: all first axes must have one size, found shapes {[list(leaf.shape) for leaf in leaves]}."
        )
    batch = Batch(leaves[0].shape[0])
    with batch.on_top():
        result = fn(nest.pack(elems, [Stack(leaf, batch) for leaf in leaves]))
        whole = [tensor(leaf) for leaf in nest.flatten(result)]
    return nest.pack(result, [batch.stack_of(leaf) for leaf in whole])
