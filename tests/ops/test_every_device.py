"""Every operation on every device: the same numbers as on the CPU, and nothing goes through the host unseen."""

import laws
import numpy as np
import pytest
import strict_array
from in_one_test import in_one_test
from specimens import SPECIMENS
from strict_array import HostSync, MixedArrays, StrictArray

import minikeras as tf
from minikeras.core.arrays import to_numpy
from minikeras.core.tensor import Tensor

DEVICES = {"cpu": "CPU:0", "strict": "STRICT:0", "gpu": "GPU:0"}


def placed(device, arrays):
    """The arrays as Tensors on a device."""
    with tf.device(DEVICES[device]):
        return [None if x is None else tf.constant(x) for x in arrays]


def derivatives(specimen, device):
    """Values, gradients and second derivatives from inputs on a device."""
    arrays = specimen.sample()
    tensors, others = placed(device, arrays), placed(device, laws.directions_for(specimen, arrays))
    with tf.device("CPU:0"):
        seeds = laws.cotangents(specimen, arrays)
    seeds = placed(device, seeds)
    sources = [tensors[i] for i in laws.smooth_positions(arrays)]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            values = laws.results(specimen, tensors)
        if specimen.smooth:
            targets = [y for y, u in zip(values, seeds, strict=True) if u is not None]
            first = inner.gradient(targets, sources, [u for u in seeds if u is not None])
    found = [y for y in values if isinstance(y, Tensor)]
    if specimen.smooth:
        found += [*first, *outer.gradient(first, sources, others, unconnected_gradients="zero")]
    return found


@pytest.mark.parametrize("device", ["strict", pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
@in_one_test(2, specimen=SPECIMENS)
def test_a_device_gives_the_numbers_of_the_cpu_within_its_block_and_after_it(specimen, device):
    within = derivatives(specimen, device)
    with tf.device("CPU:0"):
        expected = derivatives(specimen, "cpu")
        agree(within, expected, device)
        if specimen.operation is not tf.identity:  # which moves within a block
            agree(derivatives(specimen, device), expected, device)


def agree(found, expected, device):
    assert len(found) == len(expected)
    for here, there in zip(found, expected, strict=True):
        assert isinstance(here.array, StrictArray) == (device == "strict"), "a result left its device"
        np.testing.assert_allclose(to_numpy(here.array), there.numpy(), rtol=1e-9, atol=1e-12)
        assert here.dtype == there.dtype and here.shape == there.shape


def test_new_tensors_are_made_on_the_device(device):
    makers = [
        tf.zeros([2]),
        tf.ones([2]),
        tf.eye(2),
        tf.fill([2], 1.0),
        tf.range(3),
        tf.constant([1.0]),
        tf.linspace(0.0, 1.0, 3),
    ]
    makers += [tf.random.normal([2]), tf.random.uniform([2]), tf.one_hot([1], 2), tf.Variable([1.0]).read_value()]
    kinds = {type(made.array) for made in makers}
    assert (kinds == {StrictArray}) == (device == "strict")


def test_a_tensor_on_a_device_leaves_it_where_the_user_asks(device):
    x = tf.constant([[1.0, 2.0]])
    assert x.numpy().tolist() == [[1.0, 2.0]] and "1." in str(x) and "1." in repr(x)
    assert float(x[0, 1]) == 2.0 and int(tf.size(x)) == 2 and bool(x[0, 0] == 1.0) and complex(x[0, 0]) == 1
    assert [10, 20, 30][tf.constant(2)] == 30
    assert (x == [[1.0, 2.0]]).numpy().all()
    assert [float(part) for part in x[0]] == [1.0, 2.0]


# The double itself: what it does not refuse, it cannot find -----------------------------------------------------------


def strict(values):
    return strict_array.strict.asarray(np.array(values))


@pytest.mark.parametrize(
    "leave", [bool, int, float, complex, list, np.asarray, np.array, lambda x: [1, 2][x], lambda x: x.item()]
)
def test_the_strict_array_refuses_to_become_a_host_value(leave):
    with pytest.raises(HostSync):
        leave(strict([1]))


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) * x,
        lambda x: x * np.float64(2),
        lambda x: np.float64(2) * x,
        lambda x: np.exp(x),
        lambda x: np.sum(x),
        lambda x: np.concatenate([x, x]),
        lambda x: strict_array.strict.where(x > 0, np.ones(2), x),
        lambda x: x[np.array([0])],
    ],
)
def test_the_strict_array_refuses_to_mix_with_numpy(mix):
    with pytest.raises(MixedArrays):
        mix(strict([1.0, 2.0]))


def test_the_strict_array_refuses_masks_and_names_that_cupy_lacks():
    x = strict([1.0, 2.0])
    with pytest.raises(HostSync):
        x[x > 1]
    with pytest.raises(AttributeError, match="ALLOWED_NAMES"):
        strict_array.strict.nonzero(x)
    with pytest.raises(TypeError, match="initial"):
        x.max(initial=0)


def test_the_strict_array_computes_like_numpy_and_keeps_scalars_as_arrays():
    x = strict([1.0, 2.0])
    assert isinstance(x.sum(), StrictArray) and x.sum().shape == ()
    assert to_numpy(2 * x - x / 4).tolist() == [1.75, 3.5]
    assert to_numpy(strict_array.strict.linalg.inv(strict([[2.0]]))).tolist() == [[0.5]]
