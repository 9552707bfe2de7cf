"""Layers from construction to freezing: the order of a call, what is built when, what is found where, and under which name."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import minikeras as tf
from minikeras.keras.layers import layer_weights
from minikeras.keras.layers.layer import _context

Dense, Layer = tf.keras.layers.Dense, tf.keras.layers.Layer


class Scale(Layer):
    """One weight, made when the input's shape is known; notes what happens to it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.log = []

    def build(self, input_shape):
        self.log.append(("build", tuple(input_shape), _context.caller is self))
        self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="factor")

    def call(self, x, training=None):
        self.log.append(("call", type(x).__name__, x.dtype.name, training))
        return x * self.factor


class Net(tf.keras.Model):
    """Sublayers as attributes, in a list and in a dict."""

    def __init__(self, name="net"):
        super().__init__(name=name)
        self.a = Dense(3, name="a")
        self.blocks = [Dense(4, name="b"), tf.keras.layers.BatchNormalization(name="c")]
        self.heads = {"d": Dense(1, name="d")}

    def call(self, x):
        x = self.a(x)
        for block in self.blocks:
            x = block(x)
        return self.heads["d"](x)


# Calling ---------------------------------------------------------------------------------------------------------------


def test_a_call_converts_then_builds_once_then_computes():
    layer = Scale()
    for _ in range(2):
        layer(np.ones((2, 3)))
    assert layer.log == [
        ("build", (2, 3), True),
        ("call", "EagerTensor", "float32", None),
        ("call", "EagerTensor", "float32", None),
    ]
    assert layer.built and layer._build_shape == (2, 3)


@pytest.mark.host
@pytest.mark.parametrize("x", [[[1, 2]], [[1.0, 2.0]], np.ones((1, 2)), np.ones((1, 2), "float16"), tf.Variable([[1.0, 2.0]])])
def test_anything_with_numbers_is_an_input(x):
    assert Dense(3)(x).shape == (1, 3) == Dense(3)(inputs=tf.constant(x)).shape


def test_floats_come_in_the_dtype_of_the_layer_and_integers_as_they_are():
    layer = Scale(dtype="float64")
    assert layer([[1.0]]).dtype == tf.float64
    assert [entry[2] for entry in layer.log[1:]] == ["float64"]
    wide = Scale(autocast=False, dtype="float64")
    with pytest.raises(TypeError, match="float32"):
        wide(tf.constant([[1.0]], "float32"))
    assert tf.keras.layers.Flatten()(np.ones((2, 2), "int32")).dtype == tf.int32


def test_build_called_by_hand_builds_once_and_for_good():
    layer = Scale()
    layer.build((None, 3))
    assert layer.built and len(layer.weights) == 1
    layer(np.ones((2, 3)))
    assert len(layer.weights) == 1 and [entry[0] for entry in layer.log] == ["build", "call"]


def test_a_subclass_may_extend_build_with_super():
    class Affine(Scale):
        def build(self, input_shape):
            super().build(input_shape)
            self.shift = self.add_weight(shape=(input_shape[-1],), initializer="zeros", name="shift")

    layer = Affine(name="affine")
    layer(np.ones((2, 3)))
    assert [weight.path for weight in layer.weights] == ["affine/factor", "affine/shift"]


def test_a_layer_that_fails_to_build_is_as_it_was():
    class Fragile(Scale):
        def build(self, input_shape):
            super().build(input_shape)
            if input_shape[-1] == 2:
                raise ValueError("two is too few")

    layer = Fragile(name="fragile")
    with pytest.raises(ValueError, match="two is too few"):
        layer(np.ones((1, 2)))
    assert not layer.built and layer.weights == [] and _context.caller is None
    assert layer(np.ones((1, 3))).shape == (1, 3)
    assert [weight.path for weight in layer.weights] == ["fragile/factor"]


@pytest.mark.parametrize("extra", [True, "yes"])
def test_only_tensors_come_by_position(extra):
    with pytest.raises(ValueError, match=rf"'scale'\); {extra!r} should be passed as a keyword argument"):
        Scale(name="scale")(np.ones((1, 2)), extra)


