"""keras.utils: sequences, series, splits, images and directories, compared with Keras where it runs without TensorFlow."""

import io
import json
import pathlib
import re
from functools import partial

import numpy as np
import pytest

import minikeras as tf
from minikeras.errors import NotFoundError, ShapeError

utils = tf.keras.utils
GOLDEN = json.loads((pathlib.Path(__file__).parent.parent / "golden" / "utils.json").read_text())


def shown(dataset):
    return [tf.nest.map_structure(lambda leaf: np.asarray(leaf.numpy()).tolist(), element) for element in dataset]


# Sequences -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "wanted", "dtype"), GOLDEN["padded"])
def test_sequences_are_filled_up_and_cut_as_by_keras(options, wanted, dtype):
    padded = tf.keras.preprocessing.sequence.pad_sequences(GOLDEN["sequences"], **options)
    assert padded.tolist() == wanted and padded.dtype == dtype


def test_sequences_of_rows_and_of_words():
    rows = utils.pad_sequences([np.ones((1, 2)), np.ones((3, 2))], dtype="float32")
    assert rows.shape == (2, 3, 2) and rows[0, :2].sum() == 0
    words = utils.pad_sequences([["a"], ["b", "c"]], dtype=object, value="-", padding="post")
    assert words.tolist() == [["a", "-"], ["b", "c"]]
    assert utils.pad_sequences([]).shape == (0, 0) and utils.pad_sequences([[], []], maxlen=2).tolist() == [[0, 0]] * 2
    for arguments, message in (
        ({"sequences": [1, 2]}, "must be a list of lists"),
        ({"sequences": [[1], [[1, 2]]]}, r"elements of sequence 1 have shape \(2,\), the first ones \(\)"),
        ({"sequences": [[1]], "value": "x"}, "needs dtype=object"),
        ({"sequences": [[1]], "padding": "left"}, "padding must be 'pre' or 'post', found 'left'"),
    ):
        with pytest.raises(ValueError, match=message):
            utils.pad_sequences(**arguments)


# Series ----------------------------------------------------------------------------------------------------------------


def test_windows_of_a_series_are_those_of_kerass_docstring():
    first = [window for batch in shown(utils.timeseries_dataset_from_array(np.arange(99), None, 10, 3, 2)) for window in batch]
    assert first[:2] == [list(range(0, 20, 2)), list(range(3, 23, 2))] and first[-1] == list(range(78, 98, 2))
    data = np.arange(50.0)
    ((x, y),) = shown(utils.timeseries_dataset_from_array(data[:-10], data[10:], sequence_length=10))
    assert x[0] == data[:10].tolist() and y[0] == data[10] and len(x) == 31
    many = np.arange(100)
    both = zip(
        utils.timeseries_dataset_from_array(many, None, sequence_length=20, sequence_stride=20),
        utils.timeseries_dataset_from_array(2 * many, None, sequence_length=20, sequence_stride=20),
        strict=True,
    )
    x, y = next(both)
    assert np.array_equal(x[0], many[:20]) and np.array_equal(y[1], 2 * many[20:40])


def test_parts_of_a_series_of_rows_single_windows_and_random_order():
    rows = np.arange(40).reshape(20, 2)
    options = {"sequence_length": 3, "start_index": 5, "end_index": 12}
    found = utils.timeseries_dataset_from_array(rows, rows[:, 0], batch_size=None, **options)
    assert found.element_spec == (tf.TensorSpec([3, 2], "int64"), tf.TensorSpec([], "int64"))
    assert [(x[0][0], y) for x, y in shown(found)] == [(2 * n, 2 * n) for n in range(5, 10)]
    mixed = utils.timeseries_dataset_from_array(rows, rows[:, 0], shuffle=True, seed=1, batch_size=2, **options)
    orders = [[label for _, y in shown(mixed) for label in y] for _ in range(2)]
    assert sorted(orders[0]) == list(range(10, 20, 2)) and orders[0] != orders[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_rate": 0}, "sampling_rate must be from 1 to 9, found 0"),
        ({"sequence_stride": 10}, "sequence_stride must be from 1 to 9, found 10"),
        ({"start_index": 7, "end_index": 7}, "must be rows of 10 in order, found 7 and 7"),
        ({"end_index": 11}, "must be rows of 10 in order, found None and 11"),
        ({"format": "grain"}, "format 'tf', found 2 and 'grain'"),
    ],
)
def test_numbers_that_do_not_fit_a_series_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        utils.timeseries_dataset_from_array(np.arange(10), None, 2, **options)


