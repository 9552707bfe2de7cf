"""The inputs of a layer: their shapes against an `InputSpec`, which knows the weight that fixed it, and their masks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import nest
from ...boundary import shown
from ...core import Tensor, warn_caller
from ...errors import DTypeError, ShapeError, kind_of
from ...functions import expand_dims, identity, squeeze
from ...module import Module
from ...types import DTypeLike, TensorLike, as_dtype
from ..calls import mask_of


class CallSpec(NamedTuple):
    """The parameters of the `call` of a class of layers.

    Attributes:
        names: of its arguments.
        input_name: of the first one, if it may be given by name as well as by position.
        takes_training, takes_mask: whether it takes arguments of these names.
        masks: names of further masks, such as 'query_mask' for the argument `query`.
        training: the default of `training`.
        takes_one_tensor: whether it takes one tensor, so that a list of several is a mistake; the class says so.
    """

    names: tuple[str, ...] = ()
    input_name: str | None = None
    takes_training: bool = False
    takes_mask: bool = False
    masks: tuple[str, ...] = ()
    training: bool | None = None
    takes_one_tensor: bool = False

    @classmethod
    def of(cls, call: Callable[..., Any]) -> CallSpec:
        """The spec of a method `call`."""
        parameters = dict(list(inspect.signature(call).parameters.items())[1:])
        names, training = tuple(parameters), parameters.get("training")
        named = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
        default = None if training is None or training.default is training.empty else training.default
        masks = tuple(name for name in names if name.endswith("_mask"))
        return cls(names, named[0] if named else None, training is not None, "mask" in parameters, masks, default)


@dataclass(eq=False, repr=False)
class InputSpec:
    """Rank, dtype and sizes that a layer expects of an input.

    Args:
        dtype: the required dtype.
        shape: the required shape; None for an axis of any size.
        ndim, max_ndim, min_ndim: the required number of axes.
        axes: sizes of single axes, by their position.
        allow_last_axis_squeeze: whether a last axis of size 1 may be missing, or be there although the shape lacks it.
        name: of the input, where they come in a dict.
        optional: whether None may stand for it.
        fixed_by: the weight whose shape makes it so, for messages.

    >>> tf.keras.layers.InputSpec(min_ndim=2, axes={-1: 3})
    InputSpec(min_ndim=2, axes={-1: 3})
    """

    dtype: DTypeLike = None
    shape: Any = None
    ndim: int | None = None
    max_ndim: int | None = None
    min_ndim: int | None = None
    axes: Any = None
    allow_last_axis_squeeze: bool = False
    name: str | None = None
    optional: bool = False
    fixed_by: Any = None

    def __post_init__(self) -> None:
        self.dtype = None if self.dtype is None else as_dtype(self.dtype).name
        if self.shape is not None:
            self.shape, self.ndim = tuple(self.shape), len(self.shape)
        try:
            self.axes = {int(axis): size for axis, size in (self.axes or {}).items()}
        except (AttributeError, TypeError, ValueError):
            raise TypeError(f"InputSpec: axes must be a dict of position and size, found {self.axes!r}.") from None
        rank = self.ndim if self.ndim is not None else self.max_ndim
        if rank is not None and any(not -rank <= axis < rank for axis in self.axes):
            raise ValueError(f"InputSpec: axes {sorted(self.axes)} are out of range for {rank} axes.")

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments, without the weight."""
        names = ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes", "optional")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> InputSpec:
        """A specification from `get_config`."""
        return cls(**config)

    def __repr__(self) -> str:
        said = [f"{name}={value}" for name, value in self.get_config().items() if value]
        return f"InputSpec({', '.join(said)})"

    def complaint(self, shape: tuple[Any, ...]) -> str | None:
        """The expectation that a shape fails, in words, or None if it fits; None in a shape fits any size."""
        wanted, found = self.shape, shape
        if self.allow_last_axis_squeeze and wanted is not None:
            wanted, found = _squeezed(wanted), _squeezed(found)
        rank = len(found)
        if wanted is not None and rank != len(wanted):
            return f"shape {self.shape}"
        if wanted is None and self.ndim is not None and rank != self.ndim:
            return f"{self.ndim} axes{self._sizes()}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"at least {self.min_ndim} axes{self._sizes()}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"at most {self.max_ndim} axes"
        for axis, size in self.axes.items():
            if size is not None and (not -rank <= axis < rank or found[axis] not in (size, None)):
                return f"size {size} along axis {axis}"
        if wanted is not None and any(None not in (w, f) and w != f for w, f in zip(wanted, found, strict=True)):
            return f"shape {self.shape}"
        return None

    def _sizes(self) -> str:
        sizes = [f"size {size} along axis {axis}" for axis, size in self.axes.items() if size is not None]
        return f" with {' and '.join(sizes)}" if sizes else ""


def _squeezed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return shape[:-1] if shape and shape[-1] == 1 else shape


