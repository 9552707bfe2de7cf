"""What the executor asks of CuPy, and in which order: on a stand-in that notes it, since nothing here has a GPU."""

import contextlib
import itertools
import json
import pathlib
import types

import numpy as np
import pytest

from minikeras.compiler.executors.cuda_graph import device, lt
from minikeras.compiler.executors.cuda_graph.lt import WORKSPACE, Epilogue, MatrixProduct, Operands
from minikeras.errors import InvalidArgumentError


class Noted:
    """Stands for streams, events and arrays; calls of methods are noted under a name."""

    def __init__(self, name, log, **known):
        self._name, self._log = name, log
        self.__dict__ |= known

    def __getattr__(self, method):
        if method.startswith("__"):
            raise AttributeError(method)
        return lambda *given, **options: self._log.append((f"{self._name}.{method}", *given))

    def __enter__(self):
        self._log.append(f"{self._name} is current")

    def __exit__(self, *error):
        self._log.append(f"{self._name} was current")


@pytest.fixture
def log():
    return []


@pytest.fixture
def gpu(log, monkeypatch):
    """A device over a stand-in for CuPy."""
    outside, numbers = Noted("outside", log), itertools.count()
    stream = Noted("stream", log, ptr=7, end_capture=lambda: log.append("end of capture") or Noted("graph", log))

    def pinned(size):
        return np.empty(size, np.uint8)

    cuda = types.SimpleNamespace(
        runtime=Noted("runtime", log, memcpyDeviceToDevice="on device", memcpyHostToDevice="to device"),
        Device=lambda: Noted("device", log, id=0),
        Stream=lambda non_blocking: stream,
        MemoryPool=lambda: types.SimpleNamespace(malloc="the private pool"),
        Event=lambda disable_timing: Noted(f"event {next(numbers)}", log),
        using_allocator=lambda allocator: contextlib.nullcontext(log.append(allocator)),
        get_current_stream=lambda: outside,
        alloc_pinned_memory=pinned,
    )
    empty = lambda size, dtype: Noted("array", log, data=types.SimpleNamespace(ptr=4096), size=size)
    monkeypatch.setattr(lt, "library", lambda: Noted("lt", log))
    usual = Noted("the usual pool", log)
    found = device.CuPyDevice(types.SimpleNamespace(cuda=cuda, empty=empty, get_default_memory_pool=lambda: usual))
    log.clear()
    return found


def test_streams_are_joined_by_events_before_and_after(gpu, log):
    with contextlib.suppress(ValueError), gpu.joined():
        gpu.copy(1, 2, 3)
        raise ValueError
    names = [one if type(one) is str else one[0] for one in log]
    assert names == [
        *("device is current", "event 0.record", "stream.wait_event", "stream is current", "runtime.memcpyAsync"),
        *("stream was current", "outside.use", "event 1.record", "outside.wait_event", "device was current"),
    ]


def test_an_array_of_another_gpu_is_refused(gpu):
    own = {"flags": types.SimpleNamespace(c_contiguous=True), "data": types.SimpleNamespace(ptr=512)}
    assert gpu.address(types.SimpleNamespace(**own, device=types.SimpleNamespace(id=0))) == 512
    with pytest.raises(InvalidArgumentError, match=r"array on GPU:1 met .* on GPU:0\. Call it there, .* tf\.device\('GPU:1'\)"):
        gpu.address(types.SimpleNamespace(**own, device=types.SimpleNamespace(id=1)))


def test_memory_of_programs_is_of_the_private_pool_and_what_users_are_given_is_not(gpu, log):
    assert gpu.memory(100).address == 4096
    assert log == ["stream is current", "the private pool", "stream was current", ("outside.use",)]
    log.clear()
    assert gpu.empty(100).root.size == 100
    assert not log


def test_what_the_usual_pool_keeps_is_given_back_if_the_private_one_finds_no_memory(gpu, log, monkeypatch):
    def empty(size, dtype, found=gpu._cupy.empty):
        if len(log) < 4:
            raise MemoryError("Out of memory allocating 512 bytes")
        return found(size, dtype)

    monkeypatch.setattr(gpu._cupy, "empty", empty)
    private = ["stream is current", "the private pool", "stream was current", ("outside.use",)]
    assert gpu.memory(100).address == 4096
    assert log == [*private, ("the usual pool.free_all_blocks",), *private]


def test_a_capture_that_fails_is_ended_so_that_the_stream_can_be_used_again(gpu, log):
    def fail():
        raise RuntimeError("not permitted")

    with pytest.raises(RuntimeError, match="not permitted"):
        gpu.capture(fail)
    assert [one if type(one) is str else one[0] for one in log] == ["stream.begin_capture", "end of capture"]
    log.clear()
    gpu.capture(lambda: gpu.copy(1, 2, 3))()
    assert [one if type(one) is str else one[0] for one in log] == [
        *("stream.begin_capture", "runtime.memcpyAsync", "end of capture", "graph.launch"),
    ]


def test_the_host_waits_for_a_pinned_buffer_only_when_its_turn_comes_again(gpu, log):
    for number in range(2 * gpu.RING):
        gpu.send(4096, np.full(3, number))
        waits = [one for one in log if "synchronize" in one[0]]
        assert len(waits) == max(0, number + 1 - gpu.RING)
    copies = [one for one in log if one[0] == "runtime.memcpyAsync"]
    assert len({copy[2] for copy in copies}) == gpu.RING and {copy[3] for copy in copies} == {24}


