"""Checkpoints: saving and restoring any graph of objects.

`state/` is what is saved and how it comes back, `bundle.py` how it lies on the disk.
"""
