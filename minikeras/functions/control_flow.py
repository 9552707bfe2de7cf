"""TensorFlow's functional control flow: only the branch or the iterations that happen are recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import nest
from ..core import Batch, BatchedTensor, Tensor, all_values, convert_to_tensor, only_shapes
from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..nn_ops.scan import counted_loop
from ..nn_ops.scan import scan as repeated
from ..types import DTypeLike, TensorLike, TensorShape, as_dtype
from .catalogue import row
from .creation import zeros
from .elementwise import logical_or, where
from .operands import integer, static_shape, tensor
from .shaping import concat, expand_dims, split, stack, unstack

# `tf.TensorArray`: a list of tensors of one dtype, written and read by number.


class TensorArray:
    """A list of tensors of one dtype, and of one shape unless `infer_shape` is False.

    `write`, `unstack`, `scatter` and `split` change it and return it, so that code written for graphs runs.

    Args:
        dtype: of the elements.
        size: how many there are, 0 by default.
        dynamic_size: whether writing beyond the end makes it longer.
        clear_after_read: whether an element can be read only once.
        infer_shape: whether all elements must have one shape.
        element_shape: that shape, if it is known.
        tensor_array_name, handle, flow, colocate_with_first_write_call, name: accepted for compatibility, ignored.

    >>> array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    >>> for i in range(3):
    ...     array = array.write(i, tf.constant(i * i, tf.float32))
    >>> print(array.stack().numpy())
    [0. 1. 4.]
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: int | Sequence[int] | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype = as_dtype(dtype)
        self.dynamic_size = bool(dynamic_size)
        self._once = clear_after_read is None or bool(clear_after_read)
        self._infers = bool(infer_shape)
        self._shape = TensorShape(element_shape)
        count = 0 if size is None else integer(size)
        if count < 0:
            raise InvalidArgumentError(f"TensorArray: size must be 0 or more, found {count}.")
        self._elements: list[Tensor | None] = [None] * count
        self._read: set[int] = set()

    @property
    def element_shape(self) -> TensorShape:
        """The shape that all elements have, as far as it is known."""
        return self._shape

    def size(self, name: str | None = None) -> Tensor:
        """Number of elements."""
        return convert_to_tensor(len(self._elements), "int32")

    def __len__(self) -> int:
        return len(self._elements)

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set an element.

        Raises:
            InvalidArgumentError: if there is no such place, or the shape differs from that of the others.
            DTypeError: if the dtype differs.
        """
        place, element = integer(index), convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        if element.dtype != self.dtype:
            raise DTypeError(f"TensorArray.write: it holds {self.dtype.name}, found {element.dtype.name}. Use tf.cast.")
        if place < 0 or (place >= len(self._elements) and not self.dynamic_size):
            raise InvalidArgumentError(
                f"TensorArray.write: index {place} of {len(self._elements)} elements. Give a larger size, or dynamic_size=True."
            )
        if not self._shape.is_compatible_with(element.shape):
            raise ShapeError(f"TensorArray.write: elements have shape {self._shape}, found {element.shape}; infer_shape=False.")
        if self._infers:
            self._shape = self._shape.merge_with(element.shape)
        self._elements += [None] * (place + 1 - len(self._elements))
        self._elements[place] = element
        self._read.discard(place)
        return self

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """An element; of one that was never written zeros.

        Raises:
            InvalidArgumentError: if there is none, or it was read before and `clear_after_read` holds.
        """
        place = integer(index)
        if not 0 <= place < len(self._elements):
            raise InvalidArgumentError(f"TensorArray.read: index {place} of {len(self._elements)} elements.")
        if place in self._read:
            raise InvalidArgumentError(
                f"TensorArray.read: element {place} was read before, and is cleared then. Give clear_after_read=False."
            )
        element = self._element(place)
        if self._once:
            self._read.add(place)
            self._elements[place] = None
        return element

    def _element(self, place: int) -> Tensor:
        element = self._elements[place]
        if element is not None:
            return element
        if not self._shape.is_fully_defined():
            raise InvalidArgumentError(f"TensorArray: element {place} was never written, and its shape is not known.")
        return zeros(self._shape, self.dtype)

    def stack(self, name: str | None = None) -> Tensor:
        """All elements along a new first axis."""
        return self.gather(range(len(self._elements)))

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Some elements along a new first axis."""
        chosen = [self._element(place) for place in static_shape(indices)]
        return stack(chosen) if chosen else zeros((0, *self._shape), self.dtype)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements along their first axis."""
        return concat([self._element(place) for place in range(len(self._elements))], 0)

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set all elements to the slices of a tensor."""
        slices = unstack(tensor(value))
        return self.scatter(range(len(slices)), slices)

    def scatter(self, indices: Any, value: TensorLike, name: str | None = None) -> TensorArray:
        """Set some elements to the slices of a tensor."""
        slices = value if isinstance(value, list) else unstack(tensor(value))
        before = self._elements[:], self._shape, self._read.copy()
        try:
            for place, one in zip(static_shape(indices), slices, strict=True):
                self.write(place, one)
        except Exception:
            self._elements, self._shape, self._read = before
            raise
        return self

    def split(self, value: TensorLike, lengths: Any, name: str | None = None) -> TensorArray:
        """Set all elements to pieces of a tensor, of these lengths along the first axis."""
        self._infers = False
        return self.scatter(range(len(static_shape(lengths))), split(tensor(value), lengths))

    def identity(self) -> TensorArray:
        """The array itself."""
        return self

    def close(self, name: str | None = None) -> None:
        """Let go of all elements."""
        self._elements = []


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if the scalar predicate holds, else of `false_fn()`.

    Inside `vectorized_map` both run if the predicate differs between slices, and each slice gets what its predicate says.

    >>> tf.cond(tf.constant(True), lambda: 1, lambda: 2)
    1
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("cond: true_fn and false_fn must be functions without arguments.")
    predicate = tensor(pred)
    if isinstance(predicate, BatchedTensor):
        return _chosen(predicate, true_fn(), false_fn())
    return true_fn() if bool(predicate) else false_fn()


