# Made by tests/make_stubs.py from the functions themselves.
from minikeras.keras.utils.arrays import pad_sequences as pad_sequences
