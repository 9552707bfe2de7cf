"""`tf.bitwise`: functions of the bits of integers. Names only; definitions are in `functions/elementwise.py`."""

from .functions import elementwise
from .functions.catalogue import publish as _publish

_publish(globals(), {elementwise: "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"})
