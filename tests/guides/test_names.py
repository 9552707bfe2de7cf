"""The names that code written beside TensorFlow's guides takes for granted: 20.1, 20.2 and 20.3 of the specification."""

import tempfile

import pytest

import minikeras as tf

USED_BY_THE_GUIDES = """
    GradientTape UnconnectedGradients.ZERO Variable constant custom_gradient function stop_gradient get_logger __version__ bool
    float32 int32
    eye linspace pad random.normal range reshape transpose zeros
    clip_by_norm clip_by_value einsum linalg.solve math.round math.sin matmul norm pow reduce_max reduce_mean reduce_prod
    reduce_sum sin square tensordot
    nn.elu nn.relu nn.sigmoid nn.softmax nn.softplus image.adjust_contrast
    keras.Model keras.layers.BatchNormalization keras.layers.Dense keras.layers.Flatten
    keras.losses.sparse_categorical_crossentropy keras.optimizers.Adam
"""
TAKEN_FOR_GRANTED = """
    Tensor TensorShape TensorSpec IndexedSlices Module RegisterGradient no_gradient UnconnectedGradients
    UnconnectedGradients.NONE
    autodiff.GradientTape autodiff.ForwardAccumulator cast convert_to_tensor identity newaxis grad_pass_through recompute_grad
    gradients hessians config.run_functions_eagerly
    float16 float64 int64 complex64 complex128 string
    errors.OpError errors.InvalidArgumentError errors.NotFoundError
    boolean_mask concat expand_dims gather gather_nd one_hot ones ones_like rank reverse roll searchsorted shape size sort split
    squeeze stack tile unstack where zeros_like
    abs acos add_n argmax argmin asin atan clip_by_global_norm cos cosh cumsum equal exp floor maximum minimum reduce_logsumexp
    reduce_min round sigmoid sign sinh sqrt tan tanh unique
    math.atan2 math.ceil math.cumprod math.divide_no_nan math.erf math.expm1 math.is_nan math.l2_normalize math.log math.log1p
    math.log_sigmoid math.multiply_no_nan math.reciprocal math.reduce_std math.reduce_variance math.rint math.rsqrt
    math.squared_difference math.top_k math.xlog1py math.xlogy
    linalg.cholesky linalg.det linalg.diag linalg.inv linalg.matvec linalg.slogdet linalg.trace linalg.triangular_solve
    nn.embedding_lookup nn.gelu nn.leaky_relu nn.log_softmax nn.relu6 nn.selu nn.sigmoid_cross_entropy_with_logits nn.silu
    nn.softmax_cross_entropy_with_logits nn.softsign nn.sparse_softmax_cross_entropy_with_logits
    cond map_fn scan switch_case vectorized_map while_loop
    random.set_seed random.uniform random.Generator.from_seed random.stateless_normal random.stateless_uniform
    data.Dataset.from_tensor_slices
    keras.Sequential keras.layers.Dropout keras.losses.SparseCategoricalCrossentropy keras.optimizers.SGD
    train.Checkpoint train.CheckpointManager train.latest_checkpoint train.list_variables train.load_variable
"""


def reached(start, dotted):
    """Whether every part of a dotted name is there."""
    for part in dotted.split("."):
        if not hasattr(start, part):
            return False
        start = getattr(start, part)
    return True


@pytest.mark.parametrize("names", [USED_BY_THE_GUIDES, TAKEN_FOR_GRANTED], ids=["used by the guides", "taken for granted"])
def test_every_name_is_there(names):
    """20.1 and 20.2."""
    assert [name for name in names.split() if not reached(tf, name)] == []


def test_bfloat16_is_there_with_its_package():
    """20.2, T48: also as a dtype of what a tape differentiates, numbers beside it included."""
    pytest.importorskip("ml_dtypes")
    x = tf.constant([1.0, 2.0], dtype=tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x * 2.0) / (x * x + 1) - 0.5 * x
    gradient = tape.gradient(y, x)
    assert y.dtype == gradient.dtype == tf.bfloat16
    exact = [3.19453, 12.60351]
    assert gradient.numpy().astype("float64").tolist() == pytest.approx(exact, rel=0.05)
    kernel = tf.Variable([[1.0, 2.0], [3.0, 4.0]], dtype=tf.bfloat16)
    with tf.GradientTape() as tape:
        y = tf.reduce_mean(tf.einsum("i,ij->j", x, tf.tanh(x[None] @ kernel)[0][:, None] * kernel))
    assert y.dtype == tape.gradient(y, kernel).dtype == tf.bfloat16


def dense_layer():
    layer = tf.keras.layers.Dense(1)
    layer(tf.ones((1, 2)))
    return layer


def manager():
    folder = tempfile.gettempdir()
    return tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, max_to_keep=None)


def restored():
    return tf.train.Checkpoint(v=tf.Variable(1.0)).restore(None)


def normalization():
    layer = tf.keras.layers.BatchNormalization()
    layer(tf.ones((1, 2)))
    return layer


OBJECTS = {
    "tensor": (lambda: tf.constant([1.0]), "numpy shape dtype ndim ref"),
    "shape": (lambda: tf.constant([1.0]).shape, "as_list rank num_elements concatenate"),
    "Variable": (
        lambda: tf.Variable([1.0]),
        "assign assign_add assign_sub value read_value numpy name trainable constraint ref scatter_nd_update scatter_update "
        "scatter_add",
    ),
    "tape": (
        tf.GradientTape,
        "gradient jacobian batch_jacobian watch watched_variables stop_recording reset explain summary memory hessian hvp",
    ),
    "accumulator": (lambda: tf.autodiff.ForwardAccumulator(tf.constant(1.0), 1.0), "jvp"),
    "IndexedSlices": (lambda: tf.IndexedSlices([1.0], [0], [3]), "values indices dense_shape shape dtype"),
    "Dense": (dense_layer, "kernel variables trainable_variables non_trainable_variables"),
    "BatchNormalization": (normalization, "moving_mean"),
    "optimizer": (tf.keras.optimizers.SGD, "apply_gradients iterations learning_rate"),
    "Checkpoint": (lambda: tf.train.Checkpoint(), "save restore write read save_counter"),
    "its status": (restored, "assert_consumed assert_existing_objects_matched expect_partial"),
    "CheckpointManager": (manager, "save checkpoints latest_checkpoint restore_or_initialize"),
    "function": (lambda: tf.function(lambda x: x), "python_function"),
    "Dataset": (lambda: tf.data.Dataset.from_tensor_slices([1.0]), "batch"),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_every_attribute_is_there(kind):
    """20.3."""
    make, names = OBJECTS[kind]
    thing = make()
    assert [name for name in names.split() if not hasattr(thing, name)] == []
