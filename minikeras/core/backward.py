"""The backward sweep: forward it marks what depends on the sources, backward it carries cotangents along those paths only.

Rules run on bare arrays, or on Tensors where an interpreter is on the stack to see them: that is all of second derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .gradient_registry import missing_gradient, registered_rule
from .indexed_slices import IndexedSlices
from .primitive import Record
from .registry import operations
from .tensor import Tensor, arrays_of
from .variable import read_variable


def sweep(
    records: Iterable[Record],
    cotangents: dict[int, Any],
    sources: Iterable[int],
    bare: bool,
    refused: list[tuple[Record, int]] | None = None,
) -> dict[int, Any]:
    """Carry cotangents from targets to sources.

    Args:
        records: in the order in which they happened.
        cotangents: the seeds, by key of the target; used up by the sweep.
        sources: keys of the Tensors and Variables whose cotangents are asked for.
        bare: True to run the rules on bare arrays.
        refused: a list to fill with the Records whose rule gave None, and the position of the operand.

    Returns:
        The cotangent of each source that is connected to a target, by key.

    Raises:
        LookupError: if an operation on the way has no gradient.
    """
    kept = set(sources)
    result: dict[int, Any] = {}
    for record, wanted in reversed(_between(records, kept)):
        outputs = record.outputs
        if type(outputs) is tuple:
            taken = [_take(cotangents, result, kept, output.key) for output in outputs]
            parts = [part.read_value() if type(part) is IndexedSlices else part for part in taken]
            if all(part is None for part in parts):
                continue
            like = arrays_of(outputs) if bare else outputs
            if not record.primitive.partial:
                parts = [operations.zeros_like(y) if g is None else g for g, y in zip(parts, like, strict=True)]
            g: Any = tuple(parts)
        else:
            g = _take(cotangents, result, kept, outputs.key)
            if g is None:
                continue
            if type(g) is IndexedSlices and record.primitive is not read_variable:
                g = g.read_value()
        rule = record.primitive.vjp or registered_rule(record.primitive.name)
        if rule is None:
            raise missing_gradient(record.primitive.name)
        inputs = record.inputs
        if bare:
            arrays = [x.array if isinstance(x, Tensor) else x for x in inputs]
            found = rule(wanted, g, arrays_of(outputs), arrays, record.params)
        else:
            found = rule(wanted, g, outputs, inputs, record.params)
        for i, cotangent in zip(wanted, found, strict=True):
            if cotangent is not None:
                key = inputs[i].key
                earlier = cotangents.get(key)
                if earlier is not None:
                    # Slices know how to be added to an array, not the other way round.
                    cotangent = cotangent + earlier if type(cotangent) is IndexedSlices else earlier + cotangent
                cotangents[key] = cotangent
            elif refused is not None:
                refused.append((record, i))
    for key in kept:
        _take(cotangents, result, kept, key)
    return result


def _between(records: Iterable[Record], sources: set[int]) -> list[tuple[Record, Sequence[int]]]:
    """The Records that depend on a source, each with the positions of the inputs through which it does."""
    reached = set(sources)
    steps: list[tuple[Record, Sequence[int]]] = []
    for record in records:
        wanted = [i for i, x in enumerate(record.inputs) if getattr(x, "key", None) in reached]
        if wanted:
            steps.append((record, wanted))
            outputs = record.outputs
            if type(outputs) is tuple:
                reached.update([output.key for output in outputs])
            else:
                reached.add(outputs.key)
    return steps


def _take(cotangents: dict[int, Any], result: dict[int, Any], kept: set[int], key: int) -> Any:
    """Remove a finished cotangent, keeping it if it was asked for."""
    cotangent = cotangents.pop(key, None)
    if cotangent is not None and key in kept:
        result[key] = cotangent
    return cotangent
