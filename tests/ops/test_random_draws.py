"""Functions of tf.random and initializers draw for keys: on each device, compiled and eager, the same numbers."""

import numpy as np
import pytest
from in_one_test import in_one_test
from test_philox import assert_drawn

import minikeras as tf
from minikeras.nn_ops import streams

R, initializers = tf.random, tf.keras.initializers
GENERATOR = R.Generator.from_seed(3)
DRAWS = {
    "normal": lambda: R.normal([3, 5], 1.0, 2.0),
    "uniform": lambda: R.uniform([3, 5], -1.0, 2.0),
    "uniform of a seed": lambda: R.uniform([7], seed=4),
    "integers": lambda: R.uniform([7], 2, 9, "int32"),
    "wide integers": lambda: R.uniform([7], tf.int64.min, tf.int64.max, "int64"),
    "truncated_normal": lambda: R.truncated_normal([3, 5], 1.0, 2.0, "float64"),
    "shuffle": lambda: R.shuffle(tf.range(20)),
    "categorical": lambda: R.categorical(tf.zeros([2, 4]), 5),
    "gamma": lambda: R.gamma([4], [0.5, 3.0], 2.0),
    "poisson": lambda: R.poisson([4], [0.5, 30.0]),
    "stateless_normal": lambda: R.stateless_normal([3], [1, 2]),
    "stateless_uniform": lambda: R.stateless_uniform([3], [1, 2], 0, 9, "int32"),
    "stateless_truncated_normal": lambda: R.stateless_truncated_normal([3], [1, 2]),
    "stateless_categorical": lambda: R.stateless_categorical(tf.zeros([2, 4]), 5, [1, 2]),
    "stateless_gamma": lambda: R.stateless_gamma([3], [1, 2], 0.5),
    "stateless_poisson": lambda: R.stateless_poisson([3], [1, 2], 5.0),
    "split": lambda: R.split([1, 2], 3),
    "fold_in": lambda: R.fold_in([1, 2], 3),
    "Generator.normal": lambda: GENERATOR.normal([3]),
    "Generator.uniform": lambda: GENERATOR.uniform([3], 0, 9, "int64"),
    "Generator.truncated_normal": lambda: GENERATOR.truncated_normal([3]),
    "Generator.binomial": lambda: GENERATOR.binomial([3], 9.0, 0.4),
    **{
        name: lambda name=name: getattr(initializers, name)(seed=5)([4, 6])
        for name in ("RandomNormal", "RandomUniform", "TruncatedNormal", "Orthogonal", "GlorotUniform", "HeNormal")
    },
}
every_draw = pytest.mark.parametrize("name", DRAWS)


def seeded(name):
    """The next draws, from the start of the streams."""
    R.set_seed(6)
    GENERATOR.reset_from_seed(3)
    return DRAWS[name]


@every_draw
def test_numbers_are_drawn_on_the_device_and_do_not_depend_on_it(name, device):
    with tf.device("CPU:0"):
        expected = seeded(name)().numpy()
    found = seeded(name)()
    assert type(found.array) is type(tf.ones([1]).array)
    assert_drawn(found.numpy(), expected, device)


@every_draw
@in_one_test(jit_compile=[False, True])
def test_a_compiled_function_draws_what_an_eager_one_draws(name, jit_compile):
    draw = seeded(name)
    expected = [draw().numpy() for _ in range(4)]
    step = tf.function(seeded(name), jit_compile=jit_compile)
    found = [step().numpy() for _ in range(4)]
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert step.replays >= 2
    if not name.startswith(("stateless", "split", "fold_in")) and name not in SAME:
        assert not np.array_equal(found[2], found[3])


SAME = {"RandomNormal", "RandomUniform", "TruncatedNormal", "Orthogonal", "GlorotUniform", "HeNormal"}
"""What has a seed of its own gives the same numbers each time."""


