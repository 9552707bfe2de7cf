"""ONNX files compute what the models compute: in the interpreter that comes with onnx, and in onnxruntime if it is here."""

import importlib.util

import numpy as np
import pytest
from layer_table import ROWS
from slow import sampled

import minikeras as tf
from minikeras import nest
from minikeras.errors import ExportError

K = tf.keras.ops

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from minikeras.keras import export as exporter  # noqa: E402
from minikeras.keras.export import graph as inference  # noqa: E402
from minikeras.keras.export.operators import RULES  # noqa: E402

keras, L = tf.keras, tf.keras.layers
RUNTIME = importlib.util.find_spec("onnxruntime") is not None


def exported(model, tmp_path, **options):
    path = tmp_path / "model.onnx"
    exporter.export_model(model, path, **options)
    return path


def results(path, inputs):
    """The outputs by name, of every interpreter that is here."""
    feeds = {value.name: np.asarray(x) for value, x in zip(onnx.load(path).graph.input, inputs, strict=True)}
    sessions = [ReferenceEvaluator(str(path))]
    if RUNTIME:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        sessions.append(onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]))
    for session in sessions:
        names = session.output_names if hasattr(session, "output_names") else [one.name for one in session.get_outputs()]
        with np.errstate(all="ignore"):  # the reference computes both branches of a choice
            yield dict(zip(names, session.run(None, feeds), strict=True))


def agree(model, tmp_path, *inputs, tolerance=1e-5, **options):
    """Whether the file gives what the model gives, and the names of the outputs."""
    path = exported(model, tmp_path, **options)
    wanted = nest.flatten(model(list(inputs) if len(inputs) > 1 else inputs[0], training=False))
    for found in results(path, inputs):
        for got, want in zip(found.values(), wanted, strict=True):
            assert (got.shape, got.dtype) == (tuple(want.shape), want.dtype.numpy)
            np.testing.assert_allclose(got, want.numpy(), atol=tolerance, rtol=tolerance)
    return list(found)


def computing(function, shape=(3,), name="own"):
    """A model of one layer that computes a function."""

    class Own(L.Layer):
        def call(self, x):
            return function(x)

    x = keras.Input(shape)
    return keras.Model(x, Own(name=name)(x))


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype("float32")


# Every layer -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", sampled(ROWS, 3), ids=lambda row: row.name)
def test_every_layer_is_exported_for_every_batch_size(row, tmp_path):
    layer, given = row.make(), row.inputs("float32")
    inputs = given if isinstance(given, list) else [given]
    symbols = [keras.Input(tuple(x.shape[1:]), dtype=x.dtype) for x in inputs]
    model = keras.Model(symbols, layer(symbols if len(symbols) > 1 else symbols[0]))
    for position, weight in enumerate(layer.weights):
        if weight.dtype.is_floating:
            weight.assign(numbers(*weight.shape, seed=position) + 0.5)
    for batch in (inputs, [tf.concat([x, x, x], 0) for x in inputs], [x[:1] for x in inputs]):
        agree(model, tmp_path, *batch)
    file = onnx.load(tmp_path / "model.onnx")
    assert [value.type.tensor_type.shape.dim[0].dim_param for value in file.graph.input] == ["batch"] * len(inputs)


def test_a_chain_of_many_layers_is_exported_as_a_whole(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((12, 12, 1)),
            L.Conv2D(4, 3, activation="relu"),
            L.MaxPooling2D(),
            L.BatchNormalization(),
            L.Conv2D(3, 2, padding="same", activation="swish"),
            L.AveragePooling2D(),
            L.Flatten(),
            L.Dropout(0.5),
            L.Dense(3, activation="softmax"),
        ]
    )
    assert agree(model, tmp_path, numbers(5, 12, 12, 1)) == [model.layers[-1].name]


def test_transposes_side_by_side_cancel(tmp_path):
    model = keras.Sequential([keras.Input((9, 9, 1)), L.MaxPooling2D(), L.MaxPooling2D(), L.Permute((3, 1, 2))])
    agree(model, tmp_path, numbers(2, 9, 9, 1))
    operators = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert operators == ["Transpose", "MaxPool", "MaxPool", "Identity"]


