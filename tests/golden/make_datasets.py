"""What Keras's loaders make of small files, recorded: `KERAS_BACKEND=jax python tests/golden/make_datasets.py`."""

import io
import json
import pathlib
import pickle
import tempfile
import zipfile

import numpy as np
from keras.src.datasets import imdb, reuters

OPTIONS = [
    {},
    {"num_words": 12, "skip_top": 5},
    {"maxlen": 5},
    {"start_char": None, "oov_char": None, "index_from": 2, "num_words": 9},
    {"start_char": None, "index_from": 0, "seed": 4},
]


def texts(seed: int, count: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(1, 20, rng.integers(2, 9)).tolist() for _ in range(count)]


def object_file(rows: list[list[int]]) -> bytes:
    """An .npy file of an array of lists, as NumPy writes it without functions beside its own."""
    array = np.empty(len(rows), object)
    array[:] = rows
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": array.shape})
    return header.getvalue() + pickle.dumps(array, protocol=3)


def npz(**arrays: object) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            plain = io.BytesIO()
            if isinstance(array, np.ndarray):
                np.lib.format.write_array(plain, array)
            archive.writestr(f"{name}.npy", plain.getvalue() or object_file(array))
    return content.getvalue()


def loaded(module: object, content: bytes) -> list:
    path = pathlib.Path(tempfile.mkdtemp()) / "file.npz"
    path.write_bytes(content)
    module.get_file = lambda *_, **__: str(path)
    results = [module.load_data(**options) for options in OPTIONS]
    return [[[x.tolist(), y.tolist()] for x, y in parts] for parts in results]


def main() -> None:
    films = {"x_train": texts(0, 6), "y_train": [0, 1, 1, 0, 1, 0], "x_test": texts(1, 4), "y_test": [1, 0, 0, 1]}
    news = {"x": texts(2, 9), "y": [3, 4, 3, 19, 1, 0, 3, 4, 45]}
    arrays = lambda parts: {name: np.array(part) if name[0] == "y" else part for name, part in parts.items()}
    data = {
        "options": OPTIONS,
        "films": films,
        "imdb": loaded(imdb, npz(**arrays(films))),
        "news": news,
        "reuters": loaded(reuters, npz(**arrays(news))),
    }
    pathlib.Path(__file__).with_name("datasets.json").write_text(json.dumps(data) + "\n")


if __name__ == "__main__":
    main()
