"""`tf.image` agrees with the same written in NumPy, for one image and for a batch, and has gradients."""

import numpy as np
import pytest

import minikeras as tf

I = tf.image  # noqa: E741
rng = np.random.default_rng(0)
one, batch = rng.uniform(0.1, 0.9, (3, 4, 3)), rng.uniform(0.1, 0.9, (2, 3, 4, 3))
gray = [0.2989, 0.587, 0.114]
CASES = {
    "flip_left_right": (I.flip_left_right, lambda x: np.flip(x, -2)),
    "flip_up_down": (I.flip_up_down, lambda x: np.flip(x, -3)),
    "transpose": (I.transpose, lambda x: np.swapaxes(x, -2, -3)),
    **{f"rot90 {k}": (lambda x, k=k: I.rot90(x, k), lambda x, k=k: np.rot90(x, k, (-3, -2))) for k in (-1, 0, 1, 2, 3)},
    "central_crop": (lambda x: I.central_crop(x, 0.5), lambda x: x[..., :3, 1:3, :]),
    "crop": (lambda x: I.crop_to_bounding_box(x, 1, 2, 2, 1), lambda x: x[..., 1:3, 2:3, :]),
    "pad": (
        lambda x: I.pad_to_bounding_box(x, 1, 0, 5, 6),
        lambda x: np.pad(x, [(0, 0)] * (x.ndim - 3) + [(1, 1), (0, 2), (0, 0)]),
    ),
    "brightness": (lambda x: I.adjust_brightness(x, 0.2), lambda x: x + 0.2),
    "gamma": (lambda x: I.adjust_gamma(x, 2.2, 1.5), lambda x: 1.5 * x**2.2),
    "standardization": (
        I.per_image_standardization,
        lambda x: (x - x.mean((-3, -2, -1), keepdims=True)) / np.maximum(x.std((-3, -2, -1), keepdims=True), 1 / 6),
    ),
    "grayscale": (I.rgb_to_grayscale, lambda x: x @ np.array(gray)[:, None]),
    "grayscale to rgb": (lambda x: I.grayscale_to_rgb(x[..., :1]), lambda x: np.repeat(x[..., :1], 3, -1)),
    "total_variation": (
        I.total_variation,
        lambda x: np.abs(np.diff(x, axis=-3)).sum((-3, -2, -1)) + np.abs(np.diff(x, axis=-2)).sum((-3, -2, -1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_image_and_a_batch_are_numpys(name):
    function, reference = CASES[name]
    for x in (one, batch):
        np.testing.assert_allclose(function(tf.constant(x)), reference(x), rtol=2e-7)
    tf.test.check_gradients(function, tf.constant(one))


def test_integers_are_changed_as_floats_between_0_and_1():
    x = tf.constant([[[0, 128, 255]]], "uint8")
    np.testing.assert_array_equal(I.adjust_brightness(x, 0.5).numpy().ravel(), [127, 255, 255])
    np.testing.assert_array_equal(I.adjust_gamma(x, 1.0).numpy().ravel(), [0, 128, 255])
    assert I.rgb_to_grayscale(x).dtype == "uint8" and I.per_image_standardization(x).dtype == "float32"
    np.testing.assert_allclose(I.convert_image_dtype(x, "float64"), x.numpy() / 255.0)
    np.testing.assert_array_equal(I.convert_image_dtype(x, "int32").numpy().ravel(), np.array([0, 128, 255]) * 2**23)
    np.testing.assert_array_equal(I.convert_image_dtype(I.convert_image_dtype(x, "int32"), "uint8"), x)
    assert I.convert_image_dtype([[[2.0]]], "uint8", saturate=True).numpy().item() == 255


def test_random_changes_are_as_often_as_they_should():
    x = tf.constant(np.arange(6.0).reshape(1, 2, 3, 1).repeat(200, 0))
    for flip, plain in ((I.random_flip_left_right, I.flip_left_right), (I.random_flip_up_down, I.flip_up_down)):
        flipped = np.all(flip(x, seed=1).numpy() == plain(x).numpy(), (1, 2, 3))
        assert 60 < flipped.sum() < 140
    brighter = I.random_brightness(x[0], 0.2).numpy() - x[0].numpy()
    assert np.ptp(brighter) < 1e-6 and abs(brighter.mean()) <= 0.2
    assert I.random_contrast(x[0], 0.5, 0.9).shape == (2, 3, 1)


def test_the_ratio_of_signal_and_noise_is_in_decibels():
    a, b = tf.constant(one, "float32"), tf.constant(one + 0.1, "float32")
    np.testing.assert_allclose(I.psnr(a, b, 1.0), 20.0, rtol=1e-5)
    bytes_ = tf.constant([[[0], [255]]], "uint8"), tf.constant([[[0], [250]]], "uint8")
    np.testing.assert_allclose(I.psnr(*bytes_, max_val=255), 10 * np.log10(255**2 / 12.5), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: I.flip_left_right([1.0]), "needs .height, width"),
        (lambda: I.rgb_to_grayscale(tf.ones([2, 2, 1])), "height, width, 3"),
        (lambda: I.crop_to_bounding_box(tf.ones([2, 2, 1]), 1, 1, 2, 2), "outside"),
        (lambda: I.pad_to_bounding_box(tf.ones([2, 2, 1]), 0, 0, 1, 2), "does not fit"),
        (lambda: I.central_crop(tf.ones([2, 2, 1]), 0.0), "central_fraction"),
        (lambda: I.adjust_gamma(tf.ones([2, 2, 1]), -1.0), "negative"),
        (lambda: I.random_contrast(tf.ones([2, 2, 1]), 2.0, 1.0), "lower < upper"),
        (lambda: I.random_brightness(tf.ones([2, 2, 1]), -2.0), "negative"),
    ],
)
def test_mistakes_are_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_integers_change_their_contrast_as_floats_do():
    x = tf.constant([[[10], [20]], [[30], [41]]], tf.uint8)
    assert tf.image.adjust_contrast(x, 2.0).numpy().ravel().tolist() == [0, 14, 34, 56]  # TensorFlow's
    assert tf.image.random_contrast(x, 0.5, 1.5).dtype == tf.uint8


def test_what_would_give_wrong_pixels_is_refused():
    with pytest.raises(TypeError, match="total_variation"):
        tf.image.total_variation(tf.ones([2, 2, 1], tf.uint8))
    with pytest.raises(tf.errors.InvalidArgumentError, match="gamma"):
        tf.image.adjust_gamma(tf.ones([2, 2, 1]), tf.constant(-1.0))


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_nothing_is_resized_to_something(method):
    with pytest.raises(ValueError, match="pixels"):
        tf.image.resize(tf.ones([0, 2, 1]), [4, 4], method)


@pytest.mark.parametrize(("kind", "wanted"), [(tf.bool, tf.float32), (tf.float32, tf.string)])
def test_images_are_numbers(kind, wanted):
    with pytest.raises(TypeError, match="convert_image_dtype"):
        tf.image.convert_image_dtype(tf.zeros([1, 1, 1], kind), wanted)


@pytest.mark.parametrize("function", [tf.nn.max_pool2d, lambda x, *rest: tf.nn.conv2d(x, tf.ones([1, 1, 1, 1]), *rest[1:])])
def test_a_format_that_is_none_is_refused(function):
    with pytest.raises(ValueError, match="NHCW"):
        function(tf.ones([1, 4, 4, 1]), 2, 2, "SAME", "NHCW")
