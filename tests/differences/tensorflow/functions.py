"""Functions."""

from .. import Row

TITLE = "Functions"
ROWS = [
    Row(
        what="`if` and `while` on tensors in a `tf.function`",
        code="hasattr(tf, 'autograph')",
        ours="False",
        theirs="True",
        why="where Python asks for a value, the function stays eager, which is logged once; `jit_compile=True` raises there",
    ),
    Row(
        what="gradients of looked-up rows that a `tf.function` returns",
        code="""
table = tf.Variable(tf.ones([3, 1]))
@tf.function
def f():
    with tf.GradientTape() as tape:
        y = tf.gather(table, [0, 0])
    return tape.gradient(y, table)
isinstance(f(), tf.IndexedSlices)
""",
        ours="False",
        theirs="True",
        why="whole tensors, as in any sweep that is itself recorded",
    ),
    Row(
        what="random operations within `vectorized_map`",
        code="""
draws = tf.vectorized_map(lambda i: tf.random.uniform([]), tf.range(3))
len(set(draws.numpy().tolist()))
""",
        ours="1",
        theirs="3",
        why="the function runs once, so each slice gets the same numbers",
    ),
    Row(
        what="random numbers",
        code="""
tf.random.set_seed(0)
tf.random.uniform([2])
""",
        ours="[0.399, 0.8805]",
        theirs="[0.292, 0.2066]",
        why="others, with the same contracts",
    ),
    Row(
        what="the files of a checkpoint",
        code="""
import os, tempfile
folder = tempfile.mkdtemp()
_ = tf.train.Checkpoint(v=tf.Variable(1.0)).write(folder + '/c')
any(name.endswith('.safetensors') for name in os.listdir(folder))
""",
        ours="True",
        theirs="False",
        why="a format that other libraries read, under the same calls",
    ),
    Row(
        what="`executing_eagerly` within a `tf.function`",
        code="""
@tf.function
def f():
    return tf.executing_eagerly()
bool(f())
""",
        ours="True",
        theirs="False",
        why="it is Python that runs the function, also where the run is recorded for later calls",
    ),
    Row(
        what="the shape of a Variable whose values may have several",
        code="tf.Variable([1.0, 2.0], shape=[None]).shape",
        ours="(2,)",
        theirs="(None,)",
        why="it is that of the value that it holds",
    ),
    Row(
        what="the logarithm of a real matrix",
        code="tf.linalg.logm(tf.eye(2))",
        ours="[[0, 0], [0, 0]]",
        theirs="InvalidArgumentError",
        why="it is real where there is a real one, and NaN where there is none",
    ),
    Row(
        what="gradients of `qr` with `full_matrices=True`",
        code="""
x = tf.Variable([[1.0], [0.0]])
with tf.GradientTape() as tape:
    q, r = tf.linalg.qr(x, full_matrices=True)
    y = q[0, 0] * r[0, 0]
tape.gradient(y, x)
""",
        ours="[[1], [0]]",
        theirs="NotImplementedError",
        why="the columns that are added turn with the others, which is all that a result may depend on; `svd` likewise",
    ),
    Row(
        what="the logger",
        code="tf.get_logger().name",
        ours="minikeras",
        theirs="tensorflow",
        why="both libraries can run in one process",
    ),
    Row(
        what="a `tf.function` that makes a Variable in each call",
        code="""
f = tf.function(lambda: tf.Variable(2.0) * 3.0)
[float(f()), float(f())]
""",
        ours="[6, 6]",
        theirs="ValueError: singleton",
        why="it runs eagerly, as without `tf.function`, which is logged once",
    ),
    Row(
        what="`tf.gradients` and `tf.hessians` in a `tf.function`",
        code="tf.function(lambda x: tf.gradients(x * x, x))(tf.constant(2.0))",
        ours="RuntimeError: Use tf.GradientTape",
        theirs="[4]",
        why="there is no graph to look back in; tapes and `tf.autodiff` work everywhere",
    ),
    Row(
        what="the results of a concrete function before it was called",
        code="""
f = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([None]))
hasattr(f, 'structured_outputs')
""",
        ours="False",
        theirs="True",
        why="it is recorded in its first call; only then are its results known",
    ),
    Row(
        what="several texts that are split",
        code="type(tf.strings.split(['a b', 'c'])).__name__",
        ours="list",
        theirs="RaggedTensor",
        why="a Tensor for each text: there are no ragged tensors; one text gives a Tensor in both",
    ),
    Row(
        what="the syntax of regular expressions",
        code="tf.strings.regex_replace('abc', '(?=c)', '-')",
        ours="ab-c",
        theirs="InvalidArgumentError: Invalid pattern",
        why="it is that of Python's `re`, `[:alpha:]` is not in it",
    ),
    Row(
        what="gradients of `adjust_hue` and `adjust_saturation`",
        code="""
x = tf.Variable([[[1.0, 0.5, 0.25]]])
with tf.GradientTape() as tape:
    y = tf.image.adjust_saturation(x, 0.5)
tape.gradient(y, x)
""",
        ours="[[[2, 0.5, 0.5]]]",
        theirs="LookupError: AdjustSaturation",
        why="they are made of differentiable functions",
    ),
    Row(
        what="what a `tf.function` has recorded",
        code="hasattr(tf.function(abs), 'pretty_printed_concrete_signatures')",
        ours="False",
        theirs="True",
        why="`program(*args)` prints it, with shapes and dtypes",
    ),
    Row(
        what="true classes that a sample holds twice, with `remove_accidental_hits`",
        code="""
sample = tf.constant([1, 1], tf.int64), tf.constant([[1.0]]), tf.constant([1.0, 1.0])
loss = tf.nn.sampled_softmax_loss(tf.zeros([3, 1]), tf.zeros([3]), tf.constant([[1]]), tf.ones([1, 1]), 2, 3, 1, sample)
tf.round(loss * 1000.0) / 1000.0
""",
        ours="[0]",
        theirs="[0.693]",
        why="each of them is removed, not only the last",
    ),
]
