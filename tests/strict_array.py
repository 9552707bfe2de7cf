"""An array on a device that does not exist: NumPy underneath, and only what CuPy allows on top.

It refuses what costs a hidden transfer or fails on a GPU: becoming a NumPy array, a number, a truth value or an index;
operands that live on the host; NumPy's functions; names outside `minikeras.core.arrays.ALLOWED_NAMES`; arguments that CuPy's
functions do not take (`golden/cupy_signatures.json`); text. Bringing it to the host through `minikeras.core.arrays.to_numpy` is
legal, because there it can be seen and is counted.
"""

from __future__ import annotations

import functools
import inspect
import json
import operator
import pathlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from minikeras.core.arrays import ALLOWED_NAMES, devices, register

METHODS = (
    *(
        "all",
        "any",
        "argmax",
        "argmin",
        "astype",
        "conj",
        "copy",
        "max",
        "mean",
        "min",
        "prod",
        "ravel",
        "reshape",
        "sum",
    ),
    *("squeeze", "swapaxes", "transpose", "view"),
)
_FACTS = ("dtype", "itemsize", "nbytes", "ndim", "shape", "size", "strides")
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SIGNATURES = {
    name: inspect.Signature(
        [
            inspect.Parameter(one, kind, default=None if optional else inspect.Parameter.empty)
            for one, kind, optional in parameters
        ]
    )
    for name, parameters in json.loads((pathlib.Path(__file__).parent / "golden/cupy_signatures.json").read_text()).items()
}


class HostSync(RuntimeError):
    """A value on the device was asked for on the host, where the program would have to wait for it."""


class MixedArrays(TypeError):
    """An array on the host met one on the device."""


def _refuse_sync(what: str) -> Callable[..., Any]:
    def refuse(self: Any, *arguments: Any, **options: Any) -> Any:
        raise HostSync(f"{what} of a device array of shape {self.shape}: go through minikeras.core.arrays.to_numpy.")

    return refuse


def _refuse_numpy(self: Any, function: Any, *arguments: Any, **options: Any) -> Any:
    raise MixedArrays(f"NumPy's {function} was called with a device array; call the namespace of the array.")


