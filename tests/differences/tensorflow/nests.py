"""Lists of tensors, nests and loops."""

from .. import Row

TITLE = "Lists, nests and loops"
ROWS = [
    Row(
        what="a list that holds an int tensor, beside a float tensor",
        code="tf.constant([1.0, 2.0]) + [tf.constant(1), 2]",
        ours="DTypeError: expected to be a float32 tensor but is a int32",
        theirs="[2, 4]",
        why="a list of tensors is treated as the tensor that it stacks to, which is refused in both",
    ),
    Row(
        what="a list of float tensors converted to integers",
        code="tf.convert_to_tensor([tf.constant(1.5)], tf.int32)",
        ours="DTypeError: to int32; cast it",
        theirs="[1]",
        why="nothing is cut off without a cast",
    ),
    Row(
        what="`tf.stack` of ints and floats along another axis than the first",
        code="tf.stack([1, 2.0, 3], -1)",
        ours="[1, 2, 3]",
        theirs="TypeError",
        why="the axis does not change what the numbers are",
    ),
    Row(
        what="`tf.constant` of a list of tensors",
        code="tf.constant([tf.constant(1.0), tf.constant(2.0)])",
        ours="[1, 2]",
        theirs="ValueError",
        why="it is `tf.convert_to_tensor` with a shape",
    ),
    Row(
        what="`tf.nest.flatten` of a dict whose keys are strings and numbers",
        code="tf.nest.flatten({'b': 1, 1: 2, 'a': 3})",
        ours="[2, 3, 1]",
        theirs="TypeError",
        why="keys are sorted, first by the name of their type",
    ),
    Row(
        what="`output_gradients` in another nest than the target's",
        code="""
x = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = {"b": 10.0 * x, "a": x}
tape.gradient(y, x, output_gradients=[1.0, 100.0])
""",
        ours="ValueError: nested alike",
        theirs="1001",
        why="a list has no keys, so which seed belongs to which target would be a guess",
    ),
    Row(
        what="`output_gradients` as a list of numbers for one vector",
        code="""
x = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = x * [1.0, 2.0]
tape.gradient(y, x, output_gradients=[3.0, 4.0])
""",
        ours="11",
        theirs="9",
        why="a list of numbers stands for a tensor everywhere; TensorFlow takes the first number alone and spreads it",
    ),
    Row(
        what="results of `map_fn` that are nested otherwise than the elements, without a signature",
        code="tf.map_fn(lambda x: (x, 2.0 * x), tf.constant([1.0, 2.0]))",
        ours="([1, 2], [2, 4])",
        theirs="ValueError",
        why="the results say themselves how they are nested",
    ),
    Row(
        what="`map_fn` over no slices",
        code="tf.map_fn(lambda x: 2.0 * x, tf.zeros([0, 3])).shape",
        ours="(0, 3)",
        theirs="(0,)",
        why="the shape of a slice is known, and a later `concat` needs it; within `tf.function` TensorFlow agrees",
    ),
    Row(
        what="`scan` and `foldl` over no slices without an initializer",
        code="tf.scan(lambda a, x: a + x, tf.zeros([0, 3]))",
        ours="InvalidArgumentError: Give an initializer",
        theirs="OutOfRangeError",
        why="the error says what is missing",
    ),
    Row(
        what="how often the function of `scan`, `foldl` and `foldr` is called",
        code="""
calls = []
_ = tf.scan(lambda a, x: (calls.append(x), a + x)[1], tf.ones([5]))
len(calls)
""",
        ours="2",
        theirs="4",
        why="two steps are recorded, and repeated if they do the same; TensorFlow does so in a `tf.function`",
    ),
    Row(
        what="the container that `while_loop` returns",
        code="type(tf.while_loop(lambda i, j: i < 3, lambda i, j: (i + 1, j), [tf.constant(0), tf.constant(1)])).__name__",
        ours="list",
        theirs="tuple",
        why="it is that of `loop_vars`, however many steps were taken; TensorFlow gives the body's after the first step",
    ),
    Row(
        what="a loop body that gives its only variable alone",
        code="tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])",
        ours="[3]",
        theirs="TypeError",
        why="there is only one thing that it can mean",
    ),
    Row(
        what="a scalar as elements of `vectorized_map`",
        code="tf.vectorized_map(lambda x: x, tf.constant(1.0))",
        ours="ShapeError: all first axes must have one size",
        theirs="IndexError",
        why="the error says what is expected",
    ),
    Row(
        what="ints in `IndexedSlices` made of tensors, scattered into a float Variable",
        code="tf.Variable([1.0, 2.0]).scatter_add(tf.IndexedSlices(tf.constant([2]), tf.constant([0])))",
        ours="[3, 2]",
        theirs="ValueError",
        why="an integer is a float without loss; TensorFlow takes it from a list of numbers only",
    ),
]
