"""Philox4x32-10 in CUDA C: the known answers, and the bits of NumPy in kernels of programs and in those of single draws."""

import ctypes
import itertools
import re
import types

import numpy as np
import nvrtc
import pytest
import shim
from graph_steps import graphs_of
from shim import Memory, compiled, needs_gxx
from slow import mostly_slow
from test_kernels_of_instructions import instruction
from test_philox import KEYS, KNOWN, SPANS

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.nodes import CudaKernel, Emitter
from minikeras.compiler.ir import Slot
from minikeras.nn_ops import draws, philox4x32, philox_cuda

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def numbers(words):
    """Pairs of words as integers of 64 bits."""
    return [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]


@needs_gxx
@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_known_answers_come_out(counter, key, expected):
    given, words = Slot(0, (3,), np.dtype("uint64")), Slot(1, (4,), np.dtype("uint32"))
    text = "(const unsigned long long* a, unsigned* y) { philox(a[0], a[1], a[2], y); }"
    kernel, memory = CudaKernel("words", text, (given,), (words,), 1, 1), Memory()
    block, position = numbers(counter)
    memory.put(given, np.array([*numbers(key), position, block], np.uint64)[:3])
    memory.run(kernel, compiled([kernel], philox_cuda.PHILOX)[0])
    assert tuple(memory.array(words).tolist()) == expected


@needs_gxx
@pytest.mark.parametrize("dtype", mostly_slow(DTYPES, "bfloat16", "float32"))
def test_kernels_of_programs_have_the_bits_of_numpy(dtype):
    kind = tf.as_dtype(dtype).numpy
    cases = []
    for key, size in zip([np.array(key, np.uint64) for key in KEYS], [1, 31, 33, 1023], strict=True):
        options = {"shape": (size,), "dtype": kind, "xp": np}
        x = np.random.default_rng(0).normal(size=size).astype(kind)
        for start in (0, 5, 1024):  # parts of a larger draw
            part = options | ({"start": start} if start else {})
            cases.append(instruction(draws.random_uniform, [key], part))
            cases.append(instruction(draws.times_dropout_mask, [x, key], {"shape": (size,), "rate": 0.7, "start": start}))
            cases.append(instruction(draws.times_dropout_mask, [x, key], {"shape": (1,), "rate": 0.7, "start": start}))
            cases.append(instruction(draws.dropout_mask, [key], part | {"rate": 0.3}))
        cases.append(instruction(draws.dropout_mask, [key], options | {"rate": 0.3}))
        cases.append(instruction(draws.random_uniform, [key], options))
        cases.append(instruction(draws.times_dropout_mask, [x, key], {"shape": (size,), "rate": 0.7}))
        cases.append(instruction(draws.random_truncated_normal, [key], options))
    for record, found, expected in carried_out(cases):
        if record.primitive is draws.random_truncated_normal:
            assert_close(found, expected)
        else:
            assert found.tobytes() == expected.tobytes(), str(record)


def carried_out(cases):
    """Each instruction, what its kernel gives, and what NumPy gives."""
    kernels = [Emitter(iter(range(1000, 2000))).kernels(record)[0] for record, *_ in cases]
    for (record, arrays, (expected,)), kernel, function in zip(cases, kernels, compiled(kernels), strict=True):
        memory = Memory()
        for slot, array in zip(record.inputs, arrays, strict=True):
            memory.put(slot, array)
        memory.run(kernel, function)
        assert memory.is_whole()
        yield record, memory.array(record.outputs), expected


def assert_close(found, expected):
    """But for the last digits of logarithms."""
    rounding = {"float64": 1e-12, "float32": 1e-5}.get(expected.dtype.name, 2e-2)
    np.testing.assert_allclose(found.astype("float64"), expected.astype("float64"), rtol=rounding, atol=rounding)


@needs_gxx
@pytest.mark.parametrize("every", mostly_slow([1, 4], 4))
def test_kernels_of_integers_and_keys_have_the_bits_of_numpy(every):
    cases = []
    for key in KEYS:
        key = np.array(key, np.uint64)
        cases.append(instruction(draws.operation_key, [key], {"mix": 2**63 + 5}))
        for span, dtype in itertools.product(SPANS, ["int8", "int32", "uint64"]):
            options = {"shape": (33,), "dtype": np.dtype(dtype), "xp": np, "low": -7, "span": span}
            cases.append(instruction(draws.random_integers, [key], options))
    for record, found, expected in carried_out(cases[::every]):
        assert found.tobytes() == expected.tobytes(), str(record)


# Single draws ---------------------------------------------------------------------------------------------------------------


def run_of(name, parameters):
    """The text of what carries a kernel out for each thread of each block."""
    listed = [*(f"unsigned long long p{number}" for number in range(4)), *parameters.split(", ")]
    names = ", ".join(one.split()[-1].lstrip("*") for one in listed)
    loop = "gridDim.x = b; for (blockIdx.x = 0; blockIdx.x < b; ++blockIdx.x) "
    loop += "for (threadIdx.x = 0; threadIdx.x < t; ++threadIdx.x)"
    return f'extern "C" void run_{name}(unsigned b, unsigned t, {", ".join(listed)}) {{ {loop} {name}({names}); }}'


