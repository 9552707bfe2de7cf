"""`tf.version`: which version this is."""

VERSION = "0.1.0"

__all__ = ["VERSION"]
