"""What metrics have in common: state, shapes that must fit, weights, custom metrics; and definitions by counting."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import in_one_test

import minikeras as tf
from minikeras.errors import ShapeError
from minikeras.keras.metrics import confusion

metrics = tf.keras.metrics
NEEDS = {
    "IoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "MeanIoU": {"num_classes": 3},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [1]},
    "OneHotMeanIoU": {"num_classes": 3},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
}
"""Arguments without a default."""
OF_VALUES = {"Mean", "Sum"}
OF_CLASS_NUMBERS = {"SparseCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "SparseCategoricalCrossentropy"}
OF_CLASSES = {"IoU", "MeanIoU"}
BASES = {"Metric", "MeanMetricWrapper"}
NAMES = sorted(name for name in metrics.__all__ if isinstance(getattr(metrics, name), type) and name not in BASES)


def make(kind, **options):
    return getattr(metrics, kind)(**NEEDS.get(kind, {}), **options)


def batch(name, rows=4, seed=0):
    """Labels and predictions that a metric takes."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, rows)
    scores = generator.uniform(0.1, 0.9, (rows, 3)).astype("f")
    if name in OF_VALUES:
        return (scores,)
    if name in OF_CLASS_NUMBERS:
        return labels, scores
    if name in OF_CLASSES:
        return labels, generator.integers(0, 3, rows)
    return np.eye(3, dtype="f")[labels], scores


def state(metric):
    return [variable.numpy() for variable in metric.variables]


@in_one_test(name=NAMES)
def test_a_bad_batch_is_refused_with_both_shapes_and_changes_nothing(name):
    if name in OF_VALUES:
        return
    metric = make(name)
    metric.update_state(*batch(name))
    before = state(metric)
    labels, scores = batch(name)
    bad = [(labels[:3], scores), (labels, scores[:3])]
    bad += [] if name in OF_CLASSES | OF_CLASS_NUMBERS else [(labels[:, :2], scores), (labels[:1], scores)]
    for y_true, y_pred in bad:
        with pytest.raises(ShapeError, match=r"y_true has shape .*(y_pred|3 classes along axis -1)"):
            metric.update_state(y_true, y_pred)
    with pytest.raises(ShapeError, match="sample_weight has shape"):
        metric.update_state(labels, scores, sample_weight=np.ones(3, int))
    for old, new in zip(before, state(metric), strict=True):
        assert np.array_equal(old, new)


@in_one_test(name=NAMES)
def test_a_fresh_metric_refuses_a_bad_batch_without_making_state_for_it(name):
    if name in OF_VALUES | OF_CLASSES | OF_CLASS_NUMBERS:
        return
    metric = make(name)
    count = len(metric.variables)
    with pytest.raises(ShapeError):
        metric.update_state(np.ones((4, 2), "f"), np.ones((4, 3), "f"))
    assert len(metric.variables) == count


@in_one_test(name=NAMES)
def test_batches_add_up_whatever_their_sizes_and_a_reset_forgets(name):
    whole, parts = make(name), make(name)
    data = batch(name, 7)
    whole.update_state(*data)
    for rows in (slice(0, 1), slice(1, 5), slice(5, 7)):
        parts.update_state(*[part[rows] for part in data])
    if name not in ("PearsonCorrelation", "ConcordanceCorrelation"):
        np.testing.assert_allclose(parts.result().numpy(), whole.result().numpy(), rtol=2e-5)
    first = whole.result().numpy()
    whole.update_state(*batch(name, 5, seed=1))
    whole.reset_state()
    whole.update_state(*data)
    assert np.array_equal(whole.result().numpy(), first, equal_nan=True)


@in_one_test(name=NAMES)
def test_a_weight_of_zero_leaves_a_row_out_and_one_of_two_counts_it_twice(name):
    data = batch(name, 5)
    weighted, repeated = make(name), make(name)
    weighted.update_state(*data, sample_weight=np.array([1, 0, 2, 1, 0]))
    repeated.update_state(*[part[[0, 2, 2, 3]] for part in data])
    np.testing.assert_allclose(weighted.result().numpy(), repeated.result().numpy(), rtol=2e-5)


