# mypy: implicit-reexport
"""`tf.dtypes`: dtypes, and functions that change them. Names only."""

from typing import Any as _Any

from .absent import error as _error
from .functions import elementwise
from .functions.catalogue import publish as _publish
from .functions.elementwise import cast, complex, saturate_cast
from .types import (
    DType,
    as_dtype,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .types import boolean as bool
from .types import float16 as half
from .types import float64 as double

_publish(globals(), {elementwise: "cast complex saturate_cast"})


def __getattr__(name: str) -> _Any:
    """`bfloat16` needs the package ml_dtypes."""
    if name == "bfloat16":
        return as_dtype(name)
    raise _error(__name__, name)
