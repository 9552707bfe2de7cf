"""What prepares data."""

from __future__ import annotations

from .. import Row

TITLE = "Data"

ROWS = [
    Row(
        what="columns of length 1",
        code="np.round(K.utils.normalize(np.array([[3.0, 0.0], [4.0, 2.0]]), axis=0), 2).tolist()",
        ours="[[0.6, 0], [0.8, 1]]",
        theirs="[[0.6, 0], [2, 1]]",
        why="with axis 0 Keras divides along the last one",
    ),
    Row(
        what="sequences cut to nothing",
        code="K.utils.pad_sequences([[1, 2]], maxlen=0).shape",
        ours="(1, 0)",
        theirs="ValueError: could not broadcast",
        why="`maxlen` is the length of the result, 0 too",
    ),
    Row(
        what="lookups and hashes without TensorFlow",
        code="L.StringLookup(vocabulary=['a'])(np.array(['a', 'b']))",
        ours="[1, 0]",
        theirs="ImportError: requires TensorFlow",
        why="they are Python and NumPy here, with the same places and bins; rows of lookups are of the default float dtype",
    ),
    Row(
        what="integers that are no category",
        code="L.CategoryEncoding(3, 'one_hot')(np.array([5]))",
        ours="InvalidArgumentError: in the range",
        theirs="[[0, 0, 0]]",
        why="as documented; an unknown category is a mistake, or IntegerLookup has a place for it",
    ),
]
