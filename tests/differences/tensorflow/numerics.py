"""Numbers."""

from .. import Row


def gradient_of(call: str) -> str:
    """Code for the gradient of a function of a complex number."""
    return f"""
x = tf.Variable(1 + 2j)
with tf.GradientTape() as tape:
    y = {call}
tape.gradient(y, x)
"""


TITLE = "Numbers"
ROWS = [
    Row(
        what="the norm of complex numbers",
        code="tf.norm(tf.constant([3j, 4 + 0j])).dtype",
        ours="float64",
        theirs="complex128",
        why="a length is a real number",
    ),
    Row(
        what="the gradient of `xlogy` of complex numbers",
        code=gradient_of("tf.math.xlogy(x, tf.constant(1j))"),
        ours="0-1.571j",
        theirs="0+1.571j",
        why="gradients of analytic functions are conjugated, as those of `multiply` and `log` are",
    ),
    Row(
        what="the gradient of `silu` of complex numbers",
        code=gradient_of("tf.cast(tf.math.imag(tf.nn.silu(x)), 'complex128')"),
        ours="0.2645+2.004j",
        theirs="-0.2645+2.004j",
        why="the same convention",
    ),
    Row(
        what="the gradient of the determinant of a singular matrix",
        code="""
x = tf.Variable([[1.0, 2.0], [2.0, 4.0]])
with tf.GradientTape() as tape:
    y = tf.linalg.det(x)
tape.gradient(y, x)
""",
        ours="[[4, -2], [-2, 1]]",
        theirs="InvalidArgumentError: not invertible",
        why="it is a polynomial of the elements: its gradient are the cofactors",
    ),
    Row(
        what="a range that has no number",
        code="tf.range(5, 1)",
        ours="[]",
        theirs="InvalidArgumentError: start <= limit",
        why="an empty range, as in Python and NumPy",
    ),
    Row(
        what="`logical_and` of integers",
        code="tf.logical_and(tf.constant(1), tf.constant(2))",
        ours="True",
        theirs="InvalidArgumentError",
        why="as in NumPy; bits have `&`",
    ),
    Row(
        what="a number that the dtype beside it does not hold",
        code="tf.constant(6, 'int8') & 300",
        ours="InvalidArgumentError: 300",
        theirs="4",
        why="it would be another number",
    ),
    Row(
        what="`one_hot` of an int64 beside a Python number",
        code="tf.one_hot([1], 3, on_value=tf.constant(5, 'int64'), off_value=0).dtype",
        ours="int64",
        theirs="TypeError",
        why="numbers follow the tensor, as everywhere",
    ),
    Row(
        what="`pad` of a scalar by no pair",
        code="tf.pad(1.0, [])",
        ours="1",
        theirs="InvalidArgumentError",
        why="one pair for each axis, and there is none",
    ),
    Row(
        what="rows of another shape scattered into a Variable",
        code="tf.Variable(tf.ones([3, 2])).scatter_add(tf.IndexedSlices(tf.ones([2, 1]), tf.constant([0, 1]))).shape",
        ours="ShapeError: need updates of shape (2, 2)",
        theirs="(3, 2)",
        why="there, memory beyond the updates is read",
    ),
    Row(
        what="the second derivative of `reduce_prod` of complex numbers",
        code="""
x = tf.Variable([1 + 1j, 2 + 1j, 1 + 0j])
with tf.GradientTape() as outer:
    with tf.GradientTape() as tape:
        y = tf.math.real(tf.reduce_prod(x))
    g = tape.gradient(y, x)
outer.gradient(g, x)
""",
        ours="[3-1j, 2-1j, 3-2j]",
        theirs="[3+1j, 2+1j, 3+0j]",
        why="the same convention in every order",
    ),
    Row(
        what="the gradients of `cumprod`, `segment_prod` and `multiply_no_nan` of complex numbers",
        code="""
x = tf.Variable(1 + 1j)
with tf.GradientTape() as tape:
    y = tf.math.multiply_no_nan(x, tf.constant(1j))
tape.gradient(y, x)
""",
        ours="0-1j",
        theirs="0+1j",
        why="the same convention",
    ),
    Row(
        what="infinity divided by `//`",
        code="tf.constant(np.inf) // 2.0",
        ours="nan",
        theirs="inf",
        why="as in Python and NumPy: infinity leaves no remainder to take away",
    ),
    Row(
        what="`clip_by_value` where the lower limit is above the upper one",
        code="tf.clip_by_value([1.0, 5.0], 3.0, 2.0)",
        ours="[2, 2]",
        theirs="[3, 3]",
        why="as `np.clip` and `keras.ops.clip`: the upper limit holds",
    ),
    Row(
        what="`argmin` beside NaN",
        code="tf.argmin([2.0, np.nan, 1.0])",
        ours="1",
        theirs="2",
        why="as in NumPy: NaN is found, not passed over",
    ),
    Row(
        what="sorting in descending order beside NaN",
        code="tf.sort([2.0, np.nan, 1.0], direction='DESCENDING')",
        ours="[nan, 2, 1]",
        theirs="[2, nan, 1]",
        why="as in ascending order, a NaN counts as larger than every number; `top_k` and `argsort` likewise",
    ),
]