# Splits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ({"left_size": 0.8}, (8, 2)),
        ({"right_size": 3}, (7, 3)),
        ({"left_size": 2, "right_size": 0.5}, (2, 5)),
        ({"left_size": np.int64(4)}, (4, 6)),
    ],
)
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_split_gives_the_first_and_the_last_elements(sizes, lengths, shuffle):
    for data in (np.arange(10), tf.data.Dataset.range(10), tf.data.Dataset.range(10).map(lambda x: x).shuffle(10)):
        left, right = utils.split_dataset(data, **sizes, shuffle=shuffle, seed=1)
        assert (len(left), len(right)) == lengths
        assert not set(shown(left)) & set(shown(right)) and shown(left) == shown(left)
    whole = shown(utils.split_dataset(np.arange(10), **sizes)[0])
    assert whole == list(range(lengths[0]))


def test_nests_and_batches_are_split_by_rows():
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6)
    for data in ((x, y), [x, y]):
        left, right = utils.split_dataset(data, left_size=4)
        assert shown(right)[0] == ([8.0, 9.0], 4) and left.element_spec[0].shape == (2,)
    left, right = utils.split_dataset(tf.data.Dataset.from_tensor_slices({"x": x}).batch(4), right_size=1)
    assert [np.shape(batch["x"]) for batch in shown(left)] == [(4, 2), (1, 2)] and len(right) == 1
    series = utils.timeseries_dataset_from_array(np.arange(12), None, 3, batch_size=4)
    left, right = utils.split_dataset(series.prefetch(2), left_size=7)
    assert [np.shape(batch) for batch in (*shown(left), *shown(right))] == [(4, 3), (3, 3), (3, 3)]


def test_splits_that_leave_nothing_are_refused():
    for sizes in ({"left_size": 10}, {"left_size": 0.01}, {"left_size": 6, "right_size": 5}, {"right_size": 0}):
        with pytest.raises(ValueError, match="of 10 elements. Each needs at least one"):
            utils.split_dataset(np.arange(10), **sizes)
    with pytest.raises(ValueError, match="give left_size or right_size"):
        utils.split_dataset(np.arange(10))
    with pytest.raises(ValueError, match=r"a share between 0 and 1, found 1\.5"):
        utils.split_dataset(np.arange(10), 1.5)
    with pytest.raises(TypeError, match="left_size must be an int, a float or None, found '3'"):
        utils.split_dataset(np.arange(10), "3")
    with pytest.raises(ValueError, match="the dataset has no end"):
        utils.split_dataset(tf.data.Dataset.counter(), 3)


# Small things ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "wanted"), GOLDEN["normalized"])
def test_rows_are_normalized_as_by_keras(options, wanted):
    rows = np.array(GOLDEN["rows"])
    assert np.allclose(utils.normalize(rows, **options), wanted, rtol=1e-14, atol=0)
    assert np.allclose(utils.normalize(tf.constant(rows), **options).numpy(), wanted, rtol=1e-12, atol=0)
    assert np.allclose(np.linalg.norm(utils.normalize(rows, axis=0), axis=0), 1)


def test_sequence_is_the_older_name_of_pydataset():
    assert utils.Sequence is utils.PyDataset
    assert utils.unpack_x_y_sample_weight(utils.pack_x_y_sample_weight(1, 2)) == (1, 2, None)


def test_a_progress_bar_ends_with_a_line_of_averages(capsys):
    bar = utils.Progbar(4, stateful_metrics=["accuracy"], unit_name="sample")
    for step in range(3):
        bar.update(step + 1, [("loss", float(step)), ("accuracy", step / 10)])
    assert capsys.readouterr().out == ""
    bar.update(4, finalize=True)
    line = capsys.readouterr().out
    assert re.fullmatch(r"4/4 - \d+s - \d+[mu]?s/sample - accuracy: 0.2000 - loss: 1.0000\n", line)
    bar = utils.Progbar(None, stateless_metrics=["loss"])
    bar.add(2, [("loss", 1.0), ("rate", 5)])
    bar.add(2, [("loss", 4.0), ("rate", 7)])
    bar.update(4, finalize=True)
    assert capsys.readouterr().out.endswith("s/step - loss: 2.5000 - rate: 7.0000\n")
    utils.Progbar(1, verbose=0).update(1, [("loss", 1)])
    utils.Progbar(1, verbose=0).update(1, [("loss", [0.0, 2.0])])  # shown as their mean
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ValueError, match="either stateful_metrics or stateless_metrics"):
        utils.Progbar(1, stateful_metrics=[], stateless_metrics=[])


