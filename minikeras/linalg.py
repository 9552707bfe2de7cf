# mypy: implicit-reexport
"""`tf.linalg`: linear algebra over stacks of matrices. Names only; definitions are in `functions/`."""

from .functions.contractions import einsum, matmul, matvec, tensordot
from .functions.creation import eye
from .functions.linalg import (
    adjoint, band_part, cholesky, cholesky_solve, cross, det, diag, diag_part, eig, eigh, eigvals, eigvalsh, expm, inv, logdet,
    logm, lstsq, lu, lu_matrix_inverse, lu_reconstruct, lu_solve, matrix_rank, matrix_transpose, pinv, qr, set_diag, slogdet,
    solve, sqrtm, svd, tensor_diag, tensor_diag_part, trace, triangular_solve
)
from .functions.nn import normalize
from .functions.reductions import global_norm, l2_normalize, norm
from .functions.symbols import publish as _publish

_publish(globals())
