"""Tapes."""

from .. import Row

TITLE = "Tapes"
ROWS = [
    Row(
        what="`watch` on a tape that was never entered",
        code="""
tape = tf.GradientTape()
tape.watch(tf.constant(1.0))
""",
        ours="NeverEnteredError: enter the tape",
        theirs="AttributeError",
        why="the error says what was forgotten",
    ),
    Row(
        what="a second target after the LookupError about an operation without gradient",
        code="""
x = tf.Variable(ones(2, 2, 1))
with tf.GradientTape() as tape:
    bad, good = tf.image.adjust_contrast(x, 2.0), tf.reduce_sum(x * x)
try:
    tape.gradient(bad, x)
except LookupError:
    pass
tape.gradient(good, x)[0, 0]
""",
        ours="[2]",
        theirs="InternalError",
        why="an error leaves the tape as it was",
    ),
    Row(
        what="`tape.watch` of a layer's weight",
        code="""
layer = L.Dense(1)
layer.build((None, 1))
with tf.GradientTape() as tape:
    tape.watch(layer.kernel)
len(tape.watched_variables())
""",
        ours="1",
        theirs="ValueError",
        why="a weight is a `tf.Variable`",
    ),
    Row(
        what="the variables of a frozen layer",
        code="""
layer = L.Dense(1)
layer.build((None, 1))
layer.trainable = False
with tf.GradientTape() as tape:
    y = layer(ones(1, 1))
len(tape.watched_variables())
""",
        ours="0",
        theirs="2",
        why="frozen variables need no gradients, so tapes do not watch them",
    ),
    Row(
        what="an ndarray as the source of a gradient",
        code="""
with tf.GradientTape() as tape:
    y = tf.constant(1.0)
tape.gradient(y, np.float32(1.0))
""",
        ours="TypeError: float32",
        theirs="AttributeError",
        why="the error names the argument",
    ),
    Row(
        what="a number as the target of a gradient",
        code="""
x = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = float(x * x)
tape.gradient(y, x)
""",
        ours="TypeError: leave the tape",
        theirs="AttributeError",
        why="the error names the argument and what became a number",
    ),
    Row(
        what="too few `output_gradients`",
        code="""
x = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = [x * x, x * x]
tape.gradient(y, x, output_gradients=[tf.constant(1.0)])
""",
        ours="ValueError: 1 output_gradients for 2 targets",
        theirs="4",
        why="a forgotten one would silently count as 1",
    ),
    Row(
        what="an output gradient that only broadcasts to its target",
        code="""
x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    y = x * x
tape.gradient(y, x, output_gradients=tf.constant(1.0))
""",
        ours="ShapeError",
        theirs="[2, 4]",
        why="a wrong shape is a mistake more often than a wish",
    ),
    Row(
        what="a list as the target of a Jacobian",
        code="""
x = tf.Variable([1.0])
with tf.GradientTape() as tape:
    y = x * x
tape.jacobian([y], x)
""",
        ours="TypeError: one Tensor at a time",
        theirs="AttributeError",
        why="the error says what to do",
    ),
    Row(
        what="a list as the source of `batch_jacobian`",
        code="""
x = tf.Variable([[1.0]])
with tf.GradientTape() as tape:
    y = x * x
tape.batch_jacobian(y, [x])
""",
        ours="TypeError",
        theirs="AttributeError",
        why="the error says what to do",
    ),
    Row(
        what="`batch_jacobian` of a scalar",
        code="""
x = tf.Variable([[1.0]])
with tf.GradientTape() as tape:
    y = tf.reduce_sum(x)
tape.batch_jacobian(y, x)
""",
        ours="ScalarBatchError: no batch axis",
        theirs="IndexError",
        why="the error says what is needed",
    ),
    Row(
        what="`batch_jacobian` of no rows",
        code="""
x = tf.zeros([0, 2])
with tf.GradientTape() as tape:
    tape.watch(x)
    y = x * x
tape.batch_jacobian(y, x).shape
""",
        ours="(0, 2, 2)",
        theirs="ZeroDivisionError",
        why="nothing in, nothing out",
    ),
    Row(
        what="a custom gradient whose function is called by keyword",
        code="""
@tf.custom_gradient
def f(x):
    return x * 2.0, lambda g: g * 100.0
x = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = f(x=x)
tape.gradient(y, x)
""",
        ours="100",
        theirs="2",
        why="a rule that is silently off gives wrong gradients",
    ),
    Row(
        what="second derivatives through `recompute_grad`",
        code="""
f = tf.recompute_grad(lambda x: x * x * x)
x = tf.Variable(2.0)
with tf.GradientTape() as outer:
    with tf.GradientTape() as inner:
        y = f(x)
    g = inner.gradient(y, x)
outer.gradient(g, x)
""",
        ours="12",
        theirs="NotImplementedError",
        why="what is computed again can be recorded again",
    ),
    Row(
        what="forward mode through a custom gradient",
        code="""
@tf.custom_gradient
def f(x):
    return x * 2.0, lambda g: g * 100.0
x = tf.constant(1.0)
with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
    y = f(x)
acc.jvp(y)
""",
        ours="100",
        theirs="2",
        why="both modes use the rule that was written",
    ),
    Row(
        what="a tangent that only broadcasts to its primal",
        code="""
x = tf.constant([1.0, 2.0])
with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
    y = x * x
acc.jvp(y)
""",
        ours="ShapeError",
        theirs="[2, 4]",
        why="a wrong shape is a mistake more often than a wish",
    ),
    Row(
        what="the gradient of a look-up while another tape listens",
        code="""
table = tf.Variable(tf.ones([3, 1]))
with tf.GradientTape():
    with tf.GradientTape() as inner:
        y = tf.gather(table, [0, 0])
    g = inner.gradient(y, table)
isinstance(g, tf.IndexedSlices)
""",
        ours="False",
        theirs="True",
        why="a Tensor can be differentiated again",
    ),
    Row(
        what="`clip_by_norm` of `IndexedSlices`",
        code="""
slices = tf.IndexedSlices(tf.ones([2, 1]), tf.constant([0, 0]), tf.constant([3, 1]))
isinstance(tf.clip_by_norm(slices, 1.0), tf.IndexedSlices)
""",
        ours="False",
        theirs="True",
        why="the norm is that of the sum over duplicates, which is a whole tensor",
    ),
    Row(
        what="why a gradient is `None`",
        code="hasattr(tf.GradientTape(), 'explain')",
        ours="True",
        theirs="False",
        why="`tape.explain` names the operation at which the path ends; `GradientTape(strict=True)` raises",
    ),
    Row(
        what="second derivatives of one tape",
        code="hasattr(tf.GradientTape(), 'hessian')",
        ours="True",
        theirs="False",
        why="also `tape.hvp`; nested tapes work as well",
    ),
]
