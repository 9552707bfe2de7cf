"""What functions take."""

from .. import Row

TITLE = "Arguments"
ROWS = [
    Row(
        what="a NumPy array of numbers as a condition",
        code="tf.where(np.array([1, 0]), 1, 2)",
        ours="DTypeError: the condition must be bool",
        theirs="[1, 2]",
        why="a tensor of numbers is refused in both; an index given for a mask would be taken for one",
    ),
    Row(
        what="a bool beside a number in a list",
        code="tf.constant([True, 1])",
        ours="[1, 1]",
        theirs="ValueError: mixed types",
        why="as in NumPy; TensorFlow takes `[1, True]`",
    ),
    Row(
        what="the sum of bools",
        code="tf.constant(True) + True",
        ours="True",
        theirs="InvalidArgumentError",
        why="as in NumPy",
    ),
    Row(
        what="the absolute value of bools",
        code="tf.abs(tf.constant([True]))",
        ours="[True]",
        theirs="InvalidArgumentError",
        why="as in NumPy",
    ),
    Row(
        what="`is_nan` of complex numbers",
        code="tf.math.is_nan(tf.constant(complex(0.0, np.nan)))",
        ours="True",
        theirs="InvalidArgumentError",
        why="as in NumPy: either part may be NaN",
    ),
    Row(
        what="equality of a number and a text",
        code="tf.constant(1) == 'a'",
        ours="False",
        theirs="TypeError",
        why="as in Python: they differ",
    ),
    Row(
        what="integer labels beside float logits",
        code="tf.nn.sigmoid_cross_entropy_with_logits(labels=[0, 1], logits=[1.0, 2.0])",
        ours="[1.313, 0.1269]",
        theirs="InvalidArgumentError",
        why="lists of numbers follow the dtype of what they are compared with",
    ),
    Row(
        what="`gather` along an axis that `batch_dims` names",
        code="tf.gather(tf.reshape(tf.range(4), [2, 2]), [[0], [1]], axis=0, batch_dims=1).shape",
        ours="ShapeError: axis 0 is one of the 1 leading axes",
        theirs="(2, 1, 2)",
        why="the documentation there forbids it too: the result belongs to no batch",
    ),
    Row(
        what="`reverse` of a scalar along an axis",
        code="tf.reverse(tf.constant(1.0), [0])",
        ours="ShapeError: axis 0 is out of range",
        theirs="1",
        why="there is no such axis",
    ),
    Row(
        what="`conv2d` of no images",
        code="tf.nn.conv2d(tf.zeros([0, 4, 4, 1]), tf.ones([2, 2, 1, 3]), 1, 'SAME').shape",
        ours="(0, 4, 4, 3)",
        theirs="(0, 4, 4, 1)",
        why="the kernel has 3 filters",
    ),
    Row(
        what="the matrix product of small integers",
        code="tf.matmul(tf.ones([1, 2], tf.int8), tf.ones([2, 1], tf.int8))",
        ours="[[2]]",
        theirs="InvalidArgumentError",
        why="as in NumPy",
    ),
    Row(
        what="`batch_normalization` of float32 by statistics in float64",
        code="tf.nn.batch_normalization(tf.ones([2]), *2 * [tf.ones([2], tf.float64)], None, None, 0.0)",
        ours="DTypeError: tf.cast",
        theirs="[0, 0]",
        why="wider tensors are rounded only by `tf.cast`; 16-bit floats are normalized by float32, as there",
    ),
    Row(
        what="an axis of `tensordot` that is out of range",
        code="tf.tensordot([[1]], [[1]], [[0], [7]])",
        ours="ShapeError: axis 7 is out of range",
        theirs="IndexError: list index out of range",
        why="errors of shapes have one class, and name the axis",
    ),
    Row(
        what="a branch by a Python int",
        code="tf.switch_case(1, [lambda: 1, lambda: 2])",
        ours="2",
        theirs="TypeError",
        why="a number is as good as a tensor, as in `tf.cond`",
    ),
    Row(
        what="`scatter_nd` of indices without a coordinate",
        code="tf.scatter_nd(tf.zeros([0], tf.int32), tf.zeros([0], tf.int32), [0])",
        ours="InvalidArgumentError: name no place",
        theirs="[]",
        why="refused in both unless the result is empty as well",
    ),
    Row(
        what="`one_hot` of two NumPy numbers of different dtypes",
        code="tf.one_hot([0], 2, on_value=np.float64(1.0), off_value=np.float32(0.0))",
        ours="[[1, 0]]",
        theirs="TypeError",
        why="numbers follow one another, as everywhere",
    ),
    Row(
        what="`clip_by_value` of `IndexedSlices`",
        code="""
slices = tf.IndexedSlices(tf.constant([3.0]), tf.constant([0]), tf.constant([2]))
isinstance(tf.clip_by_value(slices, 0.0, 1.0), tf.IndexedSlices)
""",
        ours="False",
        theirs="True",
        why="the limits hold for the sum over duplicates, and for the rows that are not named",
    ),
    Row(
        what="`clip_by_global_norm` of `IndexedSlices` without a shape",
        code="tf.clip_by_global_norm([tf.IndexedSlices(tf.constant([3.0, 4.0]), tf.constant([0, 1]))], 1.0)[1]",
        ours="ShapeError: Give dense_shape",
        theirs="5",
        why="as `clip_by_norm`: the norm is that of the whole tensor",
    ),
    Row(
        what="a Variable made within `vectorized_map`",
        code="tf.vectorized_map(lambda a: tf.Variable(2.0) * a, tf.constant([1.0, 2.0]))",
        ours="[2, 4]",
        theirs="ValueError: singleton",
        why="nothing is traced, so the function may do what it does in eager code",
    ),
    Row(
        what="`pad` with a value within `vectorized_map`",
        code="tf.vectorized_map(lambda a: tf.pad([a], [[1, 1]], constant_values=2.0), tf.constant([1.0, 2.0]))",
        ours="[[2, 1, 2], [2, 2, 2]]",
        theirs="[[0, 1, 0], [0, 2, 0]]",
        why="the value is kept; TensorFlow drops it there",
    ),
    Row(
        what="a Variable that a recomputed function both takes and reads",
        code="""
v = tf.Variable(2.0)
f = tf.recompute_grad(lambda a: a * v)
with tf.GradientTape() as tape:
    y = f(v)
tape.gradient(y, v)
""",
        ours="4",
        theirs="2",
        why="v * v has the slope 2 v; both ways count",
    ),
    Row(
        what="a recomputed function called by keyword",
        code="""
x = tf.Variable(2.0)
f = tf.recompute_grad(lambda a, b: a * b)
with tf.GradientTape() as tape:
    y = f(x, b=x * 1.0)
tape.gradient(y, x)
""",
        ours="4",
        theirs="2",
        why="arguments by keyword have gradients too",
    ),
    Row(
        what="`tf.cumsum` in bfloat16",
        code="float(tf.cumsum(tf.ones([1000], tf.bfloat16))[-1])",
        ours="1000",
        theirs="256",
        why="16-bit floats are added up in float32 and rounded once, as are products",
    ),
    Row(
        what="a list as the table of `embedding_lookup`",
        code="tf.nn.embedding_lookup([[1.0], [2.0]], [1, 0])",
        ours="[[2], [1]]",
        theirs="[2, 1]",
        why="it is the tensor that it stacks to; there it is a list of parts over which rows are dealt out",
    ),
    Row(
        what="a loop variable that changes its dtype within `tf.function`",
        code="tf.function(lambda: tf.while_loop(lambda v: v < 8, lambda v: tf.cast(v * v, 'float16'), [tf.ones([]) * 2]))()",
        ours="[16]",
        theirs="TypeError: should remain constant",
        why="without `tf.function` both libraries give this",
    ),
    Row(
        what="`map_structure` without a nest",
        code="tf.nest.map_structure(lambda: 1)",
        ours="TypeError: missing 1 required positional argument",
        theirs="ValueError: Must provide at least one structure",
        why="a missing argument is a TypeError, as for any function of Python",
    ),
    Row(
        what="an unknown option of `map_structure`",
        code="tf.nest.map_structure(lambda a: a, [1], check=True)",
        ours="TypeError: unexpected keyword argument 'check'",
        theirs="ValueError: Only valid keyword arguments",
        why="an unknown argument is a TypeError, as for any function of Python",
    ),
    Row(
        what="`nest.flatten_up_to` is public, and says of text in place of a list what is wrong",
        code="tf.nest.flatten_up_to(['shallow'], 'deep')",
        ours="ValueError: 'deep' is not nested like ['shallow']",
        theirs="AttributeError",
        why="text is a leaf; all nests that differ raise a ValueError here",
    ),
    Row(
        what="a vector of one number as `batch_dims`",
        code="tf.gather_nd([[1, 2], [3, 4]], [[0], [1]], batch_dims=tf.constant([1]))",
        ours="DTypeError: must be one integer",
        theirs="TypeError: only 0-dimensional arrays",
        why="refused in both; the error says what to write",
    ),
    Row(
        what="`shape_invariants` that do not fit the loop variables, in a `tf.function`",
        code="tf.function(lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)], shape_invariants=3))()",
        ours="[3]",
        theirs="ValueError: same nested structure",
        why="shapes may change from turn to turn here, so none are declared; without `tf.function` both ignore the argument",
    ),
    Row(
        what="pooling over four axes",
        code="tf.nn.max_pool(tf.ones([1, 2, 2, 2, 2, 1]), 2, 2, 'SAME').shape",
        ours="(1, 1, 1, 1, 1, 1)",
        theirs="ValueError: must be 3, 4 or 5",
        why="windows slide over any number of axes",
    ),
    Row(
        what="an error of the other operand's own `__radd__`",
        code="""
class Amount:
    def __radd__(self, other):
        raise TypeError('no currency')
tf.constant(1) + Amount()
""",
        ours="TypeError: no currency",
        theirs="ValueError: unsupported type",
        why="it says what is wrong; TensorFlow replaces it by the error of a conversion",
    ),
    Row(
        what="the `jacobian` of an empty target, row by row",
        code="""
x = tf.ones([2])
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = (x * 2.0)[:0]
tape.jacobian(y, x, experimental_use_pfor=False).shape
""",
        ours="(0, 2)",
        theirs="ValueError: not compatible with supplied shape",
        why="as with `experimental_use_pfor=True`",
    ),
    Row(
        what="two draws with the same `seed` in one `tf.function`",
        code="""
draw = tf.function(lambda: tf.random.normal([2], seed=3) - tf.random.normal([2], seed=3))
bool(tf.reduce_all(draw() == 0.0))
""",
        ours="False",
        theirs="True",
        why="as in eager code, in both libraries",
    ),
    Row(
        what="the sum of text",
        code="tf.reduce_sum(tf.constant(['a', 'b'])).shape",
        ours="()",
        theirs="InvalidArgumentError",
        why="text adds up as with `+`, and has an order, as in NumPy",
    ),
    Row(
        what="`tensordot` along axes of unlike sizes",
        code="tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), axes=2)",
        ours="ShapeError: along axes 2 differ",
        theirs="6",
        why="pairs of axes must agree; TensorFlow flattens them and asks only for equal numbers of elements",
    ),
]