def _chosen(predicate: Tensor, first: Any, second: Any) -> Any:
    """For many slices at once: a nest of elements of `first` where the predicate of the slice holds, else of `second`."""
    try:
        return nest.map_structure(lambda one, other: where(predicate, one, other), first, second)
    except (ValueError, TypeError) as error:
        error.add_note("Inside vectorized_map slices may take either branch, so both must give the same nest and dtypes.")
        raise


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    >>> tf.case([(tf.constant(False), lambda: 1), (tf.constant(True), lambda: 2)])
    2
    """
    pairs = [(tensor(predicate), function) for predicate, function in pred_fn_pairs]
    if any(isinstance(holds, BatchedTensor) for holds, _ in pairs):
        return _case_of_each(pairs, default)
    for holds, function in pairs:
        if bool(holds):
            return function()
    if default is None:
        raise ValueError("case: no predicate holds and there is no default.")
    return default()


def _case_of_each(pairs: list[tuple[Tensor, Callable[[], Any]]], default: Callable[[], Any] | None) -> Any:
    """For many slices at once: the result that belongs to the first predicate that holds for a slice."""
    if default is None and not all_values(functools.reduce(logical_or, [holds for holds, _ in pairs])).all():
        raise ValueError("case: for some slices no predicate holds and there is no default.")
    result = pairs[-1][1]() if default is None else default()
    for holds, function in reversed(pairs):
        result = _chosen(holds, function(), result)
    return result


def switch_case(
    branch_index: TensorLike, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """The result of the function with that index; the last one (or `default`) if there is none.

    >>> tf.switch_case(tf.constant(1), [lambda: "a", lambda: "b"])
    'b'
    """
    branches = (
        dict(branch_fns)
        if isinstance(branch_fns, Mapping) or (branch_fns and isinstance(branch_fns[0], tuple))
        else dict(enumerate(branch_fns))
    )
    if sorted(branches) != list(range(len(branch_fns))) or not branches:
        raise ValueError(f"switch_case: the indices of branches must be 0, 1, ... without gaps, found {list(branches)}.")
    fallback: Callable[[], Any] = branches[max(branches)] if default is None else default
    index = tensor(branch_index)
    if not index.dtype.is_integer or index.ndim:
        raise DTypeError(f"switch_case: branch_index must be one integer, found {index.dtype.name}{list(index.shape)}.")
    if isinstance(index, BatchedTensor):
        result = fallback()
        for number, function in branches.items():
            result = _chosen(index == number, function(), result)
        return result
    return branches.get(int(index), fallback)()


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: int | None = None,
    name: str | None = None,
) -> Any:
    """Apply `body` to the loop variables as long as `cond` of them holds.

    Args:
        cond: a function of the loop variables that gives a scalar bool.
        body: a function of the loop variables that gives a nest like them; a single one may come alone.
        loop_vars: list or tuple of tensors or nests of them.
        maximum_iterations: an upper bound on the number of steps.
        shape_invariants, parallel_iterations, back_prop, swap_memory: accepted for compatibility, ignored.

    Within a `tf.function` the loop is one operation, if integers that are known there decide about each step; then `cond` and
    `body` run twice, to be recorded.

    Returns:
        What `body` gave last, in a container like `loop_vars`. Each slice of a `vectorized_map` has its own last step.

    Raises:
        ValueError, TypeError: if `body` gives another structure than the loop variables have.

    >>> [int(v) for v in tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])]
    [3]
    """
    values, steps, inferred = list(loop_vars), 0, only_shapes()
    most = None if maximum_iterations is None else int(maximum_iterations)

    def following(now: list[Any]) -> list[Any]:
        result = body(*now)
        after = list(result) if isinstance(result, (list, tuple)) else [result]
        nest.assert_same_structure(now, after)
        return after

    def turn(leaves: list[Any]) -> tuple[list[Any], Any]:
        now = nest.pack(values, leaves)
        going = cond(*now)
        return nest.flatten(following(now)), going

    found = counted_loop(turn, nest.flatten(values), most)
    while found is None and (most is None or steps < most):
        going = tensor(cond(*values))
        batched = isinstance(going, BatchedTensor)
        if not (all_values(going).any() if batched else bool(going) or (inferred and not steps)):
            break
        after = following(values)
        fixed = inferred and _shapes(values) == _shapes(after)
        values = _chosen(going, after, values) if batched else after
        steps += 1
        if fixed:  # values may never end the loop
            break
    if found is not None:
        values = nest.pack(values, found)
    else:
        values = nest.map_structure(lambda value: value if isinstance(value, TensorArray) else tensor(value), values)
    return type(loop_vars)(*values) if hasattr(loop_vars, "_fields") else type(loop_vars)(values)


def _shapes(values: Any) -> list[Any]:
    """The shapes of what a loop carries; that of a TensorArray, whose elements are written in turn, equals no other."""
    return [object() if hasattr(leaf, "stack") else tensor(leaf).shape for leaf in nest.flatten(values)]


def _with_one_size(name: str, elems: Any) -> list[Tensor]:
    """The tensors of a nest, whose first axes have one size.

    Raises:
        ValueError: if a tensor has no first axis, or the first axes differ.
    """
    leaves = [tensor(leaf) for leaf in nest.flatten(elems)]
    sizes = {leaf.shape[0] if leaf.ndim else None for leaf in leaves}
    if len(sizes) != 1 or None in sizes:
        raise ShapeError(
            f"{name}: elems must be 1+ dimensional Tensors, not scalars, with one size of the first axis; found shapes "
            f"{[list(leaf.shape) for leaf in leaves]}. A list is a nest of tensors: tf.constant([1, 2]) in place of [1, 2]."
        )
    return leaves


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: DTypeLike = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each slice along the first axis, stacked.

    Args:
        fn: a function of one slice, a nest like `elems`, that gives the same nest of tensors for each.
        elems: tensor or nest of tensors with one size of the first axis.
        dtype, fn_output_signature: the dtypes of the results, a nest like them; numbers are converted. As found if None.
        parallel_iterations, back_prop, swap_memory, infer_shape: accepted for compatibility, ignored.

    Raises:
        ValueError, TypeError: if the results are nested differently, or are not of the dtypes asked for.

    >>> print(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0])).numpy())
    [1. 4.]
    """
    kinds = dtype if fn_output_signature is None else fn_output_signature
    leaves = _with_one_size("map_fn", elems)
    slices = [nest.pack(elems, [leaf[i] for leaf in leaves]) for i in range(leaves[0].shape[0])]
    if not slices:
        return _of_no_slices(fn, elems, kinds)
    results = [fn(element) for element in slices]
    found = results if kinds is None else [_of_dtypes(result, kinds) for result in results]
    return nest.pack(found[0], [stack(list(column)) for column in nest.pair(*found)])


