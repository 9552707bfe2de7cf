"""Training."""

from .. import Row

TITLE = "Training"

ROWS = [
    Row(
        what="`TensorBoard(write_graph=True)`, `profile_batch=`, `write_images=`",
        code="warned(lambda: K.callbacks.TensorBoard('logs', write_graph=True))",
        ours="UserWarning: TensorBoard: write_graph is not available and left out; scalars and histograms are written.",
        theirs="no warning",
        why="there is no graph to write; a script that asks for one trains all the same",
    ),
]