# Images ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width", "method", "wanted"), GOLDEN["resized"])
def test_images_are_cropped_and_resized_as_by_keras(height, width, method, wanted):
    image = np.array(GOLDEN["image"], "float32")
    smart_resize = tf.keras.preprocessing.image.smart_resize
    assert np.allclose(smart_resize(image, (height, width), method), wanted, atol=3e-4)
    first = smart_resize(tf.constant(image.transpose(2, 0, 1)[None]), (height, width), method, "channels_first")
    assert np.allclose(first.numpy()[0].transpose(1, 2, 0), wanted, atol=3e-4)


def test_arrays_become_the_images_of_keras():
    image = np.array(GOLDEN["image"], "float32")
    assert np.abs(np.asarray(utils.array_to_img(image), int) - GOLDEN["pixels"]).max() <= 1  # rounded down, next to an integer
    grey = utils.array_to_img(tf.constant(image[..., :1]), scale=False)
    assert grey.mode == "L" and np.asarray(grey).tolist() == GOLDEN["grey"]
    assert utils.array_to_img(np.full((2, 2, 1), 300.0), scale=False).mode == "I"
    assert utils.array_to_img(np.zeros((4, 2, 3)), data_format="channels_first").size == (3, 2)
    tf.keras.config.set_image_data_format("channels_first")
    try:
        assert utils.img_to_array(grey).shape == (1, 5, 8)
    finally:
        tf.keras.config.set_image_data_format("channels_last")
    assert utils.img_to_array(grey).shape == (5, 8, 1) and utils.img_to_array(grey, "channels_first").shape == (1, 5, 8)
    with pytest.raises(ShapeError, match=r"one image with 1, 3 or 4 channels is needed, found shape \(2, 5, 8, 3\)"):
        utils.array_to_img(np.stack([image, image]))
    with pytest.raises(ValueError, match="data_format must be"):
        utils.img_to_array(grey, "NCHW")


