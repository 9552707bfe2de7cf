"""What Keras's small tools give, recorded: `KERAS_BACKEND=jax python tests/golden/make_utils.py`."""

import json
import pathlib
import tempfile

import keras
import numpy as np
from keras.src.utils.dataset_utils import index_directory

SEQUENCES = [[1], [2, 3], [4, 5, 6, 7], []]
PADDING = [
    {},
    {"maxlen": 2},
    {"maxlen": 3, "padding": "post", "truncating": "post", "value": -1},
    {"maxlen": 3, "truncating": "post", "dtype": "float32", "value": 0.5},
    {"padding": "post", "dtype": "int64"},
]
NORMALIZED = [{}, {"order": 1}, {"order": 3}, {"axis": 1, "order": 2}, {"axis": 1, "order": 1}]
RESIZED = [(4, 4, "bilinear"), (2, 6, "bilinear"), (7, 3, "nearest"), (3, 3, "bicubic"), (5, 4, "lanczos3")]
FILES = ["a/1.txt", "a/2.txt", "a/deep/3.txt", "b/4.txt", "b/5.txt", "c/6.txt", "c/7.TXT", "c/8.png"]


def main() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2, 3, 4))
    rows[0, 1] = 0
    image = rng.uniform(0, 255, (5, 8, 3)).astype("float32")
    padded = [keras.utils.pad_sequences(SEQUENCES, **options) for options in PADDING]
    resized = [keras.preprocessing.image.smart_resize(image, case[:2], case[2]) for case in RESIZED]
    folder = pathlib.Path(tempfile.mkdtemp())
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    paths, labels, classes = index_directory(str(folder), "inferred", (".txt",), shuffle=True, seed=3, verbose=False)
    data = {
        "sequences": SEQUENCES,
        "padded": [[options, array.tolist(), array.dtype.name] for options, array in zip(PADDING, padded, strict=True)],
        "rows": rows.tolist(),
        "normalized": [[options, keras.utils.normalize(rows, **options).tolist()] for options in NORMALIZED],
        "image": image.tolist(),
        "resized": [[*case, array.tolist()] for case, array in zip(RESIZED, resized, strict=True)],
        "pixels": np.asarray(keras.utils.array_to_img(image)).tolist(),
        "grey": np.asarray(keras.utils.array_to_img(image[..., :1], scale=False)).tolist(),
        "files": FILES,
        "indexed": [[pathlib.Path(path).relative_to(folder).as_posix() for path in paths], labels.tolist(), classes],
    }
    target = pathlib.Path(__file__).with_name("utils.json")
    target.write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
