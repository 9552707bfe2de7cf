"""`tf.dtypes`: dtypes, and functions that change them. Names only."""

from .functions.symbols import publish as _publish

_publish(globals())
__all__ = [name for name in dir() if not name.startswith("_")]
