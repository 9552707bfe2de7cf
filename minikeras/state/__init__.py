"""All state of an object by path (`tree.py`), and how it comes back (`restoring.py`); files of any kind are encoders of it."""