@pytest.mark.parametrize("jit_compile", [False, True])
def test_the_seed_of_a_stateless_draw_may_be_computed(jit_compile):
    draw = lambda seed: (R.stateless_normal([3], seed), R.split(seed), R.stateless_uniform([3], R.fold_in(seed, 7)))
    step = tf.function(draw, jit_compile=jit_compile)
    for number in range(4):
        found, expected = step(tf.constant([1, number])), draw([1, number])
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert step.replays >= 2


def test_a_seed_per_element_gives_each_element_its_own_numbers():
    seeds = tf.constant([[1, 2], [3, 4]])
    found = tf.vectorized_map(lambda seed: R.stateless_uniform([3], seed), seeds)
    assert np.array_equal(found, [R.stateless_uniform([3], [1, 2]), R.stateless_uniform([3], [3, 4])])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_no_number_reaches_the_upper_bound(dtype):
    for low, high in ((-1.0, 1.0), (1.0, 1.0001), (-3.0, -1.0), (0.0, 0.7), (1000.0, 1001.0)):
        found = R.uniform([4000], low, high, dtype, seed=1).numpy().astype("float64")
        bounds = tf.constant([low, high], dtype).numpy().astype("float64")
        assert found.min() >= bounds[0] and (found.max() < bounds[1] or bounds[0] == bounds[1])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: R.normal([2, -1]),
        lambda: R.gamma([-1], 1.0),
        lambda: R.uniform([-2], 0, 9, "int32"),
        lambda: R.poisson([-1], 1.0),
    ],
)
def test_a_negative_size_is_named_and_draws_nothing(draw):
    R.set_seed(1)
    with pytest.raises(ValueError, match=r"^random: no size may be negative, found \("):
        draw()
    first = R.uniform([2]).numpy()
    R.set_seed(1)
    assert np.array_equal(R.uniform([2]), first)


def test_a_shuffle_is_every_order_as_often():
    R.set_seed(2)
    orders = [tuple(R.shuffle([0, 1, 2]).numpy().tolist()) for _ in range(1200)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6 and min(counts) > 140
    assert [sorted(R.shuffle(tf.range(n)).numpy().tolist()) for n in range(4)] == [[*range(n)] for n in range(4)]


def test_integers_have_bounds_of_their_dtype():
    assert int(tf.reduce_max(R.uniform([200], 250, 256, "uint8"))) == 255
    assert R.uniform([3], 2.0, np.int64(3), "int32").numpy().tolist() == [2, 2, 2]
    assert len(set(R.uniform([50], 0, 2**64, "uint64", seed=1).numpy().tolist())) == 50
    for low, high, message in (
        ([0, 1], 3, "one integer"),
        (0, 2.5, "one integer"),
        (0, 257, "no uint8"),
        (-1, 3, "no uint8"),
        (3, 3, "must lie below"),
    ):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
            R.uniform([2], low, high, "uint8")


def test_the_seed_of_a_stateless_draw_is_a_pair():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"pair of integers, found shape \(1, 2\)"):
        R.stateless_normal([2], tf.constant([[1, 2]]))


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "string"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda dtype: R.normal([2], dtype=dtype),
        lambda dtype: R.stateless_truncated_normal([2], [1, 2], dtype=dtype),
        lambda dtype: R.Generator.from_seed(1).uniform([2], maxval=None, dtype=dtype),
        lambda dtype: R.gamma([2], 1.0, dtype=dtype),
        lambda dtype: tf.keras.initializers.RandomNormal()([2], dtype),
        lambda dtype: tf.keras.initializers.Orthogonal()([2, 2], dtype),
    ],
)
def test_real_numbers_are_floats(draw, dtype):
    with pytest.raises((tf.errors.DTypeError, ValueError), match=r"float dtype|maxval is needed"):
        draw(dtype)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: R.poisson([2], 300.0, dtype="int8"),
        lambda: R.stateless_poisson([2], [1, 2], 3.0, dtype="bool"),
        lambda: R.Generator.from_seed(1).binomial([2], 300.0, 0.9, dtype="uint8"),
        lambda: R.categorical([[1.0, 2.0]], 3, dtype="float32"),
        lambda: R.categorical([[1.0, 2.0]], 2.5),
        lambda: R.categorical(tf.constant([[1j, 2.0]]), 3),
        lambda: R.categorical([["a", "b"]], 3),
        lambda: R.uniform([2], seed=1.5),
        lambda: R.normal([2], seed=(1, 2)),
        lambda: R.set_seed("one"),
        lambda: R.Generator.from_seed(0.5),
        lambda: R.stateless_normal([2], [1.5, 2]),
        lambda: R.stateless_normal([2], tf.constant([1.5, 2.0])),
    ],
)
def test_what_is_no_integer_or_cannot_hold_one_is_refused(draw):
    with pytest.raises(tf.errors.DTypeError, match=r"random|one integer"):
        draw()


