"""Passes over programs, one in each file; `pipeline.py` has their order."""
