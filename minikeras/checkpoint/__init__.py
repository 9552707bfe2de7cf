"""Checkpoints: saving and restoring any graph of objects.

`graph.py` is what is saved, `bundle.py` how it lies on the disk, `restoring.py` how it comes back.
"""
