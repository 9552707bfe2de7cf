"""The operations that users call: TensorFlow's names and signatures over the primitives of `ops`.

May import `errors`, `types`, `nest`, `arrays`, `core` and `ops`. Read `publish.py` first, then the subject you need. Each
function converts its arguments to Tensors, checks them, and calls a primitive; a few combine several.
"""