@in_one_test(name=NAMES)
def test_state_stays_on_the_device_until_a_result_is_read(name, device):
    metric = make(name)
    with_labels_checked = name == "SparseCategoricalCrossentropy"
    metric.update_state(*[tf.constant(part) for part in batch(name)])
    assert with_labels_checked or all(variable.device == metric.variables[0].device for variable in metric.variables)
    assert np.isfinite(metric.result().numpy()).all()


@in_one_test(name=NAMES)
def test_a_metric_is_found_by_its_name_and_keeps_a_name_given(name):
    if name not in NEEDS:
        found = metrics.get(tf.keras.metrics.serialize(make(name))["class_name"])
        assert (type(found).__name__, found.name) == (name, name)
    assert make(name, name="mine").name == "mine"
    assert make(name, dtype="float64").dtype == "float64"


@pytest.mark.parametrize(
    "alias", ["mse", "MAE", "mape", "msle", "rmse", "bce", "cce", "scce", "kld", "logcosh", "cosine_similarity"]
)
def test_a_second_name_becomes_the_name(alias):
    assert metrics.get(alias).name == alias


def test_every_direction_is_said_but_those_of_counts_and_plain_values():
    without = {name for name in NAMES if getattr(metrics, name)._direction is None}
    assert without == {"Mean", "Sum", "TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives"}
    assert metrics.MeanMetricWrapper(tf.keras.losses.huber)._direction == "down"
    assert metrics.get(tf.keras.losses.Huber())._direction == "down"
    assert metrics.get(tf.keras.losses.Huber()).name == "huber_loss"
    assert metrics.MeanMetricWrapper(lambda y, p: p)._direction is None


# Means -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "weights"),
    [((), ()), ((4,), ()), ((4,), (4,)), ((4,), (4, 1)), ((4, 1), (4,)), ((4, 3), (4,)), ((4, 3), (4, 1)), ((4, 3), (4, 3))]
    + [((4, 3, 2), shape) for shape in ((), (4,), (4, 1), (4, 3), (4, 3, 1), (4, 3, 2))],
)
def test_a_weighted_mean_is_the_sum_of_weighted_values_by_that_of_weights(shape, weights):
    generator = np.random.default_rng(0)
    values, weight = generator.normal(size=shape), generator.uniform(0.5, 2.0, weights)
    leading = weight.reshape(weights[: len(shape)] + (1,) * (len(shape) - len(weights)))
    each = np.broadcast_to(leading, shape)
    mean, total = metrics.Mean(dtype="float64"), metrics.Sum(dtype="float64")
    np.testing.assert_allclose(mean(values, weight).numpy(), (values * each).sum() / each.sum(), rtol=1e-12)
    np.testing.assert_allclose(total(values, weight).numpy(), (values * each).sum(), rtol=1e-12)


@pytest.mark.parametrize(("shape", "weights"), [((), (4,)), ((4,), (3,)), ((4, 1), (4, 3)), ((4, 3), (3,))])
def test_weights_of_a_mean_that_are_not_one_for_each_row_or_value_are_refused(shape, weights):
    for metric in (metrics.Mean(), metrics.Sum()):
        with pytest.raises(ShapeError, match="sample_weight has shape"):
            metric.update_state(np.ones(shape), np.ones(weights))


def test_a_row_counts_once_however_many_values_it_has():
    metric = metrics.Mean()
    metric.update_state([[1.0, 1.0, 1.0]])
    metric.update_state([[4.0]])
    assert float(metric.result()) == 2.5
    assert float(metric.count.numpy()) == 2.0


