"""Pipelines of data."""

from __future__ import annotations

from .. import Row

TITLE = "Data"

ROWS = [
    Row(
        what="`interleave` without `cycle_length`",
        code="""rows = tf.data.Dataset.range(9).interleave(lambda n: tf.data.Dataset.from_tensors(n).repeat(2))
[int(row) for row in rows][:6]""",
        ours="[0, 1, 2, 3, 0, 1]",
        theirs="as many in turn as there are processors",
        why="the order of data is the same on every machine: four take turns",
    ),
    Row(
        what="iterators of one Dataset whose shuffles have no seed, saved together",
        code="""rows = tf.data.Dataset.range(3).shuffle(3)
first, second = iter(rows), iter(rows)
len(first.get_state()["own"])""",
        ours="0",
        theirs="each has a state of its own",
        why="unseeded shuffles draw from one stream, which `set_random_seed` fixes; give a shuffle a seed to save several",
    ),
]
