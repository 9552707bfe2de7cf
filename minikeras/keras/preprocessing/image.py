# mypy: implicit-reexport
"""Images as arrays and back."""

from ...absent import facade as _facade
from ..utils.files import array_to_img, img_to_array, load_img, save_img, smart_resize

__getattr__, __dir__, __all__ = _facade(__name__, {})