def test_an_ignored_class_does_not_count_in_the_metric_either():
    logits = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("f")
    labels = np.array([[0, -1, 2], [3, 1, -1]])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    metric = metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    np.testing.assert_allclose(metric(labels, logits), loss(labels, logits), rtol=1e-6)
    turned = metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1, axis=1)
    weights = [[1.0, 5.0, 1.0], [1.0, 1.0, 5.0]]
    np.testing.assert_allclose(turned(labels, logits.transpose(0, 2, 1), weights), loss(labels, logits), rtol=1e-6)


# Custom metrics --------------------------------------------------------------------------------------------------------


class Largest(metrics.Metric):
    """Of Keras's guide: state by `add_weight`, and an epoch's result in `result`."""

    def __init__(self, name="largest", **options):
        super().__init__(name=name, **options)
        self.value = self.add_weight(name="value", initializer="zeros")
        self.mean = metrics.Mean()
        self.seen = tf.Variable(5.0, trainable=False)

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.value.assign(tf.maximum(self.value, tf.reduce_max(y_pred)))
        self.mean.update_state(y_pred)
        self.seen.assign_add(1.0)

    def result(self):
        return {"largest": self.value.value, "mean": self.mean.result()}


def test_state_of_a_metric_of_one_s_own_is_found_and_reset_with_what_it_holds():
    metric = Largest()
    assert [variable.name for variable in metric.variables] == ["value", "Variable:0", "total", "count"]
    metric.update_state([0.0, 0.0], tf.constant([1.0, 4.0]))
    assert {name: float(value) for name, value in metric.result().items()} == {"largest": 4.0, "mean": 2.5}
    metric.reset_state()
    assert [float(variable.numpy()) for variable in metric.variables] == [0.0, 5.0, 0.0, 0.0]
    assert metric.from_config(metric.get_config()).name == "largest"


def test_state_before_super_init_and_a_name_in_place_of_a_shape_are_refused():
    class Early(metrics.Metric):
        def __init__(self):
            self.total = tf.Variable(0.0)

    class Without(metrics.Metric):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match=r"Early: call `super\(\).__init__\(\)` first"):
        Early()
    with pytest.raises(RuntimeError, match=r"Without: call `super\(\).__init__\(\)` first"):
        Without().variables  # noqa: B018
    with pytest.raises(TypeError, match="the first argument is the shape, found 'total'. Write name='total'"):
        metrics.Mean().add_weight("total")
    for method in ("update_state", "result"):
        with pytest.raises(NotImplementedError, match=f"Metric must implement {method}"):
            getattr(metrics.Metric(), method)()


def test_a_failed_step_takes_back_state_that_it_made():
    class Failing(metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            raise OSError("no space")

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(2)])
    score, own = metrics.R2Score(), Largest()
    model.compile("sgd", "mse", metrics=[score, own, Failing()])
    with pytest.raises(OSError, match="no space"):
        model.train_on_batch(np.ones((3, 2), "f"), np.ones((3, 2), "f"))
    assert len(score.variables) == 1 and not float(score.num_samples.numpy())
    assert float(own.seen.numpy()) == 5.0


# Definitions, by counting ----------------------------------------------------------------------------------------------


def counts(labels, scores, threshold, weights):
    above, positive = scores > threshold, labels != 0
    return [
        weights[one & other].sum()
        for one, other in ((positive, above), (~positive, above), (~positive, ~above), (positive, ~above))
    ]


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.lists(st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]), min_size=1, max_size=4),
    st.integers(0, 99),
    st.booleans(),
)
def test_counts_at_any_thresholds_are_those_of_each_alone(rows, columns, thresholds, seed, chunked):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, (rows, columns))
    scores = generator.choice([0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0], (rows, columns))
    weights = generator.uniform(0.5, 2.0, (rows, columns))
    at_once = confusion._AT_ONCE
    confusion._AT_ONCE = 1 if chunked else at_once
    try:
        parts = [
            getattr(metrics, name)(thresholds, dtype="float64")
            for name in ("TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives")
        ]
        results = [np.atleast_1d(part(labels, scores, weights).numpy()) for part in parts]
    finally:
        confusion._AT_ONCE = at_once
    for i, threshold in enumerate(thresholds):
        np.testing.assert_allclose([result[i] for result in results], counts(labels, scores, threshold, weights), atol=1e-12)


