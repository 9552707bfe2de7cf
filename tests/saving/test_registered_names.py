"""What `registered_name` says in a configuration: the name that a class or function was registered with, and nothing else."""

import pytest

import minikeras as tf
from minikeras.errors import UnknownObjectError

saving = tf.keras.saving


def function(name, registered_name, **more):
    return {"class_name": "function", "module": "builtins", "config": name, "registered_name": registered_name, **more}


@pytest.mark.parametrize("registered_name", [None, "", "Dense"])
def test_a_layer_of_the_package_may_go_without_it_or_say_its_own_name(registered_name):
    config = {"class_name": "Dense", "module": "keras.layers", "registered_name": registered_name, "config": {"units": 1}}
    assert isinstance(saving.deserialize_keras_object(config), tf.keras.layers.Dense)


@pytest.mark.parametrize("registered_name", [None, "", "function", "relu"])
def test_so_may_a_function_of_the_package(registered_name):
    assert saving.deserialize_keras_object(function("relu", registered_name)) is tf.keras.activations.relu


@pytest.mark.parametrize("registered_name", ["builtins.eval", "other", "shop>relu"])
def test_another_name_than_its_own_is_refused(registered_name):
    with pytest.raises(UnknownObjectError, match="Could not locate function 'relu' of module 'builtins'"):
        saving.deserialize_keras_object(function("relu", registered_name))
    config = {"class_name": "Dense", "module": "keras.layers", "registered_name": registered_name, "config": {"units": 1}}
    with pytest.raises(UnknownObjectError, match="Could not locate class 'Dense' of module 'keras.layers'"):
        saving.deserialize_keras_object(config)


def test_a_function_that_keras_wrote_without_its_package_is_found_if_it_is_the_only_one():
    @saving.register_keras_serializable("first_shop")
    def doubled_here(x):
        return 2 * x

    try:
        for name, registered in [("doubled_here", "function"), ("first_shop>doubled_here", "function"), ("doubled_here", None)]:
            assert saving.deserialize_keras_object(function(name, registered)) is doubled_here
        assert saving.deserialize_keras_object(function("doubled_here", "first_shop>doubled_here")) is doubled_here
        with pytest.raises(UnknownObjectError, match="'doubled_here'"):
            saving.deserialize_keras_object(function("doubled_here", "second_shop>doubled_here"))
        saving.register_keras_serializable("second_shop", "doubled_here")(lambda x: x)
        with pytest.raises(UnknownObjectError, match="Did you mean"):
            saving.deserialize_keras_object(function("doubled_here", "function"))
    finally:
        for shop in ("first_shop", "second_shop"):
            saving.get_custom_objects().pop(f"{shop}>doubled_here", None)
