"""Rows for matrix products, Einstein sums and linear algebra."""

from __future__ import annotations

import numpy as np
import scipy.linalg

import minikeras as tf
from minikeras.core.registry import operations
from minikeras.ops import contractions, linalg
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