def test_top_k_and_class_choose_what_is_counted():
    labels = np.array([[1, 0, 1], [0, 1, 0]])
    scores = np.array([[0.9, 0.8, 0.1], [0.2, 0.4, 0.3]], "f")
    assert float(metrics.Precision(top_k=1)(labels, scores)) == 1.0
    assert float(metrics.Recall(top_k=1)(labels, scores)) == pytest.approx(2 / 3)
    assert float(metrics.Recall(top_k=2)(labels, scores)) == pytest.approx(2 / 3)
    assert float(metrics.Precision(class_id=1, thresholds=0.3)(labels, scores)) == 0.5
    assert float(metrics.Precision(top_k=2, class_id=2)(labels, scores)) == 0.0
    assert float(metrics.Precision(top_k=2, thresholds=0.85)(labels, scores)) == 1.0
    for options, message in (({"class_id": 3}, "there is no class 3 in y_pred of shape"), ({"top_k": 4}, "top_k=4")):
        with pytest.raises(ShapeError, match=message):
            metrics.Recall(**options).update_state(labels, scores)


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    """For thresholds that part all scores, with ties counted by half."""
    generator = np.random.default_rng(2)
    labels = generator.integers(0, 2, 60)
    scores = generator.integers(0, 21, 60) / 20.0
    positive, negative = scores[labels == 1], scores[labels == 0]
    order = (positive[:, None] > negative).mean() + (positive[:, None] == negative).mean() / 2
    area = metrics.AUC(thresholds=(np.arange(20) + 0.5) / 20, dtype="float64")
    np.testing.assert_allclose(area(labels, scores).numpy(), order, rtol=1e-12)
    logits = np.log(np.clip(scores, 1e-9, 1 - 1e-9) / (1 - np.clip(scores, 1e-9, 1 - 1e-9)))
    from_logits = metrics.AUC(thresholds=(np.arange(20) + 0.5) / 20, dtype="float64", from_logits=True)
    np.testing.assert_allclose(from_logits(labels, logits).numpy(), order, rtol=1e-12)


def test_an_area_for_each_label_is_weighted():
    generator = np.random.default_rng(3)
    labels, scores = generator.integers(0, 2, (20, 3)), generator.uniform(size=(20, 3))
    alone = [float(metrics.AUC(dtype="float64")(labels[:, i], scores[:, i])) for i in range(3)]
    together = metrics.AUC(multi_label=True, dtype="float64")
    np.testing.assert_allclose(together(labels, scores).numpy(), np.mean(alone), rtol=1e-12)
    weighted = metrics.AUC(multi_label=True, num_labels=3, label_weights=[1, 2, 0], dtype="float64")
    np.testing.assert_allclose(weighted(labels, scores).numpy(), (alone[0] + 2 * alone[1]) / 3, rtol=1e-12)
    flat = metrics.AUC(label_weights=[1, 2, 0], dtype="float64")
    by_hand = metrics.AUC(dtype="float64")
    weights = np.broadcast_to([1.0, 2.0, 0.0], (20, 3))
    assert float(flat(labels, scores)) == float(by_hand(labels, scores, weights))
    for metric, data in ((together, (20, 2)), (weighted, (20, 2)), (metrics.AUC(multi_label=True), (20,)), (flat, (20, 2))):
        with pytest.raises(ShapeError, match="AUC: "):
            metric.update_state(np.ones(data), np.ones(data))


