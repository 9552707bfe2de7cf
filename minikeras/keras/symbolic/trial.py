"""Calls on KerasTensors: a layer is built and tried on zeros to find what it gives; what trials differ in is unknown.
Nothing of a trial stays but what building made.

A file decides on the layers that it holds, and so on the cost of trials: there the rules of their classes tell the output specs
without a computation, and a layer without a rule is tried only on arrays that the budget of the file allows.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ... import nest
from ...core import BOTTOM, Frame, Interpreter, State, Tensor, Write, convert_to_tensor, on_top, restore, snapshot
from ...errors import LoadError, ShapeError
from ...files import limits
from ...functions.creation import eye, ones, zeros
from ...nn_ops import streams
from ...types import DType, DTypeLike, ShapeLike, as_dtype
from ..calls import context
from ..config import floatx
from ..promotion import result_type
from ..saving.objects import is_described
from . import KerasTensor, Node, Spec, is_data, is_numbers, map_shapes

_PAIRS = ((2, 64), (5, 128)), ((12, 12), (24, 24)), ((2, 2), (3, 3)), ((2, 240), (4, 480))
"""The sizes of batch axes and of other unknown axes in two trials. The later pairs are for failures of the first: a batch axis
may have to be as long as another one, a table of positions may have fewer rows, and a window more.
"""
_USUAL = [1, 2, 3, 4, 8]
"""Sizes that functions may ask for: of what is broadcast, of parts of a complex number, channels, corners, projections."""
_LARGEST = 2**22
"""The most elements of an operand of such an attempt."""


class Sizes(NamedTuple):
    """The sizes of unknown axes in a trial: of batch axes, of others, and of axes of a tensor for which only one size fits."""

    batch: int
    other: int
    bound: Mapping[tuple[Any, int], int] = MappingProxyType({})

    def of(self, symbol: KerasTensor) -> tuple[int, ...]:
        """A shape of known sizes for a KerasTensor."""
        free = [self.batch, *[self.other] * symbol.ndim]
        places = enumerate(symbol.shape, -symbol.ndim)
        return tuple([self.bound.get((symbol.key, i), free[i + symbol.ndim]) if n is None else n for i, n in places])


def call_symbolically(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The KerasTensors that a layer, model or Operation gives for KerasTensors."""
    specs, structure = _tried(operation, args, kwargs)
    return Node(operation, args, kwargs, specs, structure).outputs


def output_specs(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """KerasTensors like those that a layer would give for KerasTensors; nothing of the trial stays."""
    trial, random_state = Trial(layer), streams.states()
    specs, structure = _tried(layer, args, kwargs, by_rules=False)
    trial.undo()
    streams.set_states(random_state)
    return Node(Placeholder(), (), {}, specs, structure).outputs


def output_shapes(layer: Any, input_shape: ShapeLike) -> Any:
    """The shapes of the outputs of a layer for inputs of given shapes; nothing of the trial stays."""
    dtype = as_dtype(getattr(layer, "compute_dtype", floatx()))
    symbols = map_shapes(lambda shape: Node(Placeholder(), (), {}, [Spec(tuple(shape), dtype)], 0).outputs, input_shape)
    return nest.map_structure(lambda one: one.shape, output_specs(layer, (symbols,), {}))


class Placeholder:
    """The operation of a KerasTensor that stands for a shape alone."""

    name = "placeholder"


def _tried(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], by_rules: bool = True) -> tuple[list[Spec], Any]:
    """Shape and dtype of each output, and the nest that they form."""
    trial = Trial(operation)
    try:
        trial.build(args, kwargs)
        limits.spend_work(limits.CALL, f"calls such as that of '{operation.name}'")
        knows = hasattr(operation, "output_spec") and args and len(_symbols(args[0])) == len(nest.flatten(args[0]))
        if knows and (spec := operation.output_spec(args[0])) is not None:  # a trial could not find it
            return with_mask(operation, args, [spec]), 0
        costly = limits.is_loading() or hasattr(operation, "scores_shape")  # attention: the square of the number of steps
        if by_rules and costly and (ruled := by_rule(operation, args, kwargs)) is not None:
            return ruled
        found = _found(trial, operation, args, kwargs)
    except BaseException:
        trial.undo()
        raise
    leaves = [nest.flatten(outputs) for outputs in found]
    for leaf in leaves[0]:
        if leaf is None:
            raise ValueError(returned_none(operation))
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"All outputs of '{operation.name}' must be tensors to be part of a model; it returned {leaf!r:.80}."
            )
    if len({len(one) for one in leaves}) > 1:
        raise ShapeError(f"'{operation.name}' gives more or fewer tensors for other sizes of axes that may have any size.")
    specs = [_merged(operation, outputs) for outputs in zip(*leaves, strict=True)]
    return specs, nest.pack(found[0], list(range(len(specs))))


