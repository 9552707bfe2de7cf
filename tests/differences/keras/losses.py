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
]
