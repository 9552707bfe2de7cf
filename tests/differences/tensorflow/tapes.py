"""Tapes."""

from .. import Row

TITLE = "Tapes"
ROWS = [
    Row(
        what="an ndarray as the source of a gradient",
        code="""
with tf.GradientTape() as tape:
    y = tf.constant(1.0)
tape.gradient(y, np.float32(1.0))
""",
        ours="TypeError",
        theirs="AttributeError",
        why="the error names the argument",
    ),
]