def test_a_graph_with_several_inputs_outputs_and_open_axes_is_exported(tmp_path):
    row, words = keras.Input((6,), name="row"), keras.Input((None,), dtype="int32", name="words")
    read = L.GlobalAveragePooling1D()(L.Embedding(20, 4, mask_zero=True)(words))
    seen = L.Dense(4, name="seen")(row)
    outputs = {"sum": L.Add()([seen, read]), "row": row, "part": 2.0 * seen[:, ::-1] + read[:, -1:]}
    model = keras.Model([row, words], outputs)
    tokens = np.random.default_rng(0).integers(0, 20, (3, 9)).astype("int32")
    names = agree(model, tmp_path, numbers(3, 6), tokens)
    assert set(names) == {"sum", "row_2", "part"}, "an output cannot have the name of an input"
    file = onnx.load(tmp_path / "model.onnx")
    dimensions = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in file.graph.input}
    assert dimensions == {"row": ["batch", 6], "words": ["batch", "words_1"]}
    assert "seen/kernel" in {tensor.name for tensor in file.graph.initializer}


@pytest.mark.parametrize("size", sampled([(8, 9), (11, 6)], 2))
@pytest.mark.parametrize(
    "layer",
    [
        lambda: L.Conv2D(2, 3, strides=2, padding="same"),
        lambda: L.Conv2D(2, (1, 3), strides=(3, 2), dilation_rate=1),
        lambda: L.Conv2D(2, 3, dilation_rate=2, padding="same"),
        lambda: L.MaxPooling2D(3, strides=2, padding="same"),
        lambda: L.AveragePooling2D(3, strides=1, padding="same"),
        lambda: L.AveragePooling2D(3, strides=2, padding="same"),
        lambda: keras.Sequential([L.Conv2D(2, 3, strides=2, padding="same") for _ in range(3)]),
        lambda: keras.Sequential([L.Conv2D(2, 2), L.MaxPooling2D(), L.Conv2D(2, 2, strides=2, padding="same")]),
        lambda: keras.Sequential([L.MaxPooling2D(2, padding="same"), L.MaxPooling2D(2), L.MaxPooling2D(2, padding="same")]),
        lambda: keras.Sequential([L.Conv2D(2, 1, strides=3, padding="same"), L.GlobalMaxPooling2D()]),
        lambda: L.DepthwiseConv2D(3, strides=2, padding="same", depth_multiplier=2),
        lambda: L.Conv2DTranspose(2, 3, strides=2),
        lambda: keras.Sequential([L.UpSampling2D((2, 3)), L.Cropping2D(((1, 0), 2)), L.ZeroPadding2D((0, 1))]),
        lambda: keras.Sequential(
            [L.MaxPooling2D(), L.Conv2DTranspose(2, 3, strides=2, padding="same"), L.SpatialDropout2D(0.5)]
        ),
    ],
)
def test_windows_slide_along_axes_of_any_size(layer, size, tmp_path):
    model = keras.Sequential([keras.Input((None, None, 2)), layer()])
    agree(model, tmp_path, numbers(2, *size, 2))


@pytest.mark.parametrize(
    ("layer", "operators"),
    [
        (lambda: L.Conv2DTranspose(2, 2, use_bias=False), ["Transpose", "ConvTranspose", "Transpose"]),
        (lambda: L.DepthwiseConv2D(2, use_bias=False), ["Transpose", "Conv", "Transpose"]),
        (lambda: L.UpSampling2D(2), ["Resize"]),
        (lambda: L.ZeroPadding2D(2), ["Pad"]),
        (lambda: L.Cropping2D(2), ["Slice"]),
    ],
)
def test_layers_over_windows_have_the_operators_of_onnx(layer, operators, tmp_path):
    path = exported(keras.Sequential([keras.Input((6, 6, 2)), layer()]), tmp_path)
    found = [node.op_type for node in onnx.load(path).graph.node if node.op_type != "Identity"]
    assert found == operators


