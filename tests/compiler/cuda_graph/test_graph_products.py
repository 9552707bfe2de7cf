"""Products as cublasLt is asked for them, their epilogues, and what takes their place where it has no algorithm."""

import collections
import itertools

import numpy as np
import pytest
from graph_double import MASKS
from graph_steps import LOSSES, MODELS, OPTIMIZERS, Trained, graphs_of
from slow import sampled

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.lt import KINDS, Epilogue, MatrixProduct, Operands, mask_width
from minikeras.compiler.executors.cuda_graph.nodes import LaunchNode, ProductNode

SIZES = [(3, 5, 7), (1, 4, 2), (6, 1, 1)]


ROUNDING = {"float64": 1e-13, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


@pytest.mark.parametrize("epilogue", Epilogue)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_a_product_by_rows_is_one_by_columns_of_the_transposes(double, dtype, epilogue):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    random = np.random.default_rng(1)
    for (rows, columns, depth), turned in itertools.product(
        [(3, 5, 7), (1, 4, 2), (6, 1, 1)], itertools.product([0, 1], [0, 1])
    ):
        a, b, bias = (random.normal(size=size).astype(dtype) for size in ((rows, depth), (depth, columns), columns))
        product = MatrixProduct(rows, columns, depth, bool(turned[0]), bool(turned[1]), np.dtype(dtype), epilogue)
        stored = [np.ascontiguousarray(one.T if is_turned else one) for one, is_turned in zip((a, b), turned, strict=True)]
        memories = [double.memory(array.nbytes) for array in (*stored, bias)]
        mask = double.memory(rows * mask_width(columns) // 8)
        bits = random.integers(0, 2, (rows, columns)).astype(bool)
        y = double.memory(rows * columns * a.itemsize)
        with double.joined():
            for memory, array in zip(memories, (*stored, bias), strict=True):
                double.send(memory.address, array)
            at_a, at_b, vector = [memory.address for memory in memories]
            whole = np.ones((rows, mask_width(columns)), bool)  # what lies behind a column's bits is nothing
            whole[:, :columns] = bits
            double.send(mask.address, np.packbits(whole, axis=1, bitorder="little"))
            operands = Operands(at_b, at_a, y.address, vector, mask.address if epilogue in MASKS else 0)
            double.multiply(product, operands)()
        wide = "float64" if dtype == "float64" else "float32"
        a, b, bias = (one.astype(wide) for one in (a, b, bias))
        expected = a @ b
        if epilogue in (Epilogue.BIAS, Epilogue.RELU_BIAS, Epilogue.RELU_MASK_BIAS):
            expected = expected + bias
        packed = double.view(mask.address, (rows, mask_width(columns) // 8), np.uint8)
        written = np.unpackbits(packed, axis=1, bitorder="little")
        above = bits if epilogue is not Epilogue.RELU_MASK_BIAS else expected > 0
        np.testing.assert_array_equal(written[:, :columns], above)
        if epilogue in (Epilogue.RELU_BIAS, Epilogue.RELU_MASK_BIAS):
            expected = np.maximum(expected, 0)
        if epilogue in (Epilogue.MASKED, Epilogue.MASKED_BIAS_GRADIENT):
            expected = np.where(bits, expected, 0)
        found = double.view(y.address, (rows, columns), dtype)
        close = {"rtol": ROUNDING[dtype], "atol": ROUNDING[dtype]}
        np.testing.assert_allclose(found.astype(wide), expected, **close)
        gradients = {Epilogue.BIAS_GRADIENT: b, Epilogue.MASKED_BIAS_GRADIENT: expected}
        if epilogue in gradients:
            gradient = double.view(vector, (columns,), dtype).astype(wide)
            np.testing.assert_allclose(gradient, gradients[epilogue].sum(axis=0), **close)


def graph_of(model, loss="labels", optimizer="SGD", dtype="float32"):
    found = Trained(MODELS[model], LOSSES[loss], OPTIMIZERS[optimizer], dtype=dtype)
    for _ in range(4):
        found.step()
    (graph,) = graphs_of(found.function)
    return found, graph


def epilogues(graph):
    return [node.product.epilogue.name for node in graph.schedule.nodes if isinstance(node, ProductNode)]


def test_biases_and_relus_are_part_of_products(double):
    _, graph = graph_of("dense")
    assert epilogues(graph) == ["RELU_MASK_BIAS", "BIAS", "BIAS_GRADIENT", "MASKED_BIAS_GRADIENT", "NONE"]


@pytest.mark.parametrize("columns", [1, 127, 128, 129])
def test_a_mask_has_a_multiple_of_128_bits_for_each_row(columns):
    """As NVIDIA's header demands of CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD. Whether there is an algorithm only a device shows."""
    assert mask_width(columns) % 128 == 0 and 0 <= mask_width(columns) - columns < 128
    assert {one.name: int(one) for one in MASKS} == {"RELU_MASK_BIAS": 134, "MASKED": 136, "MASKED_BIAS_GRADIENT": 152}


def test_the_way_back_through_a_relu_without_a_bias_is_part_of_a_product(double):
    with tf.device("STRICT:0"):
        x = tf.constant(np.linspace(-1.0, 1.0, 12).reshape(4, 3), "float32")
        shapes = (3, 5), (5, 2), (1, 5)
        v, w, b = [tf.Variable(np.linspace(-1.0, 1.2, n * k).reshape(n, k), dtype="float32") for n, k in shapes]

        @tf.function
        def gradients(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((tf.nn.relu(x @ v + b[0]) @ w) ** 2)
            return tape.gradient(loss, v)

        for _ in range(4):
            found = gradients(x)
        x, v, w, b = (one.numpy() for one in (x, v, w, b))
    hidden = np.maximum(x @ v + b[0], 0)
    expected = x.T @ np.where(hidden > 0, 2 * (hidden @ w) @ w.T, 0)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    (graph,) = graphs_of(gradients)
    assert "MASKED" in epilogues(graph)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("model", MODELS)
def test_products_of_16_bits_are_cublaslts_and_added_up_in_float32(double, model, policy):
    if policy == "mixed_bfloat16":
        pytest.importorskip("ml_dtypes")
    tf.keras.mixed_precision.set_global_policy(policy)
    try:
        ours, theirs = [Trained(MODELS[model], LOSSES["labels"], OPTIMIZERS["Adam"], place) for place in ("STRICT:0", "CPU:0")]
        for _ in range(5):
            np.testing.assert_allclose(ours.step(), theirs.step(), rtol=5e-3 if policy == "mixed_float16" else 3e-2)
    finally:
        tf.keras.mixed_precision.set_global_policy(None)
    (graph,) = graphs_of(ours.function)
    assert not graph.schedule.calls, "Python stands between two graphs"
    products = [node.product for node in graph.schedule.nodes if isinstance(node, ProductNode)]
    assert {product.dtype.name for product in products} == {policy.removeprefix("mixed_")}
    assert {matmul.dtype for matmul in double.matmuls} == {product.dtype for product in products}
    if model == "dense":
        assert {Epilogue.RELU_BIAS, Epilogue.RELU_MASK_BIAS} & {product.epilogue for product in products}


def test_what_cublaslt_is_told_of_a_dtype():
    """Numbers of cudaDataType and cublasComputeType of NVIDIA's headers; whether there are algorithms only a device shows."""
    assert {name: kind[:3] for name, kind in KINDS.items()} == {
        **{"float32": (0, 68, 0), "float64": (1, 70, 1)},
        **{"float16": (2, 68, 0), "bfloat16": (14, 68, 0)},
    }


def test_a_sum_over_rows_that_stands_alone_is_part_of_a_product(double):
    with tf.device("STRICT:0"):
        x, dy = tf.constant(np.arange(12.0).reshape(4, 3)), tf.constant(np.arange(8.0).reshape(4, 2))
        gradients = tf.function(lambda x, dy: (tf.transpose(x) @ dy, tf.reduce_sum(dy, axis=0)))
        for _ in range(4):
            product, total = gradients(x, dy)
        np.testing.assert_array_equal(product.numpy(), x.numpy().T @ dy.numpy())
        np.testing.assert_array_equal(total.numpy(), dy.numpy().sum(axis=0))
    (graph,) = graphs_of(gradients)
    assert epilogues(graph) == ["BIAS_GRADIENT"] and len(graph.schedule.nodes) == 1


@pytest.mark.parametrize("optimizer", sampled(["SGD", "Adam", "AdamW"], 2))
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("normalized", [False, True])
def test_nodes_of_a_step(double, depth, optimizer, normalized):
    """A hidden layer: three products, with its ReLU and the way back through it; a normalization is a kernel each way. The last
    layer: two products. The loss: rows with their gradient, and the mean. The optimizer.
    """
    layers = tf.keras.layers
    inner = [[layers.Dense(7, "relu"), *([layers.BatchNormalization()] if normalized else [])] for _ in range(depth)]
    found = Trained(lambda: list(itertools.chain(*inner)), LOSSES["labels"], OPTIMIZERS[optimizer])
    for _ in range(4):
        found.step()
    (graph,) = graphs_of(found.function)
    counts = collections.Counter(type(node) for node in graph.schedule.nodes)
    assert counts[ProductNode] == 3 * depth + 2
    assert counts[LaunchNode] == (2 if normalized else 0) * depth + 3
    assert counts.total() == len(double.nodes[-1]) == (5 if normalized else 3) * depth + 5


LACKING = [
    *({Epilogue.BIAS_GRADIENT}, {Epilogue.RELU_BIAS, Epilogue.BIAS}, {Epilogue.RELU_MASK_BIAS}),
    *({Epilogue.MASKED_BIAS_GRADIENT}, {Epilogue.RELU_MASK_BIAS, Epilogue.RELU_BIAS}, set(Epilogue)),
]


@pytest.mark.parametrize("model", sampled(["deep", "dense"], 2))
@pytest.mark.parametrize("lacking", LACKING)
def test_what_cublaslt_has_no_algorithm_for_is_done_without_it(double, lacking, model):
    double.lacking = lacking
    ours, graph = graph_of(model)
    assert not {Epilogue[name] for name in epilogues(graph)} & lacking
    theirs = Trained(MODELS[model], LOSSES["labels"], OPTIMIZERS["SGD"], "CPU:0")
    for _ in range(4):
        theirs.step()
    for own, other in zip(ours.state(), theirs.state(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-6)


def test_a_bias_that_several_read_or_a_product_that_is_read_twice_stays_apart(double):
    with tf.device("STRICT:0"):
        x, w, b = tf.constant(np.eye(3), "float32"), tf.Variable(np.ones((3, 2)), dtype="float32"), tf.Variable([1.0, 2.0])

        @tf.function
        def both(x):
            product = x @ w
            return tf.nn.relu(product + b), product

        for _ in range(4):
            activated, product = both(x)
        np.testing.assert_array_equal(product.numpy(), np.ones((3, 2)))
        np.testing.assert_array_equal(activated.numpy(), np.ones((3, 2)) + np.array([1.0, 2.0]))
    (graph,) = graphs_of(both)
    assert epilogues(graph) == ["NONE"]


def test_a_matrix_that_is_transposed_twice_is_itself(double):
    with tf.device("STRICT:0"):
        x, y = tf.constant(np.arange(6.0).reshape(2, 3)), tf.constant(np.arange(4.0).reshape(2, 2))

        @tf.function
        def products(x, y):
            turned = tf.transpose(x)
            return turned @ y, tf.transpose(turned) + 1.0, y @ tf.transpose(turned), turned * 2.0

        for _ in range(4):
            found = [one.numpy() for one in products(x, y)]
        x, y = x.numpy(), y.numpy()
    for own, expected in zip(found, [x.T @ y, x + 1.0, y @ x, x.T * 2.0], strict=True):
        np.testing.assert_array_equal(own, expected)
    assert graphs_of(products)
