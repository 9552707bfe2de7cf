# mypy: implicit-reexport
"""Preparation of data, under Keras's older names; all of it is in `keras.utils`."""

from ...absent import late as _late
from ..utils.arrays import timeseries_dataset_from_array
from ..utils.files import image_dataset_from_directory, text_dataset_from_directory
from . import image, sequence

__getattr__, __dir__ = _late(__name__, {"image": None, "sequence": None})
__all__ = [name for name in __dir__() if not name.startswith("_")]
