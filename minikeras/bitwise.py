# mypy: implicit-reexport
"""`tf.bitwise`: functions of the bits of integers. Names only; definitions are in `functions/elementwise.py`."""

from .functions.elementwise import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift
from .functions.symbols import publish as _publish

_publish(globals())
