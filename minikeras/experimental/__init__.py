# mypy: implicit-reexport
"""TensorFlow's `tf.experimental`, as far as it is here: the exchange of tensors with other libraries. Read `dlpack.py`."""

from ..absent import facade as _facade
from . import dlpack

__getattr__, __dir__, __all__ = _facade(__name__, {"dlpack": None})
