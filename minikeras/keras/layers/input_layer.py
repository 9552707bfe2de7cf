"""InputLayer and Input: the entrance of a model."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...functions.elementwise import cast
from ...types import as_dtype
from ..config import floatx
from ..symbolic.keras_tensor import KerasTensor, Node, Spec, nodes_of
from .inputs import called_on_none
from .layer import Layer


class InputLayer(Layer, described=True, takes_one_tensor=True):
    """The shape and dtype of the data at the entrance of a model; `keras.Input` makes one.

    Args:
        shape, batch_size, dtype, batch_shape, optional, sparse, ragged: as in `keras.Input`.
        options: `name`, as in `Layer`; `input_shape` and `batch_input_shape`, older names of `shape` and `batch_shape`.

    Raises:
        ValueError: if both or neither of `shape` and `batch_shape` are given.
        NotImplementedError: for sparse or ragged inputs.

    >>> model = tf.keras.Sequential([tf.keras.layers.InputLayer(shape=(4,)), tf.keras.layers.Dense(2)])
    >>> model.built, model.count_params()
    (True, 10)
    """

    def __init__(
        self,
        shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        batch_shape: Any = None,
        optional: bool = False,
        sparse: bool | None = None,
        ragged: bool | None = None,
        **options: Any,
    ) -> None:
        shape = options.pop("input_shape", shape)
        batch_shape = options.pop("batch_input_shape", batch_shape)
        super().__init__(**options)
        if sparse or ragged:
            raise NotImplementedError("Input: sparse and ragged tensors are not available; give dense ones, padded if need be.")
        if (shape is None) == (batch_shape is None) or (batch_shape is not None and batch_size is not None):
            raise ValueError(
                "Input: give shape=(...), without the batch axis, or batch_shape=(batch, ...), and one of them only; found "
                f"shape={shape}, batch_size={batch_size}, batch_shape={batch_shape}."
            )
        if batch_shape is None:
            batch_shape = (batch_size, *((shape,) if isinstance(shape, int) else shape))
        self.batch_shape = tuple([None if isinstance(n, KerasTensor) or n is None else int(n) for n in batch_shape])
        self.input_dtype = as_dtype(dtype or floatx())
        self._takes_text = self.input_dtype.name == "string"
        self.optional = bool(optional)
        self.autocast = False  # `call` casts
        self._built = True

    @property
    def dtype(self) -> str:
        """The dtype of the data."""
        return self.input_dtype.name

    def passes(self, x: Any) -> bool:
        """True if a call would only return `x`: a tensor without a mask, of its dtype and of the shape that it saw last."""
        return (
            type(x) is Tensor
            and x.array.shape == self._accepted
            and x.array.dtype is self.input_dtype.numpy
            and x.attached is None
        )

    def call(self, inputs: Tensor | None) -> Tensor | None:
        if inputs is None and not self.optional:
            raise ValueError(called_on_none(self))
        return inputs if inputs is None or inputs.array.dtype == self.input_dtype.numpy else cast(inputs, self.input_dtype)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """The shape that was given."""
        return self.batch_shape

    def get_config(self) -> dict[str, Any]:
        return {
            "batch_shape": self.batch_shape,
            "dtype": self.dtype,
            "sparse": False,
            "ragged": False,
            "name": self.name,
            "optional": self.optional,
        }

    def get_build_config(self) -> None:
        """None: there is nothing to build."""


def entrance(layer: InputLayer) -> KerasTensor:
    """The KerasTensor that an InputLayer stands for."""
    nodes = nodes_of(layer)
    node = nodes[0] if nodes else Node(layer, (), {}, [Spec(layer.batch_shape, layer.input_dtype)], 0)
    return node.outputs


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    dtype: Any = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: Any = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor:
    """The entrance of a model: a KerasTensor for layers to be called on, or the first element of a Sequential.

    Args:
        shape: of one row, without the batch axis; None for an axis of any size.
        batch_size: a fixed batch size, or None.
        dtype: of the data; the default float dtype if None.
        sparse, ragged: not available; False or None.
        batch_shape: the shape with the batch axis, instead of `shape` and `batch_size`.
        name: of the layer; made up if None.
        tensor: a KerasTensor to return as it is, or a Tensor whose shape and dtype to take.
        optional: whether None may be given instead of data.

    Raises:
        ValueError: if both or neither of `shape` and `batch_shape` are given.
        NotImplementedError: for sparse or ragged inputs.

    >>> inputs = tf.keras.Input(shape=(4,), name="row")
    >>> inputs
    <KerasTensor shape=(None, 4), dtype=float32, name=row>
    >>> tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs)).count_params()
    10
    """
    if isinstance(tensor, KerasTensor):
        return tensor
    if tensor is not None:
        batch_shape, dtype, shape, batch_size = tuple(tensor.shape), dtype or tensor.dtype, None, None
    return entrance(InputLayer(shape, batch_size, dtype, batch_shape, optional, sparse, ragged, name=name))
