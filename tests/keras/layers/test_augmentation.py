"""Random image layers: Keras's numbers where nothing is drawn, each image by itself, quiet outside of training, resumable."""

import numpy as np
import pytest
from golden_numbers import golden
from slow import mostly_slow

import minikeras as tf

L = tf.keras.layers
GOLDEN = golden("augmentation")
KINDS = {
    "flip": lambda **o: L.RandomFlip(**o),
    "rotation": lambda **o: L.RandomRotation(0.2, **o),
    "translation": lambda **o: L.RandomTranslation(0.3, 0.3, **o),
    "zoom": lambda **o: L.RandomZoom(0.3, 0.3, **o),
    "contrast": lambda **o: L.RandomContrast(0.5, (-1, 2), **o),
    "brightness": lambda **o: L.RandomBrightness(0.5, (-1, 2), **o),
    "crop": lambda **o: L.RandomCrop(4, 4, **o),
    "erasing": lambda **o: L.RandomErasing((1.0, 1.0), value_range=(0, 1), **o),
    "mix up": lambda **o: L.MixUp(0.5, **o),
    "cut mix": lambda **o: L.CutMix((0.5, 1.0), **o),
}
each = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def images(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.0, 1.0, shape or (16, 6, 5, 3)).astype("float32")


def label(case):
    return f"{case['layer']}-{'-'.join(str(one) for one in case['config'].values() if isinstance(one, str))}"


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=label)
def test_without_a_choice_the_output_is_keras(case):
    layer = getattr(L, case["layer"])(**case["config"], dtype="float64")
    y = layer(np.array(GOLDEN["input"]), training=True)
    np.testing.assert_allclose(y.numpy(), case["output"], rtol=0, atol=2e-6)  # places of pixels are float32


@pytest.mark.parametrize("case", GOLDEN["given"], ids=label)
def test_the_same_random_numbers_make_keras_images(case):
    layer = getattr(L, case["layer"])(**case["config"], dtype="float64")
    given = {name: tf.constant(np.array(value)) for name, value in case["transformation"].items()}
    y = layer.transform_images(tf.constant(GOLDEN["input"], "float64"), given)
    np.testing.assert_allclose(y.numpy(), case["output"], rtol=0, atol=1e-6)  # Keras takes the mean in float32


def test_a_zoom_with_the_nearest_pixel_is_keras_where_two_are_equally_near():
    zoom = L.RandomZoom((0.5, 0.5), (0.8, 0.8), interpolation="nearest", fill_mode="constant")
    y = zoom(np.arange(25.0, dtype="float32").reshape(5, 5, 1)).numpy()[..., 0]
    rows = [[0, 0, 0, 0, 0], [0, 5, 7, 9, 0], [0, 10, 12, 14, 0], [0, 20, 22, 24, 0], [0, 0, 0, 0, 0]]  # of Keras's own test
    np.testing.assert_array_equal(y, rows)


@each
def test_outside_of_training_nothing_is_random(make):
    layer, x = make(seed=1), images()
    first, second = [layer(x, training=False).numpy() for _ in range(2)]
    np.testing.assert_array_equal(first, second)
    assert layer.generator.state.numpy()[1] == 0
    if first.shape == x.shape:
        np.testing.assert_array_equal(first, x)


@each
def test_images_of_a_batch_change_differently_and_a_seed_repeats_them(make):
    x = np.repeat(images(1, 6, 5, 3), 16, axis=0)
    if make in (KINDS["mix up"], KINDS["cut mix"]):
        x = images()
    first, same = [make(seed=1)(x).numpy() for _ in range(2)]
    np.testing.assert_array_equal(first, same)
    assert (first != make(seed=2)(x).numpy()).any()
    if make is not KINDS["crop"]:
        assert len({one.tobytes() for one in first}) > 1


@each
@pytest.mark.parametrize("policy", ["float32", "float64", "mixed_float16", "mixed_bfloat16"])
def test_integers_become_floats_of_the_policy(make, policy):
    x = (images() * 255).astype("uint8")
    for training in (True, False):
        assert make(dtype=policy)(x, training=training).dtype == tf.keras.DTypePolicy(policy).compute_dtype


