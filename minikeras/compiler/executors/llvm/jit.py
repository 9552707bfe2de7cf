"""From LLVM's language to machine code: kernels are compiled once in a process, for the processor that it runs on."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ....core import LONGEST, ForkSafeLock, cached_property, logger
from ....errors import LoadError, NotFoundError
from ....files import MEGABYTE, cache, read_file
from ....files.durable import remove, write_file

_lock = ForkSafeLock(patience=LONGEST)
"""Guards all use of LLVM: a forked process cannot restore the state of a call in progress, so a fork waits for it."""
_known: dict[str, int] = {}
"""The addresses of kernels, by their names."""


class _Compiler:
    """LLVM for this processor."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        processor, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        self.machine = target.create_target_machine(cpu=processor, features=features, opt=3, jit=True)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)
        self._made_by = repr((llvmlite.__version__, llvm.llvm_version_info, target.triple, processor, features))

    @cached_property
    def _passes(self) -> Any:
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        return llvm.create_pass_builder(self.machine, options)

    def optimized(self, text: str) -> Any:
        """A module after all passes."""
        module = llvm.parse_assembly(text)
        module.verify()
        self._passes.getModulePassManager().run(module, self._passes)
        return module

    def load(self, text: str, passes: bool = True) -> None:
        """Compile a module, or load it if an earlier process has compiled it; its functions then have addresses.

        Without `passes` instructions become machine code as they are: tiles of products in 0.06 s instead of 1.0, as fast ones.
        """
        name = hashlib.sha256((self._made_by + text).encode()).hexdigest()
        code = read(name)
        if code is None:
            code = bytes(self.machine.emit_object(self.optimized(text) if passes else llvm.parse_assembly(text)))
            keep(name, code)
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()


_compiler: _Compiler | None = None


def compiler() -> _Compiler:
    """LLVM, started at the first call."""
    global _compiler
    _compiler = _compiler or _Compiler()
    return _compiler


def addresses(kernels: Sequence[Any]) -> list[int]:
    """The addresses of the machine code of kernels.

    Args:
        kernels: objects whose `text` is a function `k`.
    """
    texts = [kernel.text for kernel in kernels]
    names = ["k" + hashlib.sha256(text.encode()).hexdigest()[:24] for text in texts]
    with _lock:
        new = {name: text.replace("@k(", f"@{name}(") for name, text in zip(names, texts, strict=True) if name not in _known}
        for name, text in new.items():
            compiler().load(text)
            _known[name] = compiler().engine.get_function_address(name)
        return [_known[name] for name in names]


def functions(text: str, names: Sequence[str]) -> list[int]:
    """Compile a module without passes, which would find nothing to do there; the addresses of its functions."""
    with _lock:
        compiler().load(text, passes=False)
        return [compiler().engine.get_function_address(name) for name in names]


def _is_x86() -> bool:
    return _triple().startswith("x86_64-")


def _is_arm() -> bool:
    return _triple().startswith(("aarch64-", "arm64-"))


@functools.cache
def _triple() -> str:
    with _lock:
        return str(llvm.get_default_triple())


@functools.cache
def vector_bytes() -> int:
    """The bytes of a vector of this processor."""
    with _lock:
        features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


def pause() -> tuple[str, str]:
    """The instruction by which a thread that spins leaves its processor's units to others, and its declaration."""
    if _is_x86():
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if _is_arm():
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "fence seq_cst", ""


_FLUSHING = """
define internal void @flush(ptr %job, ptr %saved) {
entry:
  %place = getelementptr i64, ptr %job, i64 FIELD
  %wanted = load i64, ptr %place
  SAVE
  ret void
}
define internal void @restore(ptr %saved) {
entry:
  RESTORE
  ret void
}
"""
_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
"""
_SAVE_X86 = """call void @llvm.x86.sse.stmxcsr(ptr %saved)
  %old = load i32, ptr %saved
  %flag = trunc i64 %wanted to i32
  %bits = mul i32 %flag, 32832
  %new = or i32 %old, %bits
  %cell = alloca i32
  store i32 %new, ptr %cell
  call void @llvm.x86.sse.ldmxcsr(ptr %cell)"""
_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
"""
_SAVE_ARM = """%old = call i64 @llvm.aarch64.get.fpcr()
  store i64 %old, ptr %saved
  %bits = shl i64 %wanted, 24
  %new = or i64 %old, %bits
  call void @llvm.aarch64.set.fpcr(i64 %new)"""
_RESTORE_ARM = """%old = load i64, ptr %saved
  call void @llvm.aarch64.set.fpcr(i64 %old)"""


def flushing(field: int) -> str:
    """`flush(job, saved)`: subnormal numbers count as 0 in this thread, if the field is 1. `restore(saved)` ends it."""
    declarations, save, restore = "", "", ""
    if _is_x86():
        declarations, save, restore = _X86, _SAVE_X86, "call void @llvm.x86.sse.ldmxcsr(ptr %saved)"
    elif _is_arm():
        declarations, save, restore = _ARM, _SAVE_ARM, _RESTORE_ARM
    return declarations + _FLUSHING.replace("FIELD", str(field)).replace("SAVE", save).replace("RESTORE", restore)


# Machine code on the disk ---------------------------------------------------------------------------------------------
#
# Later processes read the code that LLVM has compiled for this processor, a hundred times as fast.
#
# It is run, so only the user and root may have been able to write it: the folder and all above it are checked, then the
# file that was opened is. The digest finds damage. A key for it would lie in the same folder, and keep no one else out.

MOST = 4096
"""Files, of some 5 kB each; one more, and all are made anew."""
LARGEST = 16 * MEGABYTE


def folder() -> Path:
    """The folder of the files."""
    return cache.home() / "kernels"


def read(name: str) -> bytes | None:
    """The code of that name; None if there is none, or if it is not the code that the user has written under it."""
    try:
        with cache.own_folder(folder()) as inside:
            content = read_file(folder() / name if inside is None else name, LARGEST, follow=False, own=inside)
    except (NotFoundError, OSError):
        return None
    except LoadError as error:
        _warn(str(error))
        return None
    code = bytes(content[32:])
    return code if _digest(name, code) == content[:32] else None


@functools.cache
def _warn(reason: str) -> None:
    """Say once why kernels are compiled again."""
    logger.warning("Compiled kernels are not read from %s: %s.", folder(), reason)


def keep(name: str, code: bytes) -> None:
    """Write code, if the folder is there and the user's own."""
    with contextlib.suppress(OSError, LoadError), cache.own_folder(folder()):
        known = list(folder().iterdir())
        for path in known if len(known) >= MOST else [folder() / name]:
            remove(path)  # a file that is replaced would hand its permissions on
        write_file(folder() / name, _digest(name, code) + code, durable=False)


def _digest(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + code).digest()