def test_unknown_options_are_refused_by_name():
    with pytest.raises(ValueError, match=r"Unrecognized keyword arguments passed to Dense: \{'foo': 1\}"):
        Dense(2, foo=1)


# Training propagates ---------------------------------------------------------------------------------------------------


class Notes(Layer):
    """Keeps the value of `training` that each call gets."""

    def __init__(self, **options):
        super().__init__(**options)
        self.seen = []

    def call(self, x, training=None):
        self.seen.append(training)
        return x


def test_training_is_what_the_call_says_else_what_the_outer_call_says_else_the_default():
    class Plain(Layer):
        def __init__(self):
            super().__init__()
            self.inner, self.told = Notes(), Notes()

        def call(self, x):  # takes no `training` itself
            return self.inner(self.told(x, training=False))

    class Eager(Notes):
        def call(self, x, training=True):
            return super().call(x, training)

    plain, eager = Plain(), Eager()
    for training in (True, False, None):
        plain([1.0], training=training)
        eager([1.0], training=training)
    assert plain.inner.seen == [True, False, None]
    assert plain.told.seen == [False, False, False]
    assert eager.seen == [True, False, True]
    outer = tf.keras.Sequential([eager])
    outer([[1.0]], training=False)
    outer([[1.0]])
    assert eager.seen[3:] == [False, True]


def test_training_may_be_keyword_only_and_behind_a_decorator():
    import functools

    def noted(call):
        @functools.wraps(call)
        def calling(*args, **kwargs):
            return call(*args, **kwargs)

        return calling

    class Keyword(Layer):
        @noted
        def call(self, x, *, training=None):
            return x * (2.0 if training else 1.0)

    assert Keyword()([1.0], training=True).numpy() == [2.0]


def test_what_the_calls_around_settled_is_forgotten_after_an_exception():
    class Failing(Layer):
        def call(self, x):
            raise ZeroDivisionError

    notes = Notes()
    with pytest.raises(ZeroDivisionError):
        tf.keras.Sequential([notes, Failing()])(np.ones((1, 1)), training=True)
    assert _context.training is None and _context.caller is None
    notes([1.0])
    assert notes.seen == [True, None]


# Contents --------------------------------------------------------------------------------------------------------------


def test_variables_are_own_trainable_ones_then_own_others_then_seeds_then_sublayers():
    class Mixed(Layer):
        def __init__(self):
            super().__init__(name="mixed")
            self.dropout = tf.keras.layers.Dropout(0.5)
            self.count = self.add_weight((), "zeros", trainable=False, name="count")
            self.dense = Dense(2, name="dense")
            self.factor = self.add_weight((), "ones", name="factor")
            self.seeds = tf.keras.random.SeedGenerator(1)
            self.steps = tf.Variable(0, trainable=False, name="steps")
            self.seen = tf.keras.metrics.Mean()

        def call(self, x):
            return self.dense(x)

    layer = Mixed()
    layer(np.ones((1, 2)))
    names = [variable.name.removesuffix(":0") for variable in layer.variables]
    seed = "seed_generator_state"
    assert names == ["factor", "count", "steps", seed, seed, "kernel", "bias"]
    assert [weight.name.removesuffix(":0") for weight in layer.weights] == ["factor", "count", "steps", "kernel", "bias"]
    assert [weight.name for weight in layer.trainable_variables] == ["factor", "kernel", "bias"]
    assert len(layer.non_trainable_variables) == 4


def test_a_layer_that_is_held_twice_counts_once():
    class Twice(Layer):
        def __init__(self):
            super().__init__()
            self.first = Dense(2)
            self.again = [self.first, {"x": (self.first,)}]

        def call(self, x):
            return self.again[1]["x"][0](self.first(x))

    layer = Twice()
    layer(np.ones((1, 2)))
    assert len(layer.weights) == 2


def test_a_layer_may_know_the_one_that_holds_it():
    outer, inner = Scale(), Scale()
    outer.inner, inner.owner = inner, outer
    outer.build((1, 2))
    inner.build((1, 2))
    assert len(outer.weights) == len(inner.weights) == 2
    outer.trainable = False
    assert not inner.trainable
    del inner.owner