@each
def test_one_image_is_a_batch_of_one(make):
    x = images(6, 5, 3)
    one, batch = make(seed=1)(x).numpy(), make(seed=1)(x[None]).numpy()
    np.testing.assert_array_equal(one, batch[0])


@each
def test_channels_may_come_first(make):
    x = images()
    last = make(seed=1)(x).numpy()
    first = make(seed=1, data_format="channels_first")(x.transpose(0, 3, 1, 2)).numpy()
    if make is KINDS["erasing"]:  # the noise is drawn in the layout of the images
        last, first = last == x, first == x.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(first.transpose(0, 2, 3, 1), last, rtol=1e-6, atol=1e-6)


@each
def test_fit_compiles_it_and_gives_the_bits_of_the_eager_step(make):
    x, y = images(32, 6, 5, 3), images(32, 1)

    def history(**options):
        head = L.Dense(1, kernel_initializer=tf.keras.initializers.RandomNormal(seed=3))
        model = tf.keras.Sequential([tf.keras.Input((6, 5, 3)), make(seed=3), L.Flatten(), head])
        model.compile("sgd", "mse", **options)
        return model.fit(x, y, batch_size=8, epochs=4, shuffle=False, verbose=0).history["loss"]

    recorded = history(jit_compile=False)
    assert recorded == history(run_eagerly=True)
    assert len(set(recorded)) == 4


@each
def test_predict_is_quiet_in_a_model_that_trains_at_random(make):
    model = tf.keras.Sequential([tf.keras.Input((6, 5, 3)), make(), L.Flatten()])
    x = images()
    np.testing.assert_array_equal(model.predict(x, verbose=0), model.predict(x, verbose=0))


@each
def test_a_pipeline_of_data_goes_on_where_its_checkpoint_was_written(make, tmp_path):
    data = tf.data.Dataset.from_tensor_slices(images(24, 6, 5, 3)).batch(4)

    def begin():
        layer = make(seed=5)
        return layer, iter(data.map(lambda x: layer(x, training=True)))

    layer, iterator = begin()
    whole = [next(iterator).numpy() for _ in range(6)]
    layer, iterator = begin()
    for _ in range(3):
        next(iterator)
    path = tf.train.Checkpoint(layer=layer, iterator=iterator).save(tmp_path / "ckpt")
    layer, iterator = begin()
    tf.train.Checkpoint(layer=layer, iterator=iterator).restore(path)
    rest = [next(iterator).numpy() for _ in range(3)]
    np.testing.assert_array_equal(rest, whole[3:])


@each
@pytest.mark.parametrize("most", mostly_slow([12, 1000], 12))
def test_gradients_go_through_to_the_images(make, most):
    layer, x = make(seed=1, dtype="float64"), tf.constant(images(3, 4, 4, 2), "float64")
    layer(x)
    state = layer.generator.state.read_value()

    def again(x):
        layer.generator.state.assign(state)
        return layer(x, training=True)

    tf.test.check_gradients(again, [x], max_elements=most)


def test_labels_and_masks_move_with_the_images():
    mask = (images(8, 6, 5, 1) > 0.5).astype("float32")
    data = {"images": mask, "segmentation_masks": mask, "labels": np.arange(8.0, dtype="float32")}
    for layer in (L.RandomFlip(seed=1), L.RandomRotation(0.2, interpolation="nearest", seed=1), L.RandomCrop(3, 3, seed=1)):
        found = layer(dict(data))
        np.testing.assert_array_equal(found["images"].numpy(), found["segmentation_masks"].numpy())
        np.testing.assert_array_equal(found["labels"].numpy(), data["labels"])


