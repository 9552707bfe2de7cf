"""Philox4x32-10: the same bits in NumPy, in kernels of LLVM and on a device, and numbers distributed as they should be."""

import math

import numpy as np
import philox_reference as reference
import pytest
from in_threads import in_threads
from scipy import special, stats

import minikeras as tf
from minikeras import parallel
from minikeras.compiler.executors import llvm
from minikeras.nn_ops import draws
from minikeras.nn_ops import philox4x32 as philox

KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        *((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
"""Counters, keys and words, from the known answers of Random123."""
SPANS = [1, 10, 2**16 + 1, 2**32 - 1, 2**32, 2**40 + 3, 2**63 + 11, 2**64 - 1, 2**64]
"""Numbers of integers to choose from, made of one, two and four words."""
KEYS = [(0, 0), (1, 2), (2**32 - 1, 2**32 - 1), (2**64 - 1, 2**40 + 3)]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_known_answers_come_out(counter, key, expected):
    assert tuple(reference.philox(counter, key)) == expected
    pairs = np.array([[counter[0] << 32 | counter[1]], [counter[2] << 32 | counter[3]]], np.uint64)
    philox._rounds(key[0] | key[1] << 32, pairs, np.empty_like(pairs))
    assert tuple(word for pair in pairs[:, 0].tolist() for word in divmod(pair, 2**32)) == expected


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("count", [1, 4, 31, 130])
def test_words_are_those_of_the_reference(key, count):
    assert philox.words(*key, count).tolist() == reference.words(*key, count)


def test_words_do_not_depend_on_what_was_drawn_before():
    expected = [reference.words(77, position, 9) for position in range(40)]
    in_order = [philox.words(77, position, 9).tolist() for position in range(40)]
    anyhow = {p: philox.words(77, p, 9).tolist() for p in np.random.default_rng(0).permutation(40).tolist()}
    assert in_order == expected == [anyhow[position] for position in range(40)]


def test_threads_that_draw_from_one_stream_see_the_same_words():
    expected = {position: reference.words(78, position, 5) for position in range(30)}

    def work():
        for position in range(30):
            assert philox.words(78, position, 5).tolist() == expected[position]

    in_threads(*[work] * 4)


def test_words_that_are_computed_ahead_take_little_memory():
    for seed in range(3 * philox.STREAMS):
        for position in range(3):
            philox.words(seed, position, 5)
    ahead = philox._thread.ahead
    assert len(ahead) <= philox.STREAMS
    assert all(rows.nbytes <= 16 * philox.CHUNK for _, rows in ahead.values())


def test_a_large_draw_begins_as_a_small_one():
    for function in (philox.uniform, philox.normal):
        large = function((5, 6), (4 * philox.CHUNK + 1001,), "float32")
        assert np.array_equal(large[:9], function((5, 6), (9,), "float32"))
    large = philox.dropout_mask((5, 6), (8 * philox.CHUNK + 1001,), "float32", 0.5)
    assert np.array_equal(large[:9], philox.dropout_mask((5, 6), (9,), "float32", 0.5))
    block = reference.philox((philox.CHUNK, 0, 6, 0), (5, 0))
    assert np.array_equal(large[8 * philox.CHUNK :][:2], 2.0 * np.array([block[0] & 65535 >= 32768, block[0] >> 31]))


def test_a_draw_is_the_same_on_one_thread_and_on_several(monkeypatch):
    for function, size in (
        (lambda size: philox.uniform((5, 6), size, "float32", 3), 9 * philox.SHARED + 1),
        (lambda size: philox.normal((5, 6), size, "float64"), 4 * philox.SHARED + 3),
        (lambda size: philox.words(5, 6, size[0], 7), 8 * philox.SHARED),
        (lambda size: drawn("gamma", (5, 6), size, "float32", np.array(0.7)), 2 * parallel.WORTHWHILE + 1),
    ):
        found = []
        for count in (1, 2, 3):
            monkeypatch.setattr(parallel, "thread_count", lambda count=count: count)
            found.append(function((size,)))
        assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_blocks_are_numbered_beyond_32_bits():
    begin = 2**32 - 2
    expected = [reference.philox((block % 2**32, block >> 32, 6, 0), (5, 0)) for block in range(begin, begin + 4)]
    assert philox.words(5, 6, 16, begin).reshape(4, 4).tolist() == [list(block) for block in expected]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_are_multiples_of_the_spacing_below_one(dtype):
    kind = tf.as_dtype(dtype).numpy
    found = philox.uniform((3, 4), (1001,), kind)
    own = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtype]
    found_words = reference.words(3, 4, 2002)
    if dtype == "float64":
        exact = [(low | high << 32) >> 64 - own for low, high in zip(found_words[::2], found_words[1::2], strict=True)]
    else:
        exact = [word >> 32 - own for word in found_words[:1001]]
    assert found.dtype == kind
    assert np.array_equal(found.astype("float64"), np.array(exact, "float64") / 2**own)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.999])
