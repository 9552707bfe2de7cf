"""The base of initializers: a function from shape and dtype to the first values of a weight."""

from __future__ import annotations

from typing import Any

from ...core import Tensor
from ...types import as_dtype
from ..arguments import Configured
from ..catalogue import Catalogue
from ..config import floatx

catalogue = Catalogue("initializer")
serialize, deserialize = catalogue.serialize, catalogue.deserialize


class Initializer(Configured):
    """Base: a function from shape and dtype to a Tensor.

    >>> class Halves(tf.keras.initializers.Initializer):
    ...     def __call__(self, shape, dtype=None):
    ...         return tf.fill(shape, 0.5)
    >>> print(Halves()([2]).numpy())
    [0.5 0.5]
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Tensor:
        """Values of a shape and dtype (the default float dtype if None)."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(shape, dtype).")

    def clone(self) -> Initializer:
        """Another one of the same configuration; without a seed it draws other values."""
        return type(self).from_config(self.get_config())


def numpy_dtype(dtype: Any) -> Any:
    """NumPy's dtype for a name or the default."""
    return as_dtype(dtype or floatx()).numpy
