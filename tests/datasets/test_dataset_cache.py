"""The cache: private, never trusted without a hash, never replaced by a shared directory."""

import errno
import os

import pytest

from minikeras.errors import DatasetUnavailableError, LoadError
from minikeras.files import cache
from minikeras.keras.datasets import catalogue


@pytest.fixture
def served(server, tiny, gz):
    """The tiny dataset with a working mirror."""
    return tiny(server.serve("/tiny.gz", gz))


def test_a_corrupt_cached_file_is_fetched_again(served, idx, home):
    directory = home / "datasets" / "tiny"
    directory.mkdir(parents=True, mode=0o700)
    (directory / "tiny-idx3-ubyte").write_bytes(idx[:-1] + b"\xff")
    assert catalogue.find((served,))[1]["tiny-idx3-ubyte"] == idx
    assert (directory / "tiny-idx3-ubyte").read_bytes() == idx


def test_a_corrupt_cached_file_does_not_hide_a_good_copy_elsewhere(served, server, idx, home, tmp_path, monkeypatch):
    (home / "datasets" / "tiny").mkdir(parents=True, mode=0o700)
    (home / "datasets" / "tiny" / "tiny-idx3-ubyte").write_bytes(b"")
    (tmp_path / "tiny-idx3-ubyte").write_bytes(idx)
    monkeypatch.setenv("MINIKERAS_DATA_PATH", str(tmp_path))
    assert catalogue.find((served,))[1]["tiny-idx3-ubyte"] == idx
    assert server.requests == []


def test_a_cache_that_cannot_be_created_is_an_error_and_not_a_temporary_directory(served, server, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("MINIKERAS_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(DatasetUnavailableError, match="cannot write to the cache"):
        catalogue.find((served,))
    assert server.requests == []


def test_a_read_only_cache_is_named_as_the_reason(served, home, monkeypatch):
    system_open = os.open

    def read_only(path, flags, *arguments, **keywords):
        if flags & os.O_CREAT and str(home) in str(path):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return system_open(path, flags, *arguments, **keywords)

    monkeypatch.setattr(cache.os, "open", read_only)
    with pytest.raises(DatasetUnavailableError, match="Read-only file system"):
        catalogue.find((served,))


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_cache_directories_are_private_and_shared_ones_are_refused(home):
    directory = home / "datasets" / "tiny"
    cache.make_private(directory)
    assert [level.stat().st_mode & 0o777 for level in (home, home / "datasets", directory)] == [0o700] * 3
    directory.chmod(0o777)
    with pytest.raises(LoadError, match="writable by everyone; set MINIKERAS_HOME"):
        cache.make_private(directory)


@pytest.mark.skipif(os.name != "posix", reason="symbolic links")
def test_a_cache_directory_that_is_a_symbolic_link_is_refused(home, tmp_path):
    home.mkdir(mode=0o700)
    (home / "datasets").symlink_to(tmp_path)
    with pytest.raises(LoadError, match="is a symbolic link"):
        cache.make_private(home / "datasets" / "tiny")


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_offline_follows_the_environment(value, expected, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", value)
    assert cache.offline() is expected
