# mypy: implicit-reexport
"""`tf.debugging`: assertions, the operation that makes the first NaN or infinity, and numerical checks of gradients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from .absent import late as _late
from .core import Operand, Primitive, Tensor, call_place, convert_to_tensor, describe, innermost, sweep
from .core.arrays import Transfers, to_numpy
from .core.stack import Frame, Interpreter, interpreters
from .errors import InvalidArgumentError, NotFiniteError
from .functions import assertions as _assertions
from .functions.assertions import *  # noqa: F403
from .test import check_gradients as check_gradients
from .types import TensorLike

# NumericsCheck: an interpreter that stops at the first operation which makes a NaN or an infinity of finite values.
#
# As long as it is on the stack, backward sweeps send their operations down the stack too.


class NumericsCheck(Interpreter):
    """Checks every operation of this thread within its block, forward and backward."""

    __slots__ = ("__weakref__",)

    def __enter__(self) -> NumericsCheck:
        return self if self in active_checks() else super().__enter__()

    def observe(self, primitive: Primitive, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Frame) -> None:
        """Check the results if the inputs are finite."""
        for output in outputs if type(outputs) is tuple else (outputs,):
            index = first_bad_index(output)
            if index is not None and all(first_bad_index(x) is None for x in inputs):
                raise NotFiniteError(_complaint(primitive, inputs, output, index))


def first_bad_index(operand: Any) -> tuple[int, ...] | None:
    """The index of the first element that is NaN or infinite; None if all are finite."""
    operand = innermost(operand)
    array = to_numpy(operand.array) if isinstance(operand, Operand) else operand
    if isinstance(array, (float, complex)):
        array = np.asarray(array)
    if not hasattr(array, "dtype") or array.dtype.kind not in "fc":
        return None
    # Adding up is the fastest test; only a sum that is not finite needs a look at each element.
    with np.errstate(all="ignore"):
        if np.isfinite(array.sum(dtype=None)):
            return None
    bad = np.argwhere(~np.isfinite(array))
    return tuple(int(i) for i in bad[0]) if len(bad) else None


def active_checks() -> list[NumericsCheck]:
    """The checks on this thread's stack."""
    return [one for one in interpreters() if isinstance(one, NumericsCheck)]


def _complaint(primitive: Primitive, inputs: Sequence[Any], output: Any, index: tuple[int, ...]) -> str:
    """The message: the operation that made NaN or Inf, its inputs and result, and the place."""
    output = innermost(output)
    value = to_numpy(output.array)[index]
    kind = "NaN" if np.isnan(value) else "Inf"
    layer, differentiated = _surroundings()
    return (
        f"{primitive.name} made {kind} at index {list(index)} of its result {describe(output)} from finite inputs "
        f"({', '.join(describe(x) for x in inputs)})"
        + (f", in the gradient of {differentiated}" if differentiated else "")
        + (f", in layer '{layer}'" if layer else "")
        + f", called at {call_place()}."
    )


def _surroundings() -> tuple[str | None, str | None]:
    """The innermost layer that is being called, and the operation that is being differentiated, if there are such."""
    layer, differentiated = None, None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is sweep.__code__ and differentiated is None:
            differentiated = frame.f_locals["record"].primitive.name
        owner: Any = frame.f_locals.get("self") if frame.f_code.co_name == "__call__" else None
        if layer is None and hasattr(owner, "call") and isinstance(getattr(owner, "name", None), str):
            layer = str(getattr(owner, "path", owner.name))
        frame = frame.f_back
    return layer, differentiated


__all__ = [
    *("assert_all_finite", "check_gradients", "check_numerics", "count_transfers", "disable_check_numerics"),
    *("enable_check_numerics", *vars(_assertions)["__all__"]),
]

__getattr__, __dir__ = _late(__name__, {})


def enable_check_numerics() -> NumericsCheck:
    """Stop at the first operation that makes a NaN or an infinity of finite values, forward or backward, in this thread.

    Until `disable_check_numerics`, or within a block. The error names the operation, the shapes, the first bad element, the
    layer and the line. Every operation then looks at all its results, which costs about as much as a sum over them.

    Returns:
        A context manager that ends the check; it may be ignored.

    Raises:
        NotFiniteError: later, by the operation; also an InvalidArgumentError.

    >>> with tf.debugging.enable_check_numerics():
    ...     try:
    ...         tf.math.log(tf.constant([1.0, 0.0]))
    ...     except tf.errors.NotFiniteError as error:
    ...         print(str(error)[:78])
    log made Inf at index [1] of its result float32[2] from finite inputs (float32
    """
    active = active_checks()
    return active[0] if active else NumericsCheck().__enter__()


def disable_check_numerics() -> None:
    """End what `enable_check_numerics` began in this thread; nothing happens if it did not.

    >>> disable_check_numerics()
    """
    for check in active_checks():
        check.__exit__()


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """The tensor itself, after checking that every element is finite.

    Args:
        tensor: of a floating or complex dtype.
        message: stands at the beginning of the error.
        name: accepted for compatibility, ignored.

    Raises:
        NotFiniteError: if an element is NaN or infinite; also an InvalidArgumentError.
        InvalidArgumentError: for another dtype.

    >>> check_numerics([1.0, 2.0], "weights").shape
    TensorShape([2])
    """
    result = convert_to_tensor(tensor)
    if not result.dtype.is_differentiable:
        raise InvalidArgumentError(f"check_numerics: {message}: dtype {result.dtype.name} has no NaN; give floats.")
    index = first_bad_index(result)
    if index is not None:
        kind = "NaN" if np.isnan(to_numpy(result.array[index])) else "Inf"
        raise NotFiniteError(
            f"{message} : Tensor had {kind} values, the first at index {list(index)} of "
            f"{result.dtype.name}[{','.join(map(str, result.shape))}]."
        )
    return result


def count_transfers() -> Transfers:
    """Count the copies between the memory of the CPU and that of GPUs within a block, in all threads.

    A copy to the CPU waits until the GPU has done what it was asked for before; so one in each step makes training as slow as
    its slowest part. Those that the package makes are counted, not those of code that calls CuPy itself.

    Returns:
        A context manager whose attributes `to_device`, `to_host`, `bytes_to_device` and `bytes_to_host` count.

    >>> with tf.debugging.count_transfers() as copies:
    ...     total = float(tf.reduce_sum(tf.ones([3])))
    >>> copies
    <Transfers to devices: 0 of 0 bytes, to the host: 0 of 0 bytes>
    """
    return Transfers()


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """`check_numerics` by another name.

    >>> assert_all_finite([1.0, 2.0], "weights").shape
    TensorShape([2])
    """
    return check_numerics(x, message)
