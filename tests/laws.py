"""The laws that every operation obeys, each a function whose docstring states the mathematics.

Notation: f maps inputs x to results y; u is a random cotangent of y, v and w are random directions in x; J is the
Jacobian. Inner products are real: <a, b> = Re sum conj(a) b, also for complex numbers. A law raises AssertionError
where it is broken. `forward_laws.py` and `batched_laws.py` hold those of forward mode and of stacks.
"""

import functools
import gc
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from in_one_test import try_all
from specimens import Specimen

import minikeras as tf
from minikeras import nest
from minikeras.core.primitive import Record
from minikeras.core.stack import BOTTOM, current
from minikeras.core.tensor import Tensor, arrays_of
from minikeras.errors import DTypeError

Array = np.ndarray
COMPLEX_STEP = 1e-30


def obeys(*cases: tuple[Any, ...]) -> None:
    """Hold each law, given with its arguments; all that are broken are reported."""
    try_all((f"{law.__name__}: {law.__doc__}", functools.partial(law, *arguments)) for law, *arguments in cases)


# How the laws run an operation ----------------------------------------------------------------------------------------


def results(specimen: Specimen, tensors: Sequence[Tensor]) -> list[Any]:
    """The results of the operation as a flat list of Tensors (or Python values)."""
    return nest.flatten(specimen.call(*tensors))


def values(specimen: Specimen, arrays: Sequence[Array]) -> list[Array]:
    """The results on arrays, as arrays."""
    return [np.asarray(y) for y in results(specimen, [Tensor(x) for x in arrays])]


def smooth_positions(arrays: Sequence[Array]) -> list[int]:
    """Positions of the inputs that can carry a gradient."""
    return [i for i, x in enumerate(arrays) if x.dtype.kind in "fc"]


def inner(a: Array, b: Array) -> float:
    """<a, b> = Re sum conj(a) b."""
    return float(np.real(np.vdot(a, b)))


def random_like(generator: np.random.Generator, array: Array) -> Array:
    """Normal numbers of the array's shape, dtype and kind, read-only."""
    noise = generator.normal(size=array.shape)
    if array.dtype.kind == "c":
        noise = noise + 1j * generator.normal(size=array.shape)
    noise = np.asarray(noise, dtype=array.dtype)
    noise.setflags(write=False)
    return noise


def cotangents(specimen: Specimen, arrays: Sequence[Array]) -> list[Array | None]:
    """A random u for each floating result, None for the others."""
    generator = specimen.generator()
    return [random_like(generator, y) if y.dtype.kind in "fc" else None for y in values(specimen, arrays)]


