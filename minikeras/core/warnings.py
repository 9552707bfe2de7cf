"""Warnings of the core through the package's logger, a limited number from each line of the user's code, and its errors."""

from __future__ import annotations

import collections
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from ..errors import DTypeError, InvalidArgumentError, MatrixError, ShapeError

logger = logging.getLogger("minikeras")


def get_logger() -> logging.Logger:
    """The logger through which this package warns.

    >>> tf.get_logger().name
    'minikeras'
    """
    return logger


_told: collections.Counter[tuple[str, int, str]] = collections.Counter()


def _caller(*others: str) -> tuple[FrameType, int]:
    """The innermost call outside this package and the others named, and its `stacklevel`."""
    frame, level, passed = sys._getframe(1), 1, {__package__.partition(".")[0], *others}
    while frame.f_globals.get("__name__", "").partition(".")[0] in passed and frame.f_back:
        frame, level = frame.f_back, level + 1
    return frame, level


def call_site(*others: str) -> tuple[str, int]:
    """File and line of the innermost code outside this package and the others named."""
    frame, _ = _caller(*others)
    return frame.f_code.co_filename, frame.f_lineno


def warn_caller(message: str) -> None:
    """Give a warning of Python's at the innermost line outside this package."""
    warnings.warn(message, stacklevel=_caller()[1])


def call_place(*others: str) -> str:
    """The call site as 'file:line'; of a notebook's cell 'In[5]:2', as tracebacks name it."""
    file, line = call_site(*others)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return f"{name[1] if name else file}:{line}"


def warn(limit: int, message: str, *details: object) -> None:
    """Log a warning, at most `limit` times for one line of the user's code."""
    place = (*call_site(), message)
    _told[place] += 1
    if _told[place] <= limit:
        logger.warning(message, *details)


# Errors of operations -------------------------------------------------------------------------------------------------

# Errors of operations in words. NumPy's exception is the check, which costs nothing where all is right.


def describe(value: Any) -> str:
    """'float32[3,2]' for anything with a shape, else the value itself, shortened."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"{type(value).__name__} {value!r}"[:60]
    dtype = value.dtype
    return f"{getattr(dtype, 'name', dtype)}[{','.join(map(str, shape))}]"


def explained(primitive: Any, inputs: Sequence[Any], params: dict[str, Any], error: Exception) -> Exception:
    """The error to raise when a kernel refused its inputs."""
    name, found = primitive.name, ", ".join(describe(x) for x in inputs)
    shapes = [tuple(x.shape) for x in inputs if hasattr(x, "shape")]
    if isinstance(error, np.linalg.LinAlgError):
        return MatrixError(f"{name}: Input matrix is not invertible ({found}: {error}).")
    if name == "matrix_product" and len(shapes) == 2:
        return _matrix_sizes(shapes[0], shapes[1])
    if "broadcast" in str(error) and len(shapes) > 1:
        return _broadcasting(name, shapes)
    if "negative integer powers" in str(error):
        return InvalidArgumentError(f"{name}({found}): {error} Cast to a float dtype first: tf.cast(x, 'float32').")
    options = "".join(f", {key}={value!r}" for key, value in params.items())
    kind = ShapeError if isinstance(error, ValueError) else InvalidArgumentError
    return kind(f"{name}({found}{options}): {error}")


def _matrix_sizes(left: tuple[int, ...], right: tuple[int, ...]) -> Exception:
    """The error that says why two matrices cannot be multiplied."""
    if len(left) < 2 or len(right) < 2:
        short = 0 if len(left) < 2 else 1
        return ShapeError(
            f"matmul: In[{short}] ndims must be >= 2: shapes {left} and {right}. "
            "Use tf.linalg.matvec, tf.tensordot, or add an axis with tf.expand_dims."
        )
    if left[-1] != right[-2]:
        return ShapeError(
            f"matmul: Matrix size-incompatible: {left} @ {right}: inner sizes {left[-1]} and {right[-2]} differ. "
            "Transpose one operand or check which axis holds the features."
        )
    return ShapeError(f"matmul: batch axes of {left} @ {right} cannot be broadcast.")


def _broadcasting(name: str, shapes: list[tuple[int, ...]]) -> Exception:
    """The error that says why shapes cannot be broadcast: the first axis, from the last one, that clashes."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    for axis in range(1, rank + 1):
        sizes = dict.fromkeys(shape[-axis] for shape in padded if shape[-axis] != 1)
        if len(sizes) > 1:
            listed = " vs. ".join(str(list(shape)) for shape in shapes)
            return ShapeError(
                f"{name}: Incompatible shapes: {listed}: sizes {' and '.join(map(str, sizes))} clash at axis "
                f"-{axis}. Sizes must be equal or 1; reshape or transpose one operand."
            )
    return ShapeError(f"{name}: Incompatible shapes: {' vs. '.join(str(list(shape)) for shape in shapes)}.")


def mixed_dtypes(name: str, inputs: Sequence[Any]) -> Exception:
    """Two Tensors of different dtypes met: nothing is promoted in silence."""
    dtypes = [x.dtype.name for x in inputs if hasattr(x, "key")]
    other = next(dtype for dtype in dtypes if dtype != dtypes[0])
    position = next(i for i, x in enumerate(inputs) if hasattr(x, "key") and x.dtype.name == other)
    return DTypeError(
        f"cannot compute {name} as input #{position}(zero-based) was expected to be a {dtypes[0]} tensor but is a {other} "
        f"tensor: operands {', '.join(describe(x) for x in inputs)}. Convert one: tf.cast(x, '{dtypes[0]}')."
    )


# Tapes that pile up ---------------------------------------------------------------------------------------------------

# A warning for persistent tapes that pile up in a loop, found as idle ones that were entered on the same line.

BYTES = 64 * 2**20
"""The bytes that the tapes of a loop may hold together before the warning comes."""

ITERATIONS = 4
"""The number of iterations of a loop before its tapes are examined; then they are after twice as many, and so on."""

OUTLIVED = (
    "%d recordings of persistent tapes that were entered on this line are still alive and hold %d MiB. Entering a persistent "
    "tape again adds to its recording: make a tape for each iteration, and let it go (`del tape`) when it is done."
)

_tapes_by_line: collections.defaultdict[tuple[int, str, int], list[weakref.ref[Any]]] = collections.defaultdict(list)


def tell_of_tapes_that_outlive(tape: Any) -> None:
    """Note that a persistent tape is entered, and warn once for its line if earlier ones pile up there."""
    place = (threading.get_ident(), *call_site())
    held = [reference for reference in _tapes_by_line[place] if reference() is not None]
    held.append(weakref.ref(tape))
    _tapes_by_line[place] = held
    count = len(held)
    if count < ITERATIONS or count & (count - 1):
        return
    idle = {id(one): one for one in (reference() for reference in held) if one is not None and not one._active}
    size = sum(one.memory() for one in idle.values())
    if size > BYTES:
        warn(1, OUTLIVED, count - 1, size // 2**20)
