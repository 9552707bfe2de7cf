"""Parsers for the file formats of the datasets: gzip, IDX, CSV and .npz; images as Keras' four arrays.

Declared sizes are compared with the expected ones before anything of that size is allocated. All errors are LoadErrors.
"""

import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from minikeras.errors import LoadError

_IDX_UINT8 = 0x08
_NPY_HEADER_BYTES = 1024
# The one header NumPy writes for such arrays. Matching it needs no evaluation of text from the file.
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '\|u1', 'fortran_order': False, 'shape': (\([0-9, ]+\)), ?\} *\n", re.DOTALL
)


def gunzip_chunks(chunks: Iterable[bytes], max_bytes: int, name: str) -> Iterator[bytes]:
    """Decompress a gzip stream piece by piece, never producing more than `max_bytes`; `name` is for the error message."""
    decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
    produced = 0
    for chunk in chunks:
        try:
            # One byte more than allowed is enough to see that the stream is too long.
            piece = decompressor.decompress(chunk, max_bytes - produced + 1)
        except zlib.error as error:
            raise LoadError(f"{name}: damaged gzip stream ({error})") from error
        produced += len(piece)
        if produced > max_bytes:
            raise LoadError(f"{name}: decompresses to more than the expected {max_bytes} bytes")
        if decompressor.unused_data:
            raise LoadError(f"{name}: bytes after the end of the gzip stream")
        yield piece
    if not decompressor.eof:
        raise LoadError(f"{name}: gzip stream is cut short after {produced} bytes of output")


def parse_idx(content: bytes, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """A writable array from an IDX file of unsigned bytes; a -1 at the front of the expected shape accepts any number.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), "labels", (-1,))
    array([7, 8, 9], dtype=uint8)
    """
    header_bytes = 4 + 4 * len(shape)
    if len(content) < header_bytes or content[:4] != bytes([0, 0, _IDX_UINT8, len(shape)]):
        raise LoadError(f"{name}: not an IDX file of unsigned bytes with {len(shape)} axes")
    declared = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, header_bytes, 4))
    if declared[1:] != shape[1:] or shape[0] not in (-1, declared[0]):
        raise LoadError(f"{name}: IDX header declares the shape {declared}, expected {shape}")
    if len(content) != header_bytes + math.prod(declared):
        raise LoadError(f"{name}: IDX header declares {math.prod(declared)} bytes, found {len(content) - header_bytes}")
    array: NDArray[np.uint8] = np.frombuffer(content, np.uint8, offset=header_bytes).reshape(declared).copy()
    return array


def parse_csv(content: bytes, name: str, shape: tuple[int, int]) -> NDArray[np.float64]:
    """A writable table of numbers in scikit-learn's CSV form, whose first line may be `rows,columns,class names...`.

    >>> parse_csv(b"2,1,no,yes\\n0.5,0\\n1.5,1\\n", "tiny.csv", (2, 2))
    array([[0.5, 0. ],
           [1.5, 1. ]])
    """
    rows, columns = shape
    lines = content.splitlines()
    if len(lines) == rows + 1 and lines[0].startswith(b"%d,%d," % (rows, columns - 1)):
        del lines[0]
    table = [line.split(b",") for line in lines]
    if len(table) != rows or any(len(row) != columns for row in table):
        raise LoadError(f"{name}: expected {rows} lines of {columns} numbers, found {len(table)} lines")
    try:
        return np.array(table).astype(np.float64)
    except ValueError as error:
        raise LoadError(f"{name}: an entry is not a number ({str(error)[:80]})") from error


def parse_npz(content: bytes, name: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[np.uint8]]:
    """Writable uint8 arrays of an .npz file, without pickle; `shapes` names all that the file has to hold."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if len(archive.infolist()) != len(members) or set(members) != {f"{key}.npy" for key in shapes}:
                raise LoadError(f"{name}: expected the arrays {sorted(shapes)}, found {sorted(members)[:6]}")
            return {key: _read_npy(archive, members[f"{key}.npy"], f"{name}, {key}", shape) for key, shape in shapes.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"{name}: damaged .npz file ({str(error)[:120]})") from error


def _read_npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """One member of an .npz file; its declared sizes are checked before its data are decompressed."""
    size = math.prod(shape)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise LoadError(f"{name}: compression method {member.compress_type}, expected stored or deflated")
    if not size < member.file_size <= size + _NPY_HEADER_BYTES:
        raise LoadError(f"{name}: declares {member.file_size} bytes, expected {size} and a short header")
    with archive.open(member) as stream:
        # Reading to the end of the member makes zipfile compare its CRC.
        data = stream.read(member.file_size + 1)
    header_end = 10 + int.from_bytes(data[8:10], "little")
    header = _NPY_HEADER.fullmatch(data[:header_end])
    declared = " ".join(header[1].decode().split()) if header else "another dtype, order or version"
    if declared != str(shape):
        raise LoadError(f"{name}: expected uint8 of shape {shape}, found {declared[:60]}")
    if len(data) != header_end + size:
        raise LoadError(f"{name}: expected {size} bytes of data, found {len(data) - header_end}")
    array: NDArray[np.uint8] = np.frombuffer(data, np.uint8, offset=header_end).reshape(shape).copy()
    return array


Split = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def images_from_idx(contents: Mapping[str, bytes], image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`, writable, from the bytes of the four IDX files of MNIST and its look-alikes."""
    train, test = (_idx_split(contents, prefix, image_shape) for prefix in ("train", "t10k"))
    return train, test


def _idx_split(contents: Mapping[str, bytes], prefix: str, image_shape: tuple[int, int]) -> Split:
    images_name, labels_name = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    images = parse_idx(contents[images_name], images_name, (-1, *image_shape))
    labels = parse_idx(contents[labels_name], labels_name, (-1,))
    if len(images) != len(labels):
        raise LoadError(f"{images_name} holds {len(images)} images, but {labels_name} holds {len(labels)} labels")
    return images, labels


def images_from_npz(content: bytes, name: str, train: int, test: int, image_shape: tuple[int, int]) -> tuple[Split, Split]:
    """`(x_train, y_train), (x_test, y_test)`, writable, from the verified bytes of an .npz file in Keras' form."""
    shapes = {"x_train": (train, *image_shape), "y_train": (train,), "x_test": (test, *image_shape), "y_test": (test,)}
    arrays = parse_npz(content, name, shapes)
    return (arrays["x_train"], arrays["y_train"]), (arrays["x_test"], arrays["y_test"])
