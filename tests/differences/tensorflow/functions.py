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
        ours="[0.03474, 0.01155]",
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
        what="the logger",
        code="tf.get_logger().name",
        ours="minikeras",
        theirs="tensorflow",
        why="both libraries can run in one process",
    ),
]
