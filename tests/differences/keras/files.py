"""Saving and loading."""

from __future__ import annotations

from .. import Row

TITLE = "Files"

_SAVED = """
import os, tempfile, warnings
warnings.simplefilter("ignore")
path = os.path.join(tempfile.mkdtemp(), "m")
def made(units=1, optimizer="adam", dtype="float32"):
    m = K.Sequential([K.Input((3,)), L.Dense(units, dtype=dtype)])
    m.compile(optimizer, "mse")
    return m
"""

ROWS = [
    Row(
        what="a whole model that was compiled and not trained yet: warnings when it is loaded",
        code=_SAVED
        + """
made().save(path + ".keras")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _ = K.models.load_model(path + ".keras")
sum("Skipping variable loading" in str(one.message) for one in caught)
""",
        ours="0",
        theirs="1",
        why="a state without slots is loaded as it is; Keras makes slots first, so that it does not fit, and leaves it out",
    ),
    Row(
        what="weights of float32 that float16 cannot hold",
        code=_SAVED
        + """
m, n = made(), made(dtype="float16")
m.set_weights([ones(3, 1) * 1e6, ones(1)])
m.save_weights(path + ".weights.h5")
n.load_weights(path + ".weights.h5")
float(n.get_weights()[0][0, 0])
""",
        ours="ShapeError: which float16 cannot hold",
        theirs="inf",
        why="rounding is expected, infinity is not; `cast=True` loads it",
    ),
    Row(
        what="bytes after the end of a `.keras` file",
        code=_SAVED
        + """
made().save(path + ".keras")
with open(path + ".keras", "ab") as stream:
    _ = stream.write(bytes(4))
type(K.models.load_model(path + ".keras")).__name__
""",
        ours="LoadError: m.keras",
        theirs="Sequential",
        why="every byte of a file is accounted for, so that damage shows",
    ),
]