def test_nothing_is_copied_if_there_are_no_bytes(gpu, log):
    gpu.copy(1, 2, 0)
    gpu.send(1, np.empty(0))
    assert not log


class Library:
    """Stands for cublasLt: handles are numbers, `found` algorithms are returned, `given` are attributes and their bytes."""

    def __init__(self, found=1):
        self.calls, self.found, self.given = [], found, {}

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name.endswith("SetAttribute"):
                _, attribute, value, size = arguments
                self.given[name, attribute.value] = value._obj.value, size.value
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self.found
            return 0

        return call


def test_an_algorithm_is_asked_for_once_for_each_shape_and_not_when_it_is_used():
    library = Library()
    products = lt.CublasLt(library, 4096)
    matmul = MatrixProduct(8, 4, 2, False, True, np.dtype("float32"), Epilogue.BIAS)
    enqueue = [products.prepare(matmul, Operands(256, 512, 768, 1024)) for _ in range(3)]
    assert library.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1
    before = len(library.calls)
    for one in enqueue:
        one(7)
    assert library.calls[before:] == ["cublasLtMatmul"] * 3
    del enqueue, one
    assert library.calls.count("cublasLtMatmulDescDestroy") == 3
    assert library.calls.count("cublasLtMatrixLayoutDestroy") == 9


def test_where_there_is_no_algorithm_there_is_nothing_to_enqueue_and_nothing_kept():
    matmul, library = MatrixProduct(8, 4, 2, False, False, np.dtype("float64")), Library(found=0)
    assert lt.CublasLt(library, 4096).prepare(matmul, Operands(256, 512, 768)) is None
    assert library.calls.count("cublasLtMatmulDescDestroy") == 1
    assert library.calls.count("cublasLtMatrixLayoutDestroy") == 3


def test_factors_that_lie_elsewhere_than_algorithms_assume_are_refused():
    matmul, library = MatrixProduct(8, 4, 2, False, False, np.dtype("float32")), Library()
    assert lt.CublasLt(library, 4096).prepare(matmul, Operands(256, 512 + 4, 768)) is None
    assert "cublasLtMatmulAlgoGetHeuristic" not in library.calls


# The numbers of NVIDIA's headers -----------------------------------------------------------------------------------------

HEADER = json.loads((pathlib.Path(__file__).parents[2] / "golden/cublaslt.json").read_text())


def test_attributes_have_the_numbers_of_the_header_and_the_sizes_that_it_states():
    library = Library()
    product = MatrixProduct(8, 4, 2, False, True, np.dtype("float32"), Epilogue.RELU_MASK_BIAS)
    lt.CublasLt(library, 4096).prepare(product, Operands(256, 512, 768, 1024, 2048))
    of_product = {"TRANSA": (1, 4), "TRANSB": (0, 4), "EPILOGUE": (HEADER["CUBLASLT_EPILOGUE_RELU_AUX_BIAS"], 4)}
    of_product |= {"BIAS_POINTER": (1024, 8), "EPILOGUE_AUX_POINTER": (2048, 8), "EPILOGUE_AUX_LD": (128, 8)}
    of_choice = {"MAX_WORKSPACE_BYTES": (WORKSPACE, 8)}
    of_choice |= {"REDUCTION_SCHEME_MASK": (HEADER["CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE"], 4)}
    setting = "cublasLtMatmulDescSetAttribute", "cublasLtMatmulPreferenceSetAttribute"
    expected = {(setting[0], HEADER[f"CUBLASLT_MATMUL_DESC_{name}"]): value for name, value in of_product.items()}
    expected |= {(setting[1], HEADER[f"CUBLASLT_MATMUL_PREF_{name}"]): value for name, value in of_choice.items()}
    assert library.given == expected


EPILOGUES = {"NONE": "DEFAULT", "BIAS": "BIAS", "RELU_BIAS": "RELU_BIAS", "RELU_MASK_BIAS": "RELU_AUX_BIAS", "MASKED": "DRELU"}
EPILOGUES |= {"MASKED_BIAS_GRADIENT": "DRELU_BGRAD", "BIAS_GRADIENT": "BGRADA"}
KINDS = {"float32": ("32F", "32F"), "float64": ("64F", "64F"), "float16": ("16F", "32F"), "bfloat16": ("16BF", "32F")}


def test_epilogues_and_dtypes_have_the_numbers_of_the_header():
    assert {one.name: int(one) for one in Epilogue} == {
        name: HEADER[f"CUBLASLT_EPILOGUE_{theirs}"] for name, theirs in EPILOGUES.items()
    }
    assert {name: kind[:3] for name, kind in lt.KINDS.items()} == {
        name: (HEADER[f"CUDA_R_{own}"], HEADER[f"CUBLAS_COMPUTE_{wide}"], HEADER[f"CUDA_R_{wide}"])
        for name, (own, wide) in KINDS.items()
    }


def test_a_status_is_an_error_that_names_the_function():
    library = types.SimpleNamespace(cublasLtCreate=lambda handle: 1)
    with pytest.raises(RuntimeError, match="cublasLtCreate failed with cuBLAS status 1"):
        lt.CublasLt(library, WORKSPACE)