def test_masks_follow_the_rule(dtype, rate):
    kind = tf.as_dtype(dtype).numpy
    found = philox.dropout_mask((9, 1), (7, 3), kind, rate)
    assert found.dtype == kind
    assert np.array_equal(found != 0, reference.dropout_mask(9, 1, (7, 3), rate) != 0)
    assert set(found.ravel().tolist()) <= {0.0, float(np.asarray(1 / (1 - rate), kind))}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize(("low", "dtype"), [(0, "uint64"), (-3, "int64"), (-(2**63), "int64")])
def test_integers_are_the_upper_part_of_a_product_with_the_words(span, low, dtype):
    found, count = philox.integers((7, 9), (21,), dtype, low, span), philox.words_of_integer(span)
    rows = np.array(reference.words(7, 9, 21 * count)).reshape(21, count)
    fractions = [sum(int(word) << 32 * j for j, word in enumerate(row)) for row in rows]
    exact = [low + (fraction * span >> 32 * count) for fraction in fractions]
    assert found.dtype == dtype and found.astype("uint64").tolist() == [one % 2**64 for one in exact]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_truncated_normal_numbers_are_quantiles_of_the_words(dtype):
    kind, size = tf.as_dtype(dtype).numpy, 301
    found = philox.truncated_normal((2, 3), (size,), kind)
    raw = np.array(reference.words(2, 3, 2 * size), np.uint32)
    whole = raw.view("<i8").astype("float64") * 2.0**-32 if dtype == "float64" else raw[:size].view("<i4").astype("float64")
    expected = math.sqrt(2) * special.erfinv((whole + 0.5) * 2.0**-31 * special.erf(math.sqrt(2)))
    digits = {"float64": 1e-9, "float32": 1e-6, "float16": 1e-3}.get(dtype, 1e-2)
    assert found.dtype == kind and abs(found.astype("float64")).max() <= 2.0
    np.testing.assert_allclose(found.astype("float64"), expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("start", [1, 4, 7, 4 * philox.CHUNK + 3])
def test_a_part_of_a_draw_has_the_elements_that_it_has_in_the_whole(start):
    for function, own in (
        (philox.truncated_normal, ("float32",)),
        (philox.truncated_normal, ("float64",)),
        *((philox.integers, ("int64", -2, span)) for span in (9, 2**20 + 1, 2**50)),
    ):
        kind, *rest = own
        whole = function((5, 6), (start + 20,), kind, *rest)
        assert np.array_equal(function((5, 6), (4, 5), kind, *rest, start=start).ravel(), whole[start:])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3)])