@pytest.mark.parametrize("curve", ["ROC", "PR", "PRGAIN"])
@pytest.mark.parametrize("method", ["interpolation", "minoring", "majoring"])
def test_an_area_lies_between_those_of_lower_and_higher_strips(curve, method):
    generator = np.random.default_rng(4)
    labels, scores = generator.integers(0, 2, 50), generator.uniform(size=50)
    areas = {
        name: float(metrics.AUC(50, curve, name, dtype="float64")(labels, scores)) for name in ("minoring", method, "majoring")
    }
    assert areas["minoring"] <= areas[method] <= areas["majoring"]


def test_metrics_agree_with_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(5)
    labels, scores = generator.integers(0, 2, (30, 3)), generator.uniform(size=(30, 3))
    weights = generator.uniform(0.5, 2.0, 30)
    for average in (None, "micro", "macro", "weighted"):
        expected = sklearn.fbeta_score(labels, scores > 0.4, beta=2.0, average=average, sample_weight=weights)
        metric = metrics.FBetaScore(average, 2.0, 0.4, dtype="float64")
        np.testing.assert_allclose(metric(labels, scores, weights).numpy(), expected, rtol=1e-6)
    targets = generator.normal(size=(30, 3))
    for theirs, ours in (
        ("uniform_average", "uniform_average"),
        ("variance_weighted", "variance_weighted_average"),
        ("raw_values", None),
    ):
        expected = sklearn.r2_score(targets, scores, sample_weight=weights, multioutput=theirs)
        np.testing.assert_allclose(
            metrics.R2Score(ours, dtype="float64")(targets, scores, weights).numpy(), expected, rtol=1e-10
        )
    classes, guesses = generator.integers(0, 4, 50), generator.integers(0, 4, 50)
    expected = sklearn.jaccard_score(classes, guesses, average="macro")
    np.testing.assert_allclose(metrics.MeanIoU(4, dtype="float64")(classes, guesses).numpy(), expected, rtol=1e-6)


# Further options -------------------------------------------------------------------------------------------------------


def test_ties_with_the_last_of_the_best_count_among_them():
    scores = [[0.5, 0.5, 0.5, 0.1], [0.4, 0.3, 0.2, 0.1], [np.nan, 0.5, 0.6, 0.7]]
    rows = metrics.sparse_top_k_categorical_accuracy([2, 2, 0], scores, k=2).numpy()
    assert rows.tolist() == [1.0, 0.0, 0.0]
    assert metrics.sparse_top_k_categorical_accuracy([3, 9], scores[:2], k=9).numpy().tolist() == [1.0, 0.0]
    ids = [[3, 1, 2], [0, 1, 2]]
    assert metrics.sparse_top_k_categorical_accuracy([1, 2], ids, k=2, from_sorted_ids=True).numpy().tolist() == [1.0, 0.0]
    sequence = np.random.default_rng(0).uniform(size=(2, 3, 4))
    assert metrics.sparse_top_k_categorical_accuracy(np.zeros((2, 3), int), sequence, k=1).shape == (2, 3)


def test_equality_is_not_lost_by_a_cast():
    assert metrics.accuracy([1.5, 2.0], [1, 2]).numpy().tolist() == [0.0, 1.0]


def test_whole_weights_count_in_integers_and_others_want_a_float_matrix():
    labels, guesses = [0, 1, 1, 5, 1], [0, 1, 0, 1, 7]
    metric = metrics.IoU(2, [1], ignore_class=None)
    metric.update_state(labels, guesses, sample_weight=[1, 2, 3, 4, 5])
    assert metric.total_cm.numpy().tolist() == [[1, 0], [3, 2]], "classes that do not exist are not counted"
    exact = metrics.IoU(2, [1], dtype="float32")
    exact.update_state(labels, guesses, sample_weight=[0.5, 1.5, 2.0, 1.0, 1.0])
    assert exact.total_cm.numpy().tolist() == [[0.5, 0.0], [2.0, 1.5]]
    ignoring = metrics.MeanIoU(2, ignore_class=0)
    ignoring.update_state([0, 1], [0, 1])
    assert ignoring.total_cm.numpy().tolist() == [[0, 0], [0, 1]]
    first = metrics.OneHotMeanIoU(2, axis=1)
    first.update_state(np.eye(2)[[[0, 1]]].transpose(0, 2, 1), np.eye(2)[[[0, 1]]].transpose(0, 2, 1))
    assert first.total_cm.numpy().tolist() == [[1, 0], [0, 1]]


