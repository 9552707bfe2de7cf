"""Arguments of a tape, checked before the sweep: targets, sources, seeds, and the values of missing gradients."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .. import nest
from ..errors import DTypeError, ShapeError, kind_of
from ..types import TensorLike
from .arrays import namespace
from .convert import convert_to_tensor
from .indexed_slices import IndexedSlices
from .registry import operations
from .tensor import Tensor, arrays_of
from .variable import Variable
from .warnings import describe


class UnconnectedGradients(enum.Enum):
    """The result of `gradient` for a source that the target does not depend on: None or zeros.

    >>> x, y = tf.Variable(1.0), tf.Variable(2.0)
    >>> with tf.GradientTape() as tape:
    ...     z = x * x
    >>> print(tape.gradient(z, y, unconnected_gradients=tf.UnconnectedGradients.ZERO).numpy())
    0.0
    """

    NONE = "none"
    ZERO = "zero"


INSIDE_OWN_BLOCK = (
    "Calling GradientTape.gradient on a persistent tape inside its context is significantly less efficient than "
    "calling it outside the context (it causes the gradient ops to be recorded on the tape, leading to increased "
    "CPU and memory usage). Only call GradientTape.gradient inside the context if you actually want to trace the "
    "gradient in order to compute higher order derivatives."
)


def watchable_leaves(structure: Any) -> list[Any]:
    """The leaves of a nest that a tape is asked to watch."""
    leaves = nest.flatten(structure)
    for leaf in leaves:
        if not isinstance(leaf, (Tensor, Variable)):
            raise ValueError(
                f"Passed in object {leaf} of type '{type(leaf).__name__}', not tf.Tensor or tf.Variable or ExtensionType."
            )
    return leaves


def checked_chunk_size(chunk_size: int | None) -> int | None:
    """The number of cotangents to carry at once; None for all.

    Raises:
        ValueError: if it is less than one.
    """
    if chunk_size is None:
        return None
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, (int, np.integer)):
        raise TypeError(f"chunk_size: an integer or None is needed, found {chunk_size!r}.")
    if chunk_size < 1:
        raise ValueError(f"chunk_size: at least one row is carried at once, found {chunk_size}. Leave it out to carry all.")
    return int(chunk_size)


def one_target(name: str, target: Any, sources: Any, single: bool = False) -> list[Any]:
    """The leaves of the sources, after checking that the target is one Tensor or Variable."""
    if not isinstance(target, (Tensor, Variable)):
        raise TypeError(
            f"{name}: the target is {kind_of(target)}; give one Tensor at a time: stack or concat them, or call it for "
            "each target on a persistent tape."
        )
    if single and not isinstance(sources, (Tensor, Variable)):
        raise TypeError(f"{name}: the source is {kind_of(sources)}, expected one Tensor or Variable.")
    return differentiable_leaves("source", sources)


def common_batch(target: Any, source: Any) -> int:
    """The size of the first axis that target and source have in common."""
    for role, value in (("target", target), ("source", source)):
        if value.ndim == 0:
            raise ScalarBatchError(
                f"batch_jacobian: the {role} has shape (), the target {target.shape} and the source {source.shape}; a scalar "
                "has no batch axis. Use gradient()."
            )
    if target.shape[0] != source.shape[0]:
        raise ValueError(f"Need first dimension of target shape ({target.shape}) and source shape ({source.shape}) to match.")
    for value in (target, source):
        if value.ndim < 2:
            raise ValueError(f"Shape {value.shape} must have rank at least 2.")
    return int(target.shape[0])


class ScalarBatchError(ValueError, IndexError):
    """A scalar was given where a batch axis is needed; TensorFlow raises an IndexError there."""


def absent_jacobian(shape: tuple[int, ...], source: Any, fill: UnconnectedGradients) -> Tensor | None:
    """The Jacobian of an unconnected source: None or zeros."""
    if fill is UnconnectedGradients.NONE:
        return None
    return Tensor(namespace(source.array).zeros(shape, dtype=source.array.dtype))


def unconnected_choice(choice: UnconnectedGradients | str) -> UnconnectedGradients:
    if type(choice) is UnconnectedGradients:
        return choice
    try:
        return UnconnectedGradients(choice)
    except ValueError:
        raise ValueError(f"Unknown value for unconnected_gradients: {choice!r}") from None


def differentiable_leaves(role: str, structure: Any) -> list[Any]:
    """The leaves of a nest, each of them a Tensor or Variable."""
    if type(structure) is Tensor:
        return [structure]
    if role == "target" and structure is None:
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or CompositeTensors to be "
            "differentiated, but received None."
        )
    leaves = nest.flatten(structure)
    for position, leaf in enumerate(leaves):
        if not isinstance(leaf, (Tensor, Variable)):
            raise TypeError(f"gradient: {role} {position} is {kind_of(leaf)}, not a Tensor or Variable. {_remedy(role, leaf)}")
    return leaves


def _remedy(role: str, leaf: Any) -> str:
    """The advice for a target or source that is no Tensor."""
    if role == "target" and isinstance(leaf, (int, float, np.ndarray, np.generic)):
        return (
            "NumPy's functions, float() and .numpy() leave the tape: compute with those of tf instead, such as tf.reduce_sum "
            "for np.sum and tf.math.log for np.log."
        )
    return "Convert it with tf.constant and watch it."


def seeds_of(
    structure: Any, targets: Sequence[Any], given: Any, sources: Sequence[int], bare: bool, tracked: Collection[int] = ()
) -> dict[int, Any]:
    """The cotangent of each target, by key: ones, or what the caller gave. A target named twice counts twice.

    What has no derivative carries no cotangent, unless it is a source itself (there is no one among strings) or was made by an
    operation that has to refuse.
    """
    values = [None] * len(targets) if given is None else _parallel(structure, targets, given)
    seeds: dict[int, Any] = {}
    for target, value in zip(targets, values, strict=True):
        asked = target.key in sources or target.key in tracked
        if not target.dtype.is_differentiable and (not asked or target.dtype.name == "string"):
            continue
        if given is None:
            seed = operations.ones_like(arrays_of(target) if bare and isinstance(target, Tensor) else Tensor(target.array))
        else:
            seed = _given_seed(value, target)
        if bare:
            seed = arrays_of(seed)
        seeds[target.key] = operations.add(seeds[target.key], seed) if target.key in seeds else seed
    return seeds


def _parallel(structure: Any, targets: Sequence[Any], given: Any) -> list[Any]:
    """The output_gradients, one for each target: by key, else in order; a list of numbers may stand for a tensor."""
    values = nest.flatten(given)
    keyed = nest.holds_mapping(structure) or nest.holds_mapping(given)
    if len(values) == len(targets) and not keyed:
        return values
    with contextlib.suppress(ValueError):
        return nest.flatten_up_to(structure, given)
    asked = f"{len(values)} output_gradients for {len(targets)} targets; give one for each"
    if keyed:
        asked += f", nested alike. The target is {_outline(structure)}, output_gradients is {_outline(given)}"
    raise ValueError(f"gradient: {asked}.")


def _outline(structure: Any) -> str:
    """A nest without its values."""
    return repr(nest.map_structure(lambda leaf: ..., structure)).replace("Ellipsis", "...")


def _given_seed(value: Any, target: Any) -> Tensor:
    if value is None:
        raise ValueError("gradient: None among the output_gradients; give a tensor for each target, zeros to leave it out.")
    seed = convert_to_tensor(value, None if isinstance(value, (Tensor, Variable)) else target.dtype)
    if seed.shape != target.shape or seed.dtype != target.dtype:
        raise (ShapeError if seed.dtype == target.dtype else DTypeError)(
            f"gradient: an output_gradient is {describe(seed)}, its target {describe(target)}; they must be alike."
        )
    return operations.identity(seed, device=target.device) if seed.device != target.device else seed


def finished(cotangent: TensorLike, source: Any, fill: UnconnectedGradients, bare: bool) -> Tensor | IndexedSlices | None:
    """A cotangent as the Tensor to return, or what stands for a missing one."""
    if cotangent is not None:
        if type(cotangent) is IndexedSlices:
            return cotangent.lifted()
        return Tensor(cotangent) if bare else cotangent
    if fill is UnconnectedGradients.ZERO:
        return operations.zeros_like(Tensor(source.array))
    return None
