"""Downloads against a local server: only the right bytes ever get a name in the cache."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

import minikeras.keras.datasets
from minikeras.errors import DatasetUnavailableError
from minikeras.files import durable
from minikeras.keras.datasets import download, locate
from minikeras.keras.datasets.policy import Attempt, Policy


def cached(home):
    """Names of all files in the cache, temporary ones included."""
    return sorted(path.name for path in home.rglob("*") if path.is_file())


def test_a_good_file_is_downloaded_decompressed_and_cached(server, tiny, gz, idx, home, policy):
    dataset = tiny(server.serve("/tiny.gz", gz))
    assert locate.find((dataset,), policy=policy)[1] == {"tiny-idx3-ubyte": idx}
    assert (home / "datasets" / "tiny" / "tiny-idx3-ubyte").read_bytes() == idx
    assert cached(home) == ["tiny-idx3-ubyte"]


def test_a_cached_file_is_not_downloaded_again(server, tiny, gz, policy):
    dataset = tiny(server.serve("/tiny.gz", gz))
    for _ in range(3):
        locate.find((dataset,), policy=policy)
    assert server.requests == ["/tiny.gz"]


def test_after_a_404_the_second_mirror_is_used_and_the_first_is_not_asked_again(server, tiny, gz, idx, policy):
    dataset = tiny(server.url + "/missing.gz", server.serve("/tiny.gz", gz))
    assert locate.find((dataset,), policy=policy)[1]["tiny-idx3-ubyte"] == idx
    assert server.requests == ["/missing.gz", "/tiny.gz"]


def test_a_truncated_download_never_gets_the_cache_name(server, tiny, gz, home, policy):
    dataset = tiny(server.serve("/tiny.gz", gz[:-9], announce=len(gz)))
    with pytest.raises(DatasetUnavailableError, match="cut short|connection closed"):
        locate.find((dataset,), policy=policy)
    assert cached(home) == []


def test_a_broken_transfer_is_tried_again_three_times_in_all(server, tiny, idx, home, policy):
    dataset = tiny(server.serve("/tiny", idx[:5], announce=len(idx)))
    with pytest.raises(DatasetUnavailableError, match="connection closed after 5 of 28 bytes"):
        locate.find((dataset,), policy=policy)
    assert server.requests == ["/tiny"] * 3
    assert cached(home) == []


def test_a_wrong_hash_is_refused_and_the_next_mirror_used(server, tiny, gz, idx, home, policy):
    wrong = gzip.compress(idx[:-1] + b"\xff")
    dataset = tiny(server.serve("/wrong.gz", wrong), server.serve("/tiny.gz", gz))
    assert locate.find((dataset,), policy=policy)[1]["tiny-idx3-ubyte"] == idx
    dataset = tiny(server.serve("/wrong.gz", wrong), content=idx[:-1] + b"\xfe")
    with pytest.raises(DatasetUnavailableError, match="SHA-256 is"):
        locate.find((dataset,), policy=policy)
    assert cached(home) == ["tiny-idx3-ubyte"]
    assert server.requests.count("/wrong.gz") == 2


def test_a_server_that_does_not_answer_costs_one_time_limit(server, tiny, gz, idx, policy):
    attempts: list[Attempt] = []
    silent = server.hang("/slow.gz")
    found = locate.fetch(tiny(silent, server.serve("/tiny.gz", gz)), attempts, policy._replace(read_seconds=2.0))
    assert found == {"tiny-idx3-ubyte": idx}
    assert attempts == [Attempt(silent, "no answer within the time limit")]


def test_a_transfer_that_trickles_is_given_up_at_the_total_limit(server, tiny, gz, policy):
    dataset = tiny(server.serve("/tiny.gz", gz))
    with pytest.raises(DatasetUnavailableError, match="too slow"):
        locate.find((dataset,), policy=policy._replace(total_seconds=-1.0))


def test_an_interrupted_download_leaves_nothing_behind(server, tiny, gz, idx, home, policy, monkeypatch):
    def interrupted(*_):
        yield idx[:7]
        raise KeyboardInterrupt

    monkeypatch.setattr(download, "_received", interrupted)
    with pytest.raises(KeyboardInterrupt):
        locate.find((tiny(server.serve("/tiny", gz)),), policy=policy)
    assert cached(home) == []


def test_what_a_killed_process_left_behind_is_removed_once_it_is_old(server, tiny, gz, home, policy):
    directory = home / "datasets" / "tiny"
    directory.mkdir(parents=True, mode=0o700)
    old, young = (directory / f".tiny-idx3-ubyte.tmp-4194304-{end}" for end in ("aa", "bb"))  # no process has this number
    for leftover in (old, young):
        leftover.write_bytes(b"half")
    os.utime(old, (0, 0))
    locate.find((tiny(server.serve("/tiny.gz", gz)),), policy=policy)
    assert cached(home) == [young.name, "tiny-idx3-ubyte"]


@pytest.mark.slow
def test_four_processes_that_download_at_once_all_get_the_file(server, tiny, gz, home):
    file = tiny(server.serve("/tiny.gz", gz)).files[0]
    program = f"""
