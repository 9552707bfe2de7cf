"""From LLVM's language to machine code: kernels are compiled once in a process, for the processor that it runs on."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from .kernels import METADATA

_lock = threading.Lock()
_known: dict[str, int] = {}
"""The addresses of kernels, by their names."""


class _Compiler:
    """LLVM for this processor."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        features = llvm.get_host_cpu_features().flatten()
        self.machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        self.passes = llvm.create_pass_builder(self.machine, options)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)

    def optimized(self, text: str) -> Any:
        """A module after all passes."""
        module = llvm.parse_assembly(text)
        module.verify()
        self.passes.getModulePassManager().run(module, self.passes)
        return module

    def load(self, text: str) -> None:
        """Compile a module, whose functions then have addresses."""
        self.engine.add_module(self.optimized(text))
        self.engine.finalize_object()


_compiler: _Compiler | None = None


def compiler() -> _Compiler:
    """LLVM, started at the first question."""
    global _compiler
    _compiler = _compiler or _Compiler()
    return _compiler


def addresses(kernels: Sequence[Any]) -> list[int]:
    """Where the machine code of kernels begins; those that are new are compiled together.

    Args:
        kernels: objects whose `text(name)` is a function of that name.
    """
    names = [_name(kernel) for kernel in kernels]
    with _lock:
        new = {name: kernel for name, kernel in zip(names, kernels, strict=True) if name not in _known}
        if new:
            compiler().load(module_of({name: kernel.text(name) for name, kernel in new.items()}))
            _known.update((name, compiler().engine.get_function_address(name)) for name in new)
        return [_known[name] for name in names]


def functions(text: str, names: Sequence[str]) -> list[int]:
    """The addresses of functions of a module, which is compiled."""
    with _lock:
        compiler().load(text)
        return [compiler().engine.get_function_address(name) for name in names]


def pause() -> tuple[str, str]:
    """The instruction by which a thread that spins leaves its processor's units to others, and its declaration."""
    architecture = llvm.get_default_triple().split("-")[0]
    if architecture == "x86_64":
        return "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    if architecture in ("aarch64", "arm64"):
        return "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    return "fence seq_cst", ""


def _name(kernel: Any) -> str:
    return "k" + hashlib.sha256(kernel.text("k").encode()).hexdigest()[:24]


def module_of(texts: dict[str, str]) -> str:
    """One module of several functions."""
    lines = [line for text in texts.values() for line in text.split("\n")]
    declared = sorted({line for line in lines if line.startswith("declare")})
    return "\n".join([*declared, *(line for line in lines if not line.startswith("declare")), METADATA])
