# Made by tests/make_stubs.py from the functions themselves.
from minikeras.functions.elementwise import cast as cast, complex as complex, saturate_cast as saturate_cast
from minikeras.types import DType as DType, as_dtype as as_dtype, complex128 as complex128, complex64 as complex64
from minikeras.types import float16 as float16, float32 as float32, float64 as float64, int16 as int16, int32 as int32
from minikeras.types import int64 as int64, int8 as int8, string as string, uint16 as uint16, uint32 as uint32
from minikeras.types import uint64 as uint64, uint8 as uint8

bool: DType
double: DType
half: DType
