"""Circle loss: embeddings of one class near each other, of different classes apart."""

from __future__ import annotations

from typing import Any

from ...core import Tensor, convert_to_tensor
from ...distribute.functions import rows_of_all_parts
from ...distribute.replica import current_part
from ...errors import ShapeError
from ...functions.contractions import matmul
from ...functions.creation import one_hot, range
from ...functions.elementwise import cast, equal, logical_and, logical_not, minimum, softplus, where
from ...functions.nn import relu
from ...functions.publish import beside
from ...functions.reductions import reduce_logsumexp
from ...functions.shaping import reshape
from ...types import TensorLike
from .alignment import as_floats, as_integers, as_predictions
from .loss import LossFunctionWrapper, catalogue


def circle(
    y_true: TensorLike,
    y_pred: TensorLike,
    ref_labels: TensorLike = None,
    ref_embeddings: TensorLike = None,
    remove_diagonal: bool = True,
    gamma: float = 80.0,
    margin: float = 0.4,
) -> Tensor:
    """softplus(ln sum exp(gamma a_n (s_n - m)) + ln sum exp(-gamma a_p (s_p - 1 + m))) for each row, m the margin.

    s_p are the similarities of a row with others of its class, s_n with those of other classes; a_p = max(1 + m - s_p, 0),
    a_n = max(s_n + m, 0). A row without any of either gives 0.

    Args:
        y_true: integer labels (n,) or (n, 1).
        y_pred: embeddings (n, d) of length 1.
        ref_labels, ref_embeddings: (k,) and (k, d) to compare with; the batch itself if None.
        remove_diagonal: leave out the pairs of row i with reference i.
        gamma: > 0, scale.
        margin: in [0, 1].

    Raises:
        ShapeError: if there is not one label for each embedding.

    Source: Sun et al. (2020), Circle Loss, equations (4) to (8).

    >>> rows = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    >>> print(tf.keras.losses.circle([0, 0, 1], rows, gamma=1.0).numpy().round(4))
    [0.6163 0.6163 0.    ]
    """
    embeddings, labels = _rows("y_pred", y_true, as_predictions(y_pred))
    first = 0
    if ref_embeddings is None and ref_labels is None:
        part = current_part()
        first = 0 if part is None else part.first
        others, other_labels = rows_of_all_parts(embeddings), rows_of_all_parts(labels)
    else:
        given = labels if ref_labels is None else ref_labels
        reference = embeddings if ref_embeddings is None else as_floats(ref_embeddings, embeddings.dtype)
        others, other_labels = _rows("ref_embeddings", given, reference)
    similarity = minimum(matmul(embeddings, others, transpose_b=True), 1.0)
    alike = equal(reshape(labels, (-1, 1)), cast(reshape(other_labels, (1, -1)), labels.dtype))
    partners = alike
    if remove_diagonal:
        rows, count = similarity.shape
        itself = beside(embeddings, one_hot(range(first, first + rows), count, dtype="bool"))
        partners = logical_and(alike, logical_not(itself))
    near = -gamma * relu(1.0 + margin - similarity) * (similarity - (1.0 - margin))
    far = gamma * relu(similarity + margin) * (similarity - margin)
    return softplus(_total(near, partners) + _total(far, logical_not(alike)))


def _rows(name: str, y_true: TensorLike, embeddings: Tensor) -> tuple[Tensor, Tensor]:
    labels = as_integers("circle", convert_to_tensor(y_true))
    if embeddings.ndim != 2 or tuple(labels.shape) not in ((embeddings.shape[0],), (embeddings.shape[0], 1)):
        raise ShapeError(
            f"circle: {name} has shape {embeddings.shape}, its labels {labels.shape}; expected (n, d) and a label for each row."
        )
    return embeddings, reshape(labels, (-1,))


def _total(terms: Tensor, mask: Tensor) -> Tensor:
    return reduce_logsumexp(where(mask, terms, -float("inf")), -1)


@catalogue.add()
class Circle(LossFunctionWrapper):
    """Circle loss of embeddings. Options as in `circle`; reduction, name, dtype as in `Loss`.

    Rows without a partner of their class, or without one of another, do not count for the mean.

    >>> rows = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    >>> print(tf.keras.losses.Circle(gamma=1.0)([0, 0, 1], rows).numpy().round(4))
    0.6163
    """

    _float_labels = False

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "circle",
        dtype: Any = None,
    ) -> None:
        options = {"gamma": gamma, "margin": margin, "remove_diagonal": remove_diagonal}
        super().__init__(circle, reduction, name, dtype, **options)

    def _rows_that_count(self, labels: Tensor, values: Tensor) -> Tensor | None:
        return values > 0.0
