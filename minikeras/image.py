"""`tf.image`: the one image operation that TensorFlow's autodiff guide uses."""

from .functions.elementwise import adjust_contrast

__all__ = ["adjust_contrast"]