def test_layers_appended_to_a_list_are_found():
    model = Net()
    model.blocks.append(Dense(4, name="late"))
    model(np.ones((2, 5)))
    assert "net/late/kernel" in [weight.path for weight in model.weights]
    outer = tf.keras.Sequential([Net("inner")], name="outer")
    assert outer.weights == []  # looked at before the list grows
    outer.layers[0].blocks.append(Dense(4, name="late"))
    outer(np.ones((2, 5)))
    assert "outer/inner/late/kernel" in [weight.path for weight in outer.weights]
    before = len(outer.weights)
    outer.layers[0].blocks.pop()
    assert len(outer.weights) == before - 2


@pytest.mark.parametrize("add", ["weight", "layer", "variable", "list", "dict"])
def test_state_cannot_be_added_once_a_layer_is_built(add):
    layer = Scale(name="scale")
    layer(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"You cannot add new elements of state .* already built \('scale'"):
        if add == "weight":
            layer.add_weight((), name="late")
        else:
            layer.late = {
                "layer": lambda: Dense(1),
                "variable": lambda: tf.Variable(0.0),
                "list": lambda: [Dense(1)],
                "dict": lambda: {"x": (tf.Variable(0.0),)},
            }[add]()
    assert len(layer.weights) == 1


def test_a_built_layer_may_still_get_plain_attributes():
    layer = Scale()
    layer(np.ones((1, 2)))
    layer.note, layer.numbers, layer.factor = "x", [1, 2], layer.factor
    assert layer.numbers == [1, 2]


# Freezing --------------------------------------------------------------------------------------------------------------


def test_freezing_reaches_all_sublayers_and_leaves_the_order_of_weights():
    model = Net()
    model(np.ones((2, 5)))
    before = [weight.path for weight in model.weights]
    trained = [weight.path for weight in model.trainable_weights]
    model.trainable = False
    assert model.trainable_variables == [] and not model.heads["d"].trainable
    assert [weight.path for weight in model.non_trainable_weights] == before
    model.trainable = True
    assert [weight.path for weight in model.weights] == before
    assert [weight.path for weight in model.trainable_weights] == trained