class StrictArray:
    """An ndarray that behaves like `cupy.ndarray`: results without axes stay arrays."""

    __slots__ = ("__weakref__", "_values")

    def __init__(self, values: np.ndarray) -> None:
        if values.dtype.kind in "OUSmM":
            raise ValueError(f"a device holds neither text nor objects, found dtype {values.dtype}.")
        self._values = values

    device = types.SimpleNamespace(id=0)

    __array__ = _refuse_sync("np.asarray")
    __array_ufunc__ = __array_function__ = _refuse_numpy
    __bool__ = _refuse_sync("bool()")
    __int__ = _refuse_sync("int()")
    __float__ = _refuse_sync("float()")
    __complex__ = _refuse_sync("complex()")
    __index__ = _refuse_sync("index")
    __contains__ = _refuse_sync("`in`")
    __iter__ = _refuse_sync("iteration")
    item = _refuse_sync("item()")
    tolist = _refuse_sync("tolist()")
    __hash__ = None

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StrictArray({self._values!r})"

    def __getitem__(self, key: Any) -> StrictArray:
        return _wrapped(self._values[_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_key(key)] = _bare(value)

    def _part(name: str) -> property:
        def write(self: StrictArray, value: Any) -> None:
            setattr(self._values, name, _bare(value))

        return property(lambda self: _wrapped(getattr(self._values, name)), write)

    real, imag = _part("real"), _part("imag")
    del _part


def _key(key: Any) -> Any:
    """A key whose index arrays live on the device; a mask would have to be counted on the host."""
    bare = _bare(key)
    for part in bare if isinstance(bare, tuple) else (bare,):
        if getattr(part, "dtype", None) == np.bool_:
            raise HostSync("a boolean mask selects a number of elements that only the device knows.")
    return bare


def _bare(value: Any) -> Any:
    """What NumPy computes with; arrays and array scalars of the host are refused."""
    if isinstance(value, StrictArray):
        return value._values
    if isinstance(value, (np.ndarray, np.generic)):
        raise MixedArrays(f"{type(value).__name__} {value!r:.60} of the host met a device array.")
    if isinstance(value, (tuple, list)):
        return type(value)([_bare(part) for part in value])
    return value


def _wrapped(value: Any) -> Any:
    """Arrays and array scalars go back on the device."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StrictArray(np.asarray(value))
    if isinstance(value, tuple):
        return tuple([_wrapped(part) for part in value])
    return value


def _on_device(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """The function from device arrays to device arrays; like a GPU it warns of nothing, and takes what CuPy's of that name
    takes."""
    signature = _SIGNATURES.get(name)

    def call(*arguments: Any, **options: Any) -> Any:
        if signature is not None:
            try:
                signature.bind(*arguments, **options)
            except TypeError as error:
                raise TypeError(f"CuPy's {name}{signature}: {error}") from None
        bare = {name: _bare(option) for name, option in options.items()}
        with np.errstate(all="ignore"):
            return _wrapped(function(*_bare(arguments), **bare))

    return call


def _define_operators() -> None:
    for name in _BINARY:
        plain = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(StrictArray, f"__{name}__", _on_device(plain))
        setattr(StrictArray, f"__r{name}__", _on_device(lambda a, b, plain=plain: plain(b, a)))
    for name in (*_COMPARISONS, "neg", "abs", "invert"):
        setattr(StrictArray, f"__{name}__", _on_device(getattr(operator, name)))
    for name in METHODS:
        method = lambda a, *xs, name=name, **options: getattr(a, name)(*xs, **options)
        setattr(StrictArray, name, _on_device(method, f"ndarray.{name}"))
    for name in _FACTS:
        setattr(StrictArray, name, property(lambda self, name=name: getattr(self._values, name)))


_define_operators()


class StrictNamespace:
    """The functions of `ALLOWED_NAMES` on strict arrays, and nothing else."""

    def __init__(self, library: Any, prefix: str = "") -> None:
        self._library, self._prefix = library, prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if any(allowed.startswith(full + ".") for allowed in ALLOWED_NAMES):
            return StrictNamespace(getattr(self._library, name), full + ".")
        if full not in ALLOWED_NAMES:
            raise AttributeError(f"{full!r} is not in minikeras.core.arrays.ALLOWED_NAMES: does CuPy have it?")
        plain = getattr(self._library, name)
        if name == "dtype":
            return plain
        if name == "asarray":
            return _asarray
        return _function(plain, full)


@functools.cache
def _function(plain: Any, full: str) -> Callable[..., Any]:
    """One of them, the same each time: who watches attributes sees none change."""
    function = _on_device(plain, full)
    if hasattr(plain, "at"):
        function.at = _on_device(_at(plain, full), f"{full}.at")
    return function


def _at(ufunc: Any, name: str) -> Callable[..., None]:
    """`ufunc.at` of numbers for which it gives the same bits in each run on a GPU: CuPy adds others in no fixed order."""

    def at(whole: np.ndarray, places: Any, values: Any) -> None:
        if whole.dtype not in ("int32", "uint32") or f"{name}.at" not in _SIGNATURES:
            raise TypeError(f"{name}.at of {whole.dtype}: use ops.combining.combined_at.")
        ufunc.at(whole, places, values)

    return at


def _asarray(value: Any, dtype: Any = None) -> StrictArray:
    """From host to device: the one place that takes NumPy arrays."""
    return StrictArray(np.array(value._values if isinstance(value, StrictArray) else value, dtype=dtype))


strict = StrictNamespace(np)
for _name in ALLOWED_NAMES:
    operator.attrgetter(_name)(strict)


def install() -> None:
    """Make strict arrays known to minikeras, and 'STRICT:0' a device."""
    register(StrictArray, strict, lambda array: array._values.copy(), "STRICT")
    devices._BACKENDS["STRICT"] = lambda index: strict
