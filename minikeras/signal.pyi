# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.functions.signal import frame as frame
from minikeras.functions.signal import inverse_stft as inverse_stft
from minikeras.functions.signal import inverse_stft_window_fn as inverse_stft_window_fn
from minikeras.functions.signal import overlap_and_add as overlap_and_add
from minikeras.functions.signal import stft as stft
from minikeras.types import Axis
from minikeras.types import DTypeLike
from minikeras.types import ShapeLike
from minikeras.types import TensorLike
from typing import Any

def fft(input: TensorLike, name: str | None = ...) -> Tensor: ...
def fft2d(input: TensorLike, name: str | None = ...) -> Tensor: ...
def fftshift(x: TensorLike, axes: Axis = ..., name: str | None = ...) -> Tensor: ...
def hamming_window(window_length: Any, periodic: bool = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def hann_window(window_length: Any, periodic: bool = ..., dtype: DTypeLike = ..., name: str | None = ...) -> Tensor: ...
def ifft(input: TensorLike, name: str | None = ...) -> Tensor: ...
def ifft2d(input: TensorLike, name: str | None = ...) -> Tensor: ...
def ifftshift(x: TensorLike, axes: Axis = ..., name: str | None = ...) -> Tensor: ...
def irfft(input_tensor: TensorLike, fft_length: ShapeLike = ..., name: str | None = ...) -> Tensor: ...
def irfft2d(input_tensor: TensorLike, fft_length: ShapeLike = ..., name: str | None = ...) -> Tensor: ...
def rfft(input_tensor: TensorLike, fft_length: ShapeLike = ..., name: str | None = ...) -> Tensor: ...
def rfft2d(input_tensor: TensorLike, fft_length: ShapeLike = ..., name: str | None = ...) -> Tensor: ...

__all__ = [
    "fft",
    "fft2d",
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "ifft",
    "ifft2d",
    "ifftshift",
    "inverse_stft",
    "inverse_stft_window_fn",
    "irfft",
    "irfft2d",
    "overlap_and_add",
    "rfft",
    "rfft2d",
    "stft",
]
