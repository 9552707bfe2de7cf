"""Data frames, scikit-learn's arrays, PyTorch's and JAX's go straight into `fit`, `evaluate` and `predict`."""

import numpy as np
import pytest

import minikeras as tf

keras = tf.keras
X = np.random.default_rng(0).random((24, 3)).astype("float32")
Y = (X @ [[1.0], [2.0], [3.0]]).astype("float32")


def trained(x, y, x_test, weight=None):
    """Losses of two epochs and predictions of a model that is the same each time."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile("sgd", "mse")
    history = model.fit(x, y, sample_weight=weight, epochs=2, shuffle=False, verbose=0, validation_data=(x, y))
    return [*history.history["loss"], *history.history["val_loss"], *model.predict(x_test, verbose=0).ravel()]


def test_a_frame_and_a_column_are_what_their_arrays_are():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    weight = pandas.Series(np.linspace(0.5, 1.5, 24))
    expected = trained(X, Y, X, weight.to_numpy())
    for y in (pandas.Series(Y[:, 0]), pandas.DataFrame({"target": Y[:, 0]})):
        np.testing.assert_array_equal(trained(frame, y, frame, weight), expected)


def test_columns_of_a_frame_are_the_inputs_of_those_names():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.arange(24) % 4, "price": Y[:, 0]})
    size, kind = keras.Input((1,), name="size"), keras.Input((1,), dtype="int32", name="kind")
    seen = keras.layers.Concatenate()([size, keras.layers.Flatten()(keras.layers.Embedding(4, 2)(kind))])
    model = keras.Model([size, kind], keras.layers.Dense(1)(seen))
    model.compile("sgd", "mse")
    columns = {"size": frame["size"], "kind": frame["kind"]}
    model.fit(columns, frame["price"], verbose=0)
    np.testing.assert_array_equal(
        model.predict(columns, verbose=0), model.predict([frame["size"].to_numpy(), frame["kind"].to_numpy()], verbose=0)
    )


def test_a_column_of_a_frame_has_an_axis_of_one_feature():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"size": X[:, 0], "kind": np.arange(24) % 2})
    shapes = []

    class Seen(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, "sigmoid", kernel_initializer="ones")

        def call(self, x):
            columns = [x[name] for name in sorted(x)]
            shapes.extend(column.shape for column in columns)
            return self.dense(keras.ops.concatenate(columns, axis=1))

    model = Seen()
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"], run_eagerly=True)
    arrays = {name: frame[name].to_numpy()[:, None] for name in frame}
    for options in ({}, {"sample_weight": frame["size"] ** 2}):
        found = model.evaluate(dict(frame), frame["kind"], verbose=0, **options)
        assert found == model.evaluate(arrays, arrays["kind"], verbose=0, **options)
    model.compile(keras.optimizers.SGD(0.0), "binary_crossentropy", run_eagerly=True)
    losses = [model.train_on_batch(x, x["kind"], class_weight={0: 1.0, 1: 3.0}) for x in (dict(frame), arrays)]
    assert losses[0] == losses[1] and set(shapes) == {(24, 1)}


def test_a_split_and_scaled_data_set_of_scikit_learn_trains():
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    x, y = datasets.load_iris(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(x), y, random_state=0)
    draw = keras.initializers.GlorotUniform(seed=0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax", kernel_initializer=draw)])
    model.compile(keras.optimizers.Adam(0.1), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x_train, y_train, epochs=20, verbose=0)
    assert model.evaluate(x_test, y_test, verbose=0)[1] > 0.85


@pytest.mark.parametrize("name", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_arrays_of_other_frameworks_are_what_numpys_are(name):
    state = np.random.get_state()
    module = pytest.importorskip({"jax": "jax.numpy"}.get(name, name), reason=f"{name} is not installed")
    give = module.tensor if name == "torch" else module.asarray
    x, y = give(X), give(Y)
    np.random.set_state(state)  # before its first array JAX draws random numbers from NumPy
    np.testing.assert_array_equal(trained(x, y, x), trained(X, Y, X))
