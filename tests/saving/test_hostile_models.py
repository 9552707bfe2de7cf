"""Small files that ask for much: each is refused or loaded within seconds and half a gigabyte, and what was saved loads."""

import json
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest
from slow import mostly_slow

import minikeras as tf
from minikeras.errors import LoadError
from minikeras.files import archive, hdf5, strict_json

layers = tf.keras.layers
NO_WEIGHTS = hdf5.encode(hdf5.NewGroup())


def layer(kind, **config):
    return {"module": "keras.layers", "class_name": kind, "config": config, "registered_name": None}


def metric(kind, **config):
    return {"module": "keras.metrics", "class_name": kind, "config": config, "registered_name": None}


def chain(*described, **more):
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "m", "layers": list(described)}, **more}


def entrance(*shape):
    return layer("InputLayer", batch_shape=[None, *shape], dtype="float32", name="x")


def measured(*metrics, **more):
    compiled = {"optimizer": "sgd", "loss": "mse", "metrics": list(metrics), **more}
    return chain(entrance(4), layer("Flatten", name="f"), compile_config=compiled)


def repeated(times, count):
    pairs = [(layer("RepeatVector", n=times, name=f"r{i}"), layer("Flatten", name=f"f{i}")) for i in range(count)]
    return chain(entrance(8), *(one for pair in pairs for one in pair))


def call_of(*places):
    tensors = [
        {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "dtype": "float32", "keras_history": list(place)}}
        for place in places
    ]
    return {"args": [tensors[0] if len(tensors) == 1 else tensors], "kwargs": {}}


def graph(described, last, inputs=("x",)):
    config = {
        "name": "m",
        "layers": [{**entrance(4), "name": "x", "inbound_nodes": []}, *described],
        "input_layers": [[name, 0, 0] for name in inputs],
        "output_layers": [[last, 0, 0]],
    }
    return {"module": "keras", "class_name": "Functional", "config": config}


def reversed_graph(count):
    calls = [
        {**layer("Identity", name=f"i{i}"), "name": f"i{i}", "inbound_nodes": [call_of((f"i{i - 1}" if i else "x", 0, 0))]}
        for i in range(count)
    ]
    return graph(calls[::-1], f"i{count - 1}")


def wide_graph(count):
    """One call with many tensors, each of which has to be waited for."""
    many = [{**layer("Identity", name=f"i{i}"), "name": f"i{i}", "inbound_nodes": [call_of(("x", 0, 0))]} for i in range(count)]
    last = {**layer("Add", name="last"), "name": "last", "inbound_nodes": [call_of(*((f"i{i}", 0, 0) for i in range(count)))]}
    return graph([last, *many], "last")


