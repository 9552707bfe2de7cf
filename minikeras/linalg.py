"""`tf.linalg`: linear algebra over stacks of matrices. Names only; definitions are in `functions/`."""

from .functions import contractions, creation, linalg, nn, reductions
from .functions.catalogue import publish as _publish

_publish(
    globals(),
    {
        contractions: "einsum matmul matvec tensordot",
        creation: "eye",
        linalg: """adjoint band_part cholesky cholesky_solve cross det diag diag_part eig eigh eigvals eigvalsh expm inv
            logdet logm lstsq lu lu_matrix_inverse lu_reconstruct lu_solve matrix_rank matrix_transpose pinv qr set_diag
            slogdet solve sqrtm svd tensor_diag tensor_diag_part trace triangular_solve""",
        nn: "normalize",
        reductions: "global_norm l2_normalize norm",
    },
)
