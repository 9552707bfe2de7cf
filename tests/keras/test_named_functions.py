"""Initializers, regularizers, constraints and activations: options, configurations and errors beyond the golden numbers."""

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import DTypeError
from minikeras.keras.random import SeedGenerator

activations, constraints = tf.keras.activations, tf.keras.constraints
initializers, regularizers = tf.keras.initializers, tf.keras.regularizers
RANDOM = [
    *("RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling", "Orthogonal"),
    *("GlorotNormal", "GlorotUniform", "HeNormal", "HeUniform", "LecunNormal", "LecunUniform"),
]

# Configurations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "thing"),
    [
        (initializers, initializers.Constant([1.0, 2.0])),
        (initializers, initializers.Identity(2.0)),
        (initializers, initializers.STFT("imag", np.ones(4), None)),
        (initializers, initializers.VarianceScaling(0.5, "fan_out", "uniform", seed=3)),
        (initializers, initializers.Orthogonal(2.0, seed=np.int64(3))),
        (regularizers, regularizers.L1L2(0.1, 0.2)),
        (regularizers, regularizers.OrthogonalRegularizer(0.1, "columns")),
        (constraints, constraints.MinMaxNorm(0.1, 0.9, 0.5, 1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_returns_from_its_serialized_form_as_plain_data(module, thing):
    import json

    written = module.serialize(thing)
    again = module.deserialize(json.loads(json.dumps(written)))
    assert type(again) is type(thing)
    assert again.get_config() == thing.get_config() == module.get(written).get_config()


def test_a_class_of_one_s_own_returns_if_it_is_named():
    class Halves(initializers.Initializer):
        def __call__(self, shape, dtype=None):
            return tf.fill(shape, 0.5)

    written = initializers.serialize(Halves())
    with pytest.raises(ValueError, match="Halves"):
        initializers.deserialize(written)
    assert isinstance(initializers.deserialize(written, {"Halves": Halves}), Halves)
    assert isinstance(initializers.deserialize("Halves", {"Halves": Halves}), Halves)


@pytest.mark.parametrize(
    ("module", "small", "large"),
    [
        (initializers, "glorot_uniform", "GlorotUniform"),
        (initializers, "stft", "STFT"),
        (regularizers, "l1_l2", "L1L2"),
        (regularizers, "orthogonal_regularizer", "OrthogonalRegularizer"),
        (constraints, "max_norm", "MaxNorm"),
        (constraints, "non_neg", "NonNeg"),
        (activations, "hard_swish", "hard_silu"),
    ],
)
def test_second_names_are_the_same_things(module, small, large):
    assert getattr(module, small) is getattr(module, large)


# Initializers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_repeats_and_a_generator_advances_also_from_a_configuration(name):
    cls = getattr(initializers, name)

    def values(initializer):
        return initializer((3, 4)).numpy().tolist()

    seeded, advancing = cls(seed=5), cls(seed=SeedGenerator(5))
    assert values(seeded) == values(seeded) == values(cls.from_config(seeded.get_config())) == values(seeded.clone())
    first = values(advancing)
    assert values(advancing) != first == values(cls.from_config(advancing.get_config()))
    assert values(cls()) != values(cls())
    written = initializers.serialize(cls(seed=SeedGenerator(5)))
    assert values(initializers.deserialize(written)) == first
    with pytest.raises(ValueError, match="seed must be an int, a SeedGenerator or None, found 0.5"):
        cls(seed=0.5)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (2, 3, 4)])
def test_the_shorter_side_of_an_orthogonal_weight_is_orthonormal(shape, float64):
    matrix = initializers.Orthogonal(2.0, seed=1)(shape).numpy().reshape(-1, shape[-1])
    short = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    np.testing.assert_allclose(short @ short.T, 4.0 * np.eye(len(short)), atol=1e-12)


@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "bartlett", "boxcar", None])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("scaling", ["density", "spectrum", None])
def test_stft_kernels_give_the_fourier_transform_of_a_windowed_frame(window, periodic, scaling, float64):
    frame = np.random.default_rng(0).normal(size=8)
    if window is None:
        weights, scale = np.ones(8), 1.0
    else:
        weights = pytest.importorskip("scipy.signal").get_window(window, 8, periodic)
        scale = {"density": np.sqrt((weights**2).sum()), "spectrum": weights.sum(), None: 1.0}[scaling]
    spectrum = np.fft.rfft(frame * weights / scale)
    for side, expected in (("real", spectrum.real), ("imag", spectrum.imag)):
        kernel = initializers.STFT(side, window, scaling, periodic)((8, 1, 5)).numpy()
        np.testing.assert_allclose(frame @ kernel[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: initializers.Constant([1.0, 2.0])((3,)), r"a value of shape \(2,\) cannot be broadcast to the shape \(3,\)"),
        (lambda: initializers.Identity()((2, 2, 2)), "can only be used for 2D matrices"),
        (lambda: initializers.Orthogonal()((3,)), r"needs at least two axes, found shape \(3,\)"),
        (lambda: initializers.VarianceScaling(0.0), "scale must be positive, found 0"),
        (lambda: initializers.VarianceScaling(mode="fan"), "mode must be 'fan_in'"),
        (lambda: initializers.VarianceScaling(distribution="cauchy"), "unknown distribution 'cauchy'"),
        (lambda: initializers.STFT("both"), "side should be 'real' or 'imag'"),
        (lambda: initializers.STFT(window="kaiser"), "unknown window 'kaiser'"),
        (lambda: initializers.STFT(scaling="half"), "scaling must be None"),
        (lambda: initializers.STFT()((4, 2)), "the shape must be"),
        (lambda: initializers.STFT(window=np.ones(3))((4, 1, 3)), r"the window has shape \(3,\), the frame has 4 values"),
        (lambda: initializers.get("glorot"), "Unknown initializer: 'glorot'. Did you mean"),
        (lambda: regularizers.OrthogonalRegularizer(-1.0), "expected a finite number >= 0, found -1"),
        (lambda: regularizers.OrthogonalRegularizer(mode="diagonal"), "mode must be 'rows' or 'columns'"),
        (lambda: regularizers.OrthogonalRegularizer()(np.ones(3)), r"must have rank 2. Received: inputs.shape=\(3,\)"),
        (lambda: activations.glu(np.ones((2, 3))), r"axis -1 of shape \(2, 3\) has the odd size 3"),
        (lambda: activations.get("rellu"), "Unknown activation: 'rellu'. Did you mean"),
    ],
)
def test_options_and_shapes_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Regularizers and activations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_orthogonal_vectors_cost_nothing_and_one_alone_has_no_pair(mode):
    regularizer = regularizers.OrthogonalRegularizer(0.3, mode)
    assert float(regularizer(initializers.Orthogonal(seed=1)((4, 4)))) < 1e-6
    assert float(regularizer(tf.ones((1, 1)))) == 0.0
    assert float(regularizer(tf.ones((2, 2)))) == pytest.approx(0.3)
    tf.test.check_gradients(regularizer, np.random.default_rng(0).normal(size=(3, 4)))


