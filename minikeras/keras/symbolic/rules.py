"""The output specs of layers by the rules of their classes, without a computation: a file decides on the layers that it holds,
and so on the cost of trial runs. A layer without a rule is tried only on arrays that the budget of the file allows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import nest
from ...core import Tensor
from ...errors import LoadError
from ...files import limits
from ...functions.creation import ones, zeros
from ...types import as_dtype
from ..promotion import result_type
from ..saving.description import is_described
from .keras_tensor import KerasTensor, Spec

_FLOPS = 5_000
"""Multiplications that count as one unit of work."""


def by_rule(operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Spec], Any] | None:
    """Shape and dtype of each output, and the nest that they form; None if the class is not described or has no rule."""
    if not is_described(type(operation)):
        return None
    if hasattr(operation, "scores_shape"):
        return _of_attention(operation, args, kwargs)
    if len(args) != 1 or _symbols(kwargs) or len(_symbols(args)) != len(nest.flatten(args)):
        return None
    graph = getattr(operation, "_graph", None)
    if graph is not None:
        same = [one.shape for one in _symbols(args)] == [one.shape for one in nest.flatten(graph.inputs)]
        outputs = nest.flatten(graph.outputs)
        specs = [one.spec for one in outputs]
        return (specs, nest.pack(graph.outputs, list(range(len(specs))))) if same else None
    rule = getattr(type(operation), "compute_output_shape", None)
    if rule is None or hasattr(operation, "_graph") or hasattr(operation, "function"):
        return None
    shapes = nest.map_structure(lambda one: one.shape, args[0])
    options = {name: kwargs[name] for name in inspect.signature(rule).parameters if name in kwargs}
    shape = tuple(operation.compute_output_shape(shapes, **options))
    if any(isinstance(size, (tuple, list)) for size in shape):  # of several outputs
        return None
    spec = Spec(shape, _dtype(operation, _symbols(args)))
    return with_mask(operation, args, [spec]), 0


def _of_attention(layer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[list[Spec], Any] | None:
    """The result, and the weights if they are asked for; the arguments of both rules are the first ones of the call."""
    names = list(inspect.signature(layer.scores_shape).parameters)
    given = dict(zip(layer.call_spec.names, args, strict=False)) | dict(kwargs)
    of_shapes = {name: given.get(name.removesuffix("_shape"), given.get("inputs")) for name in names}
    shapes = {name: nest.map_structure(lambda one: one.shape, one) for name, one in of_shapes.items() if one is not None}
    dtype = as_dtype(layer.compute_dtype)
    (result,) = with_mask(layer, args, [Spec(tuple(layer.compute_output_shape(**shapes)), dtype)])
    if not given.get("return_attention_scores"):
        return [result], 0
    return [result, Spec(tuple(layer.scores_shape(**shapes)), dtype)], (0, 1)


def _dtype(operation: Any, symbols: list[KerasTensor]) -> Any:
    floating = any(one.dtype.is_floating for one in symbols) or operation.gives_floats
    if floating:
        return as_dtype(operation.compute_dtype)
    first, *others = {one.dtype for one in symbols}
    return as_dtype(result_type(first, *others)) if others else first


def with_mask(operation: Any, args: tuple[Any, ...], specs: list[Spec]) -> list[Spec]:
    """The specs with the rank of the mask that the outputs carry: `compute_mask` is called on arrays of one element."""
    symbols = _symbols(args[:1])
    if not operation.supports_masking or len(symbols) != len(nest.flatten(args[:1])):
        return specs
    if not (operation.computes_mask or any(one.spec.mask_rank for one in symbols)):
        return specs
    given = nest.map_structure(lambda one: masked(zeros([1] * one.ndim, one.dtype), one.spec.mask_rank), args[0])
    mask = operation.compute_mask(given, nest.map_structure(lambda one: one.attached, given))
    return specs if mask is None else [spec._replace(mask_rank=mask.ndim) for spec in specs]


def masked(x: Tensor, rank: int | None) -> Tensor:
    """A tensor that carries a mask of its first axes that counts all; none if `rank` is None."""
    if rank is not None:
        x.attached = ones(x.shape[:rank], "bool")
    return x


def rank_of_mask(x: Tensor) -> int | None:
    """The number of axes of the mask that a tensor carries; None if it carries none."""
    return None if x.attached is None else x.attached.ndim


def check_trial(
    operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], shape_of: Callable[[KerasTensor], tuple[int, ...]]
) -> None:
    """Refuse a trial that the budget of the file does not allow, where KerasTensors have these shapes."""
    if not limits.is_loading():
        return
    shapes = [shape_of(one) for one in _symbols([args, kwargs])]
    longest = max(1, *(size for shape in shapes for size in shape))
    name, work = type(operation).__name__, 0
    graph = getattr(operation, "_graph", None)
    if graph is not None:
        shapes += [
            tuple(longest if size is None else size for size in spec.shape) for node in graph.nodes for spec in node.specs
        ]
    elif (cost := getattr(operation, "cost", None)) is not None:
        result, products = cost(shapes, [args, kwargs, operation.get_config()])
        work = products // _FLOPS
        shapes.append((result,))
    elif not hasattr(operation, "compute_dtype"):  # element by element, or to fewer of them
        shapes.append(_broadcast(name, shapes))
    elements = sum(math.prod(shape) for shape in shapes)
    limits.check_temporary(8 * elements, f"arrays to try '{operation.name}' on")
    limits.spend_work(work + elements // 500, f"a trial of '{operation.name}'")


def cost_of_anything(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """An upper bound of the elements of the result, and of the multiplications: the product of the sizes of all operands and of
    all numbers that the call is given.
    """
    numbers = [int(min(abs(leaf), 2**53)) for leaf in nest.flatten(given) if isinstance(leaf, (int, float)) and leaf == leaf]
    largest = math.prod(math.prod(shape) for shape in shapes) * math.prod(max(1, number) for number in numbers)
    return largest, largest


def cost_of_operands(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """For functions that call `check_size` as soon as they know the size of their result."""
    return max(map(math.prod, shapes)), 0


def check_size(elements: int, what: str) -> None:
    """Refuse a result of so many elements that the budget of a file does not allow, while one is loaded."""
    if limits.is_loading():
        limits.check_temporary(8 * elements, what)
        limits.spend_work(elements // 500, what)


def cost_of_matrices(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """Elements of the result and multiplications of a factorization of matrices."""
    elements = sum(map(math.prod, shapes))
    return elements, elements * 20 * max(max(shape[-2:], default=1) for shape in shapes)


def cost_of_product(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """Elements of the result and multiplications of a product of two stacks of matrices."""
    if len(shapes) != 2 or not all(shapes):
        return cost_of_anything(shapes, given)
    rows, columns, inner = shapes[0][-2:-1], shapes[1][-1:] if len(shapes[1]) > 1 else (), shapes[0][-1]
    result = math.prod((*_broadcast("Matmul", [shape[:-2] for shape in shapes]), *rows, *columns))
    return result, result * inner


def _broadcast(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise LoadError(f"{name} of shapes {shapes}: {error}") from None


def _symbols(structure: Any) -> list[KerasTensor]:
    return [leaf for leaf in nest.flatten(structure) if isinstance(leaf, KerasTensor)]
