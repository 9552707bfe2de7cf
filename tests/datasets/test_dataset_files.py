"""`get_file`: verified, cached, and unpacked without letting an archive out of its directory."""

import hashlib
import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from minikeras.errors import DatasetUnavailableError, InvalidArgumentError, LoadError
from minikeras.keras.datasets import download, get_file


def sha256(content):
    """Hash as `get_file` wants it."""
    return hashlib.sha256(content).hexdigest()


def tar(*members, mode="w:gz"):
    """A tar archive of (name, type, content or link target)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = content
                archive.addfile(info)
    return buffer.getvalue()


def zipped(*members):
    """A zip archive of (name or ZipInfo, content)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def zip_link():
    """A zip member that says it is a symbolic link."""
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def test_a_file_is_downloaded_once_and_its_path_returned(server, home):
    url = server.serve("/data.csv", b"1,2\n")
    for _ in range(2):
        path = get_file("data.csv", url, file_hash=sha256(b"1,2\n"))
    assert Path(path) == home / "datasets" / "data.csv"
    assert Path(path).read_bytes() == b"1,2\n"
    assert server.requests == ["/data.csv"]


def test_a_changed_cached_file_is_replaced(server):
    url = server.serve("/data.csv", b"1,2\n")
    path = Path(get_file("data.csv", url, file_hash=sha256(b"1,2\n")))
    path.write_bytes(b"9,9\n")
    get_file("data.csv", url, file_hash=sha256(b"1,2\n"))
    assert path.read_bytes() == b"1,2\n"


def test_a_gzipped_file_is_kept_as_it_came(server, gz):
    path = get_file("data.gz", server.serve("/data.gz", gz), file_hash=sha256(gz))
    assert Path(path).read_bytes() == gz


def test_mirrors_are_tried_in_turn_and_all_named_in_the_error(server):
    bad, worse = server.url + "/one", server.serve("/two", b"x")
    with pytest.raises(DatasetUnavailableError, match=r"/one: 404 (.|\n)*/two: SHA256"):
        get_file("data", [bad, worse], file_hash="0" * 64)


@pytest.mark.parametrize(
    "options",
    [
        {"file_hash": ""},
        {"file_hash": "g" * 64},
        {"md5_hash": "0" * 64},
        {"file_hash": "0" * 32, "hash_algorithm": "sha256"},
        {"file_hash": "0" * 40},
    ],
)
def test_anything_but_a_sha256_or_an_md5_is_refused(options):
    with pytest.raises(InvalidArgumentError, match="64 hexadecimal digits, an MD5 32"):
        get_file("data", "https://example.org/data", **options)


def test_other_arguments_are_checked_before_anything_is_downloaded():
    with pytest.raises(InvalidArgumentError, match="hash_algorithm is 'sha1'"):
        get_file("data", "https://example.org/data", hash_algorithm="sha1")
    with pytest.raises(InvalidArgumentError, match="origin is missing"):
        get_file("data")


def test_an_md5_is_checked_too(server):
    url, md5 = server.serve("/data.csv", b"1,2\n"), hashlib.md5(b"1,2\n").hexdigest()
    assert Path(get_file("d", url, md5_hash=md5)).read_bytes() == b"1,2\n"
    with pytest.raises(DatasetUnavailableError, match="MD5 hash of"):
        get_file("other", url, md5_hash="0" * 32)


def test_without_a_hash_a_warning_tells_the_one_that_was_found(server):
    url = server.serve("/data.csv", b"1,2\n")
    with pytest.warns(UserWarning, match=f"give file_hash='{sha256(b'1,2' + bytes([10]))}'"):
        path = get_file(origin=url)
    assert Path(path).name == "data.csv"
    assert get_file(origin=url) == path and len(server.requests) == 1


def test_a_download_can_be_forced_and_go_to_another_directory(server, tmp_path, monkeypatch):
    url = server.serve("/data.csv", b"1,2\n")
    options = {"file_hash": sha256(b"1,2\n"), "cache_dir": tmp_path / "other", "cache_subdir": "a/b"}
    path = get_file("data.csv", url, **options)
    assert Path(path) == tmp_path / "other" / "a" / "b" / "data.csv"
    assert get_file("data.csv", url, force_download=True, **options) == path and len(server.requests) == 2
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="force_download is set"):
        get_file("data.csv", url, force_download=True, **options)
    assert get_file("data.csv", url, **options) == path


def test_what_was_unpacked_from_an_older_archive_is_replaced(server):
    for content in (b"old", b"new"):
        archive = tar(("a", tarfile.REGTYPE, content))
        url = server.serve("/set.tar.gz", archive)
        root = Path(get_file("set.tar.gz", url, file_hash=sha256(archive), untar=True))
        assert root.name == "set_extracted" and (root / "a").read_bytes() == content


