"""Training."""

from .. import Row

TITLE = "Training"

ROWS = [
    Row(
        what="a block for a GPU that is not there, `with tf.device('GPU:0')`",
        code="tf.config.get_soft_device_placement()",
        ours="False",
        theirs="True",
        why="an error says why no GPU can be used; `set_soft_device_placement(True)` lets the CPU stand in, with a warning",
    ),
    Row(
        what="`layer.kernel.value`, and that of other Variables that Keras makes",
        code="""
layer = L.Dense(1)
layer.build((None, 2))
isinstance(layer.kernel.value, tf.Variable)
""",
        ours="False",
        theirs="True",
        why="it is a Tensor, as on Keras's other backends; in both only what `tf.Variable` makes has the method `value()`",
    ),
    Row(
        what="`TensorBoard(write_graph=True)`, `profile_batch=`, `write_images=`",
        code="warned(lambda: K.callbacks.TensorBoard('logs', write_graph=True))",
        ours="UserWarning: TensorBoard: write_graph is not available and left out; scalars and histograms are written.",
        theirs="no warning",
        why="there is no graph to write; a script that asks for one trains all the same",
    ),
]
