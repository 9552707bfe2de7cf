"""Nests: operations on windows and rows as loops over elements, the same for every target.

`nest.py` says what a nest is, an interpreter among the tests what it means; `windows.py`, `pools.py`, `contractions.py` and
`rows.py` write operations as nests, and `operations.py` says which have one. `compiler/render` writes the text for a target.
"""