def _of_dtypes(result: Any, kinds: Any) -> Any:
    """A nest of results as tensors of the dtypes of a nest like it."""
    return nest.map_structure(lambda kind, one: convert_to_tensor(one, getattr(kind, "dtype", kind)), kinds, result)


def _of_no_slices(fn: Callable[[Any], Any], elems: Any, kinds: Any) -> Any:
    """Stack of no results: `fn` of a stack without slices says the shapes, unless it needs values."""
    try:
        result = vectorized_map(fn, elems)
    except InvalidArgumentError:
        like = nest.map_structure(lambda leaf: tensor(leaf).dtype, elems) if kinds is None else kinds
        return nest.map_structure(lambda kind: zeros([0], getattr(kind, "dtype", kind)), like)
    return result if kinds is None else _of_dtypes(result, kinds)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All intermediate results of folding `fn(accumulated, element)` over the slices, stacked.

    Args:
        fn: gives the next accumulated nest, nested like the one before.
        elems: tensor or nest of tensors with one size of the first axis.
        initializer: the first accumulated value; the first slice if None.
        reverse: begin with the last slice.
        parallel_iterations, back_prop, swap_memory, infer_shape: accepted for compatibility, ignored.

    Raises:
        InvalidArgumentError: if there are neither slices nor an initializer.
        ValueError, TypeError: if `fn` gives another structure than is accumulated.

    `fn` runs twice, to be recorded, and what it does with tensors is repeated without it; if it draws random numbers, assigns
    Variables or asks for values, it runs for each slice.

    >>> print(tf.scan(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy())
    [1. 3. 6.]
    """
    return _accumulated("scan", fn, elems, initializer, reverse)[1]


def _accumulated(name: str, fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, reverse: bool) -> tuple[Any, Any]:
    """The last accumulated value, and the stack of the values of all steps: one loop over a recorded step."""
    leaves = _with_one_size(name, elems)
    if initializer is None:
        if not leaves[0].shape[0]:
            raise InvalidArgumentError(f"{name}: there are no slices to begin with. Give an initializer.")
        place, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
        first, leaves = nest.pack(elems, [leaf[place] for leaf in leaves]), [leaf[rest] for leaf in leaves]
    else:
        first = nest.map_structure(tensor, initializer)

    def step(carried: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        accumulated = nest.pack(first, carried)
        following = fn(accumulated, nest.pack(elems, slices))
        nest.assert_same_structure(accumulated, following)
        return (found := [tensor(leaf) for leaf in nest.flatten(following)]), found

    start = nest.flatten(first)
    if leaves[0].shape[0]:
        last, rows = repeated(step, start, leaves, leaves[0].shape[0], reverse)
    else:
        last, rows = start, [zeros([0, *one.shape], one.dtype) for one in start]
    if initializer is None:
        own = [expand_dims(one, 0) for one in start]
        rows = [concat([row, one] if reverse else [one, row], 0) for one, row in zip(own, rows, strict=True)]
    return nest.pack(first, last), nest.pack(first, rows)


def grad_pass_through(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function with the values of `f` and the gradient of the identity.

    >>> x = tf.Variable(2.5)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.grad_pass_through(tf.round)(x)
    >>> print(y.numpy(), tape.gradient(y, x).numpy())
    2.0 1.0
    """
    from ..core.ops.arithmetic import stop_gradient

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
        elems: tensor or nest of tensors with one size of the first axis; a size of 1 stands beside each slice of the others.
        fallback_to_while_loop, warn: accepted for compatibility, ignored.

    Raises:
        ShapeError: if the first axes differ.
        InvalidArgumentError: if `fn` asks for the Python value of a slice.

    >>> rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> print(tf.vectorized_map(lambda row: tf.reduce_sum(row * row), rows).numpy())
    [ 5. 25.]
    """
    leaves = [tensor(leaf) for leaf in nest.flatten(elems)]
    sizes = {leaf.shape[0] if leaf.ndim else -1 for leaf in leaves}
    if len(sizes - {1}) > 1 or -1 in sizes or not sizes:
        raise ShapeError(
            "vectorized_map: all first axes must have one size, or 1 to stand beside each slice of the others; found shapes "
            f"{[list(leaf.shape) for leaf in leaves]}."
        )
    size = next((size for size in sizes if size != 1), 1)
    batch = Batch(size)
    with batch:
        slices = [BatchedTensor(leaf, batch) if leaf.shape[0] == size else leaf[0] for leaf in leaves]
        result = fn(nest.pack(elems, slices))
        whole = [tensor(leaf) for leaf in nest.flatten(result)]
    return nest.pack(result, [batch.stack_of(leaf) for leaf in whole])


# fmt: off
foldl = row("foldl",
    lambda fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None:
        _accumulated("foldl", fn, elems, initializer, False)[0],
    "The last result of folding `fn(accumulated, element)` over the slices; arguments and errors as for `scan`.",
    "print(tf.foldl(lambda total, x: total + x, tf.constant([1.0, 2.0, 3.0])).numpy()) -> 6.0",
    returns="Any", types={"fn": "Callable[[Any, Any], Any]"})
foldr = row("foldr",
    lambda fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None:
        _accumulated("foldr", fn, elems, initializer, True)[0],
    "`foldl` beginning with the last slice.",
    "print(tf.foldr(lambda total, x: 10.0 * total + x, tf.constant([1.0, 2.0, 3.0])).numpy()) -> 321.0",
    returns="Any", types={"fn": "Callable[[Any, Any], Any]"})
# fmt: on
