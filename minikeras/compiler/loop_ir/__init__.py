"""Nests: operations on windows and rows as loops over elements, the same for every target.

`nest.py` defines nests, an interpreter among the tests their meaning; `windows.py`, `pools.py`, `contractions.py` and others
write operations as nests, and `operations.py` lists those that have one. `compiler/render` writes the text for a target.
"""