def vjp(specimen: Specimen, arrays: Sequence[Array], seeds: Sequence[Array | None]) -> list[Any]:
    """J^T u by the tape, an array for each input that can carry a gradient (None if unconnected)."""
    tensors = [Tensor(x) for x in arrays]
    sources = [tensors[i] for i in smooth_positions(arrays)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = results(specimen, tensors)
    pairs = [(y, Tensor(u)) for y, u in zip(targets, seeds, strict=True) if u is not None]
    found = tape.gradient([y for y, _ in pairs], sources, [u for _, u in pairs])
    return [None if g is None else np.asarray(tf.convert_to_tensor(g).array) for g in found]


def moved(arrays: Sequence[Array], directions: Sequence[Array], step: complex) -> list[Array]:
    """x + step v, where v has one direction for each input that can carry a gradient."""
    along = dict(zip(smooth_positions(arrays), directions, strict=True))
    return [x + step * along[i] if i in along else x for i, x in enumerate(arrays)]


def directions_for(specimen: Specimen, arrays: Sequence[Array], salt: int = 1) -> list[Array]:
    """A random direction v for each input that can carry a gradient."""
    generator = np.random.default_rng([salt, specimen.generator().integers(2**31)])
    return [random_like(generator, arrays[i]) for i in smooth_positions(arrays)]


def assert_near(actual: float, expected: float, scale: float, tolerance: float, what: str) -> None:
    """|actual - expected| <= tolerance * scale, where scale is the size of the terms that were added up."""
    error = abs(actual - expected) / max(scale, abs(expected), 1e-300)
    assert error <= tolerance, f"{what}: {actual!r} is not {expected!r} (relative error {error:.1e}, allowed {tolerance:.0e})"


def size_of_terms(gradients: Sequence[Array], directions: Sequence[Array]) -> float:
    """Sum of the absolute values of the terms of <gradient, direction>."""
    return float(sum(np.abs(g * v).sum() for g, v in zip(gradients, directions, strict=True)))


def richardson(function: Callable[[float], float], step: float = 0.01) -> float:
    """f'(0) by central differences at h, h/2, h/4, h/8, extrapolated to h = 0: error O(h**8)."""
    table = [(function(h) - function(-h)) / (2 * h) for h in (step, step / 2, step / 4, step / 8)]
    for order in (4, 16, 64):
        table = [(order * finer - coarser) / (order - 1) for coarser, finer in itertools.pairwise(table)]
    return table[0]


# Values ---------------------------------------------------------------------------------------------------------------


def forward_is_the_reference(specimen: Specimen) -> None:
    """f(x) = reference(x), in float64, with the reference's shape."""
    arrays = specimen.sample()
    expected = [np.asarray(y) for y in nest.flatten(_as_list(specimen.reference(*arrays)))]
    actual = values(specimen, arrays)
    assert len(actual) == len(expected)
    for y, z in zip(actual, expected, strict=True):
        assert y.shape == z.shape
        np.testing.assert_allclose(y, z, rtol=specimen.tolerance, atol=specimen.tolerance, strict=False)


def _as_list(result: Any) -> Any:
    return list(result) if isinstance(result, (tuple, list)) else result


def float32_stays_float32(specimen: Specimen) -> None:
    """f(x) and J^T u have the dtype of x, equal the float64 numbers within float32 accuracy, and keep their shapes."""
    wide, narrow = specimen.sample(), specimen.sample("float32")
    for y, z in zip(values(specimen, narrow), values(specimen, [x.astype(_widened(x)) for x in narrow]), strict=True):
        assert y.shape == z.shape
        if z.dtype.kind in "fc":
            assert y.dtype == np.result_type("float32", "complex64" if z.dtype.kind == "c" else "float32")
            np.testing.assert_allclose(y, z, rtol=2e-4, atol=2e-5)
    if not specimen.smooth:
        return
    seeds = cotangents(specimen, narrow)
    positions = smooth_positions(narrow)
    exact = vjp(
        specimen, [x.astype(_widened(x)) for x in narrow], [None if u is None else u.astype(_widened(u)) for u in seeds]
    )
    for i, g, h in zip(positions, vjp(specimen, narrow, seeds), exact, strict=True):
        assert g.dtype == narrow[i].dtype and g.shape == narrow[i].shape == wide[i].shape
        np.testing.assert_allclose(g, h, rtol=1e-3, atol=1e-4 * max(1.0, float(np.abs(h).max(initial=0))))


def _widened(array: Array) -> np.dtype[Any]:
    return {"f": np.dtype("float64"), "c": np.dtype("complex128")}.get(array.dtype.kind, array.dtype)


def strides_do_not_matter(specimen: Specimen) -> None:
    """f and J^T u depend on the numbers in x, not on how they lie in memory."""
    arrays = specimen.sample()
    strided = [np.repeat(x, 2, -1)[..., ::2] if x.ndim else x for x in arrays]
    for y, z in zip(values(specimen, strided), values(specimen, arrays), strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-12, atol=1e-12)
    if specimen.smooth:
        seeds = cotangents(specimen, arrays)
        for g, h in zip(vjp(specimen, strided, seeds), vjp(specimen, arrays, seeds), strict=True):
            np.testing.assert_allclose(g, h, rtol=1e-11, atol=1e-11)


def inputs_stay_as_they_are(specimen: Specimen) -> None:
    """Neither f nor its rules write to x or u: the arrays are read-only, and what is computed leaves copies equal."""
    arrays = specimen.sample()
    copies = [x.copy() for x in arrays]
    seeds = cotangents(specimen, arrays)
    if specimen.smooth:
        vjp(specimen, arrays, seeds)
    for x, copy in zip(arrays, copies, strict=True):
        assert not x.flags.writeable
        np.testing.assert_array_equal(x, copy)


def arrays_give_what_tensors_give(specimen: Specimen) -> None:
    """A primitive applied to bare arrays gives, bit for bit, what it gives on Tensors."""
    for record in records_of(specimen, specimen.sample()):
        inputs = [arrays_of(x) for x in record.inputs]
        bare = record.primitive(*inputs, **record.params)
        for y, z in zip(_as_tuple(bare), _as_tuple(record.outputs), strict=True):
            assert not isinstance(y, Tensor)
            np.testing.assert_array_equal(y, z.array)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if type(value) is tuple else (value,)


def records_of(specimen: Specimen, arrays: Sequence[Array]) -> list[Record]:
    """What the tape recorded while the operation ran on watched inputs."""
    return _recorded(specimen, [Tensor(x) for x in arrays])[0]


def _recorded(specimen: Specimen, tensors: Sequence[Tensor]) -> tuple[list[Record], list[Any]]:
    with tf.GradientTape() as tape:
        tape.watch([x for x in tensors if x.dtype.is_differentiable])
        found = results(specimen, tensors)
    return tape.tape.records, found


# First derivatives ----------------------------------------------------------------------------------------------------


def gradient_is_the_derivative(specimen: Specimen) -> None:
    """<v, J^T u> = d/ds <u, f(x + s v)> at s = 0.

    By the complex step Im <u, f(x + i h v)> / h with h = 1e-30, to 1e-12, where f is analytic and takes it; else by central
    differences with Richardson extrapolation, to 1e-9.
    """
    arrays = specimen.sample()
    seeds, directions = cotangents(specimen, arrays), directions_for(specimen, arrays)
    gradients = vjp(specimen, arrays, seeds)
    for i, g in zip(smooth_positions(arrays), gradients, strict=True):
        assert g is not None, f"input {i} has no gradient"
        assert g.shape == arrays[i].shape and g.dtype == arrays[i].dtype
    actual = sum(inner(g, v) for g, v in zip(gradients, directions, strict=True))
    expected, tolerance = numerical_slope(specimen, arrays, seeds, directions)
    assert_near(actual, expected, size_of_terms(gradients, directions), tolerance, "<v, J^T u>")


def numerical_slope(
    specimen: Specimen, arrays: Sequence[Array], seeds: Sequence[Any], directions: Sequence[Array]
) -> tuple[float, float]:
    """d/ds <u, f(x + s v)> at s = 0, and how exact it is."""

    def along(step: complex) -> complex:
        moved_values = values(specimen, moved(arrays, directions, step))
        return sum(complex(np.vdot(u, y)) for u, y in zip(seeds, moved_values, strict=True) if u is not None)

    if specimen.analytic:
        try:
            return along(1j * COMPLEX_STEP).imag / COMPLEX_STEP, 1e-12
        except DTypeError:  # it is real on purpose, and refuses complex numbers
            pass
    if values(specimen, arrays)[0].dtype == "float32":
        return richardson(lambda s: along(s).real, 8.0), 1e-5
    return richardson(lambda s: along(s).real), 1e-9


def no_gradient_where_nothing_is_smooth(specimen: Specimen) -> None:
    """Integer, bool and piecewise constant results give None for every input, or refuse if nothing is registered."""
    arrays = specimen.sample()
    tensors = [Tensor(x) for x in arrays]
    sources = [tensors[i] for i in smooth_positions(arrays)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        targets = [y for y in results(specimen, tensors) if isinstance(y, Tensor)]
    if any(record.primitive.vjp is None for record in tape.tape.records):
        try:
            tape.gradient(targets, sources)
        except LookupError as error:
            assert "no entry" in str(error)
            return
        raise AssertionError("an operation without a gradient was differentiated")
    assert tape.gradient(targets, sources) == [None] * len(sources)


def gradient_is_the_same_under_an_outer_tape(specimen: Specimen) -> None:
    """The rules give the same numbers on bare arrays (no interpreter) and on Tensors (an outer tape)."""
    arrays = specimen.sample()
    seeds = cotangents(specimen, arrays)
    assert current() is BOTTOM
    bare = vjp(specimen, arrays, seeds)
    with tf.GradientTape():
        recorded = vjp(specimen, arrays, seeds)
    for g, h in zip(bare, recorded, strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-14, atol=1e-15 * float(np.abs(g).max(initial=0)))


def forward_and_backward_are_transposes(specimen: Specimen) -> None:
    """<u, J v> = <J^T u, v>: the JVP rules and the VJP rules describe one linear map, on arrays and on Tensors."""
    arrays = specimen.sample()
    seeds, directions = cotangents(specimen, arrays), directions_for(specimen, arrays)
    gradients = vjp(specimen, arrays, seeds)
    backward = sum(inner(g, v) for g, v in zip(gradients, directions, strict=True))
    for bare in (True, False):
        tangents = pushforward(specimen, arrays, directions, bare)
        forward = sum(inner(u, t) for u, t in zip(seeds, tangents, strict=True) if u is not None and t is not None)
        tolerance = 1e-6 if any(u is not None and u.dtype == "float32" for u in seeds) else 1e-12
        assert_near(forward, backward, size_of_terms(gradients, directions), tolerance, "<u, J v>")


def pushforward(specimen: Specimen, arrays: Sequence[Array], directions: Sequence[Array], bare: bool) -> list[Any]:
    """J v: the Records of one run, walked forward with the JVP rule of each primitive."""
    tensors = [Tensor(x) for x in arrays]
    records, found = _recorded(specimen, tensors)
    lift = (lambda array: array) if bare else Tensor
    tangents = {tensors[i].key: lift(v) for i, v in zip(smooth_positions(arrays), directions, strict=True)}
    for record in records:
        incoming = [tangents.get(x.key) if hasattr(x, "key") else None for x in record.inputs]
        smooth = any(y.dtype.is_differentiable for y in _as_tuple(record.outputs))
        if not smooth or all(t is None for t in incoming):
            continue
        inputs = [arrays_of(x) for x in record.inputs] if bare else record.inputs
        outputs = arrays_of(record.outputs) if bare else record.outputs
        moved_outputs = record.primitive.jvp(incoming, outputs, inputs, record.params)
        for y, t in zip(_as_tuple(record.outputs), _as_tuple(moved_outputs), strict=True):
            if t is not None:
                assert tuple(t.shape) == tuple(y.shape), f"{record}: the tangent has shape {t.shape}"
                assert np.dtype(getattr(t.dtype, "numpy", t.dtype)) == y.array.dtype, f"{record}: the tangent is {t.dtype}"
                tangents[y.key] = t
    arrived = [tangents.get(y.key) if hasattr(y, "key") else None for y in found]
    return [None if t is None else np.asarray(arrays_of(t)) for t in arrived]


# Second derivatives ---------------------------------------------------------------------------------------------------


def second_derivative_is_the_derivative_of_the_gradient(specimen: Specimen) -> None:
    """<v, grad_x <w, J(x)^T u>> = d/ds <w, J(x + s v)^T u> at s = 0, by nested tapes against Richardson, to 1e-7."""
    arrays = specimen.sample()
    seeds = cotangents(specimen, arrays)
    directions, others = directions_for(specimen, arrays), directions_for(specimen, arrays, salt=2)
    products = hessian_product(specimen, arrays, seeds, others)
    actual = sum(inner(h, v) for h, v in zip(products, directions, strict=True))

    def along(step: float) -> float:
        gradients = vjp(specimen, moved(arrays, directions, step), seeds)
        return sum(inner(g, w) for g, w in zip(gradients, others, strict=True))

    gradients = vjp(specimen, arrays, seeds)
    scale = size_of_terms(products, directions) + 1e-3 * size_of_terms(gradients, others)
    assert_near(actual, richardson(along), scale, 1e-7, "<v, H w>")


def hessian_product(specimen: Specimen, arrays: Sequence[Array], seeds: Sequence[Any], others: Sequence[Array]) -> list[Array]:
    """grad_x <w, J(x)^T u> as arrays, zeros where the gradient does not depend on x."""
    return [np.asarray(tf.convert_to_tensor(h).array) for h in curvature(specimen, [Tensor(x) for x in arrays], seeds, others)]


def curvature(specimen: Specimen, tensors: Sequence[Tensor], seeds: Sequence[Any], others: Sequence[Array]) -> list[Any]:
    """The same as Tensors, recorded by the tapes on the stack."""
    sources = [tensors[i] for i in smooth_positions([x.array for x in tensors])]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner_tape:
            inner_tape.watch(sources)
            targets = results(specimen, tensors)
        pairs = [(y, Tensor(u)) for y, u in zip(targets, seeds, strict=True) if u is not None]
        first = inner_tape.gradient([y for y, _ in pairs], sources, [u for _, u in pairs])
    return outer.gradient(first, sources, [Tensor(w) for w in others], unconnected_gradients="zero")


# Third derivatives ----------------------------------------------------------------------------------------------------


def third_derivative_is_the_derivative_of_the_second(specimen: Specimen) -> None:
    """<v, grad_x <w, H(x) w>> = d/ds <w, H(x + s v) w> at s = 0, H the Hessian of <u, f(x)>, by three nested tapes, to 1e-6."""
    arrays = specimen.sample()
    seeds, directions, others = (
        cotangents(specimen, arrays),
        directions_for(specimen, arrays),
        directions_for(specimen, arrays, salt=2),
    )
    tensors = [Tensor(x) for x in arrays]
    sources = [tensors[i] for i in smooth_positions(arrays)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        second = curvature(specimen, tensors, seeds, others)
    found = tape.gradient(second, sources, [Tensor(w) for w in others], unconnected_gradients="zero")
    thirds = [np.asarray(tf.convert_to_tensor(g).array) for g in found]
    actual = sum(inner(t, v) for t, v in zip(thirds, directions, strict=True))

    def along(step: float) -> float:
        products = hessian_product(specimen, moved(arrays, directions, step), seeds, others)
        return sum(inner(h, w) for h, w in zip(products, others, strict=True))

    products = hessian_product(specimen, arrays, seeds, others)
    scale = size_of_terms(thirds, directions) + size_of_terms(products, others) + 1e-3
    assert_near(actual, richardson(along), scale, 1e-6, "<v, T w w>")


# Lifetime -------------------------------------------------------------------------------------------------------------


def cyclic_garbage(kinds: tuple[type, ...]) -> list[str]:
    """Names of the given kinds of objects that only the cycle collector would free: reference counting should suffice.

    A caught exception makes cycles of its own, from the traceback through the test's frame to the exception; then
    nothing is said.
    """
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        garbage = list(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    if any(type(thing) in (types.TracebackType, types.FrameType) for thing in garbage):
        return []
    return sorted({type(thing).__name__ for thing in garbage if issubclass(type(thing), kinds)})
