# mypy: implicit-reexport
"""Small public tools: one-hot labels, seeds, files, sequences, images, pictures of models and of training, names of classes."""

from ...absent import facade as _facade
from ...figures import plot_history
from ..batches import PyDataset, pack_x_y_sample_weight, unpack_x_y_sample_weight
from ..config import disable_interactive_logging, enable_interactive_logging, is_interactive_logging_enabled
from ..models.summary import model_drawing, model_to_dot, plot_model
from ..names import clear_session
from ..random import set_random_seed
from ..saving.objects import deserialize_keras_object, serialize_keras_object
from ..saving.registry import *  # noqa: F403
from .arrays import normalize, split_dataset, to_categorical

Sequence = PyDataset
"""The older name."""

_LATE = {
    **dict.fromkeys(("image_dataset_from_directory", "text_dataset_from_directory"), "files"),
    **dict.fromkeys(("array_to_img", "img_to_array", "load_img", "save_img"), "files"),
    **dict.fromkeys(("pad_sequences", "timeseries_dataset_from_array"), "arrays"),
    "FeatureSpace": ".feature_space",
    **dict.fromkeys(("is_keras_tensor", "standardize_dtype"), ".backend"),
    "get_source_inputs": ".symbolic",
    "Progbar": ".callbacks.progress_bar",
    "get_file": ".datasets.download",
}


__getattr__, __dir__, __all__ = _facade(__name__, _LATE)
