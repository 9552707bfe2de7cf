"""What losses have in common: shapes that must fit, masks, dtypes, custom losses, configurations; and CTC."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError, ShapeError

losses = tf.keras.losses
ELEMENTWISE = ["mean_squared_error", "mean_absolute_error", "mean_absolute_percentage_error", "mean_squared_logarithmic_error"]
ELEMENTWISE += ["cosine_similarity", "huber", "log_cosh", "hinge", "squared_hinge", "categorical_hinge", "kl_divergence"]
ELEMENTWISE += ["poisson", "binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy"]
ELEMENTWISE += ["categorical_focal_crossentropy", "dice", "tversky"]
SPARSE = ["sparse_categorical_crossentropy", "categorical_generalized_cross_entropy"]


SHAPES = [((4, 1), (4, 2)), ((4,), (2, 4)), ((2, 4), (4,)), ((4, 2), (2, 4)), ((1, 2), (4, 2)), ((4,), (4, 4)), ((4,), (1,))]


@in_one_test(name=ELEMENTWISE, shapes=[*SHAPES, ((), (4,))])
def test_labels_and_predictions_of_other_shapes_are_refused_with_both_shapes(name, shapes):
    y_true, y_pred = (tf.fill(shape, 0.5) for shape in shapes)
    with pytest.raises(ShapeError, match=rf"{name}: y_true has shape .* and y_pred .*Nothing is broadcast here") as raised:
        getattr(losses, name)(y_true, y_pred)
    assert all(str(list(shape)) in str(raised.value) or str(shape) in str(raised.value) for shape in shapes)


def test_a_number_of_python_stands_for_all_labels():
    y = np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]], "float32")  # Keras's numbers: a penalty on activities that are not 0.1
    np.testing.assert_allclose(tf.keras.losses.kl_divergence(0.1, y[0]), -0.34012, atol=1e-5)
    np.testing.assert_allclose(tf.keras.losses.mean_squared_error(0.1, y), [0.07, 0.29 / 3], atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(ELEMENTWISE) - {"categorical_crossentropy", "categorical_focal_crossentropy"}))
def test_a_vector_and_a_column_are_the_same(name):
    y_true, y_pred = np.array([0.0, 1.0, 1.0], "f"), np.array([0.2, 0.3, 0.9], "f")
    function = getattr(losses, name)
    column = function(y_true, y_pred[:, None]).numpy()
    assert np.array_equal(column, function(y_true[:, None], y_pred[:, None]).numpy())
    assert np.array_equal(function(y_true[:, None], y_pred).numpy(), function(y_true, y_pred).numpy())


@pytest.mark.parametrize("name", SPARSE)
def test_class_numbers_that_do_not_fit_the_rows_are_refused(name):
    function = getattr(losses, name)
    for labels in (np.zeros((3,), int), np.zeros((4, 2), int), np.eye(2, dtype=int)[[0, 1, 0, 1]]):
        with pytest.raises(ShapeError, match=r"expected one integer for each row of y_pred .*: shape \(4,\)"):
            function(labels, np.full((4, 2), 0.5))
    for labels in ([0, 2, 0, 1], [0, -1, 0, 1]):
        with pytest.raises(InvalidArgumentError, match=r"outside the valid range of \[0, 2\)"):
            function(labels, np.full((4, 2), 0.5))
    with pytest.raises(InvalidArgumentError, match="must hold integer labels, found float32 values such as"):
        function([0.5, 0.0, 0.0, 0.0], np.full((4, 2), 0.5))


@pytest.mark.parametrize("name", ["categorical_crossentropy", "categorical_focal_crossentropy", *SPARSE])
def test_a_single_class_is_refused(name):
    labels = [0, 0] if name in SPARSE else [[1.0], [1.0]]
    with pytest.raises(ShapeError, match=r"a single class, so the loss is 0 .* Use binary_crossentropy"):
        getattr(losses, name)(labels, [[0.5], [0.5]])


@pytest.mark.parametrize("weights", [(3,), (4, 1), (2, 3), (2, 2), (3, 2), (1,), (2, 3, 4)])
def test_weights_that_are_not_one_for_each_row_or_value_are_refused(weights):
    y = np.zeros((2, 3, 5), "f")  # values of shape (2, 3)
    loss = losses.MeanSquaredError()
    if weights == (2, 3):
        assert float(loss(y, y, np.ones(weights))) == 0.0
        return
    with pytest.raises(
        ShapeError, match=r"sample_weight has shape .*, the values to weight have shape \(2, 3\).*Give one weight for each row"
    ):
        loss(y, y, np.ones(weights))
    with pytest.raises(ShapeError, match="mask has shape"):
        loss(y, y, mask=np.ones(weights, bool))


def test_a_loss_of_the_whole_batch_takes_no_weights_of_rows():
    with pytest.raises(ShapeError, match=r"one value for the whole batch: .* option `axis`"):
        losses.Dice()([[1.0], [0.0]], [[0.5], [0.5]], [1.0, 2.0])
    assert losses.Dice("none", axis=1)([[1.0], [0.0]], [[0.5], [0.5]], [1.0, 2.0]).shape == (2,)


def test_strings_and_complex_numbers_are_no_labels():
    with pytest.raises(DTypeError, match="must be real numbers"):
        losses.MeanSquaredError()(np.array(["a"]), [1.0])
    with pytest.raises(DTypeError, match="must be real numbers"):
        losses.MeanSquaredError()([1.0], np.array([1j]))


# Masks and weights -----------------------------------------------------------------------------------------------------


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**16 - 1), st.sampled_from(["mean", "sum", "mean_with_sample_weight"])
)
def test_a_mask_counts_what_is_left_as_if_the_rest_were_not_there(rows, steps, bits, reduction):
    mask = np.array([bits >> i & 1 for i in range(rows * steps)], bool).reshape(rows, steps)
    if not mask.any():
        mask[0, 0] = True
    y_true, y_pred = (np.random.default_rng(bits + i).normal(size=(rows, steps, 2)) for i in range(2))
    weights = np.random.default_rng(bits).uniform(0.5, 2.0, (rows, steps))
    loss = losses.MeanSquaredError(reduction)
    masked = loss(y_true, y_pred, weights, mask=mask)
    np.testing.assert_allclose(masked, loss(y_true[mask], y_pred[mask], weights[mask]), rtol=1e-12)


def test_nothing_left_by_a_mask_or_weights_is_a_loss_of_zero():
    y, p = [[1.0], [2.0]], [[0.0], [0.0]]
    assert float(losses.MeanSquaredError()(y, p, mask=[False, False])) == 0.0
    assert float(losses.MeanSquaredError("mean_with_sample_weight")(y, p, [0.0, 0.0])) == 0.0


def test_an_ignored_class_counts_neither_in_the_sum_nor_in_the_mean():
    logits = np.random.default_rng(0).normal(size=(2, 3, 4))
    labels = np.array([[0, -1, 2], [3, 1, -1]])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    plain = losses.SparseCategoricalCrossentropy(from_logits=True)
    np.testing.assert_allclose(loss(labels, logits), plain(labels[labels >= 0], logits[labels >= 0]), rtol=1e-12)
    masked = loss(labels, logits, mask=[[True, True, False], [False, True, True]])
    np.testing.assert_allclose(masked, plain([0, 1], logits[[0, 1], [0, 1]]), rtol=1e-12)
    turned = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1, axis=1)
    np.testing.assert_allclose(turned(labels, logits.transpose(0, 2, 1)), loss(labels, logits), rtol=1e-12)


# dtypes ----------------------------------------------------------------------------------------------------------------


def test_half_precision_and_integers_are_raised_to_the_default_dtype():
    loss = losses.MeanSquaredError()
    assert loss([1.0], tf.constant([300.0], "float16")).dtype == "float32"
    assert float(loss([0.0], tf.constant([300.0], "float16"))) == 90000.0, "float16 would overflow"
    assert float(loss([0, 1], [[1], [3]])) == 2.5
    assert loss([1.0], tf.constant([3.0], "float64")).dtype == "float64"
    assert losses.MeanSquaredError(dtype="float32")([1.0], tf.constant([3.0], "float64")).dtype == "float32"
    assert losses.mean_squared_error([1, 2], [2, 4]).numpy() == 2.5


# Custom losses ---------------------------------------------------------------------------------------------------------


def test_a_loss_of_one_s_own_gets_labels_as_the_predictions_are():
    class Plain(losses.Loss):
        def call(self, y_true, y_pred):
            assert y_true.dtype == y_pred.dtype
            assert y_true.shape == y_pred.shape == (3, 1)
            return tf.reduce_mean((y_true - y_pred) ** 2, axis=-1)

    assert float(Plain()(np.array([0, 1, 2]), tf.constant([[0.0], [1.0], [5.0]]))) == 3.0
    assert Plain().name == "plain"

    def spread(y_true, y_pred, power=2):
        return tf.reduce_mean(tf.abs(y_true - y_pred) ** power, axis=-1)

    assert losses.get(spread) is spread
    found = losses.LossFunctionWrapper(spread)
    assert (found.name, float(found([0, 1], [[1.0], [3.0]]))) == ("spread", 2.5)
    again = type(found).from_config(found.get_config())
    assert float(again([0, 1], [[1.0], [3.0]])) == 2.5
    wrapped = losses.LossFunctionWrapper(spread, "sum", "cubic", power=3)
    config = losses.serialize(wrapped)
    with pytest.raises(ValueError, match="spread"):
        losses.deserialize(config)
    again = losses.deserialize(config, custom_objects={"spread": spread})
    assert (again.name, again.reduction, float(again([0, 1], [[1.0], [3.0]]))) == ("cubic", "sum", 9.0)


def test_a_loss_without_call_says_what_to_write():
    with pytest.raises(NotImplementedError, match=r"Loss must implement call\(y_true, y_pred\)"):
        losses.Loss()([1.0], [1.0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", "MeanSquaredError"),
        ("MAE", "MeanAbsoluteError"),
        ("mape", "MeanAbsolutePercentageError"),
        ("MSLE", "MeanSquaredLogarithmicError"),
        ("BCE", "BinaryCrossentropy"),
        ("kld", "KLDivergence"),
        ("kl_divergence", "KLDivergence"),
        ("logcosh", "LogCosh"),
        ("huber", "Huber"),
        ("dice", "Dice"),
        ("ctc", "CTC"),
        ("categorical_generalized_cross_entropy", "CategoricalGeneralizedCrossEntropy"),
    ],
)
def test_a_loss_is_found_by_the_name_of_its_function_or_of_its_class(name, expected):
    loss = losses.get(expected)
    assert type(loss).__name__ == expected
    assert losses.get(name) is losses.deserialize(name) is loss.fn
    assert type(losses.get({"class_name": expected, "config": {}})).__name__ == expected
    assert losses.get(None) is None


def test_the_name_of_a_function_gives_values_of_rows_and_that_of_a_class_a_loss_that_reduces():
    y_true, y_pred = np.zeros((4, 2)), np.arange(8.0).reshape(4, 2)
    rows = losses.get("mse")(y_true, y_pred)
    assert np.array_equal(rows.numpy(), (y_pred**2).mean(axis=-1))
    assert float(losses.get("MeanSquaredError")(y_true, y_pred)) == pytest.approx(float(rows.numpy().mean()))


def test_an_unknown_loss_names_its_neighbours():
    with pytest.raises(ValueError, match="Unknown loss: 'mean_square_error'. Did you mean mean_squared_error"):
        losses.get("mean_square_error")
    with pytest.raises(ValueError, match="Could not interpret loss identifier: 3"):
        losses.get(3)
    with pytest.raises(ValueError, match="has no 'class_name'"):
        losses.get({"name": "mse"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.huber([0.0], [1.0], delta=0.0), "delta must be > 0, found 0"),
        (lambda: losses.CategoricalGeneralizedCrossEntropy(q=1.0), r"q must lie in the interval \(0, 1\), found 1"),
        (
            lambda: losses.binary_crossentropy([0.0], [0.5], label_smoothing=1.5),
            r"label_smoothing must lie in \[0, 1\], found 1.5",
        ),
        (lambda: losses.circle([0, 1, 2], [[1.0], [1.0]]), r"circle: y_pred has shape \(2, 1\), its labels \(3,\)"),
        (lambda: losses.categorical_crossentropy([[1.0, 0.0]], [[0.5, 0.5]], axis=2), "single class|out of range"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_circle_compares_with_references():
    rows = tf.math.l2_normalize(np.random.default_rng(1).normal(size=(5, 3)), axis=-1)
    labels = np.array([0, 1, 0, 1, 2])
    own = losses.circle(labels, rows, gamma=2.0, remove_diagonal=False)
    given = losses.circle(labels, rows, ref_labels=labels[:, None], ref_embeddings=rows, gamma=2.0, remove_diagonal=False)
    assert np.array_equal(own.numpy(), given.numpy())
    fewer = losses.circle(labels, rows, ref_labels=labels[:3], ref_embeddings=rows[:3], gamma=2.0)
    assert fewer.shape == (5,)
    tf.test.check_gradients(lambda x, r: losses.circle(labels, x, labels[:3], r, gamma=2.0), [rows, rows[:3]])


# Connectionist temporal classification ---------------------------------------------------------------------------------


def brute_force(labels, logits):
    """-log of the sum over all sequences of classes that collapse to the labels."""
    p = np.exp(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        said = [c for i, c in enumerate(path) if c and (i == 0 or c != path[i - 1])]
        total += np.prod(p[np.arange(len(p)), path]) if said == [label for label in labels if label] else 0.0
    return -np.log(total)


@pytest.mark.parametrize("labels", [[1, 2, 0], [1, 1, 0], [2, 0, 0], [0, 0, 0], [1, 2, 1]])
def test_ctc_adds_up_all_ways_to_say_the_labels(labels):
    logits = np.random.default_rng(len(labels) + labels[0]).normal(size=(5, 3))
    np.testing.assert_allclose(losses.ctc([labels], logits[None]).numpy(), [brute_force(labels, logits)], rtol=1e-12)


def test_ctc_has_both_derivatives():
    logits = np.random.default_rng(3).normal(size=(2, 4, 3))
    tf.test.check_gradients(lambda x: losses.CTC()([[1, 2], [2, 0]], x), logits)


@pytest.mark.parametrize(
    ("labels", "shape", "message"),
    [
        ([[0, 1]], (1, 3, 2), "a label follows a 0"),
        ([[1, 1]], (1, 2, 2), "needs 3 steps .* y_pred has 2"),
        ([[1, 2]], (1, 3, 2), "outside the valid range"),
        ([1, 1], (2, 3, 2), r"expected labels \(n, length\)"),
        ([[1], [1]], (1, 3, 2), r"found y_true \(2, 1\) and y_pred \(1, 3, 2\)"),
    ],
)
def test_ctc_refuses_what_has_no_likelihood(labels, shape, message):
    with pytest.raises(InvalidArgumentError, match=message):
        losses.ctc(labels, np.zeros(shape))


# Devices ---------------------------------------------------------------------------------------------------------------


@in_one_test(name=[*ELEMENTWISE, *SPARSE])
def test_a_loss_and_its_gradient_stay_on_the_device(name, device):
    y_pred = tf.constant([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    y_true = tf.constant([2, 0] if name in SPARSE else [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(y_pred)
        options = {"axis": 1} if name in ("dice", "tversky") else {}
        loss = losses.LossFunctionWrapper(getattr(losses, name), **options)
        value = loss(y_true, y_pred, tf.constant([1.0, 0.5]))
    assert tape.gradient(value, y_pred).device == value.device == y_pred.device


# Dtypes ------------------------------------------------------------------------------------------------------------------

CLASSES = sorted(
    name
    for name in losses.__all__
    if isinstance(getattr(losses, name), type) and name not in ("Loss", "LossFunctionWrapper", "Reduction", "CTC")
)


def certain_rows(name):
    """Labels, and predictions that are certain: right in some rows, wrong in others."""
    one_hot = np.eye(4, dtype="float32")
    labels = np.array([0, 1, 2, 2])
    sparse = name.startswith("Sparse") or name in ("Circle", "CategoricalGeneralizedCrossEntropy")
    return labels if sparse else one_hot[labels], one_hot[[0, 1, 3, 2]]


@in_one_test(dtype=["float16", "bfloat16"], name=CLASSES)
def test_a_loss_in_half_precision_is_that_of_single_precision_rounded_once(name, dtype):
    batch = certain_rows(name)
    found, exact = (getattr(losses, name)(dtype=kind)(*batch) for kind in (dtype, "float32"))
    assert found.dtype == dtype
    assert tf.cast(found, "float32").numpy() == tf.cast(tf.cast(exact, dtype), "float32").numpy()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["binary_crossentropy", "binary_focal_crossentropy", "categorical_focal_crossentropy"])
def test_a_loss_function_of_certain_predictions_in_half_precision_is_finite(name, dtype):
    labels, predictions = certain_rows(name)
    with tf.GradientTape() as tape:
        p = tf.Variable(tf.cast(predictions, dtype))
        value = getattr(losses, name)(labels, p)
    assert value.dtype == dtype
    assert np.isfinite(tf.cast(value, "float32").numpy()).all()
    assert np.isfinite(tf.cast(tape.gradient(value, p), "float32").numpy()).all()


def test_a_loss_of_float64_computes_in_float64_unless_told_otherwise():
    y, p = np.array([[1.0]]), np.array([[1.0 + 1e-9]])
    assert losses.MeanSquaredError()(y, p).numpy() == pytest.approx(1e-18, rel=1e-6, abs=0.0)
    assert losses.MeanSquaredError(dtype="float32")(y, p).dtype == "float32"


def test_alpha_weighs_what_is_too_much_and_beta_what_is_missing():
    too_much = ([[1.0, 0.0]], [[1.0, 1.0]])
    missing = ([[1.0, 1.0]], [[1.0, 0.0]])
    for option, counted, free in (("alpha", too_much, missing), ("beta", missing, too_much)):
        loss = losses.Tversky(**{"alpha": 0.0, "beta": 0.0, option: 1.0})
        assert float(loss(*counted)) == pytest.approx(0.5, abs=1e-6)
        assert float(loss(*free)) == pytest.approx(0.0, abs=1e-6)


def test_one_row_of_weights_weighs_the_columns_of_all_rows():
    y, p = np.zeros((2, 3, 1)), np.ones((2, 3, 1))
    values = losses.MeanSquaredError(reduction="none")(y, p, sample_weight=[[1.0, 2.0, 3.0]])
    assert values.numpy().tolist() == [[1.0, 2.0, 3.0]] * 2


def test_options_of_a_loss_are_read_from_its_attributes_and_not_changed_in_place():
    loss = tf.keras.losses.Huber(0.5)
    with pytest.raises(TypeError, match="does not support item assignment"):
        loss.options["delta"] = 5.0
    loss.delta = 5.0
    assert dict(loss.options) == {"delta": 5.0}
    config = loss.get_config()
    assert type(config) is dict and config["delta"] == 5.0