def test_an_adjusted_score_without_degrees_of_freedom_says_so():
    metric = metrics.R2Score(num_regressors=3)
    metric.update_state([[1.0], [2.0], [4.0]], [[1.0], [2.0], [3.0]])
    with pytest.warns(UserWarning, match="3 regressors and 3 rows leave no degree of freedom"):
        plain = metric.result()
    assert float(plain) == float(metrics.R2Score()([[1.0], [2.0], [4.0]], [[1.0], [2.0], [3.0]]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.Precision(1.5), r"Threshold values must be in \[0, 1\]. Received: \[1.5\]"),
        (lambda: metrics.TruePositives([]), "Threshold values must be"),
        (lambda: metrics.AUC(1), "num_thresholds` must be an integer > 1"),
        (lambda: metrics.AUC(thresholds=[2.0]), "Threshold values must be"),
        (lambda: metrics.AUC(curve="ROCK"), 'Invalid AUC curve value: "ROCK"'),
        (lambda: metrics.AUC(summation_method="middle"), 'Invalid AUC summation method value: "middle"'),
        (lambda: metrics.AUC(num_labels=2), "`num_labels` is needed only when `multi_label` is True"),
        (lambda: metrics.SensitivityAtSpecificity(1.5), "Argument `specificity` must be in the range"),
        (lambda: metrics.RecallAtPrecision(0.5, num_thresholds=0), "num_thresholds` must be an integer > 0"),
        (lambda: metrics.FBetaScore(average="mean"), "Invalid `average` argument value"),
        (lambda: metrics.FBetaScore(beta=0.0), "Invalid `beta` argument value"),
        (lambda: metrics.F1Score(threshold=1.5), "Invalid `threshold` argument value"),
        (lambda: metrics.R2Score("mean"), "Invalid value for argument `class_aggregation`"),
        (lambda: metrics.R2Score(num_regressors=-1), "Invalid value for argument `num_regressors`"),
        (lambda: metrics.IoU(2, [2]), r"target_class_ids \[2\] must be classes in \[0, 2\)"),
        (lambda: metrics.BinaryAccuracy(threshold=1.0), "threshold must lie between 0 and 1"),
        (lambda: metrics.TopKCategoricalAccuracy(k=0), "k must be an int of at least 1, found 0"),
        (lambda: metrics.get("acuracy"), "Unknown metric: 'acuracy'. Did you mean accuracy"),
    ],
)
def test_options_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", ["F1Score", "R2Score"])
def test_scores_of_outputs_need_two_axes_and_the_same_outputs(name):
    metric = getattr(metrics, name)()
    with pytest.raises(ShapeError, match="expects 2D inputs"):
        metric.update_state([1.0, 0.0], [0.5, 0.5])
    metric.update_state(np.eye(3), np.eye(3))
    with pytest.raises(ShapeError, match=r"\(batch_size, 3\)"):
        metric.update_state(np.eye(2), np.eye(2))


# As in Keras -------------------------------------------------------------------------------------------------------------


@in_one_test(dtype=["float16", "bfloat16"], name=[one for one in NAMES if not one.endswith("IoU") and "Percentage" not in one])
def test_a_metric_in_half_precision_has_its_dtype_and_nearly_the_value_of_single_precision(name, dtype):
    found, exact = make(name, dtype=dtype), make(name, dtype="float32")
    for metric in (found, exact):
        metric.update_state(*batch(name, 16))
    assert found.result().dtype == dtype
    np.testing.assert_allclose(tf.cast(found.result(), "float32"), exact.result(), rtol=0.1, atol=0.1)


