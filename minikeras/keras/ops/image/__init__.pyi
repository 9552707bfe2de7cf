# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.image.filters import extract_patches as extract_patches
from minikeras.keras.ops.image.filters import gaussian_blur as gaussian_blur
from minikeras.keras.ops.image.filters import rgb_to_grayscale as rgb_to_grayscale
from minikeras.keras.ops.image.filters import sobel_edges as sobel_edges
from minikeras.keras.ops.image.filters import ssim as ssim
from minikeras.keras.ops.image.sampling import affine_transform as affine_transform
from minikeras.keras.ops.image.sampling import crop_images as crop_images
from minikeras.keras.ops.image.sampling import elastic_transform as elastic_transform
from minikeras.keras.ops.image.sampling import map_coordinates as map_coordinates
from minikeras.keras.ops.image.sampling import pad_images as pad_images
from minikeras.keras.ops.image.sampling import perspective_transform as perspective_transform
from minikeras.keras.ops.image.sampling import resize as resize
from minikeras.keras.ops.image.sampling import scale_and_translate as scale_and_translate
from minikeras.types import TensorLike
from typing import Any

def extract_patches_3d(volumes: TensorLike, size: Any, strides: Any = ..., dilation_rate: Any = ..., padding: str = ..., data_format: str | None = ...) -> Tensor: ...
def hsv_to_rgb(images: TensorLike, data_format: str | None = ...) -> Tensor: ...
def rgb_to_hsv(images: TensorLike, data_format: str | None = ...) -> Tensor: ...

__all__ = [
    "affine_transform",
    "crop_images",
    "elastic_transform",
    "extract_patches",
    "extract_patches_3d",
    "gaussian_blur",
    "hsv_to_rgb",
    "map_coordinates",
    "pad_images",
    "perspective_transform",
    "resize",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "scale_and_translate",
    "sobel_edges",
    "ssim",
]