def test_freezing_reaches_variables_that_add_weight_did_not_make():
    class Raw(Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.fixed, self.free = tf.Variable(1.0, trainable=False), tf.Variable(2.0)

        def call(self, x):
            return x

    layer = Raw()
    layer.trainable = False
    assert layer.trainable_variables == []
    assert layer.variables[0] is layer.free
    layer.trainable = True
    assert [variable is layer.free for variable in layer.trainable_variables] == [True]
    assert Raw(trainable=False).trainable_variables == []


def test_a_layer_made_frozen_builds_frozen_weights():
    layer = Dense(2, trainable=False)
    layer(np.ones((1, 2)))
    assert layer.trainable_weights == [] and len(layer.weights) == 2


class Parts(Layer):
    """A layer with sublayers in every place where they may be made."""

    def __init__(self, freeze_first=False, **options):
        super().__init__(**options)
        if freeze_first:
            self.trainable = False
        self.one, self.many = Dense(3), []
        self.many.append(Dense(3))
        self.by_name = {"a": Dense(3)}
        self.raw = [tf.Variable(1.0)]

    def build(self, input_shape):
        self.late = Dense(3)
        super().build(input_shape)

    def call(self, x):
        return self.late(self.one(x) + self.many[0](x) + self.by_name["a"](x)) * self.raw[0]


@pytest.mark.parametrize("way", ["constructor", "in the constructor", "before building", "in a frozen model"])
def test_a_frozen_layer_freezes_the_parts_that_it_gets_later(way):
    layer = Parts(way == "in the constructor", trainable=way != "constructor")
    if way == "before building":
        layer.trainable = False
    outer = tf.keras.Sequential([layer, Dense(1)], trainable=way != "in a frozen model")
    outer(np.ones((2, 3)))
    assert layer.trainable_variables == [] and not layer.late.trainable and not layer.many[0].trainable
    assert len(outer.trainable_variables) == (0 if way == "in a frozen model" else 2)
    assert len(outer.weights) == 11
    layer.trainable = True
    assert len(layer.trainable_variables) == 9 and layer.by_name["a"].trainable


def test_a_part_of_a_frozen_layer_may_be_trained_again():
    layer = Parts(trainable=False)
    layer(np.ones((2, 3)))
    layer.many[0].trainable = True
    layer.note = "an attribute that has the layer walked again"
    assert [variable.path for variable in layer.trainable_variables] == [weight.path for weight in layer.many[0].weights]
    base = tf.keras.Sequential([tf.keras.Input((3,)), Dense(2), Dense(2)])
    base.trainable = False
    base.layers[-1].trainable = True
    same = tf.keras.Sequential.from_config(base.get_config())
    assert not same.trainable and len(same.trainable_variables) == len(base.trainable_variables) == 2


@pytest.mark.parametrize("name", ["_held", "_origin", "_place", "_state", "_label", "_scope", "_stream", "_added", "_frozen"])
def test_attributes_of_users_may_have_short_private_names(name):
    layer = Scale()
    setattr(layer, name, 2.0)
    layer(tf.ones([1, 3]))
    layer.trainable = False
    assert getattr(layer, name) == 2.0 and len(layer.weights) == 1 and not layer.trainable_weights


def test_a_weight_counts_although_no_attribute_holds_it(tmp_path):
    class Unbound(Layer):
        def build(self, input_shape):
            parts = [self.add_weight((1,), "ones", name="a"), self.add_weight((2,), "ones", trainable=False, name="b")]
            self.read = lambda: [part.read_value() for part in parts]

        def call(self, x):
            first, second = self.read()
            return x * first + second[0]

    model = tf.keras.Sequential([tf.keras.Input((1,)), Unbound()])
    assert [weight.name for weight in model.weights] == ["a", "b"] and model.count_params() == 3
    model.compile(tf.keras.optimizers.SGD(0.5), "mse")
    model.fit([[1.0]], [[0.0]], verbose=0)
    assert float(model.get_weights()[0][0]) == -1.0
    model.save_weights(tmp_path / "unbound.weights.h5")
    other = tf.keras.Sequential([tf.keras.Input((1,)), Unbound()])
    other.load_weights(tmp_path / "unbound.weights.h5")
    assert float(other.get_weights()[0][0]) == -1.0


def test_a_weight_whose_attribute_is_deleted_counts_no_more():
    layer = Dense(2)
    layer.build((None, 3))
    del layer.bias
    assert [weight.name for weight in layer.weights] == ["kernel"]


# Losses ----------------------------------------------------------------------------------------------------------------


class Penalized(Layer):
    def __init__(self):
        super().__init__()
        self.dense = Dense(1, kernel_regularizer="l2", activity_regularizer=tf.keras.regularizers.L1(0.5))

    def call(self, x):
        self.add_loss(tf.reduce_sum(x))
        return self.dense(x)


def test_losses_are_collected_anew_by_each_outermost_call():
    model = tf.keras.Sequential([Penalized(), Penalized()])
    for _ in range(2):
        model(np.ones((4, 1)))
        assert len(model.losses) == 6
    model.layers[0].trainable = False
    model(np.ones((4, 1)))
    assert len(model.losses) == 5
    model.layers[1](np.ones((4, 1)))
    assert len(model.layers[1].losses) == 3


def test_an_activity_penalty_is_divided_by_the_batch_size():
    layer = Dense(2, kernel_initializer="ones", use_bias=False, activity_regularizer=tf.keras.regularizers.L1(0.5))
    layer(np.ones((4, 3)))
    np.testing.assert_allclose([float(loss) for loss in layer.losses], [0.5 * 4 * 2 * 3.0 / 4])


# Names -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("class_name", "names"),
    [
        ("Dense", ["dense", "dense_1", "dense_2"]),
        ("ReLU", ["re_lu", "re_lu_1"]),
        ("PReLU", ["p_re_lu"]),
        ("RMSprop", ["rm_sprop"]),
        ("AdamW", ["adam_w"]),
        ("LSTMCell", ["lstm_cell"]),
        ("MyBlock2D", ["my_block2d"]),
        ("_Hidden", ["private__hidden"]),
    ],
)
def test_automatic_names_are_keras_s_oddities_included(class_name, names):
    cls = type(class_name, (Layer,), {})
    assert [cls().name for _ in names] == names
    tf.keras.utils.clear_session()
    assert cls().name == names[0]


