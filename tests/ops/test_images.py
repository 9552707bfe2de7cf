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


# What TensorFlow 2.21 gives ---------------------------------------------------------------------------------------------------

pixels = np.array([[[1.0, 0.5, 0.25], [0.2, 0.9, 0.6], [0.1, 0.1, 0.1], [1.2, -0.2, 0.4]]], "float32")
colors = np.array([[[255, 128, 0], [10, 200, 90], [7, 7, 7]]], "uint8")


@pytest.mark.parametrize(
    ("change", "floats", "integers"),
    [
        (
            lambda x: I.adjust_hue(x, -0.3),
            [[0.65, 0.25, 1.0], [0.9, 0.74, 0.2], [0.1, 0.1, 0.1], [-0.2, 0.12, 1.2]],
            [[179, 0, 255], [200, 128, 10], [7, 7, 7]],
        ),
        (
            lambda x: I.adjust_hue(x, tf.constant(0.5)),
            [[0.25, 0.75, 1.0], [0.9, 0.2, 0.5], [0.1, 0.1, 0.1], [-0.2, 1.2, 0.6]],
            [[0, 127, 255], [200, 10, 120], [7, 7, 7]],
        ),
        (
            lambda x: I.adjust_saturation(x, 0.0),
            [[1.0, 1.0, 1.0], [0.9, 0.9, 0.9], [0.1, 0.1, 0.1], [1.2, 1.2, 1.2]],
            [[255, 255, 255], [200, 200, 200], [7, 7, 7]],
        ),
        (
            lambda x: I.adjust_saturation(x, 3.0),
            [[1.0, 0.3333, 0.0], [0.0, 0.9, 0.5143], [0.1, 0.1, 0.1], [1.2, 0.0, 0.5143]],
            [[255, 128, 0], [0, 200, 84], [7, 7, 7]],
        ),
    ],
)
def test_hue_and_saturation_are_tensorflows(change, floats, integers):
    np.testing.assert_allclose(change(pixels)[0], floats, atol=1e-4)
    np.testing.assert_array_equal(change(colors)[0], integers)
    assert change(tf.constant(pixels, "float64")).dtype == tf.float64
    tf.test.check_gradients(change, tf.constant(pixels[:, :2], "float64"))


def test_an_image_is_resized_with_zeros_around_it():
    x = np.arange(24.0, dtype="float32").reshape(4, 6, 1)
    rows = [[3.25, 4.75, 6.25, 7.75], [15.25, 16.75, 18.25, 19.75]]
    assert I.resize_with_pad(x, 3, 4).numpy()[..., 0].tolist() == [*rows, [0] * 4]
    assert I.resize_with_pad(x[None], 5, 4).numpy()[0, ..., 0].tolist() == [[0] * 4, *rows, [0] * 4, [0] * 4]
    nearest = I.resize_with_pad(x, 3, 5, I.ResizeMethod.NEAREST_NEIGHBOR).numpy()[..., 0].tolist()
    assert nearest == [[0, 2, 3, 5, 0], [12, 14, 15, 17, 0], [18, 20, 21, 23, 0]]
    assert I.resize_with_pad(tf.ones([100, 1, 1]), 4, 4).shape == (4, 4, 1)