def test_every_shape_can_be_drawn(shape):
    for found in (
        philox.uniform((1, 1), shape, "float32"),
        philox.normal((1, 1), shape, "float64"),
        philox.truncated_normal((1, 1), shape, "float32"),
        philox.integers((1, 1), shape, "int32", 2, 7),
        philox.dropout_mask((1, 1), shape, "float32", 0.5),
        drawn("gamma", (1, 1), shape, "float32", np.array(0.5)),
        drawn("binomial", (1, 1), shape, "int64", np.array(30.0), np.array(0.7)),
    ):
        assert found.shape == shape


def drawn(name, key, shape, dtype, *parameters):
    """What is drawn by rejection."""
    draw = getattr(draws, f"random_{name}")
    return draw(np.array(key, np.uint64), *parameters, shape=shape, dtype=np.dtype(dtype), xp=np)


MEANS = [np.array(mean) for mean in (0.1, 4.0, 9.99, 10.0, 300.0)]
TRIALS = [
    (np.array(float(n)), np.array(p)) for n, p in ((10, 0.3), (10, 0.9), (1000, 0.005), (100, 0.2), (100, 0.8), (50_000, 0.3))
]


# Distribution -----------------------------------------------------------------------------------------------------------------


def distance(sample, distribution):
    """Kolmogorov's, times the root of the number: above 1.95 once in a thousand."""
    ordered = np.sort(sample.astype("float64").ravel())
    expected = distribution(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return math.sqrt(len(ordered)) * max((steps[1:] - expected).max(), (expected - steps[:-1]).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_and_normal_numbers_are_distributed_as_they_should_be(dtype):
    uniform, normal = (function((8, 0), (200_000,), dtype) for function in (philox.uniform, philox.normal))
    assert uniform.min() >= 0 and uniform.max() < 1
    assert distance(uniform, lambda x: x) < 1.95
    assert distance(normal, np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))) < 1.95
    moments = [normal.mean(), normal.var() - 1, (normal**3).mean(), (normal**4).mean() - 3]
    assert np.abs(moments).max() < 0.04
    assert abs(np.corrcoef(normal[::2], normal[1::2])[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5, 50.0])
def test_gamma_and_beta_numbers_are_distributed_as_they_should_be(alpha, dtype):
    given, size = np.array(alpha), (20_000,)
    assert stats.kstest(drawn("gamma", (3, 1), size, dtype, given), stats.gamma(alpha).cdf).pvalue > 1e-3
    assert stats.kstest(drawn("beta", (3, 2), size, dtype, given, np.array(2.0)), stats.beta(alpha, 2.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        *((lambda key, n, lam=lam: drawn("poisson", key, (n,), "int64", lam), stats.poisson(lam)) for lam in MEANS),
        *(
            (lambda key, n, c=c, p=p: drawn("binomial", key, (n,), "int64", c, p), stats.binom(int(c), float(p)))
            for c, p in TRIALS
        ),
    ],
)
def test_counts_are_distributed_as_they_should_be(draw, distribution):
    size = 20_000
    counts = np.bincount(draw((5, 6), size))
    expected = size * distribution.pmf(np.arange(len(counts)))
    often = expected > 10
    found, wanted = [np.append(one[often], size - one[often].sum()) for one in (counts, expected)]
    kept = wanted > 1
    statistic = ((found - wanted)[kept] ** 2 / wanted[kept]).sum()
    assert stats.chi2(max(kept.sum() - 1, 1)).sf(statistic) > 1e-3


def test_counts_that_are_certain_are_certain_and_large_ones_close_to_their_mean():
    certain = drawn("binomial", (1, 1), (3,), "int64", np.array([5.0, 5.0, 0.0]), np.array([0.0, 1.0, 0.5]))
    assert certain.tolist() == [0, 5, 0] and drawn("poisson", (1, 1), (2,), "int64", np.array(0.0)).tolist() == [0, 0]
    assert (abs(drawn("poisson", (1, 1), (9,), "float64", np.array(1e12)) / 1e12 - 1) < 1e-5).all()
    assert drawn("gamma", (1, 1), (2,), "float32", np.array(0.0)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), -1.0])
