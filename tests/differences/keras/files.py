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
        what="letting code in files run",
        code="keras.config.enable_unsafe_deserialization()",
        ours="NotImplementedError: code in a file never runs here",
        theirs="None",
        why="a model file is data; register the classes and functions that it needs",
    ),
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
    Row(
        what="a whole model as `.h5`",
        code=_SAVED + 'made().save(path + ".h5")',
        ours="ValueError: the HDF5 layout of old is read, not written",
        theirs="None",
        why="the layout is legacy, as Keras itself says; `.keras` holds the same and is checked, and old files are read",
    ),
    Row(
        what="a save that fails half-way: whether a file is left",
        code=_SAVED
        + """
class Failing(L.Layer):
    def call(self, x):
        return x
    def save_own_variables(self, store):
        raise ValueError("no")
try:
    K.Sequential([K.Input((1,)), Failing()]).save(path + ".keras")
except ValueError:
    pass
os.path.exists(path + ".keras")
""",
        ours="False",
        theirs="True",
        why="a file is there when it is complete; what was there before stays. Keras leaves one without weights",
    ),
    Row(
        what="a configuration whose `config` is no dict",
        code='K.saving.deserialize_keras_object({"class_name": "Dense", "config": [1, 2]})',
        ours="LoadError: the config of 'Dense' must be a dict, found [1, 2]",
        theirs="TypeError: Expected 'config' to be a dict",
        why="whatever is wrong with what a file holds is a `LoadError`, which is a ValueError",
    ),
    Row(
        what="a `Sequential` without a name in its configuration",
        code="""
layer = {"class_name": "Dense", "module": "keras.layers", "config": {"units": 4}}
len(K.Sequential.from_config({"layers": [layer]}).layers)
""",
        ours="1",
        theirs="ValueError: must be a dictionary containing the 'name' and 'layers' keys",
        why="a name can be made up, as when a model is made",
    ),
]
