"""Layers, losses and metrics."""

from .. import Row

TITLE = "Layers, losses and metrics"
ROWS = [
    Row(
        what="a loss of float64 arrays",
        code="losses.MeanSquaredError()(np.ones((2, 1)), np.zeros((2, 1))).dtype",
        ours="float64",
        theirs="float32",
        why="who computes in float64 wants its digits; `dtype='float32'` rounds",
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
        theirs="InvalidArgumentError",
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
        what="`Normalization(axis=...)`, `BatchNormalization(axis=...)` out of range",
        code="L.BatchNormalization(axis=4)(np.ones((2, 3)))",
        ours="ShapeError: axis 4 is out of range for inputs of shape (2, 3)",
        theirs="IndexError",
        why="the message names the layer, the axis and the shape",
    ),
]
