"""Rows for matrix products, Einstein sums and linear algebra."""

import numpy as np
import scipy.linalg

import minikeras as tf
from minikeras.core.ops import contractions
from minikeras.core.registry import operations
from minikeras.nn_ops import linalg
from specimens.table import complexes, invertible, normal, positive_definite, row

L = tf.linalg


def symmetric(a):
    """Factorizations read one triangle; they are differentiated as functions of the symmetric part."""
    return (a + L.matrix_transpose(a)) * 0.5


def unsigned(*values):
    """Eigenvectors have no sign of their own: only what does not depend on it is compared."""
    return [values[0], *(v * v for v in values[1:])]


def positive_diagonal(q, r):
    """Q and R up to signs."""
    return [q * q, r * r]


def svd_reference(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return unsigned(s, u, np.swapaxes(vh, -1, -2))


def full_svd(s, u, v):
    """What does not depend on the choice of the columns beyond those that belong to a singular value."""
    n = s.shape[-1]
    rest = [
        part[..., n:] @ part[..., n:].swapaxes(-1, -2)
        if isinstance(part, np.ndarray)
        else tf.matmul(part[..., n:], part[..., n:], transpose_b=True)
        for part in (u, v)
    ]
    return [*unsigned(s, u[..., :n], v[..., :n]), *(part * part for part in rest)]


def full_svd_reference(a):
    u, s, vh = np.linalg.svd(a)
    return full_svd(s, u, np.swapaxes(vh, -1, -2))


def low_rank(svd):
    """What does not depend on the angles of the vectors: the singular values, and the nearest matrix of rank one."""

    def call(a):
        u, s, vh = svd(a)
        return [s, u[:, :1] @ vh[:1]]

    return call


def full_qr(q, r):
    n = r.shape[-1]
    rest = q[..., n:] @ (q[..., n:].T if isinstance(q, np.ndarray) else tf.transpose(q[..., n:]))
    return [*positive_diagonal(q[..., :n], r), rest]


def eig_reference(a):
    values, vectors = np.linalg.eig(a)
    return [values.astype(complex), np.abs(vectors) ** 2]


def by_eigenvalue(a):
    values, vectors = L.eig(a)
    return [values, tf.abs(vectors) ** 2]


def lu_reference(a):
    packed, orders = np.empty_like(a), np.empty(a.shape[:-1], "int32")
    for place in np.ndindex(*a.shape[:-2]):
        p, low, high = scipy.linalg.lu(a[place], p_indices=True)
        k = min(a.shape[-2:])
        packed[place] = np.pad(np.tril(low, -1), ((0, 0), (0, a.shape[-1] - k))) + np.pad(high, ((0, a.shape[-2] - k), (0, 0)))
        orders[place] = np.argsort(p)
    return [packed, orders]


BANDS = [
    {"k": 1},
    {"k": -2},
    {"k": (-1, 2), "padding_value": 9.0},
    {"k": (-2, 3), "align": "LEFT_RIGHT"},
    {"k": (0, 1), "align": "LEFT_LEFT"},
]
DIAGONALS = [
    ((3,), {"k": 1}),
    ((3,), {"k": -2, "padding_value": 7.0}),
    ((2,), {"k": 0, "num_rows": 3, "num_cols": 2}),
    ((2, 3), {"k": (-1, 0)}),
    ((3, 3), {"k": (-1, 1), "align": "LEFT_RIGHT", "num_rows": 3, "num_cols": 3}),
    ((1, 3), {"k": (1, 1), "num_rows": 3}),
]


def lines(rows, columns, k, align):
    """For each diagonal its offset, its length, and where it begins in its row: TensorFlow's matrix_diag_v3, in words."""
    low, high = k if isinstance(k, tuple) else (k, k)
    longest = min(rows + min(high, 0), columns - max(low, 0))
    for i, d in enumerate(range(high, low - 1, -1)):
        length = min(columns - max(d, 0), rows + min(d, 0))
        right = align in (("RIGHT_LEFT", "RIGHT_RIGHT") if d >= 0 else ("LEFT_RIGHT", "RIGHT_RIGHT"))
        yield i, d, length, longest - length if right else 0, longest


def several(k):
    """Whether k names more diagonals than one."""
    return isinstance(k, tuple) and k[0] < k[1]


def diag_part_by_hand(k=0, padding_value=0.0, align="RIGHT_LEFT"):
    def reference(a):
        found = list(lines(*a.shape[-2:], k, align))
        out = np.full((*a.shape[:-2], len(found), found[0][-1]), padding_value)
        for i, d, length, start, _ in found:
            out[..., i, start : start + length] = np.diagonal(a, d, -2, -1)
        return out if several(k) else out[..., 0, :]

    return reference


def set_diag_by_hand(k=0, align="RIGHT_LEFT"):
    def reference(a, diagonal):
        out = a.copy()
        diagonal = diagonal if several(k) else diagonal[..., None, :]
        for i, d, length, start, _ in lines(*a.shape[-2:], k, align):
            for j in range(length):
                out[..., j + max(-d, 0), j + max(d, 0)] = diagonal[..., i, start + j]
        return out

    return reference


def diag_by_hand(k=0, num_rows=-1, num_cols=-1, padding_value=0.0, align="RIGHT_LEFT"):
    def reference(diagonal):
        low, high = k if isinstance(k, tuple) else (k, k)
        rows, columns = diagonal.shape[-1] - min(high, 0), diagonal.shape[-1] + max(low, 0)
        if num_rows == num_cols == -1:
            rows = columns = max(rows, columns)
        whole = np.full(
            (*diagonal.shape[: -2 if several(k) else -1], max(rows, num_rows), max(columns, num_cols)), padding_value
        )
        return set_diag_by_hand(k, align)(whole, diagonal)

    return reference


def logm_of(a):
    values, vectors = np.linalg.eig(a)
    found = vectors @ (np.log(values)[..., None] * np.linalg.inv(vectors))
    return found if a.dtype.kind == "c" else found.real


def expm_of(a):
    return np.stack([scipy.linalg.expm(matrix) for matrix in a.reshape(-1, *a.shape[-2:])]).reshape(a.shape)


def diagonals(d):
    return np.stack([np.diag(each) for each in d])


def with_diagonal(a, d):
    return a * (1 - np.eye(a.shape[-1])) + diagonals(d)


PRODUCTS = [
    row(tf.matmul, (normal(2, 3), normal(3, 4)), np.matmul),
    row(operations.affine, (normal(2, 3), normal(3, 4), normal(4)), lambda x, kernel, bias: x @ kernel + bias),
    row(tf.matmul, (normal(2, 1, 2, 3), normal(5, 3, 4)), np.matmul, "of stacks"),
    row(tf.matmul, (normal(5, 2, 3), normal(3, 4)), np.matmul, "of a stack with a matrix"),
    row(
        tf.matmul,
        (normal(3, 2), normal(4, 3)),
        lambda a, b: a.T @ b.T,
        "transposed",
        transpose_a=True,
        transpose_b=True,
    ),
    row(
        tf.matmul,
        (complexes(3, 2), complexes(3, 4)),
        lambda a, b: a.conj().T @ b,
        "adjoint",
        adjoint_a=True,
        analytic=False,
    ),
    row(L.matvec, (normal(2, 3, 4), normal(2, 4)), lambda a, b: np.einsum("bij,bj->bi", a, b)),
    row(tf.tensordot, (normal(2, 3, 4), normal(3, 4, 5)), lambda a, b: np.tensordot(a, b, 2), axes=2),
    row(
        tf.tensordot,
        (normal(2, 3, 4), normal(4, 5, 2)),
        lambda a, b: np.tensordot(a, b, [[0, 2], [2, 0]]),
        "along named axes",
        axes=[[0, 2], [2, 0]],
    ),
    *(
        row(
            tf.einsum,
            tuple(normal(*shape) for shape in shapes),
            lambda *xs, e=equation: np.einsum(e, *xs),
            equation,
            call=lambda *xs, e=equation: tf.einsum(e, *xs),
        )
        for equation, *shapes in [
            ("ij,jk->ik", (2, 3), (3, 4)),
            ("bij,bjk->ik", (2, 3, 4), (2, 4, 5)),
            ("ij->j", (2, 3)),
            ("ij->", (2, 3)),
            ("...i->...", (2, 3)),
            ("...ij->...ji", (2, 2, 3)),
            ("ii->i", (3, 3)),
            ("bxby->bxy", (2, 3, 2, 4)),
            ("...ij,...j->...i", (5, 2, 3), (3,)),
            ("i,i,i->", (4,), (4,), (4,)),
            ("ij,ij", (2, 3), (2, 3)),
        ]
    ),
    row(
        tf.einsum,
        (complexes(2, 3), complexes(3, 2)),
        lambda a, b: np.einsum("ij,jk->ik", a, b),
        "of complex numbers",
        call=lambda a, b: tf.einsum("ij,jk->ik", a, b),
        analytic=False,
    ),
    row(
        contractions.einsum,
        (normal(5, 2, 3), normal(3, 4)),
        np.matmul,
        "with leading axes beyond its labels",
        terms=("ij", "jk"),
        result="ik",
    ),
    row(L.cross, (normal(2, 3), normal(2, 3)), np.cross),
]

MATRICES = [
    row(L.solve, (invertible(2, 3, 3), normal(2, 3, 2)), np.linalg.solve),
    row(
        L.solve,
        (invertible(3, 3), normal(2, 3, 2)),
        lambda a, b: np.linalg.solve(a.T, b),
        "adjoint, broadcast",
        adjoint=True,
        analytic=False,
    ),
    row(L.solve, (complexes(3, 3), complexes(3, 2)), np.linalg.solve, "of complex numbers", analytic=False),
    row(L.inv, invertible(2, 3, 3), np.linalg.inv),
    row(
        L.inv,
        complexes(3, 3),
        lambda a: np.linalg.inv(a).conj().T,
        "adjoint of complex numbers",
        adjoint=True,
        analytic=False,
    ),
    row(L.det, invertible(2, 3, 3), np.linalg.det),
    row(L.det, complexes(3, 3), np.linalg.det, "of complex numbers", analytic=False),
    row(linalg.cofactors, invertible(2, 3, 3), lambda a: np.linalg.det(a)[:, None, None] * np.linalg.inv(a).swapaxes(1, 2)),
    row(
        linalg.cofactors, complexes(3, 3), lambda a: np.linalg.det(a) * np.linalg.inv(a).T, "of complex numbers", analytic=False
    ),
    row(L.slogdet, invertible(2, 3, 3), lambda a: list(np.linalg.slogdet(a)), analytic=False),
    row(
        L.logdet,
        positive_definite(2, 3, 3),
        lambda a: np.linalg.slogdet(a)[1],
        call=lambda a: L.logdet(symmetric(a)),
        analytic=False,
    ),
    row(
        L.cholesky,
        positive_definite(2, 3, 3),
        np.linalg.cholesky,
        call=lambda a: L.cholesky(symmetric(a)),
        analytic=False,
    ),
    row(
        L.cholesky_solve,
        (invertible(3, 3), normal(3, 2)),
        lambda c, b: np.linalg.solve(np.tril(c) @ np.tril(c).T, b),
        analytic=False,
    ),
    row(L.triangular_solve, (invertible(2, 3, 3), normal(2, 3, 2)), lambda a, b: np.linalg.solve(np.tril(a), b)),
    row(
        L.triangular_solve,
        (invertible(3, 3), normal(3, 2)),
        lambda a, b: np.linalg.solve(np.triu(a).T, b),
        "upper, adjoint",
        lower=False,
        adjoint=True,
        analytic=False,
    ),
    row(L.lstsq, (normal(5, 2), normal(5, 3)), lambda a, b: np.linalg.lstsq(a, b)[0], analytic=False),
    row(
        L.lstsq,
        (normal(5, 2), normal(5, 3)),
        lambda a, b: np.linalg.solve(a.T @ a + 0.5 * np.eye(2), a.T @ b),
        "with a regularizer",
        l2_regularizer=0.5,
        analytic=False,
    ),
    row(L.pinv, normal(4, 2), np.linalg.pinv, analytic=False),
    row(
        L.qr,
        normal(4, 3),
        lambda a: positive_diagonal(*np.linalg.qr(a)),
        call=lambda a: positive_diagonal(*L.qr(a)),
        analytic=False,
    ),
    row(
        L.qr,
        lambda rng: rng.normal(size=(2, 2, 4)) * 0.5 + 2.0 * np.eye(2, 4),
        lambda a: [np.abs(part) for part in np.linalg.qr(a)],
        "wide",
        call=lambda a: [tf.abs(part) for part in L.qr(a)],
        analytic=False,
    ),
    row(
        L.qr,
        normal(4, 2),
        lambda a: full_qr(*np.linalg.qr(a, mode="complete")),
        "with full matrices",
        call=lambda a: full_qr(*L.qr(a, full_matrices=True)),
        analytic=False,
    ),
    *(
        row(
            L.svd,
            normal(*shape),
            full_svd_reference,
            f"with full matrices, {name}",
            call=lambda a: full_svd(*L.svd(a, full_matrices=True)),
            analytic=False,
            tolerance=1e-10,
        )
        for name, shape in (("tall", (2, 4, 2)), ("wide", (3, 5)), ("square", (3, 3)))
    ),
    *(
        row(
            L.svd,
            complexes(*shape),
            low_rank(lambda a: np.linalg.svd(a, full_matrices=False)),
            f"of complex numbers, {name}",
            call=low_rank(lambda a: (lambda s, u, v: (u, s, L.adjoint(v)))(*L.svd(a))),
            analytic=False,
            tolerance=1e-10,
        )
        for name, shape in (("tall", (4, 2)), ("wide", (3, 4)))
    ),
    row(
        L.svd,
        normal(2, 4, 3),
        svd_reference,
        "tall",
        call=lambda a: unsigned(*L.svd(a)),
        analytic=False,
        tolerance=1e-10,
    ),
    row(L.svd, normal(2, 3), svd_reference, "wide", call=lambda a: unsigned(*L.svd(a)), analytic=False, tolerance=1e-10),
    row(
        L.svd,
        normal(2, 4, 3),
        lambda a: np.linalg.svd(a, compute_uv=False),
        "values only",
        compute_uv=False,
        analytic=False,
    ),
    row(
        L.eigh,
        positive_definite(2, 3, 3),
        lambda a: unsigned(*np.linalg.eigh(a)),
        call=lambda a: unsigned(*L.eigh(symmetric(a))),
        analytic=False,
        tolerance=1e-10,
    ),
    row(L.eigvalsh, positive_definite(3, 3), np.linalg.eigvalsh, call=lambda a: L.eigvalsh(symmetric(a)), analytic=False),
    row(L.eig, normal(2, 3, 3), eig_reference, call=by_eigenvalue, analytic=False, tolerance=1e-10),
    row(L.eig, complexes(3, 3), eig_reference, "of complex numbers", call=by_eigenvalue, analytic=False, tolerance=1e-10),
    row(L.eigvals, normal(3, 3), np.linalg.eigvals, analytic=False, tolerance=1e-10),
    row(L.sqrtm, invertible(2, 3, 3), lambda a: np.stack([scipy.linalg.sqrtm(one) for one in a]), analytic=False),
    row(
        L.sqrtm,
        complexes(3, 3),
        scipy.linalg.sqrtm,
        "of complex numbers",
        analytic=False,
    ),
    row(L.logm, invertible(2, 3, 3), logm_of, analytic=False),
    row(L.logm, complexes(3, 3), logm_of, "of complex numbers", analytic=False),
    *(
        row(L.lu, sampler, lu_reference, name, call=lambda a: L.lu(a), analytic=False)
        for name, sampler in (
            ("square", normal(2, 3, 3)),
            ("tall", normal(4, 2)),
            ("wide", normal(2, 2, 4)),
            ("of complex numbers", complexes(3, 3)),
        )
    ),
    row(
        L.lu_reconstruct,
        normal(2, 3, 4),
        lambda lu: (np.tril(lu[..., :3], -1) + np.eye(3)) @ np.triu(lu),
        call=lambda lu: L.lu_reconstruct(lu, [[0, 1, 2]] * 2),
        analytic=False,
    ),
    row(
        L.lu_solve,
        (invertible(3, 3), normal(3, 2)),
        lambda a, b: np.linalg.solve(a, b),
        call=lambda a, b: L.lu_solve(*L.lu(a), b),
        analytic=False,
    ),
    row(L.lu_matrix_inverse, invertible(2, 3, 3), np.linalg.inv, call=lambda a: L.lu_matrix_inverse(*L.lu(a)), analytic=False),
    row(L.matrix_rank, normal(2, 3, 4), np.linalg.matrix_rank, smooth=False),
    row(L.matrix_rank, normal(4, 2), lambda a: np.linalg.matrix_rank(a, 1e9), "with a tolerance", tol=1e9, smooth=False),
    row(L.adjoint, complexes(2, 3), lambda a: a.conj().T, analytic=False),
    row(L.tensor_diag_part, normal(2, 3, 2, 3), lambda a: np.einsum("ijij->ij", a)),
    *(row(L.diag_part, normal(2, 3, 4), diag_part_by_hand(**options), str(options), **options) for options in BANDS),
    *(row(L.diag, normal(2, *shape), diag_by_hand(**options), str(options), **options) for shape, options in DIAGONALS),
    *(
        row(L.set_diag, (normal(2, 3, 4), normal(2, *shape)), set_diag_by_hand(**options), str(options), **options)
        for shape, options in (((2,), {"k": 2}), ((3, 3), {"k": (-1, 1)}), ((2, 3), {"k": (1, 2), "align": "LEFT_RIGHT"}))
    ),
    row(L.trace, normal(2, 3, 4), lambda a: np.trace(a, axis1=1, axis2=2)),
    row(L.diag, normal(2, 3), diagonals),
    row(L.diag_part, normal(2, 3, 4), lambda a: np.diagonal(a, axis1=1, axis2=2)),
    row(L.set_diag, (normal(2, 3, 3), normal(2, 3)), with_diagonal),
    row(L.band_part, normal(4, 4), lambda a: np.triu(np.tril(a, 2), -1), num_lower=1, num_upper=2),
    row(L.expm, invertible(2, 3, 3), expm_of),
    row(L.normalize, normal(3, 4), lambda a: [a / np.linalg.norm(a), np.linalg.norm(a).reshape(1, 1)], analytic=False),
    row(linalg.triangle, normal(2, 3, 4), lambda a: np.tril(a, 1), lower=True, offset=1),
]

SPECIMENS = PRODUCTS + MATRICES
