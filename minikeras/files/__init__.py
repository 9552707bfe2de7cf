"""Files: written whole or not at all, read without trusting them.

May import `errors`, nothing else of the package. Read `durable.py` first: everything that saves goes through it. The readers
(`tensors`, `hdf5`, `archive`, `strict_json`) check what a file declares against what it holds before they allocate, and run
nothing of it; each failure is a `LoadError` that names the file and the place.
"""
