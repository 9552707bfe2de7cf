"""Slopes."""

from .. import Row

TITLE = "Slopes"
ROWS = [
    Row(
        what="the gradient of `norm` at 0",
        code="""
x = tf.Variable([0.0, 0.0])
with tf.GradientTape() as tape:
    y = tf.norm(x)
tape.gradient(y, x)
""",
        ours="[0, 0]",
        theirs="[nan, nan]",
        why="0 is a subgradient; all choices are in [guides/singular-points.md](guides/singular-points.md)",
    ),
    Row(
        what="the gradient of `reduce_std` of equal values",
        code="""
x = tf.Variable([1.0, 1.0])
with tf.GradientTape() as tape:
    y = tf.math.reduce_std(x)
tape.gradient(y, x)
""",
        ours="[0, 0]",
        theirs="[nan, nan]",
        why="as of `norm`",
    ),
    Row(
        what="the gradient of `x ** y` with respect to x at 0 ** 0",
        code="""
x = tf.Variable(0.0)
with tf.GradientTape() as tape:
    y = x ** tf.constant(0.0)
tape.gradient(y, x)
""",
        ours="0",
        theirs="nan",
        why="x ** 0 is constant",
    ),
    Row(
        what="the gradient of `atan2` at the origin",
        code="""
x = tf.Variable(0.0)
with tf.GradientTape() as tape:
    y = tf.atan2(x, tf.constant(0.0))
tape.gradient(y, x)
""",
        ours="0",
        theirs="nan",
        why="an arrow without length has no angle that could turn",
    ),
    Row(
        what="the gradient of `reduce_logsumexp` of nothing but -inf",
        code="""
x = tf.Variable([-np.inf, -np.inf])
with tf.GradientTape() as tape:
    y = tf.reduce_logsumexp(x)
tape.gradient(y, x)
""",
        ours="[0, 0]",
        theirs="[nan, nan]",
        why="a masked row has no share in anything",
    ),
    Row(
        what="the gradient of a branch that `where` does not take",
        code="""
x = tf.Variable([0.0, 4.0])
with tf.GradientTape() as tape:
    y = tf.where(x > 0.0, tf.math.log(x), 0.0)
tape.gradient(y, x)
""",
        ours="[0, 0.25]",
        theirs="[nan, 0.25]",
        why="what is not taken has no part in the result, also at a pole",
    ),
    Row(
        what="the gradient of `cumprod` behind a zero",
        code="""
x = tf.Variable([2.0, 0.0, 3.0])
with tf.GradientTape() as tape:
    y = tf.math.cumprod(x)
tape.gradient(y, x)
""",
        ours="[1, 8, 0]",
        theirs="[1, 0, 0]",
        why="the derivative exists, and this is it",
    ),
]
