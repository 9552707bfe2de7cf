"""Classes without `get_config` are saved by what they were made with; those with one of their own add to what there is."""

import pytest

import minikeras as tf

layers = tf.keras.layers


class Plain(layers.Layer):
    """Keeps none of its arguments under their names."""

    def __init__(self, units, sizes=(1, 2), options=None, *, flag=True, **more):
        self_units = units * 2
        super().__init__(**{key: value for key, value in more.items() if key != "extra"})
        self.units, self.more = self_units, more.get("extra")

    def call(self, x):
        return x * self.units


class Closed(layers.Layer):
    def __init__(self, units):
        super().__init__(trainable=True)
        self._width = units

    def call(self, x):
        return x


class Wrapping(layers.Layer):
    def __init__(self, inner, **options):
        super().__init__(**options)
        self.inner = inner

    def call(self, x):
        return self.inner(x)


class Positional(layers.Layer):
    def __init__(self, *sizes):
        super().__init__()

    def call(self, x):
        return x


class WithGraph(tf.keras.Model):
    def __init__(self, units, act=None, **options):
        x = tf.keras.Input((3,))
        super().__init__(x, layers.Dense(units)(x), **options)
        self.units = units

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class Line(tf.keras.Operation):
    def __init__(self, slope, *, shift=1.0, name=None):
        super().__init__(name=name)
        self.slope = slope

    def call(self, x):
        return self.slope * x


class Unnamed(tf.keras.Operation):
    def __init__(self, slope, *others):
        super().__init__()

    def call(self, x):
        return x


KNOWN = {kind.__name__: kind for kind in (Plain, Closed, Wrapping, Positional, WithGraph)}


def again(model, tmp_path):
    model.save(tmp_path / "m.keras")
    return tf.keras.models.load_model(tmp_path / "m.keras", custom_objects=KNOWN)


def test_plain_arguments_are_recorded_as_they_were_given(tmp_path):
    given = {"a": [1, {"b": None}]}
    layer = Plain(3, options=given, extra="e", name="own", trainable=False)
    given["a"].append("later")
    config = layer.get_config()
    assert {key: config[key] for key in ("units", "sizes", "options", "flag", "extra", "name", "trainable")} == {
        **{"units": 3, "sizes": (1, 2), "options": {"a": [1, {"b": None}]}, "flag": True, "extra": "e"},
        **{"name": "own", "trainable": False},
    }
    loaded = again(tf.keras.Sequential([layers.Input((2,)), layer]), tmp_path).layers[0]
    assert (loaded.units, loaded.more, loaded.name, loaded.trainable) == (6, "e", "own", False)


def test_a_constructor_that_takes_no_name_gets_none(tmp_path):
    layer = Closed(4)
    layer.trainable = False
    loaded = again(tf.keras.Sequential([layers.Input((2,)), layer]), tmp_path).layers[0]
    assert loaded._width == 4 and not loaded.trainable


def test_an_object_that_is_kept_in_an_attribute_of_its_name_comes_back(tmp_path):
    model = tf.keras.Sequential([layers.Input((2,)), Wrapping(layers.Dense(3, name="within"))])
    loaded = again(model, tmp_path)
    assert loaded.layers[0].inner.name == "within"
    for mine, its in zip(model.get_weights(), loaded.get_weights(), strict=True):
        assert (mine == its).all()


def test_what_cannot_be_written_down_is_refused_when_it_is_saved():
    with pytest.raises(NotImplementedError, match="Object Positional was created by passing positional only or variadic"):
        Positional(1, 2).get_config()
    assert Positional().get_config()["name"].startswith("positional")
    with pytest.raises(NotImplementedError, match="Object Closed was created by passing non-serializable argument values"):
        Closed(object()).get_config()


@pytest.mark.parametrize("act", [None, object()])
def test_a_functional_subclass_adds_arguments_to_the_configuration_of_its_base(tmp_path, act):
    model = WithGraph(4, act, name="graph")
    loaded = again(model, tmp_path)
    assert type(loaded) is WithGraph and loaded.name == "graph" and loaded.output_shape == (None, 4)
    assert all((a == b).all() for a, b in zip(model.get_weights(), loaded.get_weights(), strict=True))


def test_an_operation_describes_itself_by_what_it_was_made_with():
    made = Line(0.5, name="line")
    assert made.get_config() == {"name": "line", "slope": 0.5, "shift": 1.0}
    again = Line.from_config(made.get_config())
    assert (again.get_config(), again.slope) == (made.get_config(), 0.5)
    assert isinstance(Unnamed.from_config(Unnamed(2).get_config()), Unnamed)
    with pytest.raises(NotImplementedError, match="positional"):
        Unnamed(2, 3).get_config()
    with pytest.raises(ValueError, match="Line: name must be a string without '/', found 'a/b'"):
        Line(1, name="a/b")


def test_a_model_with_an_operation_of_ones_own_is_loaded(tmp_path):
    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, Line(3.0)(x))
    model.save(tmp_path / "m.keras")
    loaded = tf.keras.models.load_model(tmp_path / "m.keras", custom_objects={"Line": Line})
    assert loaded(tf.ones((1, 2))).numpy().tolist() == [[3.0, 3.0]]
