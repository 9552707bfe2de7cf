# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.linalg.matrices import cholesky as cholesky
from minikeras.keras.ops.linalg.matrices import jvp as jvp
from minikeras.keras.ops.linalg.matrices import lstsq as lstsq
from minikeras.keras.ops.linalg.matrices import lu_factor as lu_factor
from minikeras.keras.ops.linalg.matrices import matrix_rank as matrix_rank
from minikeras.keras.ops.linalg.matrices import norm as norm
from minikeras.keras.ops.linalg.matrices import pinv as pinv
from minikeras.keras.ops.linalg.matrices import qr as qr
from minikeras.keras.ops.linalg.matrices import svd as svd
from minikeras.types import TensorLike

def cholesky_inverse(x: TensorLike, upper: bool = ...) -> Tensor: ...
def det(x: TensorLike) -> Tensor: ...
def eig(x: TensorLike) -> tuple[Tensor, Tensor]: ...
def eigh(x: TensorLike) -> tuple[Tensor, Tensor]: ...
def inv(x: TensorLike) -> Tensor: ...
def solve(a: TensorLike, b: TensorLike) -> Tensor: ...
def solve_triangular(a: TensorLike, b: TensorLike, lower: float = ...) -> Tensor: ...

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "det",
    "eig",
    "eigh",
    "inv",
    "jvp",
    "lstsq",
    "lu_factor",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
]