def test_a_subclass_is_exported_with_a_signature(tmp_path):
    class Classifier(keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = L.Dense(5, activation="relu")
            self.head = L.Dense(2)

        def call(self, x):
            return self.head(self.hidden(x))

    model = Classifier()
    model(numbers(1, 4))
    with pytest.raises(ValueError, match=r"shapes of the inputs of 'classifier.*' are not known. Give input_signature"):
        exported(model, tmp_path)
    for signature in ((None, 4), [keras.Input((4,))], [L.InputSpec(shape=(None, 4))], tf.TensorSpec([None, 4], tf.float32)):
        assert agree(model, tmp_path, numbers(3, 4), input_signature=signature) == ["output"]


def test_an_export_leaves_the_model_as_it_was(tmp_path):
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, activity_regularizer="l2"), L.BatchNormalization(), L.Dropout(0.5)])
    model.compile("sgd", "mse")
    model.fit(numbers(8, 4), numbers(8, 3), verbose=0)
    before = [np.array(variable) for variable in model.variables]
    with tf.GradientTape() as tape:
        exported(model, tmp_path)
    assert not tape.tape.records
    assert all(np.array_equal(a, b) for a, b in zip(before, model.variables, strict=True))


# Operations ------------------------------------------------------------------------------------------------------------------


def bits_of(x):
    return ((x & 6) | (x ^ 3)) & ~(x & 4)