from minikeras.keras.datasets import locate
from minikeras.keras.datasets.catalogue import DataFile, Dataset
from minikeras.keras.datasets.policy import Policy
dataset = Dataset("tiny", (DataFile(*{tuple(file)!r}),), "none", (2, 2))
print(len(locate.find((dataset,), policy=Policy(loopback_http=True))[1]["tiny-idx3-ubyte"]))
"""
    root = Path(minikeras.keras.datasets.__file__).resolve().parents[3]
    processes = [
        subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    results = [process.communicate(timeout=300) for process in processes]
    assert [out.strip() for out, _ in results] == [b"28"] * 4, results
    assert cached(home) == ["tiny-idx3-ubyte"]


def test_a_decompression_bomb_is_stopped_at_the_expected_size(server, tiny, home, policy):
    bomb = gzip.compress(bytes(20_000_000))
    assert len(bomb) < 60_000
    with pytest.raises(DatasetUnavailableError, match="more than the expected 28 bytes"):
        locate.find((tiny(server.serve("/tiny.gz", bomb)),), policy=policy)
    assert cached(home) == []


def test_a_file_announced_too_large_is_not_downloaded(server, tiny, gz, policy):
    dataset = tiny(server.serve("/tiny", gz, announce=10**12))
    with pytest.raises(DatasetUnavailableError, match="announces 1000000000000 bytes"):
        locate.find((dataset,), policy=policy)


def test_plain_http_is_refused_before_any_connection(server, tiny, gz):
    dataset = tiny(server.serve("/tiny.gz", gz))
    with pytest.raises(DatasetUnavailableError, match="only https"):
        locate.find((dataset,))
    assert server.requests == []


@pytest.mark.parametrize("target", ["http://example.invalid/tiny.gz", "file:///etc/hostname", "ftp://127.0.0.1/x"])
def test_a_redirect_away_from_https_is_refused(server, tiny, target, policy):
    with pytest.raises(DatasetUnavailableError, match="only https|not allowed"):
        locate.find((tiny(server.redirect("/tiny.gz", target)),), policy=policy)


def test_a_closed_port_is_reported_once_per_mirror_and_without_a_pause(tiny, policy, monkeypatch):
    dataset = tiny("http://127.0.0.1:9/tiny.gz", "http://localhost:9/tiny.gz")
    pauses: list[float] = []
    monkeypatch.setattr(download.time, "sleep", pauses.append)
    with pytest.raises(DatasetUnavailableError, match="127.0.0.1:9/tiny.gz: .*refused"):
        locate.find((dataset,), policy=policy)
    assert pauses == []


def test_an_unknown_host_is_reported_as_a_missing_network(tiny, monkeypatch):
    def no_network(*_, **__):
        raise download.socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(download.socket, "getaddrinfo", no_network)
    monkeypatch.setattr(download.urllib.request, "getproxies", dict)
    attempts: list[Attempt] = []
    assert locate.fetch(tiny("https://example.invalid/tiny.gz"), attempts) is None
    assert [attempt.reason for attempt in attempts] == ["no network, or unknown host (Name or service not known)"]


def test_two_silent_mirrors_cost_twenty_seconds_at_most():
    assert 2 * Policy().connect_seconds <= 20
    assert Policy().read_seconds <= 20
    assert Policy().total_seconds < durable.STALE_SECONDS


def test_nothing_is_downloaded_when_the_machine_is_declared_offline(server, tiny, gz, policy, monkeypatch):
    monkeypatch.setenv("MINIKERAS_OFFLINE", "1")
    with pytest.raises(DatasetUnavailableError, match="MINIKERAS_OFFLINE is set"):
        locate.find((tiny(server.serve("/tiny.gz", gz)),), policy=policy)
    assert server.requests == []
