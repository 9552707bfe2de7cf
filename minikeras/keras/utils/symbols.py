"""Questions about KerasTensors."""

from __future__ import annotations

from ..symbolic.keras_tensor import KerasTensor


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
