# Made by tests/make_stubs.py from the functions themselves.
from minikeras.figures import plot_history as plot_history
from minikeras.keras.backend import is_keras_tensor as is_keras_tensor, standardize_dtype as standardize_dtype
from minikeras.keras.batches import PyDataset as PyDataset, pack_x_y_sample_weight as pack_x_y_sample_weight
from minikeras.keras.batches import unpack_x_y_sample_weight as unpack_x_y_sample_weight
from minikeras.keras.callbacks.progress_bar import Progbar as Progbar
from minikeras.keras.config import disable_interactive_logging as disable_interactive_logging
from minikeras.keras.config import enable_interactive_logging as enable_interactive_logging
from minikeras.keras.config import is_interactive_logging_enabled as is_interactive_logging_enabled
from minikeras.keras.datasets.download import get_file as get_file
from minikeras.keras.feature_space import FeatureSpace as FeatureSpace
from minikeras.keras.models.summary import model_drawing as model_drawing, model_to_dot as model_to_dot
from minikeras.keras.models.summary import plot_model as plot_model
from minikeras.keras.names import clear_session as clear_session
from minikeras.keras.random import set_random_seed as set_random_seed
from minikeras.keras.saving.objects import deserialize_keras_object as deserialize_keras_object
from minikeras.keras.saving.objects import serialize_keras_object as serialize_keras_object
from minikeras.keras.saving.registry import CustomObjectScope as CustomObjectScope, get_custom_objects as get_custom_objects
from minikeras.keras.saving.registry import get_registered_name as get_registered_name
from minikeras.keras.saving.registry import get_registered_object as get_registered_object
from minikeras.keras.saving.registry import register_keras_serializable as register_keras_serializable
from minikeras.keras.symbolic import get_source_inputs as get_source_inputs
from minikeras.keras.utils.arrays import normalize as normalize, pad_sequences as pad_sequences, split_dataset as split_dataset
from minikeras.keras.utils.arrays import timeseries_dataset_from_array as timeseries_dataset_from_array
from minikeras.keras.utils.arrays import to_categorical as to_categorical
from minikeras.keras.utils.files import array_to_img as array_to_img
from minikeras.keras.utils.files import image_dataset_from_directory as image_dataset_from_directory
from minikeras.keras.utils.files import img_to_array as img_to_array, load_img as load_img, save_img as save_img
from minikeras.keras.utils.files import text_dataset_from_directory as text_dataset_from_directory

Sequence = PyDataset
custom_object_scope = CustomObjectScope
