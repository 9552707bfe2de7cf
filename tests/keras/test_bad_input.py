"""Bad input gets one clear error: what was asked, what was found, what to do. Model and optimizer stay as they were."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError, InvalidArgumentError, NotFiniteError, ShapeError, TapeError

Dense = tf.keras.layers.Dense
X, Y = np.random.default_rng(0).normal(size=(8, 3)).astype("float32"), np.ones((8, 2), "float32")


def made(units=2, loss="mse", **options):
    model = tf.keras.Sequential([tf.keras.Input((3,)), Dense(units, name="head")], name="net")
    model.compile(tf.keras.optimizers.Adam(0.1), loss, **options)
    model.optimizer.build(model.trainable_variables)
    return model


@pytest.fixture
def unharmed():
    """A model, trained for a step, that must be the same after the test."""
    model = made()
    model.train_on_batch(X, Y)
    held = [*model.variables, *model.optimizer.variables]
    before = [variable.numpy() for variable in held]
    yield model
    for variable, value in zip(held, before, strict=True):
        assert np.array_equal(variable.numpy(), value), f"{variable.name} has changed"
    assert np.isfinite(model.train_on_batch(X, Y))


# Shapes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"])
def test_inputs_of_the_wrong_width_name_layer_weight_and_both_shapes(unharmed, call):
    arguments = (np.ones((8, 5)),) if "predict" in call else (np.ones((8, 5)), Y)
    options = {} if "batch" in call else {"verbose": 0}
    message = r"'head' \(net/head\), a Dense, was built for 3 features along axis -1 \(weight 'net/head/kernel' has"
    with pytest.raises(ShapeError, match=message):
        getattr(unharmed, call)(*arguments, **options)


def test_a_single_row_is_told_to_need_the_batch_axis(unharmed):
    with pytest.raises(ShapeError, match=r"found inputs of shape \(3,\). A single row needs the batch axis: shape \(1, 3\)"):
        unharmed(np.ones(3))
    with pytest.raises(
        ShapeError, match=r"expected at least 2 axes and found inputs of shape \(3,\). A single row needs the batch axis"
    ):
        Dense(2)(np.ones(3))
    with pytest.raises(
        ShapeError,
        match=r"expected at least 1 axes and found inputs of shape \(\). A single row needs the batch axis: shape \(1,\)",
    ):
        tf.keras.layers.Flatten()(1.0)


@pytest.mark.parametrize("shape", [(8, 1), (8,), (8, 3), (1, 2), (2,), (8, 2, 1, 1)])
def test_labels_that_would_broadcast_are_refused(unharmed, shape):
    with pytest.raises(
        ShapeError, match=r"mean_squared_error: y_true has shape .* and y_pred \(8, 2\); they must be equal|same number"
    ):
        unharmed.fit(X, np.ones(shape), verbose=0)


def test_one_hot_labels_for_a_sparse_loss_and_the_reverse():
    probabilities = np.full((4, 3), 1 / 3)
    with pytest.raises(
        ShapeError, match=r"y_true has shape \(4, 3\), expected one integer .* For one-hot labels use categorical"
    ):
        tf.keras.losses.SparseCategoricalCrossentropy()(np.eye(4, 3), probabilities)
    with pytest.raises(
        ShapeError, match=r"categorical_crossentropy: y_true has shape \(4,\) and y_pred \(4, 3\).*one-hot encode"
    ):
        tf.keras.losses.CategoricalCrossentropy()(np.zeros(4), probabilities)


def test_probabilities_are_no_integer_labels_but_whole_floats_are():
    loss, p = tf.keras.losses.SparseCategoricalCrossentropy(), np.full((2, 3), 1 / 3)
    with pytest.raises(InvalidArgumentError, match="must hold integer labels, found float64 values such as .*0.25"):
        loss(np.array([0.25, 1.0]), p)
    assert float(loss(np.array([0.0, 1.0]), p)) == float(loss(np.array([0, 1]), p))


@pytest.mark.parametrize("given", [None, "x"])
def test_a_loss_that_gives_no_tensor_is_named(given):
    class Own(tf.keras.losses.Loss):
        def call(self, y_true, y_pred):
            return given

    for loss, name in ((lambda y, p: given, "<lambda>"), (Own(), "own")):
        with pytest.raises(
            TypeError, match=rf"'{name}' \(.*\) gave {given!r}, a tensor is needed. Does it end without `return`"
        ):
            made(loss=loss).fit(X, Y, verbose=0)


def test_a_metric_that_gives_none_is_named():
    with pytest.raises(TypeError, match=r"'lambda' \(MeanMetricWrapper\) gave None, a tensor is needed"):
        made(metrics=[lambda y, p: None]).fit(X, Y, verbose=0)


def test_a_loss_of_integers_that_has_no_twin_names_the_places_of_one_hot_labels():
    for use in (
        tf.keras.losses.CategoricalGeneralizedCrossEntropy(),
        tf.keras.metrics.SparseCategoricalCrossentropy("x", ignore_class=0),
    ):
        with pytest.raises(ShapeError, match=r"For one-hot labels use their places, np.argmax\(y, axis=-1\)"):
            use(np.eye(3), np.full((3, 3), 1 / 3))


def test_a_loss_without_reduction_cannot_train(unharmed):
    model = made(loss=tf.keras.losses.MeanSquaredError(reduction="none"))
    with pytest.raises(ShapeError, match=r"The loss of a batch has shape \(8,\), a scalar is needed to train"):
        model.fit(X, Y, verbose=0)


# Dtypes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.array(["a"] * 8), np.array([object()] * 8), np.array([[1j]] * 8), [["x", "y"]] * 8])
def test_data_that_are_no_numbers_are_refused(unharmed, bad):
    with pytest.raises(DTypeError, match="numbers are needed. Encode them first"):
        unharmed.fit(bad, Y, verbose=0)
    with pytest.raises(DTypeError, match="numbers are needed. Encode them first"):
        unharmed.fit(X, bad, verbose=0)


def test_text_is_no_input_of_a_layer():
    with pytest.raises((DTypeError, ValueError), match="string|str"):
        Dense(2, name="d")(np.array([["a", "b"]]))


def test_ragged_rows_are_refused(unharmed):
    with pytest.raises(ValueError, match="inhomogeneous|non-rectangular|same number"):
        unharmed.fit([[1.0, 2.0, 3.0], [1.0]], Y[:2], verbose=0)


def test_mixed_dtypes_in_a_step_of_one_s_own_are_named():
    layer = Dense(2)
    y = layer(X)
    with pytest.raises(DTypeError, match=r"float32 tensor but is a float64 tensor.*tf.cast\(x, 'float32'\)"):
        _ = y - tf.constant(Y, "float64")


# Rows ------------------------------------------------------------------------------------------------------------------


def test_different_numbers_of_rows_are_named(unharmed):
    for options in ({"y": Y[:5]}, {"y": Y, "sample_weight": np.ones(5)}):
        with pytest.raises(ShapeError, match=r"fit: make sure all arrays contain the same number of samples; found .*\(5,"):
            unharmed.fit(X, **options, verbose=0)


@pytest.mark.parametrize("call", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
def test_data_without_rows_are_refused(unharmed, call):
    options = {} if "batch" in call else {"verbose": 0}
    with pytest.raises(ShapeError, match=r"the data has no rows \(shapes \[\(0, 3\), \(0, 2\)\]\). Check how it was loaded"):
        getattr(unharmed, call)(X[:0], Y[:0], **options)
    with pytest.raises(ShapeError, match="predict: the data has no rows"):
        unharmed.predict(X[:0], verbose=0)
    with pytest.raises(ShapeError, match="fit: the data has no rows"):
        unharmed.fit(X[:0], Y[:0], class_weight={0: 2.0}, verbose=0)


def test_an_empty_batch_is_named_and_what_came_before_it_stays():
    model, expected = made(), made()
    expected.set_weights(model.get_weights())
    with pytest.raises(
        ShapeError, match=r"fit: batch 1 has no rows \(shapes \[\(0, 3\), \(0, 2\)\]\). Leave empty batches out"
    ):
        model.fit(iter([(X, Y), (X[:0], Y[:0])]), verbose=0)
    expected.train_on_batch(X, Y)
    assert all(np.array_equal(a, b) for a, b in zip(model.get_weights(), expected.get_weights(), strict=True))


@pytest.mark.parametrize("split", [1.0, -0.1, 1.5])
def test_a_validation_split_lies_between_0_and_1(unharmed, split):
    with pytest.raises(ValueError, match=f"`validation_split` must be between 0 and 1, received: {split}"):
        unharmed.fit(X, Y, validation_split=split, verbose=0)
    with pytest.raises(ValueError, match="Training data contains 1 samples, which is not sufficient to split it"):
        unharmed.fit(X[:1], Y[:1], validation_split=0.5, verbose=0)


def test_what_belongs_into_batches_cannot_be_given_beside_them(unharmed):
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    for options in ({"y": Y}, {"sample_weight": np.ones(8)}):
        with pytest.raises(
            ValueError, match=f"fit: `{next(iter(options))}` must be None when x is a Dataset; its elements hold it"
        ):
            unharmed.fit(data, **options, verbose=0)
    with pytest.raises(ValueError, match="validation_split needs arrays"):
        unharmed.fit(data, validation_split=0.5, verbose=0)
    with pytest.raises(ValueError, match=r"You cannot `class_weight` and `sample_weight` at the same time"):
        unharmed.fit(X, Y, class_weight={0: 1.0}, sample_weight=np.ones(8), verbose=0)
    with pytest.raises(ValueError, match="class_weight needs labels: give y"):
        unharmed.fit(X, class_weight={0: 1.0}, verbose=0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, found 0"):
        unharmed.fit(X, Y, batch_size=0, verbose=0)
    with pytest.raises(ValueError, match="A batch should be .*found a tuple of 4"):
        unharmed.fit(iter([(X, Y, None, None)]), verbose=0)


# NaN -------------------------------------------------------------------------------------------------------------------


def test_nan_in_the_data_passes_through_silently_without_a_check(recwarn):
    x = X.copy()
    x[0, 0] = np.nan
    model = made()
    history = model.fit(x, Y, batch_size=8, epochs=2, verbose=0).history
    assert np.isnan(history["loss"]).all() and not recwarn.list


def test_a_check_for_nan_stops_training_or_raises(capsys):
    x = X.copy()
    x[4, 0] = np.nan
    model = made()
    stopped = model.fit(x, Y, batch_size=2, epochs=9, shuffle=False, verbose=0, callbacks=[tf.keras.callbacks.TerminateOnNaN()])
    assert stopped.epoch == [0] and int(model.optimizer.iterations) == 2
    assert all(np.isfinite(weight).all() for weight in model.get_weights()), "the step that gave NaN was taken back"
    assert "Batch 2: Invalid loss nan, terminating training. Look for NaN in the data" in capsys.readouterr().out
    with pytest.raises(NotFiniteError, match="Batch 2: Invalid loss nan"):
        made().fit(
            x, Y, batch_size=2, shuffle=False, verbose=0, callbacks=[tf.keras.callbacks.TerminateOnNaN(raise_error=True)]
        )
    fine = made().fit(X, Y, epochs=2, verbose=0, callbacks=[tf.keras.callbacks.TerminateOnNaN(raise_error=True)])
    assert fine.epoch == [0, 1]


# What was forgotten ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fit", "evaluate", "train_on_batch", "test_on_batch"])
def test_a_model_that_is_not_compiled_says_so(call):
    model = tf.keras.Sequential([Dense(2)])
    with pytest.raises(ValueError, match=rf"You must call `compile\(\)` before calling `{call}\(\)`: model.compile\("):
        getattr(model, call)(X, Y)


def test_what_a_model_lacks_is_named(unharmed):
    with pytest.raises(ValueError, match="No loss to compute. Provide a `loss` argument in `compile"):
        made(loss=None).fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="The loss 'mse' compares predictions with labels, but the data holds no y"):
        unharmed.fit(X, verbose=0)
    with pytest.raises(ValueError, match="compiled without an optimizer"):
        model = made()
        model.compile(None, "mse")
        model.fit(X, Y, verbose=0)
    with pytest.raises(NotImplementedError, match=r"Layer Empty does not have a `call\(\)` method implemented"):
        type("Empty", (tf.keras.layers.Layer,), {})()(X)
    with pytest.raises(ValueError, match=r"'s' cannot be called: it has no layers yet. Use model.add\(layer\)"):
        tf.keras.Sequential(name="s")(X)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("optimizer", lambda: made().compile("adan", "mse")),
        ("loss", lambda: made(loss="mean_squared_eror")),
        ("metric", lambda: made(metrics=["acuracy"])),
        ("activation", lambda: Dense(2, activation="rellu")),
        ("initializer", lambda: Dense(2, kernel_initializer="glorot_unifrom")),
        ("regularizer", lambda: Dense(2, kernel_regularizer="l3")),
        ("constraint", lambda: Dense(2, kernel_constraint="max_nrm")),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_ones(kind, make):
    with pytest.raises(ValueError, match=f"Unknown {kind}: '.*'. (Did you mean|There are)"):
        make()


def test_what_is_no_callback_is_refused(unharmed):
    with pytest.raises(TypeError, match="callbacks: expected objects of keras.callbacks.Callback, found <function"):
        unharmed.fit(X, Y, callbacks=[lambda: None], verbose=0)


@pytest.mark.parametrize("units", [0, -1, 1.5, "3", None, True])
def test_units_are_a_positive_int(units):
    with pytest.raises(ValueError, match=f"expected a positive integer. Received: units={units!r}"):
        Dense(units)


def test_options_out_of_range_are_refused():
    layers = tf.keras.layers
    for rate in (-0.1, 1.1, "a"):
        with pytest.raises(ValueError, match=f"`rate`. Expected a float value between 0 and 1. Received: rate={rate!r}"):
            layers.Dropout(rate)
    with pytest.raises(ValueError, match=r"momentum in \[0, 1\] and epsilon > 0, found 2 and 0.001"):
        layers.BatchNormalization(momentum=2)
    with pytest.raises(ValueError, match="the first argument is the shape, found 'w'. Write name='w'"):
        layers.Layer().add_weight("w")
    with pytest.raises(ValueError, match="Invalid value for argument `reduction`"):
        tf.keras.losses.MeanSquaredError(reduction="average")
    with pytest.raises(ValueError, match="regularizer l2: expected a finite number >= 0, found -1"):
        tf.keras.regularizers.L2(-1)


# Optimizers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1, "0.1", None])
def test_a_learning_rate_is_a_float_or_a_schedule(rate):
    with pytest.raises(ValueError, match=f"`learning_rate` should be float, .* learning_rate={rate!r}"):
        tf.keras.optimizers.SGD(rate)


def test_one_way_of_clipping_at_a_time_and_above_zero():
    for options in ({"clipnorm": 1.0, "clipvalue": 1.0}, {"clipnorm": 0.0}, {"global_clipnorm": -1.0}):
        with pytest.raises(ValueError, match="give at most one of clipnorm, clipvalue and global_clipnorm, above 0; found"):
            tf.keras.optimizers.Adam(**options)
    with pytest.raises(ValueError, match="`momentum` must be a float between"):
        tf.keras.optimizers.SGD(momentum=1.5)


def test_gradients_and_variables_that_do_not_fit_change_nothing():
    v, w = tf.Variable([1.0, 2.0], name="v"), tf.Variable([3.0], name="w")
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build([v])
    g = tf.ones([2])
    for pairs, kind, message in (
        ([(tf.ones([3]), v)], ShapeError, r"the gradient of 'v:0' has shape \(3,\), the variable \(2,\)"),
        ([(None, v)], ValueError, "No gradients provided for any variable. Variables: v:0"),
        ([], ValueError, "No gradients provided for any variable. Variables: none"),
        ([(g, v), (tf.ones([1]), w)], ValueError, "Unknown variable: .*'w:0'.* recreate a new optimizer instance"),
        ([(g, v), (g, v)], ValueError, "a variable is given twice among .* Add its gradients"),
    ):
        with pytest.raises(kind, match=message):
            optimizer.apply_gradients(pairs)
    with pytest.raises(ValueError, match="2 gradients for 1 variables; give one for each, None to leave one out"):
        optimizer.apply([g, g], [v])
    with pytest.raises(ValueError, match="can only be configured before the optimizer is built"):
        optimizer.exclude_from_weight_decay([v])
    assert v.numpy().tolist() == [1.0, 2.0] and w.numpy().tolist() == [3.0] and int(optimizer.iterations) == 0


def test_a_missing_gradient_is_warned_about_and_its_variable_left_alone():
    v, w = tf.Variable([1.0], name="v"), tf.Variable([3.0], name="w")
    with pytest.warns(UserWarning, match="Gradients do not exist for variables w:0 when minimizing the loss"):
        tf.keras.optimizers.SGD(1.0).apply([tf.ones([1]), None], [v, w])
    assert v.numpy() == [0.0] and w.numpy() == [3.0]


def test_a_second_gradient_on_a_spent_tape_changes_nothing(unharmed):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((unharmed(X) - Y) ** 2)
    variables = unharmed.trainable_variables
    tape.gradient(loss, variables)
    with pytest.raises(TapeError, match="can only be used to compute one set of gradients .* use GradientTape"):
        unharmed.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def test_weights_with_infinities_get_finite_slots():
    w = tf.Variable([np.inf, 1.0])
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build([w])
    assert all(np.isfinite(slot.numpy()).all() for slot in optimizer.variables)


L = tf.keras.layers
OF_ONE = [
    lambda: L.Dense(3),
    lambda: L.Conv1D(2, 1),
    lambda: L.Embedding(3, 2),
    lambda: L.Dropout(0.5),
    lambda: L.GaussianNoise(0.1),
    lambda: L.LayerNormalization(),
    lambda: L.BatchNormalization(),
    lambda: L.PReLU(),
    lambda: L.Softmax(),
    lambda: L.Rescaling(2.0),
    lambda: L.Activation("relu"),
]


@pytest.mark.parametrize("make", OF_ONE)
def test_two_inputs_for_one_are_told_before_and_after_building(make):
    layer, x = make(), np.ones((2, 4, 3), "float32")
    rows = tf.keras.Input((4, 3))
    for _ in range(2):
        for two in ([x, x], (tf.constant(x), x), {"a": x, "b": x}, [rows, rows]):
            with pytest.raises(ValueError, match=r"takes one tensor, and was given a \w+ of 2 with the shapes .*Concatenate"):
                layer(two)
        layer(x, training=True)
    assert np.array_equal(layer([x], training=False), layer(x, training=False))


def test_a_size_of_an_input_is_not_negative():
    for given in ({"shape": (-1, 3)}, {"batch_shape": (-2, 3)}):
        with pytest.raises(ValueError, match="Input: no size may be negative, found .* None stands for any size"):
            tf.keras.Input(**given)


def test_two_inputs_for_one_are_told_by_models(unharmed):
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    rows = tf.keras.Input((3,), name="rows")
    functional = tf.keras.Model(rows, L.Dense(1)(rows))
    chain = tf.keras.Sequential([tf.keras.Input((3,)), L.Dense(1)])
    for model in (functional, chain):
        model.compile("sgd", "mse")
        for use in (model, model.predict, lambda given, model=model: model.fit(given, y, verbose=0)):
            with pytest.raises(ValueError, match="Join them first|doesn't match the expected structure"):
                use([x, x])
    assert np.array_equal(functional([[x]]), functional(x))


def test_a_misspelt_argument_is_told_the_name_that_was_meant():
    with pytest.raises(ValueError, match=r"passed to Dense: \{'actvation': 'relu'\}\. Did you mean activation\?"):
        Dense(2, actvation="relu")
    with pytest.raises(ValueError, match=r"passed to SGD: \{'clipnrm': 1\.0\}\. Did you mean clipnorm\?"):
        tf.keras.optimizers.SGD(clipnrm=1.0)
    with pytest.raises(ValueError, match=r"passed to Adam: \{'lr': 0\.1\}\. help\(Adam\) says what it takes\."):
        tf.keras.optimizers.Adam(lr=0.1)


def test_rows_in_a_list_and_missing_labels_are_told_what_to_give(unharmed):
    with pytest.raises(ShapeError, match=r"of rows, np\.array\(rows\) makes one array\."):
        unharmed.fit(list(X), list(Y), verbose=0)
    with pytest.raises(ValueError, match=r"the data holds no y\. Give labels beside x, .* validation_data too: \(x, y\)\."):
        unharmed.evaluate(X, verbose=0)
