# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops import image as image
from minikeras.keras.ops import linalg as linalg
from minikeras.keras.ops import math as math
from minikeras.keras.ops import nn as nn
from minikeras.keras.ops import numpy as numpy
from minikeras.keras.ops.core import associative_scan as associative_scan
from minikeras.keras.ops.core import cond as cond
from minikeras.keras.ops.core import convert_to_numpy as convert_to_numpy
from minikeras.keras.ops.core import convert_to_tensor as convert_to_tensor
from minikeras.keras.ops.core import custom_gradient as custom_gradient
from minikeras.keras.ops.core import dtype as dtype
from minikeras.keras.ops.core import fori_loop as fori_loop
from minikeras.keras.ops.core import is_tensor as is_tensor
from minikeras.keras.ops.core import map as map
from minikeras.keras.ops.core import scan as scan
from minikeras.keras.ops.core import scatter as scatter
from minikeras.keras.ops.core import scatter_update as scatter_update
from minikeras.keras.ops.core import shape as shape
from minikeras.keras.ops.core import slice as slice
from minikeras.keras.ops.core import slice_update as slice_update
from minikeras.keras.ops.core import switch as switch
from minikeras.keras.ops.core import unstack as unstack
from minikeras.keras.ops.core import vectorized_map as vectorized_map
from minikeras.keras.ops.core import while_loop as while_loop
from minikeras.keras.ops.einops import rearrange as rearrange
from minikeras.types import DTypeLike
from minikeras.types import TensorLike
from minikeras.keras.ops.linalg import *
from minikeras.keras.ops.math import *
from minikeras.keras.ops.nn import *
from minikeras.keras.ops.numpy import *

def cast(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor: ...
def stop_gradient(variable: TensorLike) -> Tensor: ...
