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
    Row(
        what="`tf.summary.trace_on`",
        code="warned(lambda: tf.summary.trace_on(graph=True))",
        ours="UserWarning: tf.summary.trace_on: graphs and profiles are not available and left out. Use cProfile.",
        theirs="no warning",
        why="likewise; `trace_export` then writes nothing",
    ),
    Row(
        what="`MirroredStrategy` of several devices",
        code="""
tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).num_replicas_in_sync
""",
        ours="InvalidArgumentError: one process uses one device",
        theirs="2",
        why="`MultiWorkerMirroredStrategy` trains on several, with a process for each",
    ),
    Row(
        what="memory growth that is switched off",
        code="tf.config.experimental.set_memory_growth('GPU:0', False)",
        ours="ValueError: memory of GPUs always grows",
        theirs="all memory is taken at the start",
        why="there is nothing to switch: a process takes what its arrays need",
    ),
    Row(
        what="devices in a list",
        code="tf.config.list_physical_devices('CPU')[0] == 'CPU:0'",
        ours="True",
        theirs="False",
        why="a device is its name, as `tf.device` takes it",
    ),
]