def outer_sum(size):
    """(1, n) + (n, 1), which has n**2 elements, as an operator."""
    operator = {"module": "keras.src.ops.numpy", "class_name": "Add", "config": {"name": "sum"}, "registered_name": "Add"}
    parts = [
        {**layer("Reshape", target_shape=[size, 1], name="row"), "name": "row", "inbound_nodes": [call_of(("r", 0, 0))]},
        {**layer("Reshape", target_shape=[1, size], name="column"), "name": "column", "inbound_nodes": [call_of(("r", 0, 0))]},
    ]
    call = {"args": call_of(("row", 0, 0))["args"] + call_of(("column", 0, 0))["args"], "kwargs": {}}
    repeat = [
        {**layer("RepeatVector", n=size // 4, name="v"), "name": "v", "inbound_nodes": [call_of(("x", 0, 0))]},
        {**layer("Flatten", name="r"), "name": "r", "inbound_nodes": [call_of(("v", 0, 0))]},
    ]
    return graph([*repeat, *parts, {**operator, "name": "sum", "inbound_nodes": [call]}], "sum")


def step(kind, module="keras.src.ops.numpy", more=(), **config):
    """A model of one call of a function of `keras.ops`."""
    described = {"module": module, "class_name": kind, "config": {"name": "s", **config}, "registered_name": kind}
    call = call_of(("x", 0, 0))
    return graph([{**described, "name": "s", "inbound_nodes": [{**call, "args": [*call["args"], *more]}]}], "s")


def pictured(kind, **config):
    """A model of one call of a function of `keras.ops.image`."""
    model = step(kind, "keras.src.ops.image", **config)
    model["config"]["layers"][0] = {**entrance(8, 8, 3), "name": "x", "inbound_nodes": []}
    model["config"]["layers"][0]["config"]["name"] = "x"
    return model


HOSTILE = {
    "tiles": step("Tile", repeats=[10**6, 10**6]),
    "repeated elements": step("Repeat", repeats=10**11, axis=1),
    "a broadcast": step("BroadcastTo", shape=[10**9, 2, 4]),
    "wide paddings": step("Pad", pad_width=[[0, 10**10], [0, 0]]),
    "powers": step("Vander", N=10**12),
    "one hot rows": step("OneHot", "keras.src.ops.nn", num_classes=10**11),
    "a long transform": step("RFFT", "keras.src.ops.math", fft_length=10**11),
    "a product of a number of axes": step("Einsum", subscripts="ab->abcdefgh"),
    "parts of an array": step("ArraySplit", indices_or_sections=10**7),
    "different elements": step("Unique", size=2**62),
    "a far diagonal": step("Diagflat", k=10**5),
    "paddings of all axes": step("Pad", pad_width=10**5),
    "smooth distortions": pictured("ElasticTransform", sigma=1e9),
    "distortions that take long": pictured("ElasticTransform", sigma=1e5),
    "wide kernels": pictured("GaussianBlur", kernel_size=[10**7, 10**7]),
    "many boundaries": lambda: chain(layer("Discretization", bin_boundaries=list(range(1_000_000)), name="d")),
    "a function that may not be called": step("TensorFunction", "minikeras", function="keras.models.load_model"),
    "a private function": step("TensorFunction", "minikeras", function="math.__getattr__"),
    "ones of a function of tf": step("TensorFunction", "minikeras", more=[10**12], function="one_hot"),
    "unknown options": step("Mean", axes=1),
    "many thresholds": measured(metric("AUC", name="a", num_thresholds=300_000_000)),
    "very many thresholds": measured(metric("AUC", name="a", num_thresholds=10**12)),
    "thresholds of another metric": measured(metric("PrecisionAtRecall", name="a", recall=0.5, num_thresholds=10**9)),
    "many classes": measured(metric("MeanIoU", name="a", num_classes=50_000)),
    "a hundred thousand metrics": lambda: measured(*(metric("Mean", name=f"m{i}") for i in range(100_000))),
    "fifty thousand layers": lambda: chain(entrance(4), *(layer("Dropout", rate=0.1, name=f"d{i}") for i in range(50_000))),
    "unbuilt layers": lambda: chain(*(layer("Dropout", rate=0.1, name=f"d{i}") for i in range(50_000))),
    "weights that are not there": chain(entrance(4), layer("Dense", units=10**10, name="d")),
    "kernels that are not there": chain(
        entrance(8, 8, 8), layer("Conv2DTranspose", filters=10**6, kernel_size=10**4, name="c")
    ),
    "a table that is not there": chain(entrance(4), layer("Embedding", input_dim=10**6, output_dim=10**5, name="e")),
    "a sum over two axes": outer_sum(400_000),
    "a long name": chain(layer("X" * 8_000_000)),
    "a circle": graph([{**layer("Identity", name="i"), "name": "i", "inbound_nodes": [call_of(("i", 0, 0))]}], "i"),
    "a number for a name": graph([{**layer("Identity", name="i"), "name": "i", "inbound_nodes": [call_of((7, 0, 0))]}], "i"),
}
"""Refused."""

LARGE = {
    "a shape to build on": chain(layer("Flatten", name="f"), build_config={"input_shape": [None, 10**6, 10**6]}),
    "repeated vectors": repeated(60, 6),
    "five open axes": chain(entrance(None, None, None, 8), layer("Activation", activation="relu", name="a")),
    "a large image": chain(entrance(8192, 8192), layer("Flatten", name="f")),
    "repeated differences": step("Diff", n=10**12),
    "very many decimals": step("Round", decimals=10**9),
    "distorted pictures": pictured("ElasticTransform", sigma=2.0),
    "a large window": chain(entrance(4000, 4000, 3), layer("MaxPooling2D", pool_size=[2000, 2000], strides=1, name="p")),
    "much larger images": chain(entrance(8, 8, 3), layer("UpSampling2D", size=10**6, name="u")),
    "interpolated images": chain(entrance(8, 8, 3), layer("UpSampling2D", size=10**5, interpolation="bicubic", name="u")),
    "wide margins": chain(entrance(8, 8, 3), layer("ZeroPadding2D", padding=10**6, name="p")),
    "many places": chain(entrance(8, 8, 3), layer("AdaptiveMaxPooling2D", output_size=10**6, name="a")),
    "a reversed graph": reversed_graph(1_500),
    "a wide graph": wide_graph(3_000),
}
"""Costs nothing until it is called, so it is loaded."""


def hostile(name):
    """The configuration of a file that is refused; the largest are made when they are asked for."""
    return HOSTILE[name]() if callable(HOSTILE[name]) else HOSTILE[name]


def packed(path, config, weights=NO_WEIGHTS):
    members = {"metadata.json": b"{}", "config.json": strict_json.dumps_in_order(config), "model.weights.h5": weights}
    path.write_bytes(archive.encode(members))
    return path


CHILD = """
    import resource, sys
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    import minikeras as tf
    from minikeras.errors import LoadError
    tf.keras.models, tf.keras.saving.load_model
    try:
        tf.keras.models.load_model(sys.argv[1])
        outcome = "loaded"
    except LoadError as error:
        outcome = "refused"
    seconds = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    # ru_maxrss counts what the parent had when it started this process.
    peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(outcome, seconds, peak)
"""


def load_in_a_process(path):
    """The outcome, the seconds of the processor, and the most KiB; the process is ended at 4 GiB or 20 s of the processor."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert found.returncode == 0, found.stderr[-2000:]
    outcome, seconds, memory = found.stdout.split()
    return outcome, float(seconds), int(memory)


REFUSED = [name for name in HOSTILE if name not in ("a hundred thousand metrics", "a long name")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("name", [*HOSTILE, *LARGE])
def test_a_small_file_costs_little_time_and_memory(tmp_path, name):
    path = packed(tmp_path / "m.keras", LARGE[name] if name in LARGE else hostile(name))
    outcome, seconds, memory = load_in_a_process(path)
    print(f"{name}: {outcome}, {seconds:.1f} s, {memory / 1024:.0f} MiB, file of {path.stat().st_size / 1024:.0f} KiB")
    assert outcome == ("refused" if name in HOSTILE else "loaded")
    assert memory < 512 * 1024


@pytest.mark.parametrize("name", mostly_slow(REFUSED, *REFUSED[:2]))
def test_what_asks_for_too_much_is_refused(tmp_path, name):
    with pytest.raises(LoadError, match="m.keras: "):
        tf.keras.models.load_model(packed(tmp_path / "m.keras", hostile(name)))


def test_a_file_cannot_write_files(tmp_path):
    path, target = tmp_path / "m.keras", tmp_path / "written"
    config = step("TensorFunction", "minikeras", function="print")
    config["config"]["layers"][-1]["inbound_nodes"][0]["kwargs"]["output_stream"] = f"file://{target}"
    with pytest.raises(LoadError, match="there is no function of tensors tf.print"):
        tf.keras.models.load_model(packed(path, config))
    assert not target.exists()


@pytest.mark.parametrize("name", LARGE)
def test_large_shapes_cost_nothing_before_the_model_is_called(tmp_path, name):
    assert tf.keras.models.load_model(packed(tmp_path / "m.keras", LARGE[name])).built


@pytest.mark.parametrize("name", [name for name in HOSTILE if "thresholds" in name or name == "many classes"])
def test_the_limit_of_state_can_be_raised_by_name(tmp_path, name):
    config = json.loads(json.dumps(hostile(name)))
    inner = config["compile_config"]["metrics"][0]["config"]
    inner.update({key: 3_000 for key in inner if key.startswith("num_")})
    model = packed(tmp_path / "m.keras", config)
    with pytest.raises(LoadError, match="max_bytes= allows more"):
        tf.keras.models.load_model(model, max_bytes=250_000)
    assert tf.keras.models.load_model(model).compiled


@tf.keras.saving.register_keras_serializable("hostile")
class Sizes(layers.Layer):
    def __init__(self, sizes, **options):
        super().__init__(**options)
        self.sizes = sizes

    def call(self, x):
        return x


@pytest.mark.parametrize("compile", [True, False])
def test_numbers_that_look_like_a_large_shape_are_numbers(tmp_path, compile):
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([10_000, 20_000, 10**9], [0.1, 0.01, 0.001, 1e-4])
    model = tf.keras.Sequential([layers.Input((2,)), Sizes([5_000, 20_000, 10**12]), layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(schedule), "mse")
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras", compile=compile)
    assert again.layers[0].sizes == [5_000, 20_000, 10**12]


def test_layers_load_with_the_shapes_and_dtypes_that_a_trial_gives(tmp_path):
    for dtype in ("float32", "mixed_bfloat16", "float16"):
        x = tf.keras.Input((8, 8, 3), dtype="float32")
        y = layers.Conv2D(4, 3, padding="same", dtype=dtype)(x)
        z = layers.Average(dtype=dtype)([layers.MaxPooling2D(2)(y), layers.AveragePooling2D(2, dtype=dtype)(y)])
        inner = tf.keras.Sequential([layers.Input((4, 4, 4)), layers.Flatten(), layers.Dense(5, dtype=dtype)])
        tokens = tf.keras.Input((None,), dtype="int32")
        rows = layers.Embedding(7, 3, dtype=dtype)(tokens)
        outputs = [inner(z), layers.GlobalMaxPooling1D()(rows), tokens + 1, layers.Identity()(tokens)]
        model = tf.keras.Model([x, tokens], outputs)
        model.save(tmp_path / "m.keras")
        again = tf.keras.models.load_model(tmp_path / "m.keras")
        assert [(one.shape, one.dtype) for one in again.outputs] == [(one.shape, one.dtype) for one in model.outputs]
        given = [np.ones((2, 8, 8, 3), "float32"), np.ones((2, 5), "int32")]
        for a, b in zip(model(given), again(given), strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b)


def test_an_archive_of_too_many_members_is_refused(tmp_path):
    config = strict_json.dumps_in_order(chain(entrance(4)))
    members = {"metadata.json": b"{}", "config.json": config, "model.weights.h5": NO_WEIGHTS}
    members |= {f"assets/{number}": b"" for number in range(10_001)}
    (tmp_path / "m.keras").write_bytes(archive.encode(members))
    with pytest.raises(LoadError, match="holds 10004 members"):
        tf.keras.models.load_model(tmp_path / "m.keras")


@pytest.mark.parametrize("more", [b"\0", b"\0" * 30, b"x", b"PK\5\6" + b"\0" * 18])
def test_bytes_after_the_end_are_refused(tmp_path, more):
    path = packed(tmp_path / "m.keras", chain(entrance(4), layer("Flatten", name="f")))
    whole = path.read_bytes()
    assert tf.keras.models.load_model(path).built and zipfile.is_zipfile(path)
    path.write_bytes(whole + more)
    with pytest.raises(LoadError, match="m.keras: "):
        tf.keras.models.load_model(path)


@pytest.mark.parametrize("number", [[], {}, [1]])
def test_an_id_of_a_shared_object_that_is_no_number_is_refused(number):
    with pytest.raises(LoadError, match="shared_object_id must be an integer"):
        tf.keras.saving.deserialize_keras_object({**layer("Dense", units=2), "shared_object_id": number})
