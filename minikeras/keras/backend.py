"""`keras.backend`: questions about dtypes and settings, and the names of Keras 2 that people still use, which are a table over
`keras.ops`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..absent import late
from ..core import Operand, Tensor, convert_to_tensor
from ..errors import ShapeError
from ..functions.catalogue import name_like_definition, row
from ..types import DTypeLike, TensorLike, as_dtype
from .calls import name_scope
from .config import backend, checked_format, epsilon, floatx, image_data_format, set_epsilon, set_floatx, set_image_data_format
from .names import clear_session, get_uid
from .promotion import result_type
from .symbolic import KerasTensor
from .variable import Variable

_UNCHANGED = {
    "ops": """abs all any arange binary_crossentropy cast categorical_crossentropy clip cos dot equal exp eye greater
        greater_equal less less_equal log max maximum mean min minimum not_equal one_hot ones ones_like prod reshape round shape
        sign sin sparse_categorical_crossentropy sqrt square squeeze stack std stop_gradient sum tile transpose var zeros
        zeros_like""",
    "activations": "elu relu sigmoid softmax softplus softsign tanh",
    "random": "dropout truncated_normal",
}
_OPS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (f"{place}.{name}", {}) for place, names in _UNCHANGED.items() for name in names.split()},
    **{name: (f"ops.{name}", {"axis": -1}) for name in ("argmax", "argmin", "concatenate", "expand_dims")},
    **{name: (f"ops.{name}", {"axis": 0}) for name in ("cumprod", "cumsum")},
    "random_normal": ("random.normal", {}),
    "random_uniform": ("random.uniform", {}),
    "gather": ("ops.take", {"axis": 0}),
    "permute_dimensions": ("ops.transpose", {}),
    "pow": ("ops.power", {}),
    "repeat_elements": ("ops.repeat", {}),
    "reverse": ("ops.flip", {}),
}
"""By the name of Keras 2: the present name of the function, and the defaults of its arguments."""


def standardize_dtype(dtype: DTypeLike) -> str:
    """The name of a dtype; None is `floatx()`.

    >>> standardize_dtype(float), standardize_dtype(np.dtype("int8"))
    ('float32', 'int8')
    """
    python = {bool: "bool", int: "int32", float: floatx(), str: "string", "int": "int32", "float": floatx(), None: floatx()}
    known = python.get(dtype) if dtype is None or isinstance(dtype, (type, str)) else None
    return known or as_dtype(dtype).name


def set_value(x: TensorLike, value: Any) -> None:
    """Let a Variable hold a value, in its own dtype.

    >>> x = tf.Variable(1.0)
    >>> tf.keras.backend.set_value(x, 2)
    >>> print(x.numpy())
    2.0
    """
    x.assign(np.asarray(value, x.dtype.numpy))


def batch_set_value(tuples: Iterable[tuple[Any, Any]]) -> None:
    """Let several Variables hold values.

    >>> x, y = tf.Variable(1.0), tf.Variable(2.0)
    >>> tf.keras.backend.batch_set_value([(x, 5.0), (y, 6.0)])
    >>> print(x.numpy(), y.numpy())
    5.0 6.0
    """
    for x, value in tuples:
        set_value(x, value)


def variable(value: Any, dtype: DTypeLike = None, name: str | None = None, constraint: Any = None) -> Variable:
    """A Variable that holds a value.

    >>> print(tf.keras.backend.variable([1.0, 2.0]).numpy())
    [1. 2.]
    """
    made = Variable(convert_to_tensor(value, floatx() if dtype is None else dtype), name=name)
    made.constraint = constraint
    return made


def constant(value: Any, dtype: DTypeLike = None, shape: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """A Tensor of a value, repeated to a shape.

    >>> print(tf.keras.backend.constant(3.0, shape=(2,)).numpy())
    [3. 3.]
    """
    array = np.asarray(value, as_dtype(floatx() if dtype is None else dtype).numpy)
    return convert_to_tensor(array if shape is None else np.broadcast_to(array, tuple(shape)))


def cast_to_floatx(x: TensorLike) -> Any:
    """An array in the default float dtype; a Tensor as a Tensor.

    >>> tf.keras.backend.cast_to_floatx([1, 2])
    array([1., 2.], dtype=float32)
    """
    if isinstance(x, (Operand, KerasTensor)):
        return __getattr__("cast")(x, floatx())
    return np.asarray(x, as_dtype(floatx()).numpy)


def bias_add(x: TensorLike, bias: Any, data_format: str | None = None) -> Any:
    """A bias added to each row: a number for each channel, or one for each element of a row.

    >>> print(tf.keras.backend.bias_add(tf.zeros([1, 2, 1]), [1.0, 2.0], "channels_first").numpy().tolist())
    [[[1.0], [2.0]]]
    """
    shape = np.shape(bias) if isinstance(bias, (list, tuple)) else tuple(bias.shape)
    if len(shape) not in (1, len(x.shape) - 1):
        raise ShapeError(f"bias_add: needs a bias of 1 or {len(x.shape) - 1} axes for {list(x.shape)}, found {list(shape)}.")
    if checked_format(data_format) == "channels_first":
        rest = shape[:-1] if len(shape) > 1 else (1,) * (len(x.shape) - 2)
        bias = __getattr__("reshape")(bias, (1, shape[-1], *rest))
    return x + bias


def batch_dot(x: TensorLike, y: TensorLike, axes: Any = None) -> Any:
    """The sum of products along an axis of each, row by row: of matrices their product; at least (batch, 1).

    Args:
        axes: the axis of both, or a pair of them; by default the last of `x` and the last but one of `y`.

    >>> tf.keras.backend.batch_dot(tf.ones([4, 2, 3]), tf.ones([4, 3, 5])).shape
    TensorShape([4, 2, 5])
    """
    from .ops.arithmetic import einsum

    if axes is None:
        axes = (-1, -1 if len(y.shape) == 2 else -2)
    ranks = len(x.shape), len(y.shape)
    i, j = [axis % rank for axis, rank in zip([axes] * 2 if isinstance(axes, int) else axes, ranks, strict=True)]
    if not i or not j:
        raise ShapeError(f"batch_dot: axes {axes} must lie behind the batch axis of {list(x.shape)} and {list(y.shape)}.")
    first, second = string.ascii_lowercase[: ranks[0]], list("a" + string.ascii_uppercase[: ranks[1] - 1])
    second[j] = first[i]
    kept = first[:i] + first[i + 1 :] + "".join(second[1:j] + second[j + 1 :])
    found = einsum(f"{first},{''.join(second)}->{kept}", x, y)
    return found if kept[1:] else __getattr__("expand_dims")(found, 1)


# fmt: off
is_float_dtype = row("is_float_dtype", lambda dtype: as_dtype(standardize_dtype(dtype)).is_floating,
    "True if a dtype, given in any form, is a float dtype.",
    'is_float_dtype("bfloat16"), is_float_dtype("int32") -> (True, False)', "bool")
is_int_dtype = row("is_int_dtype", lambda dtype: as_dtype(standardize_dtype(dtype)).is_integer,
    "True if a dtype, given in any form, is an integer dtype, signed or unsigned.",
    'is_int_dtype("uint8"), is_int_dtype(bool) -> (True, False)', "bool")
is_keras_tensor = row("is_keras_tensor", lambda x: isinstance(x, KerasTensor),
    "True if a value is a KerasTensor, a symbolic value of a functional model.",
    "is_keras_tensor(tf.keras.Input((2,))), is_keras_tensor(tf.ones([2])) -> (True, False)", "bool", {"x": "object"})
int_shape = row("int_shape", lambda x: tuple(x.shape), "The shape as a tuple, with None for unknown sizes.",
    "tf.keras.backend.int_shape(tf.keras.Input((3,))) -> (None, 3)", "tuple[int | None, ...]")
ndim = row("ndim", lambda x: len(x.shape), "The number of axes.", "tf.keras.backend.ndim(tf.zeros([2, 3])) -> 2", "int")
dtype = row("dtype", lambda x: standardize_dtype(x.dtype), "The name of the dtype.",
    "tf.keras.backend.dtype(tf.constant([1, 2])) -> 'int32'", "str")
count_params = row("count_params", lambda x: math.prod(x.shape), "The number of elements.",
    "tf.keras.backend.count_params(tf.zeros([2, 3])) -> 6", "int")
get_value = eval = row("get_value", lambda x: x.numpy() if isinstance(x, Operand) else x, "The values as an array.",
    "get_value(tf.Variable([1.0, 2.0])) -> array([1., 2.], dtype=float32)", "Any")
batch_get_value = row("batch_get_value", lambda tensors: [get_value(x) for x in tensors], "The values of several.",
    "tf.keras.backend.batch_get_value([tf.Variable(1.0), tf.Variable([2.0, 3.0])]) -> [np.float32(1.0), array([2., 3.], "
    "dtype=float32)]", "list[Any]", {"tensors": "Iterable[Any]"})
update = row("update", lambda x, new_x: x.assign(new_x), "`x.assign(new_x)`.",
    "print(tf.keras.backend.update(tf.Variable(1.0), 4.0).numpy()) -> 4.0", "Any", {"new_x": "Any"})
update_add = row("update_add", lambda x, increment: x.assign_add(increment), "`x.assign_add(increment)`.",
    "print(tf.keras.backend.update_add(tf.Variable(1.0), 4.0).numpy()) -> 5.0", "Any", {"increment": "Any"})
update_sub = row("update_sub", lambda x, decrement: x.assign_sub(decrement), "`x.assign_sub(decrement)`.",
    "print(tf.keras.backend.update_sub(tf.Variable(1.0), 4.0).numpy()) -> -3.0", "Any", {"decrement": "Any"})
flatten = row("flatten", lambda x: __getattr__("reshape")(x, (-1,)), "All elements in one axis.",
    "tf.keras.backend.flatten(tf.zeros([2, 3])).shape -> TensorShape([6])", "Any")
batch_flatten = row("batch_flatten", lambda x: __getattr__("reshape")(x, (-1, math.prod(x.shape[1:]))),
    "All elements of each row in one axis.",
    "tf.keras.backend.batch_flatten(tf.zeros([2, 3, 4])).shape -> TensorShape([2, 12])", "Any")
# fmt: on


def _with_defaults(name: str, function: Callable[..., Any], defaults: dict[str, Any]) -> Callable[..., Any]:
    """A function whose arguments have other defaults."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return function(**{**defaults, **signature.bind_partial(*arguments, **options).arguments})

    parameters = [one.replace(default=defaults.get(key, one.default)) for key, one in signature.parameters.items()]
    call.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return name_like_definition(call, name, __name__)  # where a pickle finds it


_explained, _ = late(__name__, {})


def __getattr__(name: str) -> Any:
    """A name of the table, found when it is first used."""
    if name not in _OPS:
        return _explained(name)
    place, defaults = _OPS[name]
    module, _, attribute = place.partition(".")
    function = getattr(importlib.import_module(f".{module}", __package__), attribute)
    found = globals()[name] = _with_defaults(name, function, defaults) if defaults else function
    return found


__all__ = [
    "backend", "batch_dot", "batch_flatten", "batch_get_value", "batch_set_value", "bias_add", "cast_to_floatx",
    "clear_session", "constant", "count_params", "dtype", "epsilon", "eval", "flatten", "floatx", "get_uid", "get_value",
    "image_data_format", "int_shape", "is_float_dtype", "is_int_dtype", "is_keras_tensor", "name_scope", "ndim", "result_type",
    "set_epsilon", "set_floatx", "set_image_data_format", "set_value", "standardize_dtype", "update", "update_add",
    "update_sub", "variable",
]  # fmt: skip
__all__ += sorted(_OPS)
