"""The estimators obey scikit-learn's rules, as its own suite of checks states them."""

import copy
import pickle

import numpy as np
import pytest
from slow import sampled

import minikeras as tf

sklearn = pytest.importorskip("sklearn", minversion="1.6", reason="scikit-learn is not installed")
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

keras = tf.keras
SKLearnClassifier, SKLearnRegressor, SKLearnTransformer = (getattr(keras.wrappers, name) for name in keras.wrappers.__all__)


class Network:
    """Makes a small network with the same weights each time. It has the same name in every process, for the names of tests."""

    def __call__(self, X, y, loss, activation=None, units=8):
        draws = [keras.initializers.GlorotUniform(seed=seed) for seed in (1, 2)]
        hidden = keras.layers.Dense(units, activation="tanh", kernel_initializer=draws[0])
        head = keras.layers.Dense(y.shape[1], activation, kernel_initializer=draws[1])
        model = keras.Sequential([keras.Input(X.shape[1:]), hidden, head])
        model.compile(keras.optimizers.Adam(0.05), loss)
        return model

    def __repr__(self):
        return "network"


network = Network()
FIT = {"epochs": 3, "shuffle": False}
PROBABILITIES = {"loss": "categorical_crossentropy", "activation": "softmax"}
ESTIMATORS = [
    SKLearnClassifier(network, model_kwargs=PROBABILITIES, fit_kwargs=FIT),
    SKLearnRegressor(network, model_kwargs={"loss": "mse"}, fit_kwargs=FIT),
    SKLearnTransformer(network, model_kwargs={"loss": "mse"}, fit_kwargs=FIT),
]
EXCEPTIONS = {
    "check_sample_weight_equivalence_on_dense_data": "as in Keras, rows of weight 0 count in batches and their means",
    "check_regressor_multioutput": "predictions have the dtype of the model, float32",
}


def exceptions(estimator):
    """The checks that are not passed, with the reason."""
    if isinstance(estimator, SKLearnRegressor):
        return EXCEPTIONS
    return {name: reason for name, reason in EXCEPTIONS.items() if "regressor" not in name}


CHECKS = parametrize_with_checks(ESTIMATORS, expected_failed_checks=exceptions).mark
CASES = [case if isinstance(case, type(pytest.param())) else pytest.param(*case) for case in CHECKS.args[1]]


@pytest.mark.parametrize(CHECKS.args[0], sampled(CASES, 4), **CHECKS.kwargs)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# What the checks do not know -------------------------------------------------------------------------------------------------


def blobs(rows=60, classes=3, seed=0):
    """Points around as many centres as there are classes, and labels that are words."""
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, classes, rows)
    return generator.normal(size=(rows, 2)) + 5.0 * np.eye(classes, 2)[codes], np.asarray(["a", "b", "c"])[codes]


def compiled(outputs=3, loss="categorical_crossentropy", activation="softmax"):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(outputs, activation)])
    model.compile("sgd", loss, metrics=["accuracy"])
    return model


def test_a_pipeline_is_searched_and_cross_validated():
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = blobs()
    classifier = SKLearnClassifier(network, model_kwargs=PROBABILITIES, fit_kwargs={"epochs": 20})
    pipeline = make_pipeline(StandardScaler(), classifier)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9
    grid = {"sklearnclassifier__fit_kwargs": [{"epochs": 1}, {"epochs": 20}]}
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_params_ == {"sklearnclassifier__fit_kwargs": {"epochs": 20}}


def test_a_model_is_cloned_for_each_fit_and_stays_as_it_was():
    X, y = blobs()
    model = compiled()
    before = [np.array(weight) for weight in model.weights]
    classifier = SKLearnClassifier(model).fit(X, y, epochs=2)
    assert classifier.model_ is not model and sorted(classifier.history_) == ["accuracy", "loss"]
    assert len(classifier.history_["loss"]) == 2
    assert all(np.array_equal(a, b) for a, b in zip(before, model.weights, strict=True))
    first = classifier.model_
    assert classifier.fit(X, y).model_ is not first


def test_a_warm_start_goes_on_with_the_same_weights():
    X, y = blobs()
    model = compiled()
    given = SKLearnClassifier(model, warm_start=True).fit(X, y)
    assert given.model_ is model
    made = SKLearnClassifier(network, warm_start=True, model_kwargs=PROBABILITIES).fit(X, y)
    first = made.model_
    assert made.fit(X, y).model_ is first


def test_arguments_of_fit_come_before_those_of_the_constructor():
    X, y = blobs()
    classifier = SKLearnClassifier(compiled(), fit_kwargs={"epochs": 1, "batch_size": 30})
    assert len(classifier.fit(X, y, epochs=3).history_["loss"]) == 3
    assert classifier.fit_kwargs == {"epochs": 1, "batch_size": 30}