@pytest.mark.parametrize(("height", "width"), [(4, 6), (2, 3), (3, 5), (7, 9), (7, 3), (1, 8)])
def test_the_middle_of_an_image_is_cut_out_or_surrounded(height, width):
    x = np.arange(24).reshape(4, 6, 1)
    top, left = max((4 - height) // 2, 0), max((6 - width) // 2, 0)
    above, before = max((height - 4) // 2, 0), max((width - 6) // 2, 0)
    part = x[top : top + height, left : left + width]
    rest = (above, height - above - part.shape[0]), (before, width - before - part.shape[1]), (0, 0)
    np.testing.assert_array_equal(I.resize_with_crop_or_pad(x, height, width), np.pad(part, rest))
    assert I.resize_with_crop_or_pad(x[None], height, width).shape == (1, height, width, 1)


def test_a_random_part_begins_anywhere():
    x = tf.reshape(tf.range(4 * 5 * 3), [4, 5, 3])
    parts = [I.random_crop(x, [2, 3, 3], seed=seed).numpy() for seed in range(120)]
    starts = {int(part[0, 0, 0]) for part in parts}
    assert starts == {(5 * row + column) * 3 for row in range(3) for column in range(3)}
    for part in parts:
        row, column = divmod(int(part[0, 0, 0]) // 3, 5)
        np.testing.assert_array_equal(part, x[row : row + 2, column : column + 3])
    v = tf.Variable(tf.ones([3, 3]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(I.random_crop(v, [2, 2]))
    assert tf.reduce_sum(tf.convert_to_tensor(tape.gradient(y, v))).numpy() == 4.0
    with pytest.raises(ValueError, match="does not lie within"):
        I.random_crop(x, [5, 3, 3])


def test_random_colors_lie_within_their_limits():
    reds = tf.constant(pixels[:, :1])
    for _ in range(20):
        assert I.random_hue(reds, 0.0).numpy().ravel() == pytest.approx([1.0, 0.5, 0.25], abs=1e-6)
        changed = I.random_saturation(reds, 0.5, 0.9).numpy()
        assert 0.5 <= (changed.max() - changed.min()) / 0.75 <= 0.9
    for call, message in (
        (lambda: I.random_hue(reds, 0.6), "nor above 0.5"),
        (lambda: I.random_saturation(reds, -0.1, 1.0), "0 <= lower < upper"),
        (lambda: I.adjust_hue(reds, 2.0), "delta must lie"),
        (lambda: I.adjust_saturation(reds[..., :1], 1.0), "height, width, 3"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_parts_in_boxes_are_resized_as_tensorflow_does():
    x = tf.reshape(tf.range(24.0), [2, 3, 4, 1])
    boxes = tf.constant([[0.0, 0.0, 1.0, 1.0], [0.9, 0.2, -0.1, 0.5]])
    with tf.GradientTape() as tape:
        tape.watch([x, boxes])
        y = I.crop_and_resize(x, boxes, [1, 0], [2, 3], extrapolation_value=-1.0)
        total = tf.reduce_sum(y * y)
    wanted = [[[12.0, 13.5, 15.0], [20.0, 21.5, 23.0]], [[7.8, 8.25, 8.7], [-1.0] * 3]]
    np.testing.assert_allclose(y.numpy()[..., 0], wanted, rtol=1e-6)
    of_images, of_boxes = tape.gradient(total, [x, boxes])
    np.testing.assert_allclose(of_boxes, [[0.0, 105.0, 0.0, 105.0], [396.0, 71.55, 0.0, 76.95]], rtol=1e-5)
    rows = [[0.0] * 4, [1.248, 6.747, 1.905, 0.0], [4.992, 26.988, 7.62, 0.0]]
    np.testing.assert_allclose(of_images.numpy()[0, ..., 0], rows, rtol=1e-5)
    nearest = I.crop_and_resize(x, boxes, [1, 0], [2, 3], "nearest", -1.0).numpy()[..., 0].tolist()
    assert nearest == [[[12, 14, 15], [20, 22, 23]], [[9, 9, 10], [-1, -1, -1]]]
    assert I.crop_and_resize(tf.ones([1, 2, 2, 1], tf.uint8), [[0, 0, 1, 1]], [0], [1, 1]).dtype == tf.float32
    assert I.crop_and_resize(x, tf.zeros([0, 4]), tf.zeros([0], tf.int32), [2, 3]).shape == (0, 2, 3, 1)
    tf.test.check_gradients(
        lambda one, box: I.crop_and_resize(one, box, [0], [3, 2]),
        [tf.constant(batch[:1]), tf.constant([[0.11, 0.23, 0.87, 0.71]], tf.float64)],
    )


def test_patches_are_tensorflows():
    x = tf.reshape(tf.range(12), [1, 3, 4, 1])
    same = I.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 2, 1], "SAME").numpy()[0].tolist()
    assert same == [[[0, 2, 4, 6], [2, 0, 6, 0]], [[8, 10, 0, 0], [10, 0, 0, 0]]]
    valid = I.extract_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 2, 1], "VALID").numpy()[0].tolist()
    assert valid == [[[0, 2, 4, 6], [1, 3, 5, 7]], [[4, 6, 8, 10], [5, 7, 9, 11]]]
    ones = [1] * 4
    tf.test.check_gradients(lambda one: I.extract_patches(one, [1, 2, 2, 1], ones, ones, "SAME"), tf.constant(batch))


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [((5, 0.5), [1, 2, 4, 3]), ((2,), [1, 2]), ((5, 0.3), [1, 4, 3]), ((5, 1.0, 0.3), [1, 2, 0]), ((0,), [])],
)
def test_boxes_that_cover_better_ones_are_left_out(limits, wanted):
    boxes = [[0, 0, 1, 1], [1.0, 1, 0, 0.1], [0, 0, 0.4, 1], [2, 2, 3, 3], [0.5, 0.5, 0.5, 0.5]]
    kept = I.non_max_suppression(boxes, [0.5, 0.9, 0.8, 0.1, 0.3], *limits)
    assert kept.numpy().tolist() == wanted and kept.dtype == tf.int32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: I.crop_and_resize(tf.ones([1, 2, 2, 1]), [[0.0, 0.0, 1.0, 1.0]], [0], [0, 2]), "two sizes above 0"),
        (lambda: I.crop_and_resize(tf.ones([1, 2, 2, 1]), [[0.0, 1.0, 1.0]], [0], [2, 2]), "boxes .n, 4."),
        (lambda: I.crop_and_resize(tf.ones([1, 2, 2, 1]), [[0.0, 0.0, 1.0, 1.0]], [1], [2, 2]), "does not index"),
        (lambda: I.extract_patches(tf.ones([2, 2, 1]), *[[1] * 4] * 3, "SAME"), "needs 4 axes"),
        (lambda: I.extract_patches(tf.ones([1, 2, 2, 1]), [2, 1, 1, 1], *[[1] * 4] * 2, "SAME"), "windows .1, height"),
        (lambda: I.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [1.0, 2.0], 1), "scores .n,."),
        (lambda: I.non_max_suppression([[0.0, 0.0, 1.0, 1.0]], [1.0], 1, 2.0), "iou_threshold in"),
    ],
)
def test_mistakes_about_boxes_are_answered(call, message):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        call()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("brightness", (0.2,)),
        ("hue", (0.4,)),
        ("contrast", (0.5, 1.5)),
        ("saturation", (0.5, 1.5)),
        ("crop", ([5, 2, 2, 3],)),
        ("flip_left_right", ()),
        ("flip_up_down", ()),
    ],
)
def test_stateless_changes_of_images_depend_on_their_seed_alone(name, arguments):
    x = tf.constant(np.random.default_rng(1).uniform(0.1, 0.9, (9, 3, 4, 3)))
    change = getattr(I, f"stateless_random_{name}")
    first, *others = [change(x, *arguments, seed=(1, n)).numpy() for n in range(6)]
    np.testing.assert_array_equal(change(x, *arguments, seed=tf.constant([1, 0])), first)
    assert any(np.any(other != first) for other in others)
    assert first.shape == (tuple(arguments[0]) if name == "crop" else x.shape)
    for seed in (3, None, [1, 2, 3]):
        with pytest.raises(ValueError, match="pair of integers"):
            change(x, *arguments, seed=seed)
    if arguments:
        with pytest.raises(ValueError, match=f"stateless_random_{name}"):
            change(x, *[[9, 9, 9, 9] if name == "crop" else -1.0 for _ in arguments], seed=[1, 2])
