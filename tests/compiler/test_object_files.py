"""Machine code on the disk: later processes read it, and nothing that another user could have written, or that is damaged."""

from __future__ import annotations

import ctypes
import os

import pytest

pytest.importorskip("llvmlite")

from minikeras import warm_up
from minikeras.compiler.executors.llvm import jit, object_files
from minikeras.errors import LoadError
from minikeras.files import cache

TEXT = "define i64 @answer() {\n  ret i64 42\n}\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIKERAS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def compiled(text=TEXT):
    """What the function says, and whether it was compiled: by a compiler as a new process has it."""
    compiler, passes = jit._Compiler(), []
    optimized = compiler.optimized
    compiler.optimized = lambda text: (passes.append(text), optimized(text))[1]
    compiler.load(text)
    address = compiler.engine.get_function_address("answer")
    return ctypes.CFUNCTYPE(ctypes.c_int64)(address)(), bool(passes)


def test_what_is_compiled_once_is_read_by_later_processes(home):
    assert [compiled() for _ in range(3)] == [(42, True), (42, False), (42, False)]
    assert compiled(TEXT.replace("42", "43")) == (43, True)
    assert len(list(object_files.folder().iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: code[:40] + b"?" + code[41:], lambda code: b""])
def test_a_damaged_file_is_made_anew(home, damage):
    compiled()
    (path,) = object_files.folder().iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert [compiled(), compiled()] == [(42, True), (42, False)]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_nothing_is_read_where_others_may_write(home, mode):
    compiled()
    object_files.folder().chmod(mode)
    assert [compiled(), compiled()] == [(42, True)] * 2


def test_code_under_the_name_of_other_code_is_not_run(home):
    compiled()
    (path,) = object_files.folder().iterdir()
    other = TEXT.replace("42", "43")
    compiled(other)
    (second,) = set(object_files.folder().iterdir()) - {path}
    path.write_bytes(second.read_bytes())
    assert compiled() == (42, True)


@pytest.mark.skipif(os.name != "posix", reason="users of POSIX")
def test_a_user_without_a_home_directory_gets_none_in_the_present_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINIKERAS_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as of a user who is in no list and has no HOME
    assert [compiled(), compiled()] == [(42, True)] * 2
    with pytest.raises(LoadError, match="MINIKERAS_HOME"):
        cache.make_private(cache.home())
    assert not list(tmp_path.iterdir())


def test_without_a_folder_all_is_compiled(home):
    home.write_text("no folder")
    assert [compiled(), compiled()] == [(42, True)] * 2


def test_there_are_only_so_many(home, monkeypatch):
    monkeypatch.setattr(object_files, "MOST", 2)
    for number in range(5):
        compiled(TEXT.replace("42", str(number)))
        assert len(list(object_files.folder().iterdir())) <= 2


def test_warming_up_says_what_it_does(home, monkeypatch, capsys):
    monkeypatch.setattr(warm_up, "OPTIMIZERS", ("SGD",))
    warm_up.main()
    first, last = capsys.readouterr().out.splitlines()
    assert first == "1 of 1: SGD" and str(object_files.folder()) in last
    monkeypatch.setattr(warm_up, "missing", lambda: ["llvmlite"])
    warm_up.main()
    assert "llvmlite not installed" in capsys.readouterr().out
