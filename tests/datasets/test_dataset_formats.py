"""Parsers: the declared sizes decide before anything is allocated, and only LoadError comes out."""

import gzip
import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minikeras.errors import LoadError
from minikeras.keras.datasets.formats import gunzip_chunks, parse_csv, parse_idx, parse_npz

SHAPES = {"x": (2, 3), "y": (2,)}


def npz(**arrays):
    """Bytes of an .npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


GOOD_NPZ = npz(x=np.arange(6, dtype=np.uint8).reshape(2, 3), y=np.arange(2, dtype=np.uint8))
GOOD_IDX = bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])
GOOD_GZIP = gzip.compress(bytes(range(200)))


def test_gunzip_returns_the_data_however_the_stream_is_cut():
    for step in (1, 7, 10_000):
        chunks = [GOOD_GZIP[at : at + step] for at in range(0, len(GOOD_GZIP), step)]
        assert b"".join(gunzip_chunks(chunks, 200, "data")) == bytes(range(200))


@pytest.mark.parametrize(
    ("stream", "limit", "reason"),
    [
        (GOOD_GZIP, 199, "more than the expected 199"),
        (GOOD_GZIP[:-1], 200, "cut short"),
        (GOOD_GZIP + b"x", 200, "after the end"),
        (b"not gzip", 200, "damaged"),
        (b"", 200, "cut short"),
    ],
)
def test_gunzip_refuses_streams_that_are_not_whole(stream, limit, reason):
    with pytest.raises(LoadError, match=reason):
        list(gunzip_chunks([stream], limit, "data"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an IDX file"),
        (bytes([0, 0, 9, 1]) + GOOD_IDX[4:], "not an IDX file"),
        (bytes([0, 0, 8, 1, 255, 255, 255, 255, 7]), "declares 4294967295 bytes, found 1"),
        (GOOD_IDX + b"x", "declares 3 bytes, found 4"),
    ],
)
def test_an_idx_header_that_contradicts_the_file_is_refused(content, reason):
    with pytest.raises(LoadError, match=reason):
        parse_idx(content, "labels", (-1,))


def test_an_idx_file_of_another_shape_is_refused():
    with pytest.raises(LoadError, match=r"declares the shape \(3,\), expected \(4,\)"):
        parse_idx(GOOD_IDX, "labels", (4,))


@pytest.mark.parametrize("content", [b"1,2\n", b"1,2\n3,4\n5,6\n", b"1,2\n3\n", b"1,2\n3,x\n", b"\xff\n\x00\n"])
def test_a_table_of_another_size_or_with_words_in_it_is_refused(content):
    with pytest.raises(LoadError):
        parse_csv(content, "table", (2, 2))


def test_a_good_npz_gives_writable_arrays():
    arrays = parse_npz(GOOD_NPZ, "data", SHAPES)
    assert arrays["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert arrays["x"].flags.writeable


@pytest.mark.parametrize(
    "content",
    [
        npz(x=np.zeros((2, 3), np.uint8)),
        npz(x=np.zeros((2, 3), np.uint8), y=np.zeros(2, np.uint8), z=np.zeros(1, np.uint8)),
        npz(x=np.zeros((3, 2), np.uint8), y=np.zeros(2, np.uint8)),
        npz(x=np.zeros((2, 3), np.int8), y=np.zeros(2, np.uint8)),
        npz(x=np.zeros((3, 2), np.uint8).T, y=np.zeros(2, np.uint8)),
        npz(x=np.array([{}, {}], dtype=object), y=np.zeros(2, np.uint8)),
        npz(x=np.zeros(5_000_000, np.uint8), y=np.zeros(2, np.uint8)),
        GOOD_NPZ[:-30],
        b"",
    ],
)
def test_an_npz_with_other_arrays_is_refused(content):
    with pytest.raises(LoadError):
        parse_npz(content, "data", SHAPES)


def test_an_npz_whose_member_exists_twice_is_refused():
    buffer = io.BytesIO(GOOD_NPZ)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("x.npy", b"other")
    with pytest.raises(LoadError, match="expected the arrays"):
        parse_npz(buffer.getvalue(), "data", SHAPES)


@given(st.sampled_from([GOOD_NPZ, GOOD_IDX, GOOD_GZIP]), st.integers(0, 600), st.binary(max_size=6))
def test_damaged_files_raise_nothing_but_load_errors(content, at, damage):
    damaged = content[:at] + damage + content[at + len(damage) :]
    for parse in (
        lambda: parse_npz(damaged, "data", SHAPES),
        lambda: parse_idx(damaged, "data", (-1,)),
        lambda: parse_csv(damaged, "data", (2, 2)),
        lambda: list(gunzip_chunks([damaged], 200, "data")),
    ):
        try:
            parse()
        except LoadError as error:
            assert len(str(error)) <= 300
