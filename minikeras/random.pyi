# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.functions.random import Generator as Generator
from minikeras.functions.random import fold_in as fold_in
from minikeras.functions.random import gamma as gamma
from minikeras.functions.random import get_global_generator as get_global_generator
from minikeras.functions.random import poisson as poisson
from minikeras.functions.random import set_seed as set_seed
from minikeras.functions.random import shuffle as shuffle
from minikeras.functions.sampling import log_uniform_candidate_sampler as log_uniform_candidate_sampler
from minikeras.functions.sampling import uniform_candidate_sampler as uniform_candidate_sampler
from minikeras.types import DTypeLike
from minikeras.types import ShapeLike
from minikeras.types import TensorLike
from typing import Any

def categorical(logits: TensorLike, num_samples: int, dtype: DTypeLike = ..., seed: Any = ..., name: str | None = ...) -> Tensor: ...
def normal(shape: ShapeLike, mean: TensorLike = ..., stddev: TensorLike = ..., dtype: DTypeLike = ..., seed: int | None = ..., name: str | None = ...) -> Tensor: ...
def split(seed: Any, num: int = ...) -> Tensor: ...
def stateless_categorical(logits: TensorLike, num_samples: int, seed: Any, dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def stateless_gamma(shape: ShapeLike, seed: Any, alpha: TensorLike, beta: TensorLike = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def stateless_normal(shape: ShapeLike, seed: Any, mean: TensorLike = ..., stddev: TensorLike = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def stateless_poisson(shape: ShapeLike, seed: Any, lam: TensorLike, dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def stateless_truncated_normal(shape: ShapeLike, seed: Any, mean: TensorLike = ..., stddev: TensorLike = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def stateless_uniform(shape: ShapeLike, seed: Any, minval: TensorLike = ..., maxval: TensorLike = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def truncated_normal(shape: ShapeLike, mean: TensorLike = ..., stddev: TensorLike = ..., dtype: DTypeLike = ..., seed: int | None = ..., name: str | None = ...) -> Tensor: ...
def uniform(shape: ShapeLike, minval: TensorLike = ..., maxval: TensorLike = ..., dtype: DTypeLike = ..., seed: int | None = ..., name: str | None = ...) -> Tensor: ...

__all__ = [
    "Generator",
    "categorical",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_seed",
    "shuffle",
    "split",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
