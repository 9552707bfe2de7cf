"""Tensors, Variables and dtypes."""

from .. import Row

TITLE = "Tensors, Variables and dtypes"
ROWS = [
    Row(
        what="what `assign` returns",
        code="""
v = tf.Variable(1.0)
v.assign(2.0) is v
""",
        ours="True",
        theirs="False",
        why="the Variable itself; gradients reach it all the same",
    ),
    Row(
        what="an array of floats beside an integer tensor",
        code="tf.constant([1, 2]) * np.array([1.5, 2.5])",
        ours="DTypeError",
        theirs="[1, 4]",
        why="a fraction is cut off only by `tf.cast`",
    ),
    Row(
        what="a number that does not fit its dtype",
        code="tf.constant(300, tf.uint8)",
        ours="DTypeError",
        theirs="44",
        why="a wrapped number is a wrong number",
    ),
    Row(
        what="errors of shapes",
        code="tf.ones([2, 3]) + tf.ones([3, 2])",
        ours="ShapeError: Incompatible shapes",
        theirs="InvalidArgumentError",
        why="`ShapeError` is an InvalidArgumentError and a ValueError, with both shapes and the axis",
    ),
    Row(
        what="errors of dtypes",
        code="tf.ones([1]) + tf.ones([1], tf.float64)",
        ours="DTypeError: tf.cast",
        theirs="InvalidArgumentError",
        why="`DTypeError` is an InvalidArgumentError and a TypeError, with both dtypes and the cast",
    ),
    Row(
        what="a float where an axis or size belongs",
        code="tf.reshape([1.0, 2.0], [2.0])",
        ours="DTypeError: must be one integer",
        theirs="InvalidArgumentError",
        why="the class says what is wrong; TensorFlow names an attribute of its kernel",
    ),
    Row(
        what="attributes of a tensor",
        code="""
x = tf.constant(1.0)
x.note = 'mine'
x.note
""",
        ours="AttributeError",
        theirs="mine",
        why="a tensor holds one array and nothing else, so that it is small and quick to make",
    ),
    Row(
        what="`memoryview` of a tensor",
        code="memoryview(tf.constant([1.0])).nbytes",
        ours="TypeError",
        theirs="4",
        why="classes written in Python offer memory only from 3.12 on; use `np.asarray(tensor).data`",
    ),
    Row(
        what="an integer mask",
        code="tf.boolean_mask([1, 2, 3], [1, 0, 1])",
        ours="ShapeError",
        theirs="[1, 3]",
        why="2 and -1 would be true as well; compare with `mask != 0`",
    ),
    Row(
        what="the matrix product of bools",
        code="tf.matmul(tf.constant([[True]]), tf.constant([[True]]))",
        ours="[[True]]",
        theirs="InvalidArgumentError",
        why="as in NumPy",
    ),
    Row(
        what="labels that only broadcast to the logits",
        code="tf.nn.softmax_cross_entropy_with_logits(labels=[[0.0, 1.0]], logits=tf.ones([2, 2]))",
        ours="ShapeError",
        theirs="[0.6931, 0.6931]",
        why="a forgotten axis is the commonest cause of a loss that will not fall",
    ),
    Row(
        what="`reduce_euclidean_norm` of integers",
        code="tf.math.reduce_euclidean_norm(tf.constant([1, 1]))",
        ours="DTypeError",
        theirs="1",
        why="the root would be cut off",
    ),
    Row(
        what="`conv2d_transpose` of integers",
        code="tf.nn.conv2d_transpose(tf.ones([1, 1, 1, 1], tf.int32), tf.ones([1, 1, 1, 1], tf.int32), [1, 1, 1, 1], 1)",
        ours="DTypeError",
        theirs="[[[[1]]]]",
        why="layers compute in floats; cast first",
    ),
    Row(
        what="`triangular_solve` of a singular matrix",
        code="tf.linalg.triangular_solve([[1.0, 0.0], [1.0, 0.0]], [[1.0], [2.0]])",
        ours="InvalidArgumentError",
        theirs="[[1], [inf]]",
        why="as `solve` of one",
    ),
    Row(
        what="eigenvalues of a matrix with NaN",
        code="tf.linalg.eigvalsh([[np.nan, 0.0], [0.0, 1.0]])",
        ours="[nan, nan]",
        theirs="InvalidArgumentError",
        why="what comes out is NaN, as for `det`, `svd` and `expm`",
    ),
    Row(
        what="a string's `.numpy()`",
        code="tf.constant('word').numpy()",
        ours="word",
        theirs="b'word'",
        why="text is text; there are no operations on bytes here",
    ),
    Row(
        what="`range` away from its limit",
        code="tf.range(10, 0)",
        ours="[]",
        theirs="InvalidArgumentError",
        why="as Python's range and `np.arange`",
    ),
    Row(
        what="`stack` of nothing",
        code="tf.stack([])",
        ours="ValueError",
        theirs="[]",
        why="no shape and no dtype follow from nothing; `concat` refuses it too",
    ),
    Row(
        what="`reduce_all` of integers",
        code="tf.reduce_all(tf.constant([1, 2]))",
        ours="True",
        theirs="InvalidArgumentError",
        why="as in NumPy, and so is the sum of bools",
    ),
    Row(
        what="`avg_pool2d` over channels",
        code="tf.nn.avg_pool2d(tf.ones([1, 2, 2, 4]), [1, 1, 1, 2], [1, 1, 1, 2], 'SAME').shape",
        ours="ShapeError",
        theirs="(1, 0, 0, 2)",
        why="windows slide over the axes between batch and channels; the result there is empty",
    ),
    Row(
        what="`max_pool2d` over channels",
        code="tf.nn.max_pool2d(tf.ones([1, 2, 2, 4]), [1, 1, 1, 2], [1, 1, 1, 2], 'SAME').shape",
        ours="ShapeError",
        theirs="(1, 2, 2, 2)",
        why="windows slide over the axes between batch and channels; reshape and take `reduce_max`",
    ),
    Row(
        what="the `norm` of complex numbers",
        code="tf.norm(tf.constant([3 + 4j])).dtype",
        ours="float64",
        theirs="complex128",
        why="a length is a real number",
    ),
    Row(
        what="`argmax` beside NaN",
        code="tf.argmax([1.0, np.nan, 2.0])",
        ours="1",
        theirs="2",
        why="as NumPy: NaN is found, not passed over",
    ),
    Row(
        what="a band wider than the matrix",
        code="tf.linalg.band_part(tf.ones([1, 2]), 5, 5)",
        ours="[[1, 1]]",
        theirs="InvalidArgumentError",
        why="it keeps all of it",
    ),
    Row(
        what="denormal numbers",
        code="tf.constant(1e-40) + 0.0 > 0.0",
        ours="True",
        theirs="False",
        why="they are kept, as in NumPy",
    ),
    Row(
        what="the dtype of resized and standardized images",
        code="tf.image.resize(tf.ones([2, 2, 1], 'float64'), [3, 3]).dtype",
        ours="float64",
        theirs="float32",
        why="floats keep their dtype, `per_image_standardization` and `adjust_contrast` of float16 as well",
    ),
    Row(
        what="`float` of a tensor with one element and an axis",
        code="float(tf.constant([2.0]))",
        ours="2",
        theirs="TypeError: only 0-dimensional",
        why="there is only one number that it can mean",
    ),
    Row(
        what="`Variable.batch_scatter_update`",
        code="hasattr(tf.Variable(1.0), 'batch_scatter_update')",
        ours="False",
        theirs="True",
        why="`scatter_nd_update` does the same with the indices of the batch in front",
    ),
]
