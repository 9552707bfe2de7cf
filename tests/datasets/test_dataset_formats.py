"""gzip streams: never more than is expected comes out, and only LoadError."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minikeras.errors import LoadError
from minikeras.keras.datasets.download import gunzip

GOOD = gzip.compress(bytes(range(200)))


def test_gunzip_returns_the_data():
    assert gunzip(GOOD, 200, "data") == bytes(range(200))


@pytest.mark.parametrize(
    ("stream", "limit", "reason"),
    [
        (GOOD, 199, "more than the expected 199"),
        (GOOD[:-1], 200, "cut short"),
        (GOOD + b"x", 200, "bytes follow it"),
        (b"not gzip", 200, "damaged"),
        (b"", 200, "cut short"),
    ],
)
def test_gunzip_refuses_streams_that_are_not_whole(stream, limit, reason):
    with pytest.raises(LoadError, match=reason):
        gunzip(stream, limit, "data")


@given(st.integers(0, 300), st.binary(max_size=6))
def test_damaged_streams_raise_nothing_but_load_errors(at, damage):
    try:
        gunzip(GOOD[:at] + damage + GOOD[at + len(damage) :], 200, "data")
    except LoadError as error:
        assert len(str(error)) <= 300