SMOOTH = [
    *("sigmoid", "tanh", "softplus", "softsign", "log_sigmoid", "silu", "gelu", "exponential", "mish", "tanh_shrink"),
    *(
        "squareplus",
        "selu",
        "elu",
        "celu",
        "softmax",
        "log_softmax",
        "glu",
        "sparsemax",
        "hard_silu",
        "hard_sigmoid",
        "hard_tanh",
    ),
    *("relu", "relu6", "leaky_relu", "hard_shrink", "soft_shrink", "sparse_plus", "sparse_sigmoid", "linear"),
]


@pytest.mark.parametrize("name", SMOOTH)
def test_both_derivatives_of_an_activation_are_those_of_its_values(name):
    x = np.random.default_rng(1).uniform(-0.9, 0.9, (3, 4)) + np.array([[0.0], [2.0], [-2.2]])  # away from all kinks
    x[abs(abs(x) - 0.5) < 0.02] += 0.05
    tf.test.check_gradients(getattr(activations, name), x)


def test_every_activation_is_checked():
    others = {"deserialize", "get", "serialize", "swish", "hard_swish", "threshold"}
    assert set(activations.__all__) - others == set(SMOOTH)


@pytest.mark.parametrize("name", sorted(set(SMOOTH) - {"linear", "relu", "relu6", "leaky_relu", "hard_shrink", "soft_shrink"}))
def test_an_activation_of_integers_says_to_cast_them(name):
    with pytest.raises(DTypeError, match="needs a float (or complex )?tensor, found int32"):
        getattr(activations, name)(tf.constant([[1, 2], [3, 4]]))


def test_celu_takes_its_slope_from_alpha_only_below_zero():
    x = np.array([-2.0, -0.5, 0.5])
    np.testing.assert_allclose(activations.celu(x, 0.5).numpy(), [0.5 * np.expm1(-4.0), 0.5 * np.expm1(-1.0), 0.5], rtol=1e-12)


def test_an_activation_keeps_the_device_and_a_layer_may_be_one(device):
    for name in SMOOTH:
        x = tf.constant([[0.5, -1.0], [2.0, 0.1]])
        assert getattr(activations, name)(x).device == x.device
    layer = tf.keras.layers.Dense(1)
    assert activations.get(layer) is layer
    assert activations.serialize(layer)["class_name"] == "Dense"
