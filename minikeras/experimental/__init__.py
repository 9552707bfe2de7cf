"""TensorFlow's `tf.experimental`, as far as it is here: the exchange of tensors with other libraries. Read `dlpack.py`."""

from ..absent import late as _late
from . import dlpack

__all__ = ["dlpack"]

__getattr__, __dir__ = _late(__name__, {})