@pytest.mark.parametrize("make", [KINDS["mix up"], KINDS["cut mix"]], ids=["mix up", "cut mix"])
def test_labels_are_mixed_in_the_shares_of_the_pixels(make):
    hot = np.eye(8, dtype="float32")
    x = np.broadcast_to(hot[:, None, None, :], (8, 10, 10, 8)).copy()  # each pixel shows the label of its image
    found = make(seed=1)({"images": x, "labels": hot})
    shares = found["images"].numpy().mean(axis=(1, 2))
    np.testing.assert_allclose(found["labels"].numpy(), shares, atol=1e-5 if make is KINDS["mix up"] else 0.2)
    assert (found["labels"].numpy().max(axis=1) < 1.0).any()


def test_a_dict_of_images_is_not_changed_itself():
    data = {"images": images()}
    L.RandomFlip(seed=1)(data)
    np.testing.assert_array_equal(data["images"], images())


def test_erased_rectangles_have_the_area_that_was_asked_for():
    y = L.RandomErasing((1.0, 1.0), (0.25, 0.25), fill_value=(7.0, 8.0, 9.0), seed=1)(np.zeros((5, 8, 8, 3))).numpy()
    assert (y[..., 0] == 7.0).sum(axis=(1, 2)).tolist() == [16] * 5
    assert set(np.unique(y[..., 2])) == {0.0, 9.0}


def test_images_that_are_too_small_are_resized_to_the_crop():
    assert L.RandomCrop(8, 8)(images(2, 4, 6, 3)).shape == (2, 8, 8, 3)


def test_a_restored_model_goes_on_with_its_random_numbers(tmp_path):
    def begin():
        return tf.keras.Sequential([tf.keras.Input((6, 5, 3)), L.RandomZoom(0.3, seed=4), L.RandomFlip()])

    model, again = begin(), begin()
    model(images(), training=True)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    tf.train.Checkpoint(model=again).restore(path)
    np.testing.assert_array_equal(again(images(), training=True).numpy(), model(images(), training=True).numpy())


def test_a_saved_model_has_the_layers_again(tmp_path):
    model = tf.keras.Sequential([tf.keras.Input((6, 5, 3)), *[make() for make in KINDS.values()]])
    model.save(tmp_path / "m.keras")
    again = tf.keras.models.load_model(tmp_path / "m.keras")
    assert [one.get_config() for one in again.layers] == [one.get_config() for one in model.layers]
    np.testing.assert_array_equal(again.predict(images(), verbose=0), model.predict(images(), verbose=0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: L.RandomFlip("diagonal"), r"mode must be one of \('horizontal', 'vertical'"),
        (lambda: L.RandomRotation(1.5), "`factor` must be a number, or two, from -1.0 to 1.0, found 1.5"),
        (lambda: L.RandomTranslation({"up": 0.3}, 0.0), "`height_factor` must be a number, or two, .* found {'up': 0.3}"),
        (lambda: L.RandomErasing(None), "`factor` must be a number, or two, from 0.0 to 1.0, found None"),
        (lambda: L.RandomRotation(0.1, fill_mode="mirror"), "fill_mode must be one of"),
        (lambda: L.RandomZoom(-1.0), "must lie above -1"),
        (lambda: L.RandomContrast(-0.1), "from 0.0 to 1.0"),
        (lambda: L.RandomBrightness(0.1, 255), "value_range must be two numbers"),
        (lambda: L.RandomCrop(0, 3), "height"),
        (lambda: L.RandomErasing(fill_value="red"), "fill_value must be a number"),
        (lambda: L.MixUp(0.0), "alpha must be a number above 0"),
        (lambda: L.RandomFlip(bounding_box_format="xyxy"), "bounding boxes are not moved"),
        (lambda: L.RandomFlip()({"images": images(), "bounding_boxes": images()}), "found .'bounding_boxes', 'images'."),
        (lambda: L.RandomFlip()(images(3, 4)), "expects images of 3 axes, or batches of 4"),
        (lambda: L.MixUp()({"images": images(), "labels": np.zeros(16, "int32")}), "tf.one_hot"),
    ],
)
def test_mistakes_are_explained(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
