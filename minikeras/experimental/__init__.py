"""TensorFlow's `tf.experimental`, as far as it is here: the exchange of tensors with other libraries. Read `dlpack.py`."""

from . import dlpack

__all__ = ["dlpack"]
