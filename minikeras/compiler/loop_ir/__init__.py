"""Nests: operations on windows and rows as loops over elements, the same for every target.

`nest.py` says what a nest is, `interpreter.py` what it means, in NumPy; `windows.py` and `rows.py` write operations as nests, and
`operations.py` says which primitives have one. Text in the language of a target is made by `compiler/render`.
"""
