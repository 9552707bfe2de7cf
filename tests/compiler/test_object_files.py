"""Machine code on the disk: later processes read it, and nothing that another user could have written, or that is damaged."""

import ctypes
import os
import signal
import time

import pytest
from faults.children import exit_code, forked

pytest.importorskip("llvmlite")

from minikeras import warm_up
from minikeras.compiler.executors.llvm import jit
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
    assert len(list(jit.folder().iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: code[:40] + b"?" + code[41:], lambda code: b""])
def test_a_damaged_file_is_made_anew(home, damage):
    compiled()
    (path,) = jit.folder().iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert [compiled(), compiled()] == [(42, True), (42, False)]


posix = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
two_users = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be two users")
USER, OTHER, GROUP = 40011, 40012, 40013
"""That this machine does not know."""


def forged():
    """The file of `TEXT`, whole to the last digit, with code that says 66."""
    compiled()
    (path,) = jit.folder().iterdir()
    compiler = jit._Compiler()
    code = bytes(compiler.machine.emit_object(compiler.optimized(TEXT.replace("42", "66"))))
    path.write_bytes(jit._digest(path.name, code) + code)
    assert compiled() == (66, False), "nothing but permissions tells this from the user's own"
    return path


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o750, 0o1777])
def test_nothing_is_read_where_others_may_enter(home, mode, caplog):
    forged()
    jit._warn.cache_clear()
    jit.folder().chmod(mode)
    assert [compiled(), compiled()] == [(42, True)] * 2
    (said,) = [record.message for record in caplog.records if str(jit.folder()) in record.message]
    assert "delete it" in said or "set MINIKERAS_HOME" in said


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770])
@pytest.mark.parametrize("level", [0, 1])
def test_nothing_is_read_where_others_may_move_a_folder_above(home, mode, level):
    forged()
    above = jit.folder().parents[level]
    before = above.stat().st_mode
    above.chmod(mode)
    try:
        assert compiled() == (42, True)
    finally:
        above.chmod(before)


@posix
def test_a_folder_above_in_which_others_may_only_add_is_no_harm(home):
    compiled()
    home.parent.chmod(0o1777)
    assert compiled() == (42, False)


@posix
@pytest.mark.parametrize("mode", [0o666, 0o660, 0o602])
def test_a_file_that_others_may_write_is_made_anew(home, mode):
    forged().chmod(mode)
    assert [compiled(), compiled()] == [(42, True), (42, False)]


def _symbolic(path):
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _hard(path):
    path.rename(path.parent.parent / "elsewhere")
    path.hardlink_to(path.parent.parent / "elsewhere")


def _pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


def _zeros(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def _holes(path):
    os.truncate(path, 1 << 36)


@posix
@pytest.mark.parametrize("kind", [_symbolic, _hard, _pipe, _zeros, _holes])
def test_what_is_no_plain_file_of_its_own_is_made_anew(home, kind):
    kind(forged())
    assert [compiled(), compiled()] == [(42, True), (42, False)]


@posix
def test_a_folder_in_the_place_of_a_file_stays_and_nothing_is_read(home):
    path = forged()
    path.unlink()
    path.mkdir(0o700)
    assert [compiled(), compiled()] == [(42, True)] * 2


@posix
def test_a_symbolic_link_in_the_place_of_the_folder_is_not_followed(home):
    forged()
    jit.folder().rename(home / "elsewhere")
    jit.folder().symlink_to(home / "elsewhere")
    assert compiled() == (42, True)


@two_users
@pytest.mark.parametrize("what", ["file", "folder", "home"])
def test_what_belongs_to_another_user_is_not_run(home, what):
    path = forged()
    os.chown({"file": path, "folder": path.parent, "home": home}[what], OTHER, OTHER)
    assert compiled() == (42, True)


@two_users
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_no_member_of_the_group_gets_code_run_by_swapping_the_folder(home, mode):
    """The home belongs to the user and his group: one of it puts his own folder, and takes it away, as fast as he can."""
    path = forged()
    theirs = home / "theirs"
    theirs.mkdir(0o700)
    (theirs / path.name).write_bytes(path.read_bytes())
    path.unlink()
    for place, owner in ((home, USER), (path.parent, USER), (theirs, OTHER), (theirs / path.name, OTHER)):
        os.chown(place, owner, GROUP)
    for level in home.parents[:-2]:
        level.chmod(level.stat().st_mode | 0o011)
    home.chmod(0o770)
    theirs.chmod(mode)
    (theirs / path.name).chmod(mode & 0o666)
    swapping = forked(lambda: _as(OTHER, lambda: _swap_for_ever(home)))
    try:
        assert exit_code(forked(lambda: _as(USER, lambda: _read_often(path.name))), patience=60) == 0
    finally:
        os.kill(swapping, signal.SIGKILL)
        os.waitpid(swapping, 0)


def _as(user, work):
    os.setgroups([GROUP])
    os.setresgid(GROUP, GROUP, GROUP)
    os.setresuid(user, user, user)
    work()


def _swap_for_ever(home):
    while True:
        for name, other in (("kernels", "mine"), ("theirs", "kernels"), ("kernels", "theirs"), ("mine", "kernels")):
            (home / name).rename(home / other)


def _read_often(name):
    until = time.monotonic() + 0.4
    while time.monotonic() < until:
        assert jit.read(name) is None


def test_code_under_the_name_of_other_code_is_not_run(home):
    compiled()
    (path,) = jit.folder().iterdir()
    other = TEXT.replace("42", "43")
    compiled(other)
    (second,) = set(jit.folder().iterdir()) - {path}
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
    monkeypatch.setattr(jit, "MOST", 2)
    for number in range(5):
        compiled(TEXT.replace("42", str(number)))
        assert len(list(jit.folder().iterdir())) <= 2


def test_warming_up_says_what_it_does(home, monkeypatch, capsys):
    monkeypatch.setattr(warm_up, "OPTIMIZERS", ("SGD",))
    warm_up.main()
    first, last = capsys.readouterr().out.splitlines()
    assert first == "1 of 1: SGD" and str(jit.folder()) in last
    monkeypatch.setattr(warm_up, "missing", lambda: ["llvmlite"])
    warm_up.main()
    assert "llvmlite not installed" in capsys.readouterr().out
