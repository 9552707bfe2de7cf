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
    Row(
        what="the gradient of `softmax_cross_entropy_with_logits` where labels do not add up to 1",
        code="""
x = tf.Variable([[0.0, 1.0]])
with tf.GradientTape() as tape:
    y = tf.nn.softmax_cross_entropy_with_logits(labels=[[1.0, 1.0]], logits=x)
tape.gradient(y, x)
""",
        ours="[[-0.4621, 0.4621]]",
        theirs="[[-0.7311, -0.2689]]",
        why="it is that of the value, sum(l) p - l; TensorFlow's p - l takes the sum for 1",
    ),
    Row(
        what="the gradient of `eigh` and `eigvalsh`",
        code="""
x = tf.Variable([[2.0, 1.0], [1.0, 2.0]])
with tf.GradientTape() as tape:
    y = tf.linalg.eigvalsh(x)[1]
tape.gradient(y, x)
""",
        ours="[[0.5, 0.5], [0.5, 0.5]]",
        theirs="[[0.5, 0], [1, 0.5]]",
        why="a step along it keeps the matrix symmetric; TensorFlow's is that of the lower triangle, which is read",
    ),
    Row(
        what="the second derivative of `nn.moments`",
        code="""
x = tf.Variable([1.0, 3.0])
with tf.GradientTape() as outer:
    with tf.GradientTape() as tape:
        y = tf.nn.moments(x, [0])[1]
    g = tape.gradient(y, x)
outer.jacobian(g, x)
""",
        ours="[[0.5, -0.5], [-0.5, 0.5]]",
        theirs="[[1, 0], [0, 1]]",
        why="it is that of the variance; TensorFlow stops the gradient at the mean, which is right in first order only",
    ),
    Row(
        what="the gradient of a real number by `math.imag` and `math.angle`",
        code="""
x = tf.Variable(2.0)
with tf.GradientTape() as tape:
    y = tf.math.imag(x)
tape.gradient(y, x)
""",
        ours="0",
        theirs="None",
        why="the imaginary part of a real number is constant, and so is its angle: the slope exists and is 0",
    ),
    Row(
        what="the gradient of `maximum` and `minimum` beside NaN",
        code="""
x = tf.Variable([1.0, np.nan])
with tf.GradientTape() as tape:
    y = tf.maximum(2.0 * tf.stop_gradient(x), x)
tape.gradient(y, x)
""",
        ours="[0, 0]",
        theirs="[0, 1]",
        why="a NaN is neither larger nor smaller, so neither argument gets the gradient; TensorFlow gives it to the second",
    ),
]
