"""Files: written whole or not at all (`durable.py`), read without trusting them.

The readers check what a file declares against what it holds before they allocate; a `LoadError` names the file and the place.
"""
