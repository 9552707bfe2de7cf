"""Arguments of wrong kinds: the error names the call and the argument, and no error of Python's comes from deep inside."""

import inspect
import opcode

import numpy as np
import pytest
from in_one_test import in_one_test

import minikeras as tf
from minikeras.boundary import explaining, shown

keras, L, optimizers = tf.keras, tf.keras.layers, tf.keras.optimizers
X, Y = np.ones((4, 3), "float32"), np.ones((4, 2), "float32")
JUNK = [None, "abc", [], {"a": 1}, object(), np.ones((2, 2)), np.array(["a"]), L.Dense, -1.5]
NEEDED = {
    **{"units": 2, "filters": 2, "kernel_size": 2, "input_dim": 3, "output_dim": 2, "activation": "relu", "rate": 0.2},
    **{
        "cell": L.LSTMCell(2),
        "cells": [L.LSTMCell(2)],
        "stddev": 0.1,
        "dims": (1,),
        "n": 2,
        "scale": 2.0,
        "target_shape": (3,),
        "axes": 1,
        "shape": (3,),
        "function": abs,
    },
    **{"num_classes": 2, "target_class_ids": [0], "normalizer": [1.0], "recall": 0.5, "precision": 0.5, "specificity": 0.5},
    **{"sensitivity": 0.5, "fn": lambda a, b: a, "inner_optimizer": optimizers.SGD(), "rules": {"*": "sgd"}, "steps": 2},
    **{
        "optimizer": "sgd",
        "outputs": abs,
        "loss_of_outputs": abs,
        "initial_learning_rate": 0.1,
        "decay_steps": 2,
        "output_size": 2,
        "num_bins": 3,
    },
    **{"decay_rate": 0.5, "first_decay_steps": 2, "boundaries": [1], "values": [1.0, 2.0], "filename": "a.csv"},
    **{"filepath": "m.keras", "backup_dir": "b", "schedule": abs, "log_dir": "l"},
    **{"default_optimizer": optimizers.SGD(), "optimizer_map": optimizers.OptimizerMap(optimizers.SGD())},
    **{"equation": "ab,bc->ac", "output_shape": 2, "num_heads": 2, "key_dim": 2, "head_dim": 2, "num_query_heads": 2},
    **{"factor": 0.2, "height_factor": 0.2, "width_factor": 0.2},
    **{"height": 2, "width": 2, "num_key_value_heads": 1, "layer": L.Dense(2), "layers": [L.Dense(2)]},
}
"""Arguments without defaults, by their names."""
ALSO_NEEDED: dict[str, dict] = {
    "Bidirectional": {"layer": L.LSTM(2)},
    "CategoryEncoding": {"num_tokens": 4},
    "Discretization": {"num_bins": 3},
    "InputLayer": {"shape": (3,)},
}
"""By the name of a class, arguments of which it needs one of several."""


def classes():
    tables = (L, keras.losses, keras.metrics, optimizers, optimizers.schedules, keras.callbacks, keras.initializers)
    for table in (*tables, keras.regularizers, keras.constraints):
        for name in table.__all__:
            kind = getattr(table, name)
            if not inspect.isclass(kind) or kind.__init__ is object.__init__:
                continue
            if name not in ("InputSpec", "Lambda", "CallbackList", "OptunaPruning"):  # the last one needs another library
                yield pytest.param(kind, id=f"{table.__name__.rpartition('.')[2]}.{name}")


def innermost(error):
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def assert_somebody_raised(error, said):
    """The error comes from a `raise`, and not from an operation that failed."""
    trace = innermost(error)
    instruction = opcode.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
    assert instruction == "RAISE_VARARGS", f"{said}: {type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", list(classes()))