def _found(trial: Trial, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The results of trials, one for each choice of sizes for the unknown axes."""

    others = [functools.partial(_repeated, numbers) for numbers in ([1], range(100)) if getattr(operation, "counts", False)]

    def tried(sizes: Sizes) -> list[Any]:
        check_trial(operation, args, kwargs, sizes.of)
        found = [trial.run(functools.partial(_call, operation, args, kwargs, sizes, getattr(operation, "example", zeros)))]
        for example in others:
            with contextlib.suppress(Exception):  # such numbers may not be allowed
                found.append(trial.run(functools.partial(_call, operation, args, kwargs, sizes, example)))
        return found

    symbols = _symbols([args, kwargs])
    if not any(None in symbol.shape or symbol.node.measured for symbol in symbols):
        return tried(Sizes(*_PAIRS[0][0]))
    attempts = itertools.islice(_attempts(operation, args, kwargs, symbols), 40 if trial.is_of_layer else 400)
    failures: list[Exception] = []
    for number, (first, second) in enumerate(attempts):
        if number and max(math.prod(second.of(symbol)) for symbol in symbols) > _LARGEST:
            continue
        found: list[Any] = []
        known = len(failures)
        for sizes in (first, second):
            try:
                found += tried(sizes)
            except LoadError:
                raise
            except Exception as error:
                failures.append(error)
        if len(failures) == known:
            with contextlib.suppress(Exception):  # parts such as x[:, :3] have fewer elements where there are none
                nothing = [] if trial.is_of_layer else tried(Sizes(0, 0, first.bound))
                found += [one for one in nothing if _ranks(one) == _ranks(found[0])]
            return found
        trial.undo()
        trial.build(args, kwargs)
    raise _without_sizes(failures[0], failures[1])


def _ranks(outputs: Any) -> list[int]:
    return [one.ndim for one in nest.flatten(outputs) if one is not None]


def _attempts(
    operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], symbols: list[KerasTensor]
) -> Iterator[tuple[Sizes, Sizes]]:
    """Pairs of sizes for unknown axes: all free, then more and more of them bound to sizes of other operands, or to 1."""
    for first, second in _PAIRS:
        yield Sizes(*first), Sizes(*second)
    axes = dict.fromkeys((one.key, axis - one.ndim) for one in symbols for axis, n in enumerate(one.shape) if n is None)
    single = [[axis] for axis in axes]
    aligned = [[axis for axis in axes if axis[1] == place] for place in sorted({place for _, place in axes})]
    sizes = dict.fromkeys([*sorted(_known_sizes(operation, args, kwargs) - {1}), *_USUAL])
    counts = [(single, 1), *((aligned, i + 1) for i in range(len(aligned))), *((single, i + 1) for i in range(1, len(axes)))]
    for groups, count in counts:
        for chosen in itertools.combinations(groups, count):
            for values in itertools.product(sizes, repeat=count):
                bound = {axis: size for group, size in zip(chosen, values, strict=True) for axis in group}
                yield Sizes(*_PAIRS[0][0], bound), Sizes(*_PAIRS[0][1], bound)


def _known_sizes(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> set[int]:
    """The sizes of operands, constants and weights, and those that options name or leave for one axis."""
    tensors = [leaf for leaf in nest.flatten([args, kwargs, _variables(operation)]) if is_data(leaf)]
    sizes = {size for one in tensors for size in one.shape if size}
    for option in (*args, *kwargs.values(), *getattr(operation, "config", {}).values()):
        numbers = np.asarray(option if is_numbers(option) or isinstance(option, np.ndarray) else [])
        sizes.update(numbers.shape)
        if numbers.dtype.kind == "i" and numbers.size < 10:
            total = abs(math.prod(numbers.ravel().tolist()))
            sizes.update(numbers.ravel().tolist(), [total // math.prod(filter(None, one.shape)) for one in tensors])
    return {size for size in sizes if size > 0}


def _without_sizes(error: Exception, other: Exception) -> Exception:
    """The error of a trial and its causes, without the sizes that the trial made up: numbers that the error of another
    trial does not share become None.
    """
    mine: Any = error
    others: Any = other
    while mine is not None and others is not None:
        (*words,), (*same,) = (re.split(r"(\d+)", str(one)) for one in (mine, others))
        if words[::2] == same[::2] and words != same:
            mine.args = ("".join([a if a == b else "None" for a, b in zip(words, same, strict=True)]),)
        mine, others = mine.__cause__ or mine.__context__, others.__cause__ or others.__context__
    return error


def _call(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: Sizes, example: Callable[..., Tensor]) -> Any:
    """The results for what `example` makes of shapes and dtypes; sizes are those of the trial."""
    filled = functools.partial(_filled, example, sizes, {})
    try:
        given, named = nest.map_structure(filled, [args, kwargs])
        return operation(*given, **named)
    except Exception as error:
        error.add_note(
            f"This happened when '{operation.name}' ({type(operation).__name__}) was tried on zeros to find the shape of its "
            f"output for {', '.join(map(repr, _symbols([args, kwargs])))}."
        )
        raise


def _repeated(numbers: Sequence[int], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A tensor of a shape, filled with these numbers repeatedly."""
    return convert_to_tensor(np.resize(numbers, shape).astype(str if dtype == "string" else dtype.numpy))


def _filled(example: Callable[..., Tensor], sizes: Sizes, measured: dict[int, Any], leaf: Any) -> Any:
    """An argument for a trial; sizes, and what is computed of them, are kept in `measured` by their Nodes."""
    if not isinstance(leaf, KerasTensor):
        return leaf
    node = leaf.node
    if not node.measured:
        return masked(example(sizes.of(leaf), leaf.dtype), leaf.spec.mask_rank)
    if node.number not in measured:
        filled = functools.partial(_filled, example, sizes, measured)
        given, named = nest.map_structure(filled, [node.args, node.kwargs])
        measured[node.number] = nest.flatten(node.operation(*given, **named))
    return measured[node.number][leaf.position]


def _merged(operation: Any, outputs: Sequence[Tensor]) -> Spec:
    """Shape and dtype of an output; None where trials differ."""
    first, *others = outputs
    for other in others:
        if len(first.shape) != len(other.shape):
            raise ShapeError(
                f"'{operation.name}' gives {first.shape} or {other.shape}: its number of axes depends on the batch size."
            )
    shape = tuple([sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*(one.shape for one in outputs), strict=True)])
    return Spec(shape, first.dtype, None if first.attached is None else first.attached.ndim)


