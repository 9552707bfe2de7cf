"""`tf.image`: what TensorFlow's autodiff guide uses, and other sizes."""

from .functions.elementwise import adjust_contrast
from .functions.resizing import resize
from .functions.symbols import publish as _publish

_publish(globals())
__all__ = ["adjust_contrast", "resize"]