class Holding(metrics.Metric):
    """State in a list, a dict and a tuple, and more of it added later."""

    def __init__(self):
        super().__init__()
        self.listed = [self.add_variable((), name="one"), tf.Variable(0.0, trainable=False, name="two")]
        self.named = {"mean": metrics.Mean(), "nested": {"sum": (metrics.Sum(),)}}
        self.later = []
        self.later.append(metrics.Sum(name="late"))
        self.later.append(tf.Variable(0.0, trainable=False))

    def update_state(self, values):
        for variable in (*self.listed, self.later[1]):
            variable.assign_add(1.0)
        for metric in (self.named["mean"], self.named["nested"]["sum"][0], self.later[0]):
            metric.update_state(values)

    def result(self):
        return self.listed[0].value


def test_variables_and_metrics_in_lists_tuples_and_dicts_are_state_and_reset():
    metric = Holding()
    assert len(metric.variables) == 7
    for _ in range(2):
        metric.update_state([3.0])
    assert [float(variable) for variable in metric.variables] == [2.0, 2.0, 2.0, 6.0, 2.0, 6.0, 6.0]
    metric.reset_state()
    assert [float(variable) for variable in metric.variables] == [0.0] * 7


@pytest.mark.parametrize("first", [tf.constant([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1, 2])])
def test_state_may_be_given_its_first_value(first):
    metric = metrics.Metric()
    state = metric.add_variable(shape=(2,), initializer=first)
    assert state.dtype == "float32"
    state.assign([5.0, 5.0])
    metric.reset_state()
    assert state.numpy().tolist() == [1.0, 2.0]


@in_one_test(name=NAMES)
def test_names_of_state_have_no_suffix(name):
    metric = make(name)
    assert all(":" not in variable.name for variable in metric.variables)


def test_one_row_of_weights_weighs_the_columns_of_all_rows():
    values, weights = np.array([[1.0, 3.0], [5.0, 7.0]]), np.array([[1.0, 0.5]])
    every = np.broadcast_to(weights, values.shape)
    for make_metric in (metrics.Mean, metrics.Sum):
        assert float(make_metric()(values, weights)) == float(make_metric()(values, every))
    for name in ("Accuracy", "BinaryAccuracy", "MeanSquaredError", "TrueNegatives", "R2Score", "F1Score"):
        labels, predictions = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.9, 0.1], [0.7, 0.2]])
        shaped = (labels[..., None], predictions[..., None]) if name == "MeanSquaredError" else (labels, predictions)
        single, spread = (getattr(metrics, name)()(*shaped, sample_weight=given) for given in (weights, every))
        np.testing.assert_allclose(single, spread)


def test_the_adjusted_score_counts_rows_and_leaves_out_those_of_weight_zero():
    generator = np.random.default_rng(0)
    labels = generator.normal(size=(8, 2))
    predictions = labels + generator.normal(size=(8, 2))
    plain = float(metrics.R2Score()(labels, predictions))
    adjusted = float(metrics.R2Score(num_regressors=2)(labels, predictions))
    assert adjusted == pytest.approx(1 - (1 - plain) * 7 / 5, rel=1e-5)
    padded = [np.concatenate([part, np.ones((3, 2))]) for part in (labels, predictions)]
    weights = np.array([1.0] * 8 + [0.0] * 3)
    assert float(metrics.R2Score(num_regressors=2)(*padded, weights)) == pytest.approx(adjusted, rel=1e-5)