def test_paths_name_the_model_then_the_layers_then_the_weight():
    model = Net()
    model(np.ones((2, 5)))
    paths = [weight.path for weight in model.weights]
    assert paths[:4] == ["net/a/kernel", "net/a/bias", "net/b/kernel", "net/b/bias"]
    assert paths[4:8] == ["net/c/gamma", "net/c/beta", "net/c/moving_mean", "net/c/moving_variance"]
    inner = tf.keras.Sequential([Dense(2, name="x")], name="inner")
    outer = tf.keras.Sequential([inner, Dense(1, name="y")], name="outer")
    outer(np.ones((1, 3)))
    assert [weight.path for weight in outer.weights] == [
        *("outer/inner/x/kernel", "outer/inner/x/bias", "outer/y/kernel", "outer/y/bias")
    ]
    ready = tf.keras.Sequential([tf.keras.Input((3,)), Dense(2, name="x")], name="ready")
    assert [weight.path for weight in ready.weights] == ["ready/x/kernel", "ready/x/bias"]


def test_paths_are_right_for_layers_that_are_built_after_the_first_call():
    model = Net()
    with pytest.raises(ValueError, match="'b'"):
        model.blocks[0].build((None, 7))
        model(np.ones((2, 5)))  # the second layer refuses, so the third one is not built yet
    model.blocks[0] = Dense(4, name="b")
    model(np.ones((2, 5)))
    assert all(weight.path.startswith("net/") for weight in model.weights)


def test_a_name_is_a_string_without_slashes():
    for name in ("a/b", 3):
        with pytest.raises(ValueError, match=f"Dense: name must be a string without '/', found {name!r}"):
            Dense(2, name=name)


