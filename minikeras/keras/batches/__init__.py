# mypy: implicit-reexport
"""From what users hand to `fit` to batches (x, y, sample_weight)."""

from .columns import (
    as_columns,
    batching_hint,
    check_rows,
    class_weights,
    count_rows,
    is_iterable_of_batches,
    pack_x_y_sample_weight,
    split,
    unpack_x_y_sample_weight,
)
from .sources import Feed, PyDataset, Source, cut, source
