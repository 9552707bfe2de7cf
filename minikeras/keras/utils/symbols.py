"""Questions about KerasTensors and dtypes."""

from __future__ import annotations

from typing import Any

from ...types import as_dtype
from ..config import floatx
from ..symbolic.keras_tensor import KerasTensor


def is_keras_tensor(x: Any) -> bool:
    """Whether something is a KerasTensor: a placeholder of a functional model.

    >>> is_keras_tensor(tf.keras.Input((2,))), is_keras_tensor(tf.ones([2]))
    (True, False)
    """
    return isinstance(x, KerasTensor)


def get_source_inputs(tensor: KerasTensor) -> list[KerasTensor]:
    """The Inputs that a KerasTensor was computed from, each once.

    >>> x = tf.keras.Input((2,), name="x")
    >>> get_source_inputs(2.0 * x + x)
    [<KerasTensor shape=(None, 2), dtype=float32, name=x>]
    """
    sources: dict[tuple[int, int], KerasTensor] = {}
    seen: set[int] = set()
    waiting = [tensor]
    while waiting:
        x = waiting.pop()
        if not x.node.inputs:
            sources[x.key] = x
        elif x.node.number not in seen:
            seen.add(x.node.number)
            waiting += reversed(x.node.inputs)
    return list(sources.values())


def standardize_dtype(dtype: Any) -> str:
    """The name of a dtype; that of the default float dtype for None.

    >>> standardize_dtype(None), standardize_dtype(tf.int64), standardize_dtype(float)
    ('float32', 'int64', 'float32')
    """
    if dtype is None or dtype is float:
        return floatx()
    return as_dtype(dtype).name
