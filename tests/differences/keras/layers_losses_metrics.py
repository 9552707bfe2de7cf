"""Layers, losses and metrics."""

from .. import Row

TITLE = "Layers, losses and metrics"
ROWS = [
    Row(
        what="one number as the factor of `RandomContrast`",
        code="L.RandomContrast(0.5).factor",
        ours="(0.5, 0.5)",
        theirs="(0, 0.5)",
        why="the contrast is drawn from [1 - factor, 1 + factor], as Keras documents; Keras draws from [1, 1 + factor]",
    ),
    Row(
        what="`RandomCrop` outside of training",
        code="L.RandomCrop(2, 2)(ones(1, 4, 4, 1), training=False).shape",
        ours="(1, 2, 2, 1)",
        theirs="(1, 4, 4, 1)",
        why="the middle, resized, as Keras documents: a model of images of that size can predict",
    ),
    Row(
        what="a loss of float64 arrays",
        code="losses.MeanSquaredError()(np.ones((2, 1)), np.zeros((2, 1))).dtype",
        ours="float64",
        theirs="float32",
        why="who computes in float64 wants its digits; `dtype='float32'` rounds",
    ),
    Row(
        what="`ops.istft` of `ops.stft` without a window",
        code=("x = ones(32)\nK.ops.istft(K.ops.stft(x, 8, 4, 8, window=None), 8, 4, 8, window=None)[16]"),
        ours="1",
        theirs="2",
        why="an inverse gives the signal back; Keras gives `fft_length / sequence_stride` times as much",
    ),
    Row(
        what="a metric with `ignore_class`",
        code=(
            "m = metrics.SparseCategoricalCrossentropy(ignore_class=0)\n"
            "m.update_state(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]], 'float32'))\n"
            "m.result()"
        ),
        ours="0.6931",
        theirs="0.3466",
        why="the loss of that name leaves ignored rows out of its mean; the metric is the same number",
    ),
    Row(
        what="`Tversky(alpha, beta)`",
        code="round(float(losses.Tversky(alpha=1.0, beta=0.0)(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]))), 4)",
        ours="0.5",
        theirs="0",
        why="alpha weighs false positives, as documented; 3.15 has the two the wrong way round, later versions mend it",
    ),
    Row(
        what="`R2Score(num_regressors)` of several outputs",
        code=(
            "y = np.array([[1.0, 2.0], [2.0, 5.0], [4.0, 6.0], [5.0, 9.0]])\n"
            "m = metrics.R2Score(num_regressors=1)\n"
            "m.update_state(y, y + np.array([[0.5, -0.5], [-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5]]))\n"
            "m.result()"
        ),
        ours="0.895",
        theirs="0.9183",
        why="the number of samples is that of rows; 3.15 counts a row once for each output, later versions do not",
    ),
    Row(
        what="`LayerNormalization(axis=[1, -1])` of rows",
        code="L.LayerNormalization(axis=[1, -1])(np.ones((2, 3)))",
        ours="ShapeError: twice",
        theirs="ValueError: Exception encountered",
        why="one axis is named twice; 3.15 makes weights for both",
    ),
    Row(
        what="normalization of large data in float16",
        code=("layer = L.Normalization(axis=None, mean=0.0, variance=1e6, dtype='float16')\nlayer(np.array([[70000.0]]))"),
        ours="[[70]]",
        theirs="[[nan]]",
        why="statistics and inputs are what float16 often cannot hold; the result is cast, not they",
    ),
    Row(
        what="a first value of a metric's Variable that is not 0",
        code=("metric = metrics.Metric()\nlow = metric.add_variable((), initializer='ones')\nmetric.reset_state()\nlow"),
        ours="1",
        theirs="0",
        why="`reset_state` gives the first value again, as documented for `initializer`",
    ),
    Row(
        what="predictions between class numbers in `MeanIoU`",
        code="'class numbers' in warned(lambda: metrics.MeanIoU(num_classes=2)([0, 1], np.array([0.2, 0.9])))",
        ours="True",
        theirs="False",
        why="probabilities are cut to 0, which makes the score that of a constant; `BinaryIoU` is meant",
    ),
    Row(
        what="class numbers of one row less in `SparseCategoricalAccuracy`",
        code="metrics.SparseCategoricalAccuracy()(np.zeros((2, 1)), np.full((1, 2, 3), 0.3))",
        ours="ShapeError: (2, 1)",
        theirs="1",
        why="labels belong to rows of predictions; nothing is reshaped to fit",
    ),
    Row(
        what="a 0 within the labels of `CTC`",
        code="losses.CTC()(np.array([[1, 0, 2]]), np.zeros((1, 4, 3), 'float32'))",
        ours="InvalidArgumentError: a label follows a 0",
        theirs="1.686",
        why="0 is the blank and fills up the end of a row; within it, it is a mistake in the data",
    ),
    Row(
        what="`Huber(delta=2.0).get_config()`, `CosineSimilarity(axis=1).get_config()`",
        code="losses.Huber(delta=2.0).get_config().get('delta')",
        ours="2",
        theirs="None",
        why="a loss that is loaded is the one that was saved; 3.15 forgets the option, later versions keep it",
    ),
    Row(
        what="`FBetaScore(beta=2)`, `F1Score(threshold=1)`",
        code="metrics.FBetaScore(beta=2).beta",
        ours="2",
        theirs="ValueError",
        why="an integer is a number",
    ),
    Row(
        what="the mask of an input of `MultiHeadAttention`, after the call",
        code="""
x = L.Embedding(3, 2, mask_zero=True)(np.array([[1, 0]]))
y = L.MultiHeadAttention(1, 1)(x, x)
getattr(x, "_keras_mask", None) is None
""",
        ours="False",
        theirs="True",
        why="a layer that reads the same tensor later needs it too; and `query_mask=` given by hand counts",
    ),
    Row(
        what="a `Lambda` around a Python lambda that was saved, loaded with `custom_objects={'__lambda__': ...}`",
        code="""
config = {"module": "keras.layers", "class_name": "Lambda", "registered_name": None}
config["config"] = {"name": "code", "function": {"class_name": "__lambda__", "config": {"value": "4wEAAA=="}}}
K.saving.deserialize_keras_object(config, custom_objects={"__lambda__": abs}, safe_mode=True).name
""",
        ours="code",
        theirs="ValueError: Requested the deserialization of a",
        why="no file holds code here, also none that `safe_mode=False` would run; where a lambda was the file has a mark",
    ),
    Row(
        what="`set_dtype_policy(None)`",
        code="keras.mixed_precision.set_dtype_policy(None)",
        ours="None",
        theirs="ValueError",
        why="returns to the default, as `set_global_policy(None)` did in TensorFlow",
    ),
    Row(
        what="`LossScaleOptimizer` around an optimizer with a `loss_scale_factor`",
        code="warned(lambda: optimizers.LossScaleOptimizer(optimizers.SGD(loss_scale_factor=8.0)))[:31]",
        ours="UserWarning: LossScaleOptimizer",
        theirs="no warning",
        why="the inner scale is taken away, as gradients would be divided twice; that is said",
    ),
    Row(
        what="`Normalization(axis=...)`, `BatchNormalization(axis=...)` out of range",
        code="L.BatchNormalization(axis=4)(np.ones((2, 3)))",
        ours="ShapeError: axis 4 is out of range for inputs of shape (2, 3)",
        theirs="IndexError",
        why="the message names the layer, the axis and the shape",
    ),
    Row(
        what="the function in the configuration of a `Lambda`",
        code="type(L.Lambda(lambda x: 2 * x).get_config()['function']).__name__",
        ours="function",
        theirs="dict",
        why="a configuration has no code, so a clone needs the function itself; a file has a mark in the place of a lambda",
    ),
    Row(
        what="setting `dtype` of a loss or metric",
        code="""
loss = losses.MeanSquaredError()
loss.dtype = "float64"
str(loss(ones(2, 1), ones(2, 1)).dtype).split("'")[1]
""",
        ours="float64",
        theirs="AttributeError: setter",
        why="it is an attribute like the others of a loss, and counts from the next call on",
    ),
    Row(
        what="`overwrite_with_gradient`",
        code="L.Layer().add_weight(shape=(), overwrite_with_gradient=True).overwrite_with_gradient",
        ours="NotImplementedError: overwrite_with_gradient is not available",
        theirs="True",
        why="it is how scales of float8 are kept, which is not here",
    ),
    Row(
        what="`regularizer` of a Variable that no layer has made",
        code="""
v = K.Variable([3.0])
v.regularizer = K.regularizers.L2(1.0)
v.regularizer is not None
""",
        ours="AttributeError: regularizer",
        theirs="True",
        why="only layers collect penalties; elsewhere nothing would come of it: `add_weight(regularizer=...)`, or `add_loss`",
    ),
    Row(
        what="a mask of steps for `ConvLSTM1D/2D/3D`",
        code="layers.ConvLSTM1D(2, 2)(np.ones((2, 3, 5, 1), 'float32'), mask=np.array([[True, True, False]] * 2)).shape",
        ours="(2, 4, 2)",
        theirs="ValueError: Incompatible shapes for broadcasting",
        why="steps that are left out leave states as they are, as with Keras on TensorFlow; on JAX the mask is not broadcast",
    ),
]