@pytest.mark.parametrize("seed", [1, [1, 2, 3], [[1, 2]], None])
def test_a_seed_of_another_shape_is_no_pair(seed):
    with pytest.raises(tf.errors.ShapeError, match="pair of integers"):
        R.stateless_uniform([2], seed)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_logits_of_few_digits_favour_no_class(dtype):
    R.set_seed(2)
    found = R.categorical(tf.zeros([1, 200], dtype), 60_000).numpy()
    assert abs(np.mean(found < 100) - 0.5) < 0.006


def test_logits_have_a_row_for_each_of_a_batch():
    with pytest.raises(tf.errors.ShapeError, match=r"\(batch, classes\)"):
        R.categorical([0.0, 1.0], 3)


def test_integers_without_bounds_are_all_of_their_dtype():
    found = R.stateless_uniform([3000], [1, 2], None, None, "int8").numpy()
    assert found.min() == -128 and found.max() == 127
    assert R.stateless_uniform([9], [1, 2], None, None, "uint64").numpy().max() > 2**63


def test_gamma_numbers_have_a_logarithm():
    assert np.isfinite(np.log(R.gamma([1000], 0.001).numpy())).all()


def test_no_number_is_rounded_up_to_a_bound_of_few_digits():
    R.set_seed(1)
    found = R.uniform([20_000], 0, 1e-6, "float16").numpy()
    assert found.max() < np.float16(1e-6)


def test_a_generator_names_its_one_algorithm():
    first, second = [R.Generator.from_seed(1, alg).normal([2]).numpy().tolist() for alg in ("philox", None)]
    assert first == second
    for make in (R.Generator.from_seed, lambda seed, alg: R.Generator.from_non_deterministic_state(alg)):
        with pytest.raises(ValueError, match="made by Philox, found alg='threefry'"):
            make(1, "threefry")


def test_there_is_no_negative_number_of_generators():
    generator = R.Generator.from_seed(1)
    with pytest.raises(ValueError, match="must not be negative"):
        generator.split(-1)
    assert generator.state == (1, 0)


def test_a_seed_that_is_folded_is_no_other_seed():
    folded = [R.fold_in([1, 2], data).numpy().tolist() for data in (0, 1, 2**32, -1)]
    split = [R.split([1, number])[0].numpy().tolist() for number in range(2, 6)]
    assert len({tuple(pair) for pair in folded + split}) == len(folded + split)


def test_bounds_may_be_lists_of_integers():
    found = R.uniform([500, 2], [0, 5], [1, 7]).numpy()
    assert (found.min(axis=0) >= [0, 5]).all() and (found.max(axis=0) < [1, 7]).all() and found.dtype == "float32"


def test_a_named_stream_that_starts_anew_is_kept_no_longer_and_is_the_same_when_asked_for():
    """Each step of training keeps the states of all: those of all layers that ever were made would cost more and more."""
    before = streams.states()
    try:
        streams.set_global_seed(5)
        first, begun = streams.states(), streams.named_stream("one").integer()
        assert streams.states().keys() == {"", "one"}
        streams.set_states(first)
        assert streams.states() == first and streams.named_stream("one").integer() == begun
        streams.set_global_seed(5)
        assert streams.states() == first and streams.named_stream("one").integer() == begun
    finally:
        streams.set_states(before)
