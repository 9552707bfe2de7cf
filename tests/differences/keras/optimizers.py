"""Optimizers."""

from .. import Row

TITLE = "Optimizers"
ROWS = [
    Row(
        what="a regular expression among the `exclude_layers` of `Muon`",
        code="optimizers.Muon(exclude_layers=['dense_(1|2)$']).exclude_layers",
        ours="ValueError: takes keywords",
        theirs="[dense_(1|2)$]",
        why="a model file could hold one that takes years to match; keywords are what the documentation asks for",
    ),
]
