"""Executors carry out programs; `base.py` is their interface."""
