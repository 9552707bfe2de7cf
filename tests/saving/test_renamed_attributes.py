"""An attribute that was renamed keeps its old name as a property, so that weights that were saved before still load."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import ShapeError

layers = tf.keras.layers


class Block(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.dense = layers.Dense(3)

    def call(self, x):
        return self.dense(x)


class NewBlock(layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.projection = layers.Dense(3)

    @property
    def dense(self):
        return self.projection

    def call(self, x):
        return self.projection(x)


class Old(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.block = layers.Dense(2), Block()

    def call(self, x):
        return self.block(self.first(x))


class New(tf.keras.Model):
    """Both the block and what is in it have other names."""

    def __init__(self):
        super().__init__()
        self.a_block, self.z_first = NewBlock(), layers.Dense(2)

    first = property(lambda self: self.z_first)
    block = property(lambda self: self.a_block)

    def call(self, x):
        return self.block(self.first(x))


class Lost(New):
    block = property(lambda self: self.missing)


X = np.linspace(-1.0, 1.0, 8, dtype="float32").reshape(2, 4)


@pytest.mark.parametrize("kind", [Old, New])
def test_weights_are_found_under_their_old_names(tmp_path, kind):
    old, new = Old(), kind()
    expected = old(X)
    new(X)
    old.save_weights(tmp_path / "old.weights.h5")
    new.load_weights(tmp_path / "old.weights.h5")
    np.testing.assert_array_equal(new(X), expected)


def test_what_has_its_own_name_in_the_file_is_taken_from_there(tmp_path):
    new, again = New(), New()
    expected = new(X)
    again(X)
    new.save_weights(tmp_path / "new.weights.h5")
    again.load_weights(tmp_path / "new.weights.h5")
    np.testing.assert_array_equal(again(X), expected)


def test_a_property_that_leads_nowhere_is_no_name(tmp_path):
    old, lost = Old(), Lost()
    old(X)
    lost.z_first.build((None, 4)), lost.a_block.projection.build((None, 2))
    lost.built = True
    old.save_weights(tmp_path / "old.weights.h5")
    before = lost.get_weights()
    with pytest.raises(ShapeError, match="not in the file"):
        lost.load_weights(tmp_path / "old.weights.h5")
    for one, other in zip(lost.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
