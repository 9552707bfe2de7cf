# mypy: implicit-reexport
"""Preparation of data, under Keras's older names; all of it is in `keras.utils`."""

from ...absent import facade as _facade
from ..utils.arrays import timeseries_dataset_from_array
from ..utils.files import image_dataset_from_directory, text_dataset_from_directory
from . import image, sequence

__getattr__, __dir__, __all__ = _facade(__name__, {"image": None, "sequence": None})
