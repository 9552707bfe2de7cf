"""Losses."""

from .. import Row

TITLE = "Losses"
ROWS = [
    Row(
        what="labels that only broadcast to the predictions",
        code="losses.MeanSquaredError()(ones(12, 1), ones(12, 2))",
        ours="ShapeError: (12, 1)",
        theirs="0",
        why="a forgotten axis is the commonest cause of a loss that does not fall",
    ),
    Row(
        what="`Reduction` of Keras 2",
        code="K.losses.MeanSquaredError(reduction=K.losses.Reduction.AUTO)([[0.0]], [[2.0]])",
        ours="4",
        theirs="AttributeError: has no attribute 'Reduction'",
        why="programs for Keras 2 name reductions so; AUTO is the usual one, 'sum_over_batch_size'",
    ),
]