def test_only_the_formats_that_were_named_are_unpacked(server):
    archive = zipped(("a", b"a"))
    options = {"origin": server.serve("/set.zip", archive), "file_hash": sha256(archive)}
    for given in ({"untar": True}, {"extract": True, "archive_format": "tar"}):
        with pytest.raises(LoadError, match="is no tar archive"):
            get_file(**options, **given)
    with pytest.raises(InvalidArgumentError, match="archive_format is 'rar'"):
        get_file(**options, extract=True, archive_format="rar")
    assert (Path(get_file(**options, extract=True, archive_format=["tar", "zip"])) / "a").read_bytes() == b"a"


@pytest.mark.parametrize("fname", [".", "..", "../data", "a/b", "/etc/data", "a\\b", "c:data"])
def test_a_name_that_leaves_the_cache_is_refused(fname):
    with pytest.raises(LoadError, match="refused the name"):
        get_file(fname, "https://example.org/data", file_hash="0" * 64)
    with pytest.raises(LoadError, match="refused the name"):
        get_file("data", "https://example.org/data", file_hash="0" * 64, cache_subdir="../" + fname)


def test_a_missing_file_is_an_error_at_once_when_offline(server, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set"):
        get_file("data", server.serve("/data", b"x"), file_hash=sha256(b"x"))
    assert server.requests == []


@pytest.mark.parametrize(
    "archive",
    [
        tar(("set", tarfile.DIRTYPE, ""), ("set/a.txt", tarfile.REGTYPE, b"a"), ("b.txt", tarfile.REGTYPE, b"b")),
        tar(("./set/a.txt", tarfile.REGTYPE, b"a"), ("b.txt", tarfile.REGTYPE, b"b"), mode="w:xz"),
        zipped(("set/", b""), ("set/a.txt", b"a"), ("b.txt", b"b")),
    ],
    ids=["tar.gz", "tar.xz", "zip"],
)
def test_a_good_archive_is_unpacked_once(server, archive):
    url = server.serve("/set", archive)
    for _ in range(2):
        root = Path(get_file("set", url, file_hash=sha256(archive), extract=True))
    assert {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.txt")} == {
        "set/a.txt": b"a",
        "b.txt": b"b",
    }


@pytest.mark.parametrize(
    "archive",
    [
        tar(("good", tarfile.REGTYPE, b"a"), ("../evil", tarfile.REGTYPE, b"e")),
        tar(("/tmp/evil", tarfile.REGTYPE, b"e")),
        tar(("link", tarfile.SYMTYPE, "/tmp"), ("link/evil", tarfile.REGTYPE, b"e")),
        tar(("link", tarfile.LNKTYPE, "/etc/hostname")),
        tar(("device", tarfile.CHRTYPE, "")),
        tar(("pipe", tarfile.FIFOTYPE, "")),
        tar(("twice", tarfile.REGTYPE, b"a"), ("twice", tarfile.REGTYPE, b"b")),
        tar(("a\\..\\evil", tarfile.REGTYPE, b"e")),
        tar(("/".join("d" * 40), tarfile.REGTYPE, b"e")),
        tar(("bomb", tarfile.REGTYPE, bytes(2_000_000))),
        tar(("good", tarfile.REGTYPE, bytes(range(256)) * 40))[:-40],
        zipped(("../evil", b"e")),
        zipped((zip_link(), b"/tmp")),
        zipped(("bomb", bytes(2_000_000))),
        b"no archive at all",
    ],
    ids=[
        "parent", "absolute", "symbolic-link", "hard-link", "device", "pipe", "twice", "backslash", "deep", "bomb",
        "cut-short", "zip-parent", "zip-link", "zip-bomb", "no-archive",
    ],
)  # fmt: skip
def test_a_hostile_archive_is_refused_as_a_whole(server, archive, home, tmp_path):
    with pytest.raises(LoadError):
        get_file("set", server.serve("/set", archive), file_hash=sha256(archive), extract=True)
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["set"]
    assert not list(tmp_path.rglob("*evil*"))


def test_two_processes_may_unpack_the_same_archive(server, monkeypatch):
    archive = tar(("a", tarfile.REGTYPE, b"a"))
    url = server.serve("/set", archive)
    extract = download.unpack

    def other_process_first(source, target):
        extract(source, target)
        extract(source, target)

    monkeypatch.setattr(download, "unpack", other_process_first)
    root = Path(get_file("set", url, file_hash=sha256(archive), extract=True))
    assert [path.name for path in root.iterdir()] == ["a"]
    assert not list(root.parent.glob(".*tmp*"))
