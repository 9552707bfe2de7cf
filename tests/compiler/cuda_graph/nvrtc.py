"""NVIDIA's compiler of CUDA C as a library, from the wheel nvidia-cuda-nvrtc: it needs neither a driver nor a device."""

import ctypes
import functools
import importlib.util
import pathlib

from minikeras.nn_ops.philox_cuda import OPTIONS


@functools.cache
def library():
    """The library, or None if no wheel has it."""
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations or [] if found else []:
        for path in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.*")):
            for builtins in path.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins))  # it is looked for by its name alone
            return ctypes.CDLL(str(path))
    return None


def cubin(source, architecture):
    """The machine code of a source.

    Raises:
        ValueError: what the compiler says.
    """
    nvrtc, program, size = library(), ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None) == 0
    options = [one.encode() for one in (f"--gpu-architecture={architecture}", *OPTIONS)]
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        kind = "ProgramLog" if failed else "CUBIN"
        assert getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)) == 0
        text = ctypes.create_string_buffer(size.value)
        assert getattr(nvrtc, f"nvrtcGet{kind}")(program, text) == 0
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise ValueError(text.value.decode())
    return text.raw
