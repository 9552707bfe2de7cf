# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.models.cloning import clone_model as clone_model, model_from_config as model_from_config
from minikeras.keras.models.cloning import model_from_json as model_from_json
from minikeras.keras.models.model import Functional as Functional, Model as Model
from minikeras.keras.models.sequential import Sequential as Sequential
from minikeras.keras.saving.model_files import load_model as load_model, save_model as save_model
