# mypy: implicit-reexport
"""HDF5, as far as Keras's files use it, in Python: groups, plain arrays, texts as attributes.

HDF5's C library trusts what it reads. `reading.py` knows the few structures that Keras writes, those of version 0 of the format
(symbol tables, contiguous arrays), and refuses links into other files, filters and all else.
"""

from .reading import DIGEST, SIGNATURE, StoredArray, StoredGroup, read
from .writing import NewGroup, encode