def test_images_go_to_files_and_back(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (6, 10, 4)).astype("float32")
    path = tmp_path / "image.png"
    utils.save_img(path, image, scale=False)
    assert np.array_equal(utils.img_to_array(utils.load_img(path, "rgba")), image)
    assert utils.load_img(str(path), "grayscale").mode == "L" and utils.load_img(path).mode == "RGB"
    assert utils.load_img(io.BytesIO(path.read_bytes()), target_size=(3, 4), interpolation="bilinear").size == (4, 3)
    cut = utils.load_img(path, "rgba", target_size=(3, 3), keep_aspect_ratio=True)
    assert np.array_equal(utils.img_to_array(cut), image[1::2, 3:9:2])
    with pytest.warns(UserWarning, match="no transparency"):
        utils.save_img(tmp_path / "image.jpg", image)
    with pytest.raises(NotFoundError, match="there is no file"):
        utils.load_img(tmp_path / "other.png")
    for name, content in (("text.png", b"text"), ("part.png", path.read_bytes()[:60])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(OSError, match=f"{name} is no image that Pillow reads, or only a part"):
            utils.load_img(tmp_path / name)
    with pytest.raises(ValueError, match="color_mode must be one of"):
        utils.load_img(path, "bgr")
    with pytest.raises(ValueError, match="interpolation must be one of"):
        utils.load_img(path, interpolation="cubic")


# Directories -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def texts(tmp_path):
    for name in GOLDEN["files"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    return tmp_path


def test_files_are_shuffled_and_split_as_by_keras(texts, capsys):
    paths, labels, classes = GOLDEN["indexed"]
    training, validation = utils.text_dataset_from_directory(texts, seed=3, validation_split=0.3, subset="both")
    assert training.class_names == validation.class_names == classes
    relative = [str(pathlib.Path(path).relative_to(texts).as_posix()) for path in training.file_paths + validation.file_paths]
    assert relative == paths and len(validation.file_paths) == 2
    ((batch, numbers),) = shown(validation)
    assert batch == [f"text of {path}" for path in paths[-2:]] and numbers == labels[-2:]
    ((batch, numbers),) = shown(training)
    assert sorted(batch) == sorted(f"text of {path}" for path in paths[:-2])
    assert [classes[number] for number in numbers] == [text[8] for text in batch]
    said = capsys.readouterr().out
    assert said == "Found 7 files belonging to 3 classes.\nUsing 5 files for training, 2 for validation.\n"
    alone = utils.text_dataset_from_directory(texts, seed=3, validation_split=0.3, subset="validation", verbose=False)
    assert sorted(alone.file_paths) == sorted(validation.file_paths)


def test_labels_are_given_or_inferred_in_every_form(texts):
    read = lambda **options: utils.text_dataset_from_directory(texts, shuffle=False, verbose=False, **options)
    assert shown(read(labels=None, batch_size=None, max_length=4))[:2] == ["text", "text"]
    assert shown(read(labels=[3, 1, 1, 1, 1, 1, 3]))[0][1] == [3, 1, 1, 1, 1, 1, 3]
    assert shown(read(class_names=["c", "a"]))[0][1] == [0, 0, 1, 1, 1]
    assert shown(read(class_names=["c", "a"], label_mode="binary"))[0][1] == [[0.0], [0.0], [1.0], [1.0], [1.0]]
    assert shown(read(label_mode="categorical", batch_size=1))[-1][1] == [[0.0, 0.0, 1.0]]


def test_images_of_a_directory_are_read_resized_and_batched(tmp_path):
    for number, folder in enumerate("ab"):
        (tmp_path / folder).mkdir()
        for name in "xy":
            utils.save_img(tmp_path / folder / f"{name}.png", np.full((4, 8, 3), 60.0 * number + 10), scale=False)
    read = lambda **options: utils.image_dataset_from_directory(
        tmp_path, shuffle=False, verbose=False, image_size=(3, 3), **options
    )
    ((images, labels),) = shown(read())
    assert labels == [0, 0, 1, 1] and np.allclose(np.array(images)[:, 1, 1, 0], [10, 10, 70, 70])
    assert read().element_spec == (tf.TensorSpec([None, 3, 3, 3]), tf.TensorSpec([None], "int32"))
    grey = read(color_mode="grayscale", data_format="channels_first", label_mode=None)
    assert grey.element_spec == tf.TensorSpec([None, 1, 3, 3])
    ((padded, _),) = shown(read(pad_to_aspect_ratio=True))
    assert np.array(padded)[0, :, 1, 0].tolist() == [0.0, 10.0, 0.0]
    ((cut, _),) = shown(read(crop_to_aspect_ratio=True))
    assert np.allclose(np.array(cut)[3], 70)
    model = tf.keras.Sequential([tf.keras.Input((3, 3, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    assert len(model.fit(tf.keras.preprocessing.image_dataset_from_directory(
        tmp_path, image_size=(3, 3), verbose=False), verbose=0).history["loss"]) == 1  # fmt: skip


def test_directories_and_arguments_that_do_not_fit_are_refused(texts):
    read = lambda where=texts, **options: utils.text_dataset_from_directory(where, verbose=False, **options)
    with pytest.raises(NotFoundError, match="there is no directory"):
        read(texts / "z")
    with pytest.raises(NotFoundError, match=r"there is no file in .* that ends in \.bmp"):
        utils.image_dataset_from_directory(texts / "a", labels=None, verbose=False)
    images = partial(utils.image_dataset_from_directory, texts)
    load = partial(utils.load_img, "x.png", target_size=3)
    for call in (lambda: images(image_size=(3,)), lambda: images(image_size=(3, 0)), load):
        with pytest.raises(ValueError, match="a height and a width of at least 1 are needed"):
            call()
    with pytest.raises(ValueError, match="give either crop_to_aspect_ratio or pad_to_aspect_ratio"):
        images(crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)
    for options, message in (
        ({"labels": [0.5] * 7}, r"labels must be ints.*found \['0.5'\]"),
        ({"labels": [0, 2] * 3 + [0], "label_mode": "categorical"}, r"from 0 without gaps, found \['0', '2'\]"),
        ({"labels": [1, 2]}, "a label is needed for each of 7 files, found 2"),
        ({"labels": None, "class_names": ["a"]}, "class_names go with labels='inferred'"),
        ({"class_names": ["x"]}, r"class_names must be subdirectories, which are \['a', 'b', 'c'\]"),
        ({"label_mode": "binary"}, r"needs two classes, found \['a', 'b', 'c'\]"),
        ({"label_mode": "float"}, "label_mode must be one of"),
        ({"validation_split": 0.3}, "subset must be one of"),
        ({"subset": "training"}, "subset must be one of"),
        ({"validation_split": 0.3, "subset": "both"}, "with a seed if files are shuffled"),
        ({"validation_split": 0.1, "subset": "both", "seed": 1}, "leaves a subset without any"),
        ({"format": "grain"}, "format must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            read(**options)


def test_one_hot_rows_need_memory_for_the_labels_only():
    rows = tf.keras.utils.to_categorical([[1], [10**6]])
    assert rows.shape == (2, 10**6 + 1) and rows.nonzero()[1].tolist() == [1, 10**6]
    assert tf.keras.utils.to_categorical(2, 4).tolist() == [0, 0, 1, 0]
    assert tf.keras.utils.to_categorical(np.zeros((2, 3)), 4).shape == (2, 3, 4)
