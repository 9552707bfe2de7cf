# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.math.functions import cdist as cdist
from minikeras.keras.ops.math.functions import in_top_k as in_top_k
from minikeras.keras.ops.math.functions import irfft as irfft
from minikeras.keras.ops.math.functions import istft as istft
from minikeras.keras.ops.math.functions import rfft as rfft
from minikeras.keras.ops.math.functions import stft as stft
from minikeras.keras.ops.math.functions import view_as_complex as view_as_complex
from minikeras.types import Axis
from minikeras.types import TensorLike

def erf(x: TensorLike) -> Tensor: ...
def erfc(x: TensorLike) -> Tensor: ...
def erfinv(x: TensorLike) -> Tensor: ...
def extract_sequences(x: TensorLike, sequence_length: int, sequence_stride: int) -> Tensor: ...
def fft(x: tuple[TensorLike, TensorLike]) -> tuple[Tensor, Tensor]: ...
def fft2(x: tuple[TensorLike, TensorLike]) -> tuple[Tensor, Tensor]: ...
def ifft2(x: tuple[TensorLike, TensorLike]) -> tuple[Tensor, Tensor]: ...
def logdet(x: TensorLike) -> Tensor: ...
def logsumexp(x: TensorLike, axis: Axis = ..., keepdims: bool = ...) -> Tensor: ...
def rsqrt(x: TensorLike) -> Tensor: ...
def segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = ..., sorted: bool = ...) -> Tensor: ...
def segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = ..., sorted: bool = ...) -> Tensor: ...
def segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = ..., sorted: bool = ...) -> Tensor: ...
def segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: int | None = ..., sorted: bool = ...) -> Tensor: ...
def top_k(x: TensorLike, k: int, sorted: bool = ...) -> tuple[Tensor, Tensor]: ...
def view_as_real(x: TensorLike) -> Tensor: ...

__all__ = [
    "cdist",
    "erf",
    "erfc",
    "erfinv",
    "extract_sequences",
    "fft",
    "fft2",
    "ifft2",
    "in_top_k",
    "irfft",
    "istft",
    "logdet",
    "logsumexp",
    "rfft",
    "rsqrt",
    "segment_max",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "stft",
    "top_k",
    "view_as_complex",
    "view_as_real",
]