def test_parameters_for_which_no_number_would_be_accepted_are_refused(alpha):
    for draw in (
        lambda: drawn("gamma", (1, 1), (2,), "float32", np.array(alpha)),
        lambda: drawn("beta", (1, 1), (2,), "float32", np.array(1.0), np.array(alpha)),
        lambda: drawn("poisson", (1, 1), (2,), "float32", np.array(alpha)),
        lambda: drawn("binomial", (1, 1), (2,), "float32", np.array(3.0), np.array(alpha)),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be"):
            draw()


def test_draws_of_neighbouring_keys_are_independent():
    rows = np.stack([philox.normal((seed, position), (5000,), "float32") for seed in (1, 2) for position in (0, 1, 2)])
    assert np.abs(np.corrcoef(rows) - np.eye(6)).max() < 0.06


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_as_many_elements_are_dropped_as_the_rate_says(rate):
    size = 400_000
    dropped = (philox.dropout_mask((4, 0), (size,), "float32", rate) == 0).mean()
    assert abs(dropped - rate) < 4 * math.sqrt(rate * (1 - rate) / size)


# Compiled steps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 7, 31, 33, 1023, 1025, 5000])
@pytest.mark.parametrize("key", [np.array([2**31 + 5, 2**32 - 1], np.uint32), np.array([2**63 + 9, 2**40], np.uint64)], ids=str)
def test_kernels_of_llvm_give_the_same_bits(key, size, dtype):
    if not llvm.installed():
        pytest.skip("llvmlite and SciPy are not installed")
    options = {"shape": (size,), "dtype": np.dtype(dtype), "xp": np}

    @tf.function(jit_compile=True)
    def drawn(key):
        following = draws.next_key(key)
        return following, draws.dropout_mask(following, rate=0.3, **options), draws.random_uniform(following, **options)

    drawn(tf.constant(key))
    following, mask, uniform = [one.numpy() for one in drawn(tf.constant(key))]
    assert drawn.kernels == 2, "the key is copied, and one call carries all three out"
    assert np.array_equal(following, key + np.array([0, 1], key.dtype))
    assert np.array_equal(mask, draws.dropout_mask(following, rate=0.3, **options))
    assert np.array_equal(uniform, draws.random_uniform(following, **options))


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_draw_of_a_layer_is_a_read_an_assignment_and_a_function_of_the_key(jit_compile):
    layer = tf.keras.layers.Dropout(0.5, seed=7)
    step = tf.function(lambda x: layer(x, training=True), jit_compile=jit_compile)
    x = tf.ones([5, 3])
    found = [step(x).numpy() for _ in range(3)]
    assert [np.array_equal(one, reference.dropout_mask(7, i, (5, 3), 0.5)) for i, one in enumerate(found)] == [True] * 3
    names = [record.primitive.name for record in step.program(x).records]
    assert sorted(names) == ["assign", "dropout_mask", "multiply", "next_key", "read_variable"]
    assert layer.seed_generator.state.numpy().tolist() == [7, 3]


def assert_drawn(found, expected, device):
    """The same numbers, but for the last digits of logarithm and cosine on a real device."""
    if device == "gpu":
        digits = {"float64": 1e-13, "float32": 1e-5}.get(expected.dtype.name, 2e-2)
        found, expected = found.astype("float64"), expected.astype("float64")
        np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)
    else:
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_keras_random_draws_for_keys_on_every_device(dtype, device):
    random, kind = tf.keras.random, tf.as_dtype(dtype).numpy
    for function, expected in ((random.normal, philox.normal), (random.uniform, philox.uniform)):
        generator = random.SeedGenerator(5)
        found = [function((3, 7), dtype=dtype, seed=generator) for _ in range(2)]
        assert all(type(one.array) is type(tf.ones([1]).array) for one in found)
        for i, one in enumerate(found):
            assert_drawn(one.numpy(), expected((5, i), (3, 7), kind), device)
        assert np.array_equal(function((3, 7), dtype=dtype, seed=5), found[0])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_keras_random_draws_alike_in_compiled_functions(jit_compile):
    random = tf.keras.random

    def drawn(generator):
        normal, uniform = random.normal((9,), seed=generator), random.uniform((4, 5), 2.0, 3.0, seed=generator)
        return normal, uniform, random.categorical(tf.zeros([2, 3]), 8, seed=generator), random.normal((2,))

    first, second = random.SeedGenerator(1), random.SeedGenerator(1)
    compiled = tf.function(lambda: drawn(second), jit_compile=jit_compile)
    tf.random.set_seed(3)
    expected = [drawn(first) for _ in range(3)]
    tf.random.set_seed(3)
    for found, wanted in zip([compiled() for _ in range(3)], expected, strict=True):
        for one, other in zip(found, wanted, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "draw",
    [
        lambda random, seed: random.normal((2, -1), seed=seed),
        lambda random, seed: random.uniform(-3, seed=seed),
        lambda random, seed: random.categorical([[0.0, 1.0]], -1, seed=seed),
    ],
)
def test_a_negative_size_is_named_and_draws_nothing(draw):
    generator = tf.keras.random.SeedGenerator(4)
    with pytest.raises(ValueError, match=r"^random: no size may be negative, found \("):
        draw(tf.keras.random, generator)
    assert generator.state.numpy().tolist() == [4, 0]


