# Made by tests/make_stubs.py from the functions themselves.
from builtins import int
from minikeras.data import experimental as experimental
from minikeras.data.dataset import Dataset as Dataset
from minikeras.data.elements import DatasetSpec as DatasetSpec, Options as Options
from minikeras.data.pipeline import Iterator as Iterator, Resumable as Resumable
from minikeras.data.text_files import TextLineDataset as TextLineDataset

AUTOTUNE: int
INFINITE_CARDINALITY: int
UNKNOWN_CARDINALITY: int
