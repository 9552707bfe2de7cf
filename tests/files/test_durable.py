"""Files appear whole or not at all, whatever fails on the way."""

import errno
import os
import stat
import subprocess
import sys
import time

import pytest

from minikeras.errors import CheckpointBusyError
from minikeras.files import durable


class FailingSystem:
    """The module `os`, of which the n-th call that changes files fails; `short` writes fewer bytes than asked."""

    CHANGING = ("open", "write", "fsync", "close", "replace", "unlink", "mkdir")

    def __init__(self, fail_at: int | None, error: int = errno.EIO, sticky: bool = False, short: bool = False) -> None:
        self.calls = 0
        self._fail_at, self._error, self._sticky, self._short = fail_at, error, sticky, short

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in self.CHANGING:
            return real

        def call(*arguments, **options):
            self.calls += 1
            due = self._fail_at is not None and (self.calls >= self._fail_at if self._sticky else self.calls == self._fail_at)
            if due:
                if name == "close":
                    real(*arguments, **options)
                raise OSError(self._error, os.strerror(self._error))
            if name == "write" and self._short:
                descriptor, data = arguments
                return real(descriptor, data[: max(1, len(data) // 3)])
            return real(*arguments, **options)

        return call


def inject(monkeypatch, *arguments, **options) -> FailingSystem:
    system = FailingSystem(*arguments, **options)
    monkeypatch.setattr(durable, "os", system)
    return system


def count_calls(monkeypatch, action) -> int:
    with monkeypatch.context() as patch:
        system = inject(patch, None)
        action()
    return system.calls


def test_a_folder_that_is_missing_is_told_by_the_name_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        durable.write_file(tmp_path / "absent" / "m.keras", b"abc")
    assert caught.value.filename == str(tmp_path / "absent" / "m.keras")


def test_a_file_is_written_with_all_its_bytes_even_if_the_system_takes_few_at_a_time(tmp_path, monkeypatch):
    inject(monkeypatch, None, short=True)
    durable.write_file(tmp_path / "a", b"0123456789" * 100)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 100


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
def test_the_old_file_stays_whichever_call_fails(tmp_path, monkeypatch, error, sticky):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    total = count_calls(monkeypatch, lambda: durable.write_file(target, b"newer"))
    assert total >= 7  # open, write, fsync, close, rename, and the folder's open, fsync, close
    for number in range(1, total + 1):
        target.write_bytes(b"old")
        with monkeypatch.context() as patch:
            inject(patch, number, error, sticky)
            with pytest.raises(OSError) as caught:
                durable.write_file(target, b"newer")
        assert caught.value.errno == error
        # Once the rename is done the new file is there; only the folder's fsync may still fail.
        assert target.read_bytes() in ((b"old",) if number <= total - 4 else (b"old", b"newer"))
        leftovers = [name for name in os.listdir(tmp_path) if name != "a"]
        assert not leftovers or sticky  # with a disk that fails for good the temporary file cannot be deleted either
        for name in leftovers:
            os.unlink(tmp_path / name)


def test_an_error_within_the_block_leaves_no_trace(tmp_path):
    with pytest.raises(KeyboardInterrupt), durable.atomic_file(tmp_path / "a") as output:
        output.write(b"half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"untouched")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    durable.write_file(tmp_path / "a", b"new")
    assert (tmp_path / "elsewhere").read_bytes() == b"untouched"
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "a").read_bytes() == b"new"


def test_permissions_are_those_of_the_file_that_is_replaced(tmp_path):
    durable.write_file(tmp_path / "a", b"1")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644 & ~mask
    (tmp_path / "a").chmod(0o640)
    durable.write_file(tmp_path / "a", b"2")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_everything_is_on_the_disk_before_the_name_is_and_the_name_before_the_return(tmp_path, monkeypatch):
    order = []

    class Watching(FailingSystem):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            if name in ("fsync", "replace"):
                return lambda *arguments: (order.append(name), found(*arguments))[1]
            return found

    monkeypatch.setattr(durable, "os", Watching(None))
    durable.write_file(tmp_path / "a", b"1")
    assert order == ["fsync", "replace", "fsync"]
    order.clear()
    durable.write_file(tmp_path / "a", b"1", durable=False)
    assert order == ["replace"]


def test_several_files_wait_for_the_disk_once_and_get_their_names_in_turn(tmp_path, monkeypatch):
    order = []

    class Watching(FailingSystem):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            if name in ("sync", "fsync", "replace"):
                return lambda *arguments: (order.append((name, *map(str, arguments[1:]))), found(*arguments))[1]
            return found

    monkeypatch.setattr(durable, "os", Watching(None))
    durable.write_files(tmp_path, {"b": b"1", "a": b"2"})
    assert order == [("sync",), ("replace", str(tmp_path / "b")), ("replace", str(tmp_path / "a")), ("fsync",)]
    assert (tmp_path / "b").read_bytes() == b"1" and (tmp_path / "a").read_bytes() == b"2"


def test_of_several_files_none_is_there_in_part_whichever_call_fails(tmp_path, monkeypatch):
    files = {"b": b"whole b", "a": b"whole a"}
    total = count_calls(monkeypatch, lambda: durable.write_files(tmp_path, files))
    for number in range(1, total + 1):
        for path in tmp_path.iterdir():
            path.unlink()
        with monkeypatch.context() as patch:
            inject(patch, number)
            with pytest.raises(OSError):
                durable.write_files(tmp_path, files)
        found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert found in ({}, {"b": b"whole b"}, {"a": b"whole a"}, files)


def test_temporary_files_of_dead_processes_are_removed_after_an_hour(tmp_path):
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True, timeout=300
    )
    dead, alive, other = f".a.tmp-{child.stdout.strip()}-0", f".a.tmp-{os.getpid()}-0", "a.tmp-notes"
    for name in (dead, alive, other):
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    (tmp_path / (dead + "1")).write_bytes(b"")  # dead, but young
    durable.write_file(tmp_path / "b", b"")
    assert sorted(os.listdir(tmp_path)) == sorted([alive, other, dead + "1", "b"])


def test_folders_are_made_with_those_above_them(tmp_path):
    durable.make_directory(tmp_path / "a" / "b")
    durable.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_second_writer_is_told_that_the_folder_is_busy(tmp_path):
    message = "has been writing here for over 0.05 s"
    with (
        durable.writer_lock(tmp_path),
        pytest.raises(CheckpointBusyError, match=message),
        durable.writer_lock(tmp_path, patience=0.05),
    ):
        pytest.fail("two writers at once")
    with durable.writer_lock(tmp_path):
        pass