class RawKernel:
    """As CuPy's, on the CPU."""

    def __init__(self, code, name, options):
        assert options == philox_cuda.OPTIONS, "the bits are those of graphs"
        runs = [run_of(*found) for found in re.findall(r"^DRAW\((\w+), ([^)]*)\)", code, re.MULTILINE)]
        self._run = getattr(shim.built("\n".join([code, *runs])), f"run_{name}")

    def __call__(self, grid, block, arguments):
        kinds = {np.uint64: ctypes.c_ulonglong, np.uint32: ctypes.c_uint, np.uint16: ctypes.c_ushort, np.int32: ctypes.c_int}
        *given, y = arguments
        assert y.flags.c_contiguous
        self._run(*grid, *block, *[kinds[type(one)](one) for one in given], ctypes.c_void_p(y.ctypes.data))


CUPY = types.ModuleType("cupy")
CUPY.empty, CUPY.RawKernel = np.empty, RawKernel


@needs_gxx
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (31,), (11, 93)])
def test_single_draws_have_the_bits_of_numpy(shape, dtype):
    kind, key = tf.as_dtype(dtype).numpy, np.array([2**63 + 1, 2**35], np.uint64)
    options = {"shape": shape, "dtype": kind, "xp": CUPY}
    mask, uniform, normal = (
        draws.dropout_mask.on_numpy(key, rate=0.4, **options),
        draws.random_uniform.on_numpy(key, **options),
        draws.random_normal.on_numpy(key, **options),
    )
    assert mask.tobytes() == philox4x32.dropout_mask(key, shape, kind, 0.4).tobytes()
    assert uniform.tobytes() == philox4x32.uniform(key, shape, kind).tobytes()
    part = draws.dropout_mask.on_numpy(key, rate=0.4, start=13, **options)
    assert part.tobytes() == philox4x32.dropout_mask(key, shape, kind, 0.4, start=13).tobytes()
    part = draws.random_uniform.on_numpy(key, start=2**33 + 5, **options)
    assert part.tobytes() == philox4x32.uniform(key, shape, kind, start=2**33 + 5).tobytes()
    assert mask.shape == uniform.shape == normal.shape == shape and mask.dtype == uniform.dtype == normal.dtype == kind
    assert_close(normal, philox4x32.normal(key, shape, kind))
    assert_close(draws.random_truncated_normal.on_numpy(key, **options), philox4x32.truncated_normal(key, shape, kind))


@needs_gxx
@pytest.mark.parametrize("span", SPANS)
def test_single_integers_have_the_bits_of_numpy(span):
    key, options = (
        np.array([5, 2**35], np.uint64),
        {"shape": (3, 11), "dtype": np.dtype("int64"), "low": -(2**62), "span": span},
    )
    for start in (0, 5):
        found = draws.random_integers.on_numpy(key, xp=CUPY, start=start, **options)
        assert np.array_equal(found, draws.random_integers.on_numpy(key, xp=np, start=start, **options))


@pytest.mark.slow
@pytest.mark.skipif(nvrtc.library() is None, reason="the wheel nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_nvidias_compiler_takes_the_kernels_of_single_draws(architecture):
    code = nvrtc.cubin(philox_cuda.SOURCE, architecture)
    names = re.findall(r"^DRAW\((\w+)", philox_cuda.SOURCE, re.MULTILINE)
    assert len(names) == 10 and all(name.encode() in code for name in names)


# Programs -------------------------------------------------------------------------------------------------------------------


def noisy(x):
    """A step that draws whatever a device can draw."""
    noise = tf.random.normal([4]) + tf.random.uniform([4], -1.0, 1.0, seed=3) + tf.random.truncated_normal([4])
    chosen = tf.cast(tf.random.uniform([4], 0, 9, "int32") + tf.random.shuffle(tf.range(4)), "float32")
    return tf.nn.dropout(x * noise + chosen, 0.3)


def test_a_step_that_draws_is_one_graph_and_draws_anew_in_each_run(double):
    tf.random.set_seed(8)
    with tf.device("CPU:0"):
        expected = [noisy(tf.ones([4])).numpy() for _ in range(6)]
    tf.random.set_seed(8)
    with tf.device("STRICT:0"):
        step, x = tf.function(noisy), tf.ones([4])
        found = [step(x).numpy() for _ in range(6)]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    (graph,) = graphs_of(step)
    assert not graph.schedule.calls and len(graph.schedule.segments) == 1


def test_numbers_that_are_drawn_by_rejection_are_drawn_before_the_graph(double):
    draw = lambda x: x * tf.random.gamma([3], 2.0) + tf.random.poisson([3], 4.0)
    tf.random.set_seed(8)
    expected = [draw(tf.ones([3])).numpy() for _ in range(5)]
    tf.random.set_seed(8)
    with tf.device("STRICT:0"):
        step, x = tf.function(draw), tf.ones([3])
        np.testing.assert_allclose([step(x).numpy() for _ in range(5)], expected, rtol=1e-6)
    (graph,) = graphs_of(step)
    assert not graph.schedule.calls