@pytest.mark.parametrize("wrong", [[None], ["0.5"], "a", {"a": 1}, [[0.5]]])
@pytest.mark.parametrize("name", ["FalsePositives", "TruePositives", "Precision", "Recall"])
def test_thresholds_that_are_no_numbers_are_refused_with_what_was_given(name, wrong):
    if isinstance(wrong, list) and wrong == ["0.5"]:
        wrong = ["high"]
    with pytest.raises(ValueError, match="`thresholds` must be a number in .0, 1. or a list of them. Received: thresholds="):
        getattr(metrics, name)(thresholds=wrong)


@pytest.mark.parametrize("wrong", ["0.5", [0.5], True, 1j])
def test_a_threshold_of_an_f_score_that_is_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match="Invalid `threshold` argument value. It should be None or a number"):
        metrics.F1Score(threshold=wrong)


def test_options_are_attributes_of_their_names():
    metrics = tf.keras.metrics
    assert metrics.TopKCategoricalAccuracy(3).k == metrics.SparseTopKCategoricalAccuracy(3).k == 3
    assert metrics.SensitivityAtSpecificity(0.3).specificity == metrics.SpecificityAtSensitivity(0.3).sensitivity == 0.3
    assert metrics.PrecisionAtRecall(0.3).recall == metrics.RecallAtPrecision(0.3).precision == 0.3
    changed = metrics.PrecisionAtRecall(0.3)
    changed.recall = 0.5
    assert changed.get_config()["recall"] == 0.5


def test_thresholds_may_be_arrays_and_numpy_numbers():
    found = metrics.Recall(thresholds=np.array([0.25, 0.75]))([1, 1], [0.5, 0.9])
    assert found.numpy().tolist() == [1.0, 0.5]
    assert metrics.F1Score(threshold=np.float32(0.5)).get_config()["threshold"] == 0.5


def test_predictions_that_are_not_whole_are_cut_for_an_iou_and_told():
    labels, predictions = [0, 1, 1, 0], np.array([0.2, 1.0, 0.9, 0.0])
    metric = metrics.MeanIoU(num_classes=2)
    with pytest.warns(UserWarning, match=r"y_pred must hold class numbers.*0.9 counts as class 0. Use BinaryIoU"):
        metric.update_state(labels, predictions)
    assert float(metric.result()) == float(metrics.MeanIoU(num_classes=2)(labels, [0, 1, 0, 0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="y_true must hold integer labels"):
        metric.update_state(predictions, labels)


def test_counts_of_an_iou_do_not_overflow():
    metric = metrics.MeanIoU(num_classes=2)
    metric.total_cm.assign(np.array([[2**31 - 1, 0], [0, 1]]))
    metric.update_state([0, 0], [0, 0])
    assert metric.total_cm.numpy()[0, 0] == 2**31 + 1
    assert float(metric.result()) == pytest.approx(1.0)


def test_functions_name_their_metrics_as_in_keras():
    def worstOfTwo(y_true, y_pred):
        return tf.reduce_max(tf.abs(y_true - y_pred), axis=-1)

    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[worstOfTwo, lambda y, p: y - p, functools.partial(worstOfTwo)])
    history = model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0).history
    assert sorted(history) == ["lambda", "loss", "partial", "worst_of_two"]


def test_a_subclass_of_r2_score_may_have_variables_of_its_own():
    class Own(metrics.R2Score):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(y_true, y_pred, sample_weight)
            if not hasattr(self, "batches"):
                self.batches = self.add_variable((), name="batches")
            self.batches.assign_add(1.0)

    own, plain = Own(), metrics.R2Score()
    for metric in (own, plain, own, plain):
        metric.update_state([[1.0], [2.0], [4.0]], [[1.0], [2.0], [3.0]])
    assert float(own.result()) == float(plain.result()) and float(own.batches) == 2.0


def test_a_metric_of_a_function_without_a_name_has_one():
    def function(y_true, y_pred):
        return tf.reduce_mean(abs(y_true - y_pred), -1)

    function.__name__ = ""
    assert float(metrics.MeanMetricWrapper(function)(tf.constant([[1.0]]), tf.constant([[3.0]]))) == 2.0
