# Made by tests/make_stubs.py from the functions themselves.
from minikeras.core.tensor import Tensor
from minikeras.functions.image import _transposed as transpose
from minikeras.functions.image import adjust_contrast as adjust_contrast
from minikeras.functions.image import adjust_gamma as adjust_gamma
from minikeras.functions.image import adjust_hue as adjust_hue
from minikeras.functions.image import adjust_saturation as adjust_saturation
from minikeras.functions.image import central_crop as central_crop
from minikeras.functions.image import convert_image_dtype as convert_image_dtype
from minikeras.functions.image import crop_and_resize as crop_and_resize
from minikeras.functions.image import crop_to_bounding_box as crop_to_bounding_box
from minikeras.functions.image import extract_patches as extract_patches
from minikeras.functions.image import grayscale_to_rgb as grayscale_to_rgb
from minikeras.functions.image import non_max_suppression as non_max_suppression
from minikeras.functions.image import pad_to_bounding_box as pad_to_bounding_box
from minikeras.functions.image import per_image_standardization as per_image_standardization
from minikeras.functions.image import psnr as psnr
from minikeras.functions.image import resize_with_crop_or_pad as resize_with_crop_or_pad
from minikeras.functions.image import resize_with_pad as resize_with_pad
from minikeras.functions.image import rgb_to_grayscale as rgb_to_grayscale
from minikeras.functions.image import total_variation as total_variation
from minikeras.functions.resizing import ResizeMethod as ResizeMethod
from minikeras.functions.resizing import resize as resize
from minikeras.types import ShapeLike
from minikeras.types import TensorLike
from typing import Any

def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor: ...
def flip_left_right(image: TensorLike) -> Tensor: ...
def flip_up_down(image: TensorLike) -> Tensor: ...
def random_brightness(image: TensorLike, max_delta: float, seed: Any = ...) -> Tensor: ...
def random_contrast(image: TensorLike, lower: float, upper: float, seed: Any = ...) -> Tensor: ...
def random_crop(value: TensorLike, size: ShapeLike, seed: Any = ..., name: str | None = ...) -> Tensor: ...
def random_flip_left_right(image: TensorLike, seed: Any = ...) -> Tensor: ...
def random_flip_up_down(image: TensorLike, seed: Any = ...) -> Tensor: ...
def random_hue(image: TensorLike, max_delta: float, seed: Any = ...) -> Tensor: ...
def random_saturation(image: TensorLike, lower: float, upper: float, seed: Any = ...) -> Tensor: ...
def rot90(image: TensorLike, k: int = ..., name: str | None = ...) -> Tensor: ...
def stateless_random_brightness(image: TensorLike, max_delta: float, seed: Any) -> Tensor: ...
def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: Any) -> Tensor: ...
def stateless_random_crop(value: TensorLike, size: ShapeLike, seed: Any, name: str | None = ...) -> Tensor: ...
def stateless_random_flip_left_right(image: TensorLike, seed: Any = ...) -> Tensor: ...
def stateless_random_flip_up_down(image: TensorLike, seed: Any = ...) -> Tensor: ...
def stateless_random_hue(image: TensorLike, max_delta: float, seed: Any) -> Tensor: ...
def stateless_random_saturation(image: TensorLike, lower: float, upper: float, seed: Any) -> Tensor: ...

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "central_crop",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "non_max_suppression",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rot90",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_saturation",
    "total_variation",
    "transpose",
]
