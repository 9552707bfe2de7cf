"""Penalties on weights that are added to the loss."""

from __future__ import annotations

from ..core import Tensor
from ..errors import ShapeError
from ..functions import abs, l2_normalize, matmul, reduce_sum, square, tensor, transpose
from ..functions.linalg import diag_part
from ..types import TensorLike
from .arguments import Catalogue, Configured
from .config import epsilon

catalogue = Catalogue("regularizer")
get, serialize, deserialize = catalogue.get, catalogue.serialize, catalogue.deserialize

__all__ = [
    *("L1", "L1L2", "L2", "OrthogonalRegularizer", "Regularizer", "deserialize", "get", "l1", "l1_l2", "l2"),
    *("orthogonal_regularizer", "serialize"),
]


class Regularizer(Configured):
    """Base: a function from a weight to a scalar.

    >>> class Largest(tf.keras.Regularizer):
    ...     def __call__(self, x):
    ...         return 0.1 * tf.reduce_max(tf.abs(x))
    >>> print(Largest()(tf.constant([1.0, -3.0])).numpy().round(4))
    0.3
    """

    def __call__(self, x: TensorLike) -> Tensor:
        """The penalty."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(x).")


@catalogue.add("l1_l2", "l1l2")
class L1L2(Regularizer):
    """l1 sum |x| + l2 sum x**2.

    >>> print(tf.keras.regularizers.L1L2(l1=0.5, l2=0.25)([2.0, -2.0]).numpy())
    4.0
    """

    _member_numbers = ("l1", "l2")

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = _factor("l1", l1), _factor("l2", l2)

    def __call__(self, x: TensorLike) -> Tensor:
        terms = [self.l1 * reduce_sum(abs(x))] if self.l1 else []
        terms += [self.l2 * reduce_sum(square(x))] if self.l2 else []
        return terms[0] + terms[1] if len(terms) == 2 else terms[0] if terms else reduce_sum(x) * 0.0


@catalogue.add("l1")
class L1(L1L2):
    """l1 sum |x|.

    >>> print(tf.keras.regularizers.L1(0.5)([2.0, -2.0]).numpy())
    2.0
    """

    _member_numbers = ("l1", "l2")

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)


@catalogue.add("l2")
class L2(L1L2):
    """l2 sum x**2.

    >>> print(tf.keras.regularizers.L2(0.5)([2.0, -2.0]).numpy())
    4.0
    """

    _member_numbers = ("l1", "l2")

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)


@catalogue.add("orthogonal")
class OrthogonalRegularizer(Regularizer):
    """factor times the mean of |cos| of the angles between all pairs of rows, or of columns: 0 if they are orthogonal.

    Args:
        factor: finite, >= 0.
        mode: 'rows' or 'columns' of a matrix.

    >>> print(tf.keras.regularizers.OrthogonalRegularizer(0.5)([[1.0, 0.0], [1.0, 0.0]]).numpy())
    0.5
    """

    _member_numbers = ("factor",)

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ValueError(f"OrthogonalRegularizer: mode must be 'rows' or 'columns', found {mode!r}.")
        self.factor, self.mode = _factor("factor", factor), mode

    def __call__(self, x: TensorLike) -> Tensor:
        matrix = tensor(x)
        if matrix.ndim != 2:
            raise ShapeError(f"Inputs to OrthogonalRegularizer must have rank 2. Received: inputs.shape={matrix.shape}.")
        vectors = l2_normalize(matrix if self.mode == "rows" else transpose(matrix), -1, epsilon() ** 2)
        count = vectors.shape[0]
        cosines = abs(matmul(vectors, vectors, transpose_b=True))
        # Each vector's angle with itself is no pair; a single one has none.
        return self.factor * (reduce_sum(cosines) - reduce_sum(diag_part(cosines))) / max(count * (count - 1), 1)


def _factor(name: str, value: float | None) -> float:
    if value is None:
        return 0.0
    if not isinstance(value, (int, float)) or value < 0 or value != value or value == float("inf"):
        raise ValueError(f"Invalid value for regularizer {name}: expected a finite number >= 0, found {value!r}.")
    return float(value)


# Keras's second names of the classes.
l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