class Trial(Interpreter):
    """Calls of a layer, model or Operation that leave no trace. An interpreter: it notes what values Variables are made
    with.
    """

    only_shapes = True

    def __init__(self, operation: Any) -> None:
        self._operation = operation
        self._holders = _holders(operation)
        self.is_of_layer = bool(self._holders)
        self._unbuilt = [(layer, dict(layer.__dict__)) for layer in self._holders if not layer._built]
        self._born: dict[int, tuple[Any, Any]] = {}
        self._building: dict[int, Any] = {}

    def build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Make the weights of a layer for the shapes of the KerasTensors, None for axes of any size."""
        if not (self._operation.built and getattr(self._operation, "_built", True)):
            training, context.training = context.training, False
            try:
                self._operation.build_on_call(args, kwargs)
            finally:
                context.training = training

    def undo(self) -> None:
        """Restore the layers that this trial has built to their unbuilt state."""
        for layer, attributes in self._unbuilt:
            layer._restore(attributes)

    def run(self, call: Callable[[], Any], below: Frame = BOTTOM) -> Any:
        """The result of a call on top of `below`; state is put back."""
        kept = snapshot(_variables(self._operation))
        losses = [(layer, list(layer.added_losses)) for layer in self._holders]
        complete = all(layer.built for layer in self._holders)
        random_state, training = streams.states(), context.training
        self._born.clear()
        self._building.clear()
        context.training = False
        try:
            with on_top(Frame(self, below)), np.errstate(all="ignore"):
                return call()
        finally:
            context.training = training
            restore((*kept, *self._born.values(), *snapshot(self._building.values())))
            for layer in _holders(self._operation):
                layer.added_losses.clear()
            for layer, values in losses:
                layer.added_losses.extend(values)
            if complete:  # else the first weights have drawn from the streams, and what comes next must not draw the same
                streams.set_states(random_state)

    def observe(self, primitive: Any, inputs: Sequence[Any], params: dict[str, Any], outputs: Any, below: Any) -> None:
        """Note the value that a Variable is made with, or has once its layer is built. Assignments come after this."""
        if State.OPERANDS not in primitive.writes:
            return
        key = outputs.key
        if params["conversion"] is Write.INITIAL:
            self._born[key] = (outputs, outputs.array)
        elif context.is_building:
            self._building[key] = outputs
        elif key in self._building:
            self._born[key] = (self._building.pop(key), outputs.array)


def _holders(operation: Any) -> list[Any]:
    """The layer and all within it; none for an Operation."""
    return [operation, *operation.collect_contents().sublayers] if hasattr(operation, "collect_contents") else []


def _variables(operation: Any) -> list[Any]:
    """All Variables of a layer, those of its metrics included."""
    if not hasattr(operation, "collect_contents"):
        return []
    contents = operation.collect_contents()
    return [*contents.variables, *(variable for metric in contents.metrics for variable in metric.variables)]


def returned_none(layer: Any) -> str:
    """The message for a layer or model that returned None instead of a tensor."""
    return f"'{layer.name}' ({type(layer).__name__}) returned None, a tensor is needed. Does its `call` end without `return`?"


# Rules -----------------------------------------------------------------------------------------------------------------

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
        specs = [one.spec for one in nest.flatten(graph.outputs)]
        return (specs, nest.pack(graph.outputs, list(range(len(specs))))) if same else None
    rule = getattr(type(operation), "compute_output_shape", None)
    if rule is None or hasattr(operation, "_graph") or hasattr(operation, "function"):
        return None
    shapes = nest.map_structure(lambda one: one.shape, args[0])
    options = {name: kwargs[name] for name in inspect.signature(rule).parameters if name in kwargs}
    shape = tuple(operation.compute_output_shape(shapes, **options))
    if any(isinstance(size, (tuple, list)) for size in shape):  # of several outputs
        return None
    return with_mask(operation, args, [Spec(shape, _dtype(operation, _symbols(args)))]), 0


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
    limits.check_temporary(8 * elements, what)
    limits.spend_work(elements // 500, what)


def cost_of_matrices(shapes: list[tuple[int, ...]], given: Any) -> tuple[int, int]:
    """Elements of the result and multiplications of a factorization of matrices."""
    elements = sum(map(math.prod, shapes))
    return elements, elements * 20 * max(max(shape[-2:], default=1) for shape in shapes)


def identities(shape: ShapeLike, dtype: DTypeLike) -> Tensor:
    """Matrices that have an inverse, to try functions on."""
    return eye(shape[-2], shape[-1], shape[:-2], dtype) if len(shape) > 1 else zeros(shape, dtype)


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