def test_a_member_of_many_draws_what_it_draws_alone():
    keys = np.array([[1, 5], [2, 0], [3, 9]], np.uint32)
    options = {"shape": (4, 2), "dtype": "float32", "xp": np}
    alone = [draws.random_normal(key, **options) for key in keys]
    assert np.array_equal(draws.random_normal(keys, **options), alone)
    assert draws.next_key(keys).tolist() == [[1, 6], [2, 1], [3, 10]]


# Drawn again in the backward pass ---------------------------------------------------------------------------------------------


def kept(tape):
    return [record.primitive.name for record in tape.tape.records if record.primitive.name != "read_variable"]


@pytest.mark.parametrize(
    "make", [lambda: tf.keras.layers.Dropout(0.4, seed=3), lambda: tf.keras.layers.GaussianDropout(0.4, seed=3)]
)
def test_on_a_device_noise_is_drawn_again_for_the_gradient(make, device):
    with tf.device("CPU:0"):
        x = tf.Variable(np.random.default_rng(0).normal(size=(6, 4)).astype("float32"))
        layer = make()
        with tf.GradientTape() as tape:
            expected = layer(x, training=True)
            total = tf.reduce_sum(expected * expected)
        gradient = tape.gradient(total, x)
    there = tf.Variable(x.numpy())
    layer = make()
    with tf.GradientTape() as tape:
        found = layer(there, training=True)
        total = tf.reduce_sum(found * found)
    assert (kept(tape)[0] in ("times_dropout_mask", "times_gaussian")) == (device != "cpu")
    assert_drawn(found.numpy(), expected.numpy(), device)
    np.testing.assert_allclose(tape.gradient(total, there).numpy(), gradient.numpy(), rtol=1e-6)


def test_the_product_with_a_mask_has_derivatives_of_every_kind():
    x, key = tf.constant(np.random.default_rng(1).normal(size=(5, 2))), tf.constant(np.array([1, 2], np.uint32))
    options = {"shape": (5, 1), "rate": 0.5}
    mask = draws.dropout_mask(key, dtype=np.dtype("float64"), xp=np, **options)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(draws.times_dropout_mask(x * x, key, **options))
        first = inner.gradient(y, x)
    np.testing.assert_allclose(first, 2 * x * mask)
    np.testing.assert_allclose(outer.gradient(first, x), 2 * mask * tf.ones_like(x))
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = draws.times_dropout_mask(x, key, **options)
    np.testing.assert_allclose(forward.jvp(y), mask * tf.ones_like(x))
