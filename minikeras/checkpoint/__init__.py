"""Checkpoints: saving and restoring any graph of objects.

May import everything below `keras`. Read `checkpoint.py` first, then `graph.py` (what is saved), `bundle.py` (how it lies on
the disk), `restoring.py` (how it comes back).
"""
