"""Names that TensorFlow keeps in `tf.data.experimental` and people still use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..absent import late as _late
from ..core import Tensor
from ..errors import InvalidArgumentError
from .dataset import Dataset
from .elements import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, whole_number
from .text_files import CsvDataset, make_csv_dataset

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Counter", "CsvDataset", "assert_cardinality", "cardinality",
    "make_csv_dataset",
]  # fmt: skip

Counter = Dataset.counter


def cardinality(dataset: Dataset) -> Tensor:
    """As `dataset.cardinality()`.

    >>> int(cardinality(tf.data.Dataset.range(3)))
    3
    """
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """For `dataset.apply`: the same elements; InvalidArgumentError at the end if there are not as many as stated.

    >>> rows = tf.data.Dataset.from_generator(lambda: range(3))
    >>> len(rows.apply(assert_cardinality(3)))
    3
    """
    expected = whole_number("assert_cardinality", "expected_cardinality", expected_cardinality, least=0)

    def asserted(dataset: Dataset) -> Dataset:
        def rows() -> Iterator[Any]:
            count = 0
            for count, element in enumerate(dataset.from_position(), 1):
                if count > expected:
                    break
                yield element
            if count != expected:
                more = "more" if count > expected else count
                raise InvalidArgumentError(f"assert_cardinality: expected {expected} elements, found {more}.")

        return dataset._made(rows, expected, lambda: dataset.element_spec)

    return asserted


__getattr__, __dir__ = _late(__name__, {})