def check(layer: Any, specs: Any, inputs: TensorLike) -> None:
    """Check inputs against the expectations of a layer.

    Raises:
        ShapeError: with the layer, its path, what is expected, what was found, and the weight that made it so.
        DTypeError: if the dtype is another one.
        ValueError: if there are more or fewer inputs.
    """
    flat = [spec for spec in nest.flatten(specs)]
    names = [spec.name for spec in flat if spec is not None]
    if isinstance(inputs, Mapping) and len(names) == len(flat) and all(names):
        if missing := [name for name in names if name not in inputs]:
            raise ValueError(f"Missing data for input '{missing[0]}' of layer '{layer.name}': expected {names}.")
        inputs = [inputs[name] for name in names]
    given = nest.flatten(inputs)
    if inputs is None and not any(spec is None or spec.optional for spec in flat):
        raise ValueError(called_on_none(layer))
    if len(given) != len(flat):
        raise ValueError(f"Layer '{layer.name}' expects {len(flat)} input(s), but it received {len(given)} input tensors.")
    for position, (x, spec) in enumerate(zip(given, flat, strict=True)):
        if spec is None or (x is None and spec.optional):
            continue
        shape = tuple(x.shape)
        expected = spec.complaint(shape)
        if expected is not None:
            which = "inputs" if len(flat) == 1 else f"input {spec.name or position}"
            found = f"{which} of shape {shape}.{_advice(spec, shape)}"
            raise ShapeError(f"{_introduced(layer, spec)} expected {expected} and found {found}")
        if spec.dtype is not None and x.dtype.name != spec.dtype:
            raise DTypeError(f"{_introduced(layer, spec)} expected dtype {spec.dtype} and found {x.dtype.name}.")


def _advice(spec: InputSpec, shape: tuple[Any, ...]) -> str:
    """Advice about a shape that lacks an axis."""
    text = ""
    if spec.complaint((None, *shape)) is None and shape[:1] != (None,):
        text += f" A single row needs the batch axis: shape {(1, *shape)}."
    if spec.complaint((*shape, 1)) is None and len(shape) > 1:
        text += f" One feature or channel needs an axis of its own: shape {(*shape, 1)}."
    if 3 in (spec.ndim, spec.min_ndim) and len(shape) == 2:
        text += " A recurrent layer before this one needs return_sequences=True."
    return text


def _introduced(layer: Any, spec: InputSpec) -> str:
    """The layer with its path, and the weight that fixed its expectations."""
    text = f"Layer '{layer.name}' ({layer.path}), {kind_of(layer)},"
    weight = spec.fixed_by
    if weight is None:
        return text
    features = " and ".join(f"{size} features along axis {axis}" for axis, size in spec.axes.items())
    return f"{text} was built for {features} (weight '{weight.path}' has shape {tuple(weight.shape)}); it"


def called(layer: Any) -> str:
    """A layer in messages: by its name and class."""
    return f"Layer '{layer.name}' ({type(layer).__name__})"


def called_on_none(layer: Any) -> str:
    """The message for a layer that needs a tensor and is called on None."""
    return (
        f"'{layer.name}' ({type(layer).__name__}) was called on None, a tensor is needed. Does a `call` or function before it "
        "end without `return`?"
    )


def only_tensor(taker: str, given: Any) -> Any:
    """The tensor in a list, tuple or dict of one, for a layer or input that takes one tensor."""
    leaves = nest.flatten(given)
    if len(leaves) == 1:
        return leaves[0]
    shapes = ", ".join(str(getattr(leaf, "shape", leaf)) for leaf in leaves)
    raise ValueError(
        f"{taker} takes one tensor, and was given {kind_of(given)} of {len(leaves)} with the shapes {shapes}. Join them first, "
        "for example with keras.layers.Concatenate or keras.layers.Add, or call it on each."
    )


def of_rank(x: Tensor, wanted: tuple[int | None, ...]) -> Tensor:
    """A tensor without its last axis of size 1, or with one, if that gives it as many axes as a declared shape has."""
    rank = len(x.array.shape)
    if rank == len(wanted) - 1 and wanted[-1] == 1:
        return expand_dims(x, -1)
    if rank == len(wanted) + 1 and x.array.shape[-1] == 1:
        return squeeze(x, -1)
    return x


# Masks -------------------------------------------------------------------------------------------------------------------


def unmarked(x: TensorLike) -> Any:
    """A tensor without the mask that it carries."""
    return x if mask_of(x) is None else identity(x)


def masks_of(inputs: TensorLike) -> Any:
    """The masks of a nest of tensors, None if none carries one."""
    if isinstance(inputs, Tensor):
        return mask_of(inputs)
    if not any(mask_of(leaf) is not None for leaf in nest.flatten(inputs)):
        return None
    return nest.map_structure(mask_of, inputs)


def attach(masks: Any, outputs: Any) -> None:
    """Let tensors carry masks; those that carry one already keep it."""
    for x, mask in zip(nest.flatten(outputs), nest.flatten(masks), strict=False):
        if mask is not None and isinstance(x, Tensor) and mask_of(x) is None:
            x.attached = mask


def marked(inputs: TensorLike, mask: TensorLike) -> Any:
    """The inputs, carrying the masks that were given by hand."""
    if mask is None:
        return inputs
    carried = [mask_of(x) for x in nest.flatten(inputs)]
    if all(given is own for given, own in zip(nest.flatten(mask), carried, strict=False)):
        return inputs
    carrying = nest.map_structure(lambda x: None if x is None else identity(x), inputs)
    attach(nest.flatten(mask), carrying)
    return carrying


def pass_masks(layer: Any, x: TensorLike, outputs: Any, masks: Any) -> None:
    """Let the outputs carry the masks that `compute_mask` has for them."""
    if layer.supports_masking:
        attach(layer.compute_mask(x, masks), outputs)
    elif masks is not None and not layer.call_spec.takes_mask and not layer.collect_contents().sublayers:
        warn_caller(
            f"{called(layer)} was given an input that carries a mask, but it does not support "
            "masks, so the layers after it do not see the mask. Set supports_masking = True if it may be passed on."
        )


def unusable(layer: Module, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """The error to raise when an operation failed on inputs; it names them and the layer."""
    given = [*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items() if name != "training")]
    said = f"cannot be called on {', '.join(given) or 'nothing'} ({type(error).__name__}: {error})"
    kind = ValueError if isinstance(error, ValueError) else TypeError
    return kind(f"{called(layer)} {said}. See help({type(layer).__name__}) for what it takes.")
