"""The operations that users call: TensorFlow's names and signatures over the primitives of `ops`. Read `publish.py` first.

`name` is accepted for compatibility in all of them, and ignored.
"""