def test_a_constructor_explains_whatever_it_cannot_use(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters = inspect.signature(kind).parameters.values()
    plain = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    needed = {one.name: NEEDED[one.name] for one in plain if one.default is one.empty}
    needed |= ALSO_NEEDED.get(kind.__name__, {})
    kind(**needed)
    for one in plain:
        for junk in JUNK:
            try:
                kind(**{**needed, one.name: junk})
            except Exception as error:
                assert_somebody_raised(error, f"{one.name}={junk!r}")


@in_one_test(name=[name for name in L.__all__ if inspect.isclass(getattr(L, name))])
def test_a_layer_explains_inputs_that_it_cannot_use(name):
    kind = getattr(L, name)
    if name in ("Layer", "InputSpec", "Lambda"):
        pytest.skip("no layer to be called")
    needed = {
        one.name: NEEDED[one.name]
        for one in inspect.signature(kind).parameters.values()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    }
    for inputs in (None, "abc", {}, {"a": X}, [X, X], 3.0, object(), np.ones(()), np.ones((2,) * 6), np.array([["a"]])):
        try:
            kind(**needed)(inputs)
        except Exception as error:
            assert_somebody_raised(error, shown(inputs))


def compiled():
    model = keras.Sequential([keras.Input((3,)), L.Dense(2)])
    model.compile("sgd", "mse")
    return model


MISTAKES = {
    "a word for a number": (lambda: optimizers.SGD(momentum="abc"), "SGD: momentum should be float, found 'abc'"),
    "an array for a number": (
        lambda: optimizers.Adam(beta_1=X),
        r"Adam: beta_1 should be float, found ndarray of shape \(4, 3\)",
    ),
    "nothing for a name": (lambda: keras.metrics.AUC(curve=None), "AUC: curve should be str, found None"),
    "a class for an object": (
        lambda: L.Dense(2, activation=L.Dense),
        r"Dense: cannot work with .*activation=Dense \(TypeError: Dense.__init__\(\) missing",
    ),
    "a number for a shape": (lambda: L.Reshape(3.5), "Reshape: cannot work with target_shape=3.5"),
    "no dtype": (lambda: L.Dense(2, dtype={"a": 1}), "Cannot convert {'a': 1} to a DTypePolicy"),
    "an unknown dtype": (lambda: tf.cast([1.0], "floot"), "'floot' is no dtype; there are float16, float32"),
    "no progress bar": (lambda: compiled().fit(X, Y, verbose="loud"), "fit: cannot work with .*verbose='loud'"),
    "no share": (lambda: compiled().fit(X, Y, validation_split="a"), "fit: validation_split should be float, found 'a'"),
    "no file": (lambda: compiled().save(None), "save_model: filepath should be .*PathLike.*, found None"),
    "no weights file": (lambda: compiled().load_weights(3), "load_weights: filepath should be .*, found 3"),
    "no saved model": (lambda: keras.models.load_model(None), "load_model: .*None"),
    "no list of weights": (lambda: compiled().set_weights(None), "set_weights: weights should be list.*, found None"),
    "no layers": (lambda: keras.Sequential(3), "Sequential: layers should be .*Sequence.*, found 3"),
    "a word for a position": (lambda: compiled().get_layer(index="a"), "get_layer: index should be int .*, found 'a'"),
    "a class for a model": (lambda: keras.models.clone_model(None), "clone_model: .*None"),
    "labels that are words": (lambda: keras.utils.to_categorical(["cat"]), r"to_categorical: cannot work with x=list of 'cat'"),
    "no function": (lambda: tf.function(3), "function: expected a function, found 3"),
    "a size for a function": (lambda: tf.data.Dataset.range(3).map(4), "Dataset.map: expected a function, found 4"),
    "no predicate": (lambda: tf.data.Dataset.range(3).filter(None), "Dataset.filter: expected a function, found None"),
    "an iterator for a generator": (
        lambda: tf.data.Dataset.from_generator(iter([1])),
        "from_generator: expected a function, found",
    ),
    "an array for a Dataset": (lambda: tf.data.Dataset.range(3).concatenate(X), "concatenate: expected Datasets, found array"),
    "arrays to zip": (
        lambda: tf.data.Dataset.zip((X, Y)),
        r"(?s)Dataset.zip: expected Datasets, .* Dataset.from_tensor_slices makes one",
    ),
    "a word for a count": (lambda: tf.data.Dataset.range(3).take("a"), "take: count must be an int, found 'a'"),
    "no size of a buffer": (
        lambda: tf.data.Dataset.range(3).shuffle(None),
        "shuffle: buffer_size must be an int of at least 1",
    ),
    "no variables": (lambda: optimizers.Adam().build(None), "build: expected a list of Variables, found None"),
    "tensors for variables": (
        lambda: optimizers.Adam().build([tf.ones([2])]),
        "build: expected Variables, such as .*, found <tf.Tensor",
    ),
    "a rule without a gradient": (
        lambda: tf.custom_gradient(lambda x: x)(tf.ones([2])),
        "must return its result and a function of",
    ),
    "a rule that is a number": (
        lambda: tf.custom_gradient(lambda x: (x, 2.0))(1.0),
        "must return its result and a function of",
    ),
    "no function to recompute": (lambda: tf.recompute_grad(None), "recompute_grad: expected a function, found None"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_argument_is_named_with_the_call(mistake):
    question, message = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        question()
    assert_somebody_raised(caught.value, mistake)


def test_what_python_said_is_kept_as_the_cause():
    with pytest.raises(TypeError, match=r"\(TypeError: '<=' not supported") as caught:
        optimizers.SGD(momentum="abc")
    assert "not supported" in str(caught.value.__cause__)


def test_a_failure_that_is_a_value_error_stays_one():
    with pytest.raises(ValueError, match="invalid literal for int"):
        L.Reshape("abc")


def test_errors_of_foreign_code_pass_as_they_are():
    class Broken(L.Layer):
        def call(self, x):
            return x.colour

    with pytest.raises(AttributeError, match="colour") as caught:
        Broken()(X)
    assert innermost(caught.value).tb_frame.f_code.co_name == "call"
    with pytest.raises(ZeroDivisionError):
        list(tf.data.Dataset.range(3).map(lambda x: 1 / 0))

    def scheduled(epoch):
        return {}["rate"]

    with pytest.raises(KeyError, match="rate"):
        compiled().fit(X, Y, callbacks=[keras.callbacks.LearningRateScheduler(scheduled)], verbose=0)


@pytest.mark.parametrize(
    ("kind", "option"),
    [(L.Dense, "units"), (optimizers.Adam, "beta_1"), (keras.losses.Huber, "delta"), (keras.callbacks.TensorBoard, "log_dir")],
)
def test_a_property_in_the_way_of_an_option_is_named_by_python(kind, option):
    """It is no argument that does not fit."""
    made = type("Fixed", (kind,), {option: property(lambda self: 1)})
    with pytest.raises(AttributeError, match=f"property '{option}' of 'Fixed' object has no setter"):
        made(*([3] if kind is L.Dense else []))


def test_missing_and_unknown_arguments_are_named_by_python():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'units'"):
        L.Dense()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        keras.callbacks.CSVLogger("a.csv", colour="red")


def test_an_explained_function_is_the_function():
    @explaining
    def halves(count: int) -> list[float]:
        """Halves."""
        return [0.5] * count

    assert halves(2) == [0.5, 0.5] and halves.__doc__ == "Halves." and halves.__name__ == "halves"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "'a'"),
        (L.Dense, "Dense"),
        (X, "ndarray of shape (4, 3)"),
        ([X, None], "list of ndarray of shape (4, 3), None"),
        ({"a": X}, "{'a': ndarray of shape (4, 3)}"),
        ([], "[]"),
    ],
)
def test_values_are_shown_in_short(value, text):
    assert shown(value) == text