def test_children_of_a_subclass_may_share_a_name_but_those_of_a_sequential_model_may_not():
    class Pair(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = Dense(2, name="d"), Dense(2, name="d")

        def call(self, x):
            return self.second(self.first(x))

    assert Pair()(np.ones((1, 2))).shape == (1, 2)
    with pytest.raises(ValueError, match="unique names. Name 'd' is already the name of a layer"):
        tf.keras.Sequential([Dense(2, name="d"), Dense(2, name="d")])


# A forgotten super().__init__() -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [Layer, tf.keras.Model])
@pytest.mark.parametrize(
    "use",
    [
        lambda layer: layer(np.ones((1, 2))),
        lambda layer: layer.name,
        lambda layer: layer.weights,
        lambda layer: layer.variables,
        lambda layer: layer.trainable,
        lambda layer: layer.losses,
        lambda layer: layer.built,
        lambda layer: layer.add_weight((1,)),
        lambda layer: layer.build((1, 2)),
        lambda layer: layer.compile("sgd", "mse") if hasattr(type(layer), "compile") else layer.name,
        lambda layer: layer.fit(np.ones((1, 2))) if hasattr(type(layer), "fit") else layer.name,
    ],
)
def test_a_forgotten_super_init_is_told_by_whatever_is_done_first(base, use):
    class Bad(base):
        def __init__(self):
            self.units = 3

    layer = Bad()
    with pytest.raises(RuntimeError, match=r"In layer Bad, you forgot to call `super\(\).__init__\(\)` as the first"):
        use(layer)
    assert repr(layer) == "<Bad, whose __init__ did not call super().__init__()>"


@pytest.mark.parametrize("base", [Layer, tf.keras.Model])
def test_what_is_set_before_super_init_is_held_like_all_else(base):
    class Early(base):
        def __init__(self):
            self.units, self.scale = 3, tf.Variable(2.0)
            self.dense, self.more = Dense(3), [Dense(1)]
            super().__init__()

        def call(self, x):
            return self.more[0](self.dense(x)) * self.scale

    layer = Early()
    assert layer(np.ones((2, 4))).shape == (2, 1)
    assert len(layer.weights) == 5
    layer.trainable = False
    assert layer.trainable_variables == []


def test_a_layer_tells_its_metrics():
    class Outer(Layer):
        def __init__(self):
            super().__init__()
            self.seen, self.inner = tf.keras.metrics.Mean(name="seen"), Inner()

    class Inner(Layer):
        def __init__(self):
            super().__init__()
            self.largest = tf.keras.metrics.Mean(name="largest")

    layer = Outer()
    assert [one.name for one in layer.metrics] == ["seen", "largest"]
    assert [one.name for one in layer.metrics_variables] == ["total", "count"] * 2


def test_a_policy_may_be_set_until_there_are_weights():
    layer = tf.keras.layers.Dense(1)
    layer.dtype_policy = "mixed_float16"
    assert layer(tf.ones([1, 2])).dtype == "float16" and layer.kernel.dtype == "float32" == layer.dtype
    layer.dtype_policy = tf.keras.DTypePolicy("mixed_float16")
    with pytest.raises(ValueError, match="has weights already. Set dtype_policy before it is built"):
        layer.dtype_policy = "float32"
    assert layer.compute_dtype == "float16"
    free = tf.keras.layers.Activation("relu")
    free(tf.ones([2]))
    free.dtype_policy = "float64"
    assert free(tf.ones([2])).dtype == "float64"


# What build is told -----------------------------------------------------------------------------------------------------


def test_a_build_of_several_shapes_names_what_call_takes():
    class Pair(Layer):
        def build(self, first_shape, bias):
            self.made = (first_shape, bias)

        def call(self, first, bias):
            return first + bias

    with pytest.raises(
        ValueError, match=r"`build` takes \['first_shape', 'bias'\], and \['bias'\] are no shapes of what `call`"
    ):
        Pair()(tf.ones([2, 3]), tf.ones([2, 3]))

    class Optional(Layer):
        def build(self, second_shape, first_shape, units=4):
            self.made = (first_shape, second_shape, units)

        def call(self, first, second):
            return tf.reduce_sum(first) + tf.reduce_sum(second)

    layer = Optional()
    layer(tf.ones([2, 3]), tf.ones([2, 5]))
    assert layer.made == ((2, 3), (2, 5), 4)


def test_a_build_without_arguments_is_called_without_and_once_more_when_loaded(tmp_path):
    @tf.keras.saving.register_keras_serializable("lifecycle")
    class Scale(Layer):
        def build(self):
            self.scale = self.add_weight((1,), "ones")

        def call(self, x):
            return x * self.scale

    inputs = tf.keras.Input((2,))
    for model in (tf.keras.Sequential([tf.keras.Input((2,)), Scale()]), tf.keras.Model(inputs, Scale()(inputs))):
        model.set_weights([[3.0]])
        model.save(tmp_path / "m.keras")
        loaded = tf.keras.models.load_model(tmp_path / "m.keras")
        assert loaded(tf.ones([1, 2])).numpy().tolist() == [[3.0, 3.0]] == Scale()(tf.fill([1, 2], 3.0)).numpy().tolist()
    assert model.layers[1].get_build_config() == {"shapes_dict": {}}


def test_a_build_may_take_any_arguments_beside_the_shape():
    class Any(Layer):
        def build(self, *shapes, **options):
            self.made = (shapes, options)

        def call(self, x):
            return x

    class Named(Layer):
        def build(self, input_shape, **options):
            self.made = (input_shape, options)

        def call(self, x):
            return x

    layer, named = Any(), Named()
    layer(tf.ones([2, 3]))
    named(tf.ones([2, 3]))
    assert layer.made == (((2, 3),), {})
    assert named.made == ((2, 3), {})


def test_a_layer_without_inputs_is_built_for_the_shape_none():
    class Inner(Layer):
        def __init__(self):
            super().__init__()
            self.variable = self.add_weight(shape=(1,), name="inner")

    class Outer(Layer):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

    layer = Outer()
    layer.build(None)
    assert layer.built
    assert [weight.path for weight in layer.weights] == ["inner/inner"]


# Weights as arrays -----------------------------------------------------------------------------------------------------


def test_weights_go_out_and_come_back_as_arrays():
    first, second = Net(), Net("other")
    for model in (first, second):
        model(np.ones((2, 5)))
    second.set_weights(first.get_weights())
    for mine, theirs in zip(first.get_weights(), second.get_weights(), strict=True):
        assert np.array_equal(mine, theirs)
    taken = first.get_weights()
    taken[0][:] = 7.0
    assert not np.array_equal(first.get_weights()[0], taken[0])


def test_weights_that_do_not_fit_change_nothing():
    model = Net()
    model(np.ones((2, 5)))
    before = model.get_weights()
    with pytest.raises(
        ValueError, match=r"on layer 'net' with a weight list of length 1, but the layer was expecting 10 weights"
    ):
        model.set_weights(before[:1])
    wrong = [np.full_like(weight, 9.0) for weight in before]
    wrong[-1] = np.ones((2, 2))
    with pytest.raises(ValueError, match=r"weight shape \(1,\) \('net/d/bias'\) is not compatible .* shape \(2, 2\)"):
        model.set_weights(wrong)
    for mine, old in zip(model.get_weights(), before, strict=True):
        assert np.array_equal(mine, old)


def test_count_params_needs_a_built_layer():
    layer = Dense(2, name="d")
    with pytest.raises(ValueError, match="layer 'd' is not built; call it on data or build"):
        layer.count_params()
    layer.build((None, 3))
    assert layer.count_params() == 8


def test_repr_tells_name_and_state():
    layer = Dense(2, name="d")
    assert repr(layer) == "<Dense name=d, built=False>"
    layer.build((None, 3))
    assert repr(layer) == "<Dense name=d, built=True>"
    assert repr(layer.bias) == "<Variable path=d/bias, shape=(2,), dtype=float32, value=[0. 0.]>"


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_a_copy_has_weights_of_its_own(duplicate):
    model = Net()
    y = model(np.ones((2, 5))).numpy()
    twin = duplicate(model)
    assert np.array_equal(twin(np.ones((2, 5))).numpy(), y)
    model.a.kernel.assign(model.a.kernel * 0.0)
    assert np.array_equal(twin(np.ones((2, 5))).numpy(), y)
    assert [weight.path for weight in twin.weights] == [weight.path for weight in model.weights]


def test_a_model_is_freed_at_once_when_the_last_name_is_gone():
    gc.collect()
    model = Net()
    model(np.ones((2, 5)))
    assert model.weights and model.trainable_variables and model.losses == []
    alive = [weakref.ref(model), weakref.ref(model.a.kernel)]
    del model
    assert [reference() for reference in alive] == [None, None]


@pytest.fixture
def walks(monkeypatch):
    """The layers whose walks began, in order: those of sublayers are parts of them."""
    found, depth, gather = [], [], layer_weights.gather

    def counted(layer, *arguments):
        found.extend([layer] if not depth else [])
        depth.append(1)
        try:
            return gather(layer, *arguments)
        finally:
            depth.pop()

    monkeypatch.setattr(layer_weights, "gather", counted)
    return found


def test_a_change_of_one_model_is_no_change_of_another(walks):
    def holding(*parts):
        model = tf.keras.Model()
        model.parts = list(parts)
        return model

    shared = Scale()
    inner, other = holding(Scale(), shared), holding(shared, Scale())
    outer = holding(holding(inner))
    models = [inner, outer, other]

    def walked_after(change):
        change()
        walks.clear()
        [model.collect_contents() for model in models]
        return [models.index(model) for model in walks]

    assert walked_after(lambda: None) == [0, 1, 2]
    assert walked_after(lambda: None) == []
    assert walked_after(lambda: setattr(other, "note", [1])) == [2]
    assert walked_after(lambda: setattr(inner.parts[0], "more", Scale())) == [0, 1]
    assert walked_after(lambda: setattr(shared, "more", Scale())) == [0, 1, 2]
    assert walked_after(lambda: Scale().build((1, 2))) == []
    assert walked_after(lambda: delattr(inner.parts[0], "more")) == [0, 1]
    assert walked_after(lambda: setattr(outer, "number", 2)) == []
    assert len(outer.collect_contents().sublayers) == 5


def test_a_copy_of_a_layer_holds_what_it_is_given_and_not_the_original():
    original = tf.keras.Model()
    original.first = Scale()
    original.collect_contents()
    for copied in (copy.copy(original), copy.deepcopy(original)):
        copied.second = Scale()
        assert [len(model.collect_contents().sublayers) for model in (original, copied)] == [1, 2]
        copied.first.third = Scale()
        expected = 2 if copied.first is original.first else 1
        assert [len(model.collect_contents().sublayers) for model in (original, copied)] == [expected, 3]
        del copied.first.third


def test_a_layer_does_not_keep_those_that_hold_it():
    inner, outer = Scale(), tf.keras.Model()
    outer.inner = inner
    outer.collect_contents()
    reference = weakref.ref(outer)
    del outer
    gc.collect()
    assert reference() is None and not inner._structure.owners


@pytest.mark.parametrize("kind", [list, dict])
def test_a_container_is_walked_again_only_when_it_has_other_elements(kind, monkeypatch):
    class Holding(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = {"a": Scale(), "b": Scale()} if kind is dict else [Scale(), Scale()]

    model, other, walks = Holding(), Scale(), []
    gather = layer_weights.gather
    counted = lambda layer, *arguments: (walks.append(1) if layer is model else None, gather(layer, *arguments))[1]
    monkeypatch.setattr(layer_weights, "gather", counted)
    first = model.collect_contents()
    assert model.collect_contents() is first and len(walks) == 1
    model.parts["b" if kind is dict else 1] = other
    assert model.collect_contents().sublayers[1] is other and len(walks) == 2
    del model.parts["b" if kind is dict else 1]
    assert len(model.collect_contents().sublayers) == 1 and len(walks) == 3


def test_a_layer_that_is_deleted_is_held_no_more():
    model = tf.keras.Model()
    model.first, model.second = Scale(), Scale()
    model.first.build((1, 2)), model.second.build((1, 3))
    assert len(model.weights) == 2
    del model.second
    assert [weight.shape for weight in model.weights] == [(2,)]


def test_a_container_may_hold_itself():
    class Cyclic(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.blocks, self.named = [Dense(3)], {}
            self.blocks.append(self.blocks)
            self.named["self"] = [self.named]
            self.head = Dense(1)

        def call(self, x):
            return self.head(self.blocks[0](x))

    model = Cyclic()
    assert model(np.ones((2, 4))).shape == (2, 1)
    assert len(model.weights) == 4
    model.blocks.clear()  # circles are not freed at once
    model.named.clear()


@pytest.mark.parametrize(
    "make", [lambda **k: Dense(3, **k), lambda **k: tf.keras.layers.Conv1D(3, 2, **k)], ids=["Dense", "Conv1D"]
)
@pytest.mark.parametrize("activation", [tf.nn.relu, None])
def test_an_activation_that_is_set_later_is_used(make, activation):
    x = np.linspace(-1.0, 1.0, 24, dtype="float32").reshape(2, 4, 3)
    layer = make(activation="sigmoid")
    before = layer(x)
    layer.activation = activation
    wanted = make(activation=activation)
    wanted.build(x.shape)
    wanted.set_weights(layer.get_weights())
    np.testing.assert_array_equal(layer(x), wanted(x))
    assert not np.array_equal(layer(x), before)


def test_a_model_and_a_layer_have_parts_and_no_chain_of_bases():
    assert [base.__name__ for base in tf.keras.Model.__mro__[:3]] == ["Model", "Layer", "Module"]
    assert tf.keras.layers.Layer.__bases__ == (tf.Module,) and tf.keras.Model.__bases__ == (tf.keras.layers.Layer,)


def test_a_shallow_copy_of_a_model_is_compiled_by_itself():
    model = tf.keras.Sequential([tf.keras.Input((2,)), Dense(1)])
    model.compile("sgd", "mse")
    other = copy.copy(model)
    other.compile("adam", "mae", metrics=["mse"])
    assert model.metrics_names == ["loss"] and other.metrics_names == ["loss", "mse"]


def test_a_dense_layer_is_built_from_the_shape_of_one_row_as_in_keras():
    layer = Dense(3)
    layer.build((4,))
    assert layer.kernel.shape == (4, 3) and layer(tf.ones([2, 4])).shape == (2, 3)