OPERATIONS = {
    "arithmetic": lambda x: (x - 2.0) * x / (x + 1.0) + 3.0 - (-x) + x**2 + x**0.5 + 2.0**x + tf.square(x),
    "remainders": lambda x: (x * 7.0) // 2.0 + (x * -7.0) % 2.0,
    "integers": lambda x: (
        tf.cast((tf.cast(x * 9.0, "int32") - 4) // 3, "float32") + tf.cast(tf.cast(x, "int32") % 3, "float32")
    ),
    "bits": lambda x: tf.cast(bits_of(tf.cast(x * 9.0, "int32")), "float32"),
    "quotients of integers": lambda x: tf.cast(tf.cast(x * 9.0, "int32") / tf.constant(4), "float32"),
    "roundings": lambda x: tf.round(x * 5.0) + tf.floor(-x) + tf.math.ceil(x) + tf.sign(x) + tf.abs(-x),
    "roots": lambda x: tf.sqrt(x) + tf.math.rsqrt(x) + tf.math.reciprocal(x) + tf.math.squared_difference(x, 0.5),
    "exponentials": lambda x: tf.exp(x) + tf.math.expm1(x) + tf.math.log(x) + tf.math.log1p(x) + tf.math.xlogy(x, x),
    "trigonometry": lambda x: tf.sin(x) + tf.cos(x) + tf.tan(x) + tf.asin(x) + tf.acos(x) + tf.atan(x),
    "hyperbolic": lambda x: tf.sinh(x) + tf.cosh(x) + tf.tanh(x) + tf.math.asinh(x) + tf.acosh(x + 1.0) + tf.atanh(x),
    "error function": lambda x: tf.math.erf(x) + tf.math.erfc(x),
    "safe quotients": lambda x: tf.math.divide_no_nan(x, x - x) + tf.math.multiply_no_nan(x, x) + tf.math.xdivy(x, x),
    "comparisons": lambda x: tf.where((x > 0.3) & (x <= 0.8) | ~(x != x), x, 0.0) + tf.cast(x == x, "float32"),
    "orders": lambda x: tf.where(((x < 0.4) ^ (x >= 0.7)), tf.math.xlog1py(x, x), -x),
    "finite": lambda x: tf.where(tf.math.is_finite(x) & ~(tf.math.is_nan(x) | tf.math.is_inf(x)), x, 1.0),
    "nothing": lambda x: x + tf.identity(tf.stop_gradient(tf.math.real(tf.math.conj(tf.reduce_sum(x))))),
    "extremes": lambda x: tf.maximum(x, 0.4) + tf.minimum(x, 0.6) + tf.clip_by_value(x, 0.2, 0.5),
    "sums": lambda x: tf.reduce_sum(x, -1) + tf.reduce_mean(x, 1) + tf.reduce_max(x, 1) + tf.reduce_min(x, 1),
    "more sums": lambda x: tf.reduce_prod(x, -1) + tf.reduce_logsumexp(x, 1) + tf.norm(x, axis=1) + tf.math.reduce_std(x, 1),
    "sums of everything": lambda x: x + tf.reduce_sum(x) + tf.reduce_sum(x, [], keepdims=True),
    "all and any": lambda x: tf.cast(tf.reduce_any(x > 0.5, 1), "int32") + tf.cast(tf.reduce_all(x > 0.1, 1), "int32"),
    "places": lambda x: tf.argmax(x, 1) + tf.argmin(x, 1),
    "order": lambda x: tf.sort(x, -1) + tf.sort(x, -1, "DESCENDING") + tf.cast(tf.argsort(x), "float32"),
    "powers of keras.ops": lambda x: K.exp2(x) + K.log2(x + 2.0) * K.log10(x + 2.0) + K.cbrt(-x) + K.hypot(x, 2.0),
    "running sums": lambda x: tf.cumsum(x, 1) + tf.cumsum(x, 1, exclusive=True, reverse=True),
    "one-hot": lambda x: tf.one_hot(tf.cast(x * 4.0, "int32") - 1, 3, on_value=2.0),
    "activations": lambda x: tf.nn.relu6(x * 9.0) + tf.nn.elu(-x) + tf.nn.softplus(x) + tf.nn.log_softmax(tf.sigmoid(x)),
    "products": lambda x: tf.einsum("bi,bj->bij", x, x) @ tf.ones([3, 2]) + tf.linalg.matvec(tf.ones([2, 3]), x)[:, None],
    "stacks": lambda x: tf.concat([tf.stack([x, x], 1), tf.expand_dims(x, 1)], 1),
    "repetitions": lambda x: tf.tile(x, [1, 2]) + tf.repeat(x, 2, 1) + tf.pad(x, [[0, 0], [1, 2]], constant_values=3.0),
    "slices": lambda x: x[:, 1] + x[:, -1] + x[:, None, ::2][:, 0, 1] + x[..., 0] + tf.reverse(x, [1])[:, 0],
    "moves": lambda x: tf.roll(x, [1, -2], [1, 1]) + tf.transpose(tf.transpose(x)),
    "gathers": lambda x: (
        tf.gather(x, [2, 0], axis=1)[:, :1] + tf.gather_nd(tf.ones([4, 2]), tf.cast(x, "int32")[:, :2])[:, None]
    ),
    "largest": lambda x: tf.concat([tf.math.top_k(x, 2).values, tf.cast(tf.math.top_k(x, 1).indices, "float32")], 1),
    "picks": lambda x: tf.take_along_axis(x, tf.argsort(x), 1),
    "scatters": lambda x: (
        tf.scatter_nd([[1], [1], [0]], tf.transpose(x)[:, :1], [2, 1])
        + tf.tensor_scatter_nd_update(tf.zeros([2, 1]), [[1]], x[:1, :1])
    ),
    "sizes": lambda x: (
        tf.ones_like(x) / x.shape[0] + tf.zeros([x.shape[0], 3]) + tf.broadcast_to(tf.constant([1.0, 2.0, 3.0]), x.shape)
    ),
    "reshapes": lambda x: tf.reshape(tf.reshape(x, [-1]), [x.shape[0], 3, 1])[..., 0],
    "custom gradient": lambda x: tf.custom_gradient(lambda z: (tf.round(z * 3.0), lambda g: g))(x),
    "constants": lambda x: tf.cumsum(tf.eye(3))[1] * x + tf.math.cumprod(tf.constant([1.0, 2.0, 3.0])),
    "transposed convolution": lambda x: tf.nn.conv1d_transpose(x[..., None], tf.ones([2, 4, 1]), [x.shape[0], 6, 4], 2)[
        :, :, 0
    ],
}


def test_every_translation_occurs_in_these_tests():
    models = [(computing(function), [((None, 3), tf.float32)]) for function in OPERATIONS.values()]
    for row in ROWS:
        shapes = row.shapes if isinstance(row.shapes, list) else [row.shapes]
        layer, given = row.make(), row.inputs("float32")
        layer(given)
        models.append((layer, [((None, *shape[1:]), x.dtype) for shape, x in zip(shapes, nest.flatten(given), strict=True)]))
    found = set()
    for model, specs in models:
        found |= {call.name for call in inference.program(model, [0] * len(specs) if len(specs) > 1 else 0, specs).calls}
    assert set(RULES) <= found


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_in_layers_of_ones_own_are_exported(name, tmp_path):
    model = computing(OPERATIONS[name])
    for batch in (4, 1):
        agree(model, tmp_path, numbers(batch, 3))


REFUSED = {
    "no operator": (lambda x: tf.math.cumprod(x), "layer 'own' computes cumprod, for which there is no translation to ONNX"),
    "reads": (lambda x: x * float(tf.reduce_sum(x)), r"layer 'own' reads the numbers of a tensor in Python \(float\(\)\)"),
    "numpy": (lambda x: tf.constant(np.asarray(x)) + 1.0, r"reads the numbers of a tensor in Python \(a NumPy function\)"),
    "shape by values": (lambda x: tf.boolean_mask(x, x[:, 0] > 0.5), "reads the numbers of a tensor in Python"),
    "random": (lambda x: x + tf.random.normal([3]), "layer 'own' draws random numbers"),
    "random layer": (lambda x: keras.random.dropout(x, 0.5, seed=STREAM), "layer 'own' draws random numbers"),
    "state": (lambda x: x + STATE.assign_add(1.0), "assigns the variable 'state.*' during inference"),
    "another way": (lambda x: x if x.shape[0] == 2 else x * 2.0, "layer 'own' computes in another way for another batch size"),
    "number from size": (lambda x: x * float(x.shape[0]), "computes with what depends on the batch size or on values: 2.0"),
    "unseen": (lambda x: x + tf.Tensor(x.array * 2), r"makes a tensor of shape \(2, 3\) in a way that was not seen"),
    "counted": (lambda x: x + tf.cast(tf.range(x.shape[0]), "float32")[:, None], "in a way that was not seen"),
    "options": (lambda x: tf.one_hot(tf.cast(x, "int32"), x.shape[0]), "one_hot with options that depend on a size"),
    "integers": (lambda x: tf.reduce_mean(tf.cast(x, "int32"), 1), "reduce_mean of int32"),
}
STATE = tf.Variable(0.0, name="state")
STREAM = keras.random.SeedGenerator(1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_graph_cannot_do_is_refused_by_name(name, tmp_path):
    function, message = REFUSED[name]
    with pytest.raises(ExportError, match=message):
        exported(computing(function), tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_axis_of_which_nothing_is_left_needs_a_size(tmp_path):
    model = keras.Sequential([keras.Input((None, 2)), L.MaxPooling1D(50), L.MaxPooling1D(2, padding="same")])
    with pytest.raises(ExportError, match="that is not fixed; give the axis a size"):
        exported(model, tmp_path)


def test_what_onnx_lacks_for_open_axes_is_refused(tmp_path):
    model = computing(lambda x: tf.nn.convolution(x, tf.ones([3, 2, 2]), 2, "SAME", dilations=2), (None, 2))
    with pytest.raises(ExportError, match="convolve with strides and dilation along an axis that is not fixed"):
        exported(model, tmp_path)


# The file --------------------------------------------------------------------------------------------------------------------


def small():
    return keras.Sequential([keras.Input((4,)), L.Dense(2, name="head")], name="small")


def test_a_model_exports_itself(tmp_path, capsys):
    small().export(tmp_path / "model.onnx", verbose=True)
    assert "outputs head" in capsys.readouterr().out
    file = onnx.load(tmp_path / "model.onnx")
    assert (file.producer_name, file.graph.name, file.opset_import[0].version) == ("minikeras", "small", 18)


def test_later_versions_of_the_operators_can_be_asked_for(tmp_path):
    agree(small(), tmp_path, numbers(2, 4), opset_version=21)
    with pytest.raises(ValueError, match="at least 18"):
        exported(small(), tmp_path, opset_version=17)


@pytest.mark.parametrize(
    "options", [{"filepath": "model.keras"}, {"filepath": "model"}, {"filepath": "m.onnx", "format": "torch"}]
)
def test_other_formats_are_refused(options):
    with pytest.raises(ValueError, match="ONNX is the format that is here"):
        small().export(**options)


def test_an_existing_file_is_kept_if_that_is_asked_for(tmp_path):
    path = exported(small(), tmp_path)
    with pytest.raises(FileExistsError):
        small().export(path, overwrite=False)


def test_weights_that_do_not_fit_into_one_file_go_into_a_second_one(tmp_path, monkeypatch):
    monkeypatch.setattr(exporter, "LARGEST", 1000)
    model = keras.Sequential([keras.Input((40,)), L.Dense(20)])
    agree(model, tmp_path, numbers(2, 40))
    assert (tmp_path / "model.onnx.data").stat().st_size >= 40 * 20 * 4
    assert (tmp_path / "model.onnx").stat().st_size < 1000


def test_strings_cannot_go_in(tmp_path):
    x = keras.Input((1,), dtype="string")
    with pytest.raises(ExportError, match="inputs of dtype string"):
        exported(L.Identity(), tmp_path, input_signature=x)
