"""With several ranks rank 0 downloads, the others wait and then read; a failure is that of all."""

import hashlib

import pytest

import minikeras as tf
from minikeras.distribute.communicator import ThreadCommunicator
from minikeras.errors import DatasetUnavailableError
from minikeras.keras.datasets import catalogue, download


def on_ranks(function, size=3):
    ranks = ThreadCommunicator(size, timeout=20.0)
    with tf.distribute.using(ranks):
        return ranks.run(function)


def told(function):
    """What a rank is told when a function fails there."""
    try:
        function()
    except DatasetUnavailableError as error:
        return str(error)


def test_a_dataset_is_downloaded_by_rank_0(server, tiny, gz, idx):
    dataset = tiny(server.serve("/tiny.gz", gz))
    found = on_ranks(lambda: catalogue.find((dataset,))[1])
    assert found == [{"tiny-idx3-ubyte": idx}] * 3
    assert server.requests == ["/tiny.gz"]


def test_a_file_is_downloaded_by_rank_0(server):
    url = server.serve("/data.csv", b"1,2,3")
    digest = hashlib.sha256(b"1,2,3").hexdigest()
    paths = on_ranks(lambda: download.get_file("data.csv", url, file_hash=digest))
    assert len(set(paths)) == 1 and server.requests == ["/data.csv"]


def test_a_failed_download_fails_on_all_ranks_with_its_reason(server, tiny):
    dataset = tiny(server.url + "/missing.gz")
    first, *others = on_ranks(lambda: told(lambda: catalogue.find((dataset,))))
    assert "404 Client Error" in first and not first.startswith("on rank")
    assert all(one == f"on rank 0, DatasetUnavailableError: {first}" for one in others)
    assert server.requests == ["/missing.gz"]


def test_a_failure_of_another_rank_fails_on_all(server, monkeypatch):
    url = server.serve("/data.csv", b"1,2,3")
    digest = hashlib.sha256(b"1,2,3").hexdigest()
    true = download._complete

    def fetched(*arguments):
        if tf.distribute.rank() == 2:
            raise OSError("the disk is full")
        return true(*arguments)

    monkeypatch.setattr(download, "_complete", fetched)

    def work():
        with pytest.raises(OSError) as found:
            download.get_file("data.csv", url, file_hash=digest)
        return str(found.value)

    assert on_ranks(work) == ["on rank 2, OSError: the disk is full"] * 2 + ["the disk is full"]


def test_what_lies_in_the_package_may_be_read_by_one_rank_alone():
    def work():
        if tf.distribute.rank() == 1:
            tf.keras.datasets.digits.load_data()
        tf.distribute.barrier()
        return True

    assert on_ranks(work) == [True] * 3
