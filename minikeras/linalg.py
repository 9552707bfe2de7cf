"""`tf.linalg`: linear algebra over stacks of matrices. Names only; definitions are in `functions/`."""

from .functions.contractions import einsum, matmul, matvec, tensordot
from .functions.creation import eye
from .functions.linalg import (
    band_part,
    cholesky,
    cholesky_solve,
    cross,
    det,
    diag,
    diag_part,
    eigh,
    eigvalsh,
    expm,
    inv,
    logdet,
    lstsq,
    matrix_transpose,
    pinv,
    qr,
    set_diag,
    slogdet,
    solve,
    svd,
    tensor_diag,
    trace,
    triangular_solve,
)
from .functions.nn import normalize
from .functions.reductions import global_norm, l2_normalize, norm
from .functions.symbols import publish as _publish

_publish(globals())
__all__ = [name for name in dir() if not name.startswith("_")]
