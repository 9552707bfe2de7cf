# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.keras.ops.images import affine_transform as affine_transform, crop_images as crop_images
from minikeras.keras.ops.images import elastic_transform as elastic_transform, extract_patches as extract_patches
from minikeras.keras.ops.images import gaussian_blur as gaussian_blur, map_coordinates as map_coordinates
from minikeras.keras.ops.images import pad_images as pad_images, perspective_transform as perspective_transform
from minikeras.keras.ops.images import resize as resize, rgb_to_grayscale as rgb_to_grayscale
from minikeras.keras.ops.images import scale_and_translate as scale_and_translate, sobel_edges as sobel_edges, ssim as ssim
from minikeras.types import TensorLike
from typing import Any

def extract_patches_3d(volumes: TensorLike, size: Any, strides: Any = None, dilation_rate: Any = 1, padding: str = 'valid', data_format: str | None = None) -> Tensor: ...
def hsv_to_rgb(images: TensorLike, data_format: str | None = None) -> Tensor: ...
def rgb_to_hsv(images: TensorLike, data_format: str | None = None) -> Tensor: ...
