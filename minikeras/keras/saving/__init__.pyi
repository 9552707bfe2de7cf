# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.saving.model_files import load_model as load_model, load_weights as load_weights, save_model as save_model
from minikeras.keras.saving.model_files import save_weights as save_weights
from minikeras.keras.saving.objects import ObjectSharingScope as ObjectSharingScope
from minikeras.keras.saving.objects import deserialize_keras_object as deserialize_keras_object
from minikeras.keras.saving.objects import serialize_keras_object as serialize_keras_object
from minikeras.keras.saving.registry import CustomObjectScope as CustomObjectScope, get_custom_objects as get_custom_objects
from minikeras.keras.saving.registry import get_registered_name as get_registered_name
from minikeras.keras.saving.registry import get_registered_object as get_registered_object
from minikeras.keras.saving.registry import register_keras_serializable as register_keras_serializable

custom_object_scope = CustomObjectScope
