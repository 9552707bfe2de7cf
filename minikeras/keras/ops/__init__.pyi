# Made by tests/make_stubs.py from the functions themselves.
from collections.abc import Callable
from minikeras.core.tensor import Tensor
from minikeras.keras.ops import image as image, linalg as linalg, math as math, nn as nn, numpy as numpy
from minikeras.keras.ops.core import associative_scan as associative_scan, cond as cond, convert_to_numpy as convert_to_numpy
from minikeras.keras.ops.core import convert_to_tensor as convert_to_tensor, custom_gradient as custom_gradient
from minikeras.keras.ops.core import fori_loop as fori_loop, scan as scan, scatter as scatter, scatter_update as scatter_update
from minikeras.keras.ops.core import shape as shape, slice as slice, slice_update as slice_update, switch as switch
from minikeras.keras.ops.core import unstack as unstack, while_loop as while_loop
from minikeras.keras.ops.einops import rearrange as rearrange
from minikeras.keras.ops.linalg import *
from minikeras.keras.ops.math import *
from minikeras.keras.ops.nn import *
from minikeras.keras.ops.numpy import *
from minikeras.types import DTypeLike, TensorLike
from typing import Any

def cast(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def dtype(x: TensorLike) -> str: ...
def is_tensor(x: object) -> bool: ...
def map(f: Callable[[Any], Any], xs: TensorLike) -> Any: ...
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def stop_gradient(variable: TensorLike) -> Tensor: ...
def vectorized_map(function: Callable[[Any], Any], elements: TensorLike) -> Any: ...
