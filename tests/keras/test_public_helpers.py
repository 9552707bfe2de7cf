"""Names at the top of keras and in its utils that are small: scopes, functions between symbols, questions about them."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.keras.callbacks import progress_bar

keras, L = tf.keras, tf.keras.layers


def test_a_scope_is_part_of_the_paths_of_what_is_made_in_it():
    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.first, self.second = L.Dense(2, name="first"), L.Dense(2, name="second")

        def build(self, input_shape):
            with keras.name_scope("a"), keras.name_scope("b"):
                self.factor = self.add_weight((), name="factor")
                self.first.build(input_shape)
            self.second.build(input_shape)

        def call(self, x):
            return self.second(self.first(x)) * self.factor

    net = Net()
    net(np.ones((1, 2)))
    assert {weight.path for weight in net.weights} == {
        *("net/a/b/factor", "net/a/b/first/kernel", "net/a/b/first/bias", "net/second/kernel", "net/second/bias")
    }
    with keras.name_scope("top"):
        dense = L.Dense(1, name="alone")
        dense.build((None, 2))
    assert dense.kernel.path == "top/alone/kernel"
    with pytest.raises(ValueError, match="name must be a string without '/', found 'a/b'"):
        keras.name_scope("a/b")


def test_a_function_between_symbols_is_called_with_values_and_symbols():
    first, second = keras.Input((3,)), keras.Input((3,))
    dense = L.Dense(2)
    function = keras.Function({"a": first, "b": second}, [dense(first + second), first])
    x, y = np.ones((4, 3), "float32"), np.full((4, 3), 2.0, "float32")
    found = function({"a": x, "b": y})
    assert isinstance(found, list)
    np.testing.assert_array_equal(found[0].numpy(), dense(x + y).numpy())
    again = function({"a": keras.Input((3,)), "b": keras.Input((3,))})
    assert [one.shape for one in again] == [(None, 2), (None, 3)]
    assert [len(function.inputs), len(function.outputs)] == [2, 2] and dense in function.operations
    assert isinstance(keras.Function([first], [2.0 * first])([x]), list)
    with pytest.raises(ValueError, match="Graph disconnected"):
        keras.Function(first, first + second)
    with pytest.raises(ValueError, match="`inputs` cannot be empty"):
        keras.Function([], first)


def test_the_sources_of_a_symbol_are_its_inputs_in_order():
    first, second = keras.Input((3,)), keras.Input((3,))
    y = L.Dense(3)(first)
    assert keras.utils.get_source_inputs(L.Add()([second, y, first])) == [second, first]
    assert keras.utils.get_source_inputs(first) == [first]


def test_layers_are_written_and_read_by_configuration():
    layer = L.MultiHeadAttention(2, 3, name="attention")
    assert L.deserialize(L.serialize(layer)).get_config() == layer.get_config()
    with pytest.raises(ValueError, match="is no configuration of a layer"):
        L.deserialize(keras.optimizers.serialize(keras.optimizers.SGD()))


def test_bars_are_switched_off_and_on(monkeypatch):
    monkeypatch.setattr(progress_bar, "in_notebook", lambda: True)
    keras.utils.disable_interactive_logging()
    off = progress_bar.ProgressBar()._live
    keras.utils.enable_interactive_logging()
    assert (off, progress_bar.ProgressBar()._live, keras.utils.is_interactive_logging_enabled()) == (False, True, True)


@pytest.mark.parametrize("name", ["Initializer", "InputSpec", "Regularizer", "DTypePolicy", "KerasTensor", "Operation"])
def test_base_classes_are_at_the_top(name):
    assert isinstance(getattr(keras, name), type)


@pytest.mark.parametrize(
    ("given", "name"), [(None, "float32"), (float, "float32"), ("int8", "int8"), (np.float64, "float64"), (tf.bool, "bool")]
)
def test_a_dtype_has_one_name(given, name):
    assert keras.utils.standardize_dtype(given) == name
