# Made by tests/make_stubs.py from the functions themselves.
from minikeras.averages import ExponentialMovingAverage as ExponentialMovingAverage
from minikeras.bundle import CheckpointState as CheckpointState, get_checkpoint_state as get_checkpoint_state
from minikeras.bundle import latest_checkpoint as latest_checkpoint, list_variables as list_variables
from minikeras.bundle import load_checkpoint as load_checkpoint, load_variable as load_variable
from minikeras.checkpoint import Checkpoint as Checkpoint, CheckpointManager as CheckpointManager
from minikeras.checkpoint import CheckpointOptions as CheckpointOptions
