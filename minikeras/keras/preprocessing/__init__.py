"""What prepares data, under Keras's older names; all of it is in `keras.utils`."""

from ...absent import late as _late
from ..utils.arrays import timeseries_dataset_from_array
from ..utils.directories import image_dataset_from_directory, text_dataset_from_directory
from . import image, sequence

__all__ = ["image", "image_dataset_from_directory", "sequence", "text_dataset_from_directory", "timeseries_dataset_from_array"]

__getattr__, __dir__ = _late(__name__, {})
