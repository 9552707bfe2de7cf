"""Downloads against a local server: only the right bytes ever get a name in the cache."""

import gzip
import subprocess
import sys
from pathlib import Path

import pooch
import pytest

import minikeras.keras.datasets
from minikeras.errors import DatasetUnavailableError, MissingExtraError
from minikeras.keras.datasets import catalogue, download


def cached(home):
    """Names of all files in the cache, temporary ones included."""
    return sorted(path.name for path in home.rglob("*") if path.is_file())


def test_a_good_file_is_downloaded_decompressed_and_cached(server, tiny, gz, idx, home):
    dataset = tiny(server.serve("/tiny.gz", gz))
    assert catalogue.find((dataset,))[1] == {"tiny-idx3-ubyte": idx}
    assert (home / "datasets" / "tiny" / "tiny-idx3-ubyte").read_bytes() == idx
    assert cached(home) == ["tiny-idx3-ubyte"]


def test_a_cached_file_is_not_downloaded_again(server, tiny, gz):
    dataset = tiny(server.serve("/tiny.gz", gz))
    for _ in range(3):
        catalogue.find((dataset,))
    assert server.requests == ["/tiny.gz"]


def test_after_a_404_the_second_mirror_is_used_and_the_first_is_not_asked_again(server, tiny, gz, idx):
    dataset = tiny(server.url + "/missing.gz", server.serve("/tiny.gz", gz))
    assert catalogue.find((dataset,))[1]["tiny-idx3-ubyte"] == idx
    assert server.requests == ["/missing.gz", "/tiny.gz"]


def test_a_truncated_download_never_gets_the_cache_name(server, tiny, gz, home):
    dataset = tiny(server.serve("/tiny.gz", gz[:-9], announce=len(gz)))
    with pytest.raises(DatasetUnavailableError, match="broken"):
        catalogue.find((dataset,))
    assert cached(home) == []


def test_a_broken_transfer_is_tried_again_three_times_in_all(server, tiny, idx, home):
    dataset = tiny(server.serve("/tiny", idx[:5], announce=len(idx)))
    with pytest.raises(DatasetUnavailableError, match="5 bytes read, 23 more expected"):
        catalogue.find((dataset,))
    assert server.requests == ["/tiny"] * 3
    assert cached(home) == []


def test_a_wrong_hash_is_refused_and_the_next_mirror_used(server, tiny, gz, idx, home):
    wrong = gzip.compress(idx[:-1] + b"\xff")
    dataset = tiny(server.serve("/wrong.gz", wrong), server.serve("/tiny.gz", gz))
    assert catalogue.find((dataset,))[1]["tiny-idx3-ubyte"] == idx
    dataset = tiny(server.serve("/wrong.gz", wrong), content=idx[:-1] + b"\xfe")
    with pytest.raises(DatasetUnavailableError, match="does not match the known hash"):
        catalogue.find((dataset,))
    assert cached(home) == ["tiny-idx3-ubyte"]


def test_a_server_that_does_not_answer_is_left_for_the_next_one(server, tiny, gz, idx, monkeypatch):
    monkeypatch.setattr(download, "_SECONDS", (60.0, 2.0))
    assert catalogue.find((tiny(server.hang("/slow.gz"), server.serve("/tiny.gz", gz)),))[1] == {"tiny-idx3-ubyte": idx}
    assert server.requests == ["/slow.gz", "/tiny.gz"]


def test_an_interrupted_download_leaves_nothing_behind(server, tiny, idx, home, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(download._Limited, "flush", interrupted)
    with pytest.raises(KeyboardInterrupt):
        catalogue.find((tiny(server.serve("/tiny", idx)),))
    assert cached(home) == []


def test_a_missing_extra_is_told_unless_downloads_are_forbidden(server, tiny, gz, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    dataset = tiny(server.serve("/tiny.gz", gz))
    with pytest.raises(
        MissingExtraError, match=r"'tiny.gz' was asked for .* pip install 'minikeras\[datasets\]'.*home/datasets/tiny$"
    ):
        catalogue.find((dataset,))
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set"):
        catalogue.find((dataset,))


@pytest.mark.slow
def test_four_processes_that_download_at_once_all_get_the_file(server, tiny, gz, home):
    file = tiny(server.serve("/tiny.gz", gz)).files[0]
    program = f"""
from minikeras.keras.datasets import catalogue, download
from minikeras.keras.datasets.catalogue import DataFile, DatasetForm
download.ALLOWED = ("http://127.0.0.1",)
dataset = DatasetForm("tiny", (DataFile(*{tuple(file)!r}),), "none")
print(len(catalogue.find((dataset,))[1]["tiny-idx3-ubyte"]))
"""
    root = Path(minikeras.keras.datasets.__file__).resolve().parents[3]
    processes = [
        subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    results = [process.communicate(timeout=300) for process in processes]
    assert [out.strip() for out, _ in results] == [b"28"] * 4, results
    assert cached(home) == ["tiny-idx3-ubyte"]


def test_a_decompression_bomb_is_stopped_at_the_expected_size(server, tiny, home):
    bomb = gzip.compress(bytes(20_000_000))
    assert len(bomb) < 60_000
    with pytest.raises(DatasetUnavailableError, match="more than the expected 28 bytes"):
        catalogue.find((tiny(server.serve("/tiny.gz", bomb)),))
    assert cached(home) == []


def test_a_file_that_is_too_large_is_given_up_at_once(server, tiny):
    dataset = tiny(server.serve("/tiny", bytes(2_000_000)))
    with pytest.raises(DatasetUnavailableError, match="server sends more than the expected 28 bytes"):
        catalogue.find((dataset,))
    assert server.requests == ["/tiny"]


def test_plain_http_is_refused_before_any_connection(server, tiny, gz, monkeypatch):
    monkeypatch.setattr(download, "ALLOWED", ("https://",))
    dataset = tiny(server.serve("/tiny.gz", gz))
    with pytest.raises(DatasetUnavailableError, match="only https"):
        catalogue.find((dataset,))
    assert server.requests == []


@pytest.mark.parametrize("target", ["http://example.invalid/tiny.gz", "file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_a_redirect_away_from_https_is_refused(server, tiny, target):
    with pytest.raises(DatasetUnavailableError, match="only https|not allowed"):
        catalogue.find((tiny(server.redirect("/tiny.gz", target)),))


def test_without_a_network_nothing_is_tried_twice(server, tiny, monkeypatch):
    pauses = []
    monkeypatch.setattr(pooch.core.time, "sleep", pauses.append)
    monkeypatch.setattr(download, "ALLOWED", ("http://127.0.0.1:9/",))
    with pytest.raises(DatasetUnavailableError, match="127.0.0.1:9/tiny.gz: .*refused"):
        catalogue.find((tiny("http://127.0.0.1:9/tiny.gz"),))
    assert pauses == []


def test_nothing_is_downloaded_when_the_machine_is_declared_offline(server, tiny, gz, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set"):
        catalogue.find((tiny(server.serve("/tiny.gz", gz)),))
    assert server.requests == []
