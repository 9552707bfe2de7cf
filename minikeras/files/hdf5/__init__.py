"""HDF5, as far as Keras's files use it, in Python: groups, plain arrays, texts as attributes.

Key idea: HDF5 can do very much (links into other files, filters, data elsewhere) that a file of weights has no use for, and its
C library trusts what it reads. `reading.py` knows the few structures that Keras writes and refuses all else; `writing.py`
writes the same structures. The layout is that of version 0 of the format: symbol tables, contiguous arrays.
"""

from .reading import DIGEST, SIGNATURE, Dataset, Group, read
from .writing import Node, encode, tree

__all__ = ["DIGEST", "SIGNATURE", "Dataset", "Group", "Node", "encode", "read", "tree"]
