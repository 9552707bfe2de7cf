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
]