def test_weights_of_rows_reach_the_loss():
    X, y = blobs()
    classifier = SKLearnClassifier(network, model_kwargs=PROBABILITIES, fit_kwargs={"batch_size": 60})
    (once,), (twice,) = (classifier.fit(X, y, sample_weight=np.full(60, w)).history_["loss"] for w in (1.0, 2.0))
    assert twice == pytest.approx(2.0 * once)


def test_probabilities_are_outputs_or_the_softmax_of_logits():
    X, y = blobs()
    plain = SKLearnClassifier(compiled()).fit(X, y)
    np.testing.assert_array_equal(plain.predict_proba(X), plain.model_.predict(X, verbose=0))
    logits = keras.losses.CategoricalCrossentropy(from_logits=True)
    scores = SKLearnClassifier(compiled(loss=logits, activation=None)).fit(X, y)
    np.testing.assert_allclose(scores.predict_proba(X), tf.nn.softmax(scores.decision_function(X)).numpy(), rtol=1e-6)
    neither = SKLearnClassifier(compiled(loss="mse", activation=None)).fit(X, y)
    with pytest.raises(ValueError, match="the outputs of the model are no probabilities"):
        neither.predict_proba(X)


def test_between_two_classes_the_sign_decides():
    X, y = blobs(classes=2)
    classifier = SKLearnClassifier(compiled(2)).fit(X, y)
    decisions = classifier.decision_function(X)
    assert decisions.shape == (60,)
    np.testing.assert_array_equal(classifier.predict(X), classifier.classes_[(decisions > 0).astype(int)])


def test_predictions_have_the_shape_of_the_targets():
    X, _ = blobs()
    regressor = SKLearnRegressor(network, model_kwargs={"loss": "mse"})
    assert regressor.fit(X, X[:, 0]).predict(X).shape == (60,)
    assert regressor.fit(X, X[:, :1]).predict(X).shape == (60, 1)
    assert regressor.fit(X, X).predict(X).shape == (60, 2)
    assert regressor.score(X, X) < 1.0


def test_images_are_rows_with_more_axes():
    images = np.random.default_rng(0).random((12, 4, 4, 1))
    layers = [keras.Input((4, 4, 1)), keras.layers.Conv2D(2, 3), keras.layers.Flatten(), keras.layers.Dense(2, "softmax")]
    model = keras.Sequential(layers)
    model.compile("sgd", "categorical_crossentropy")
    assert SKLearnClassifier(model).fit(images, [0, 1] * 6).predict(images).shape == (12,)


def test_a_transformer_without_targets_gives_back_its_inputs():
    X, y = blobs()
    steps = SKLearnTransformer(network, model_kwargs={"loss": "mse"})
    assert steps.fit_transform(X).shape == (60, 2)
    assert steps.fit(X, X[:, 0]).transform(X).shape == (60, 1)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), sklearn.base.clone])
def test_a_copy_holds_models_of_its_own(again):
    X, y = blobs()
    classifier = SKLearnClassifier(compiled(), fit_kwargs={"batch_size": 30}).fit(X, y)
    copied = again(classifier)
    assert copied.model is not classifier.model and copied.model.compiled and copied.fit_kwargs == {"batch_size": 30}
    for a, b in zip(copied.model.get_weights(), classifier.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    if hasattr(copied, "model_"):
        np.testing.assert_array_equal(copied.predict_proba(X), classifier.predict_proba(X))
        assert copied.model_.optimizer.iterations.numpy() == classifier.model_.optimizer.iterations.numpy() == 2
    copied.fit(X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_an_estimator_that_was_not_fitted_says_so(estimator):
    for name in {"predict", "predict_proba", "decision_function", "transform"} & {*dir(estimator)}:
        with pytest.raises(sklearn.exceptions.NotFittedError):
            getattr(sklearn.base.clone(estimator), name)(np.ones((3, 2)))


def test_a_model_that_cannot_be_fitted_is_refused():
    X, y = blobs()
    with pytest.raises(RuntimeError, match="Given model needs to be compiled"):
        SKLearnClassifier(keras.Sequential([keras.Input((2,)), keras.layers.Dense(3)])).fit(X, y)
    with pytest.raises(ValueError, match="the model has 1 outputs, the data 3 classes"):
        SKLearnClassifier(compiled(1, activation=None)).fit(X, y)
    with pytest.raises(ValueError, match="Only binary and multiclass"):
        SKLearnClassifier(compiled()).fit(X, X[:, 0])
    x = keras.Input((2,))
    several = keras.Model(x, [keras.layers.Dense(1)(x), keras.layers.Dense(1)(x)])
    several.compile("sgd", ["mse", "mse"])
    with pytest.raises(ValueError, match="different structures"):
        SKLearnTransformer(several).fit(X)
