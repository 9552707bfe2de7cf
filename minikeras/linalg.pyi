# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.functions.contractions import einsum as einsum
from minikeras.functions.contractions import matmul as matmul
from minikeras.functions.contractions import matvec as matvec
from minikeras.functions.contractions import tensordot as tensordot
from minikeras.functions.creation import eye as eye
from minikeras.functions.linalg import band_part as band_part
from minikeras.functions.linalg import cross as cross
from minikeras.functions.linalg import diag as diag
from minikeras.functions.linalg import diag_part as diag_part
from minikeras.functions.linalg import eig as eig
from minikeras.functions.linalg import expm as expm
from minikeras.functions.linalg import inv as inv
from minikeras.functions.linalg import logm as logm
from minikeras.functions.linalg import lstsq as lstsq
from minikeras.functions.linalg import lu as lu
from minikeras.functions.linalg import lu_matrix_inverse as lu_matrix_inverse
from minikeras.functions.linalg import lu_reconstruct as lu_reconstruct
from minikeras.functions.linalg import lu_solve as lu_solve
from minikeras.functions.linalg import matrix_rank as matrix_rank
from minikeras.functions.linalg import matrix_transpose as matrix_transpose
from minikeras.functions.linalg import pinv as pinv
from minikeras.functions.linalg import qr as qr
from minikeras.functions.linalg import set_diag as set_diag
from minikeras.functions.linalg import slogdet as slogdet
from minikeras.functions.linalg import solve as solve
from minikeras.functions.linalg import sqrtm as sqrtm
from minikeras.functions.linalg import svd as svd
from minikeras.functions.linalg import tensor_diag as tensor_diag
from minikeras.functions.linalg import tensor_diag_part as tensor_diag_part
from minikeras.functions.linalg import triangular_solve as triangular_solve
from minikeras.functions.nn import normalize as normalize
from minikeras.functions.reductions import global_norm as global_norm
from minikeras.functions.reductions import l2_normalize as l2_normalize
from minikeras.functions.reductions import norm as norm
from minikeras.types import TensorLike

def adjoint(matrix: TensorLike, name: str | None = ...) -> Tensor: ...
def cholesky(input: TensorLike, name: str | None = ...) -> Tensor: ...
def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = ...) -> Tensor: ...
def det(input: TensorLike, name: str | None = ...) -> Tensor: ...
def eigh(tensor: TensorLike, name: str | None = ...) -> tuple[Tensor, Tensor]: ...
def eigvals(tensor: TensorLike, name: str | None = ...) -> Tensor: ...
def eigvalsh(tensor: TensorLike, name: str | None = ...) -> Tensor: ...
def logdet(matrix: TensorLike, name: str | None = ...) -> Tensor: ...
def trace(x: TensorLike, name: str | None = ...) -> Tensor: ...

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "logm",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
]
