# mypy: implicit-reexport
"""TensorFlow's `tf.experimental`, as far as it is here: the exchange of tensors with other libraries. Read `dlpack.py`."""

from ..absent import late as _late
from . import dlpack

__getattr__, __dir__ = _late(__name__, {"dlpack": None})
__all__ = [name for name in __dir__() if not name.startswith("_")]
