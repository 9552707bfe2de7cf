"""`tf.image`: what TensorFlow's autodiff guide uses, and other sizes."""

from .functions.elementwise import adjust_contrast
from .functions.resizing import resize

__all__ = ["adjust_contrast", "resize"]
