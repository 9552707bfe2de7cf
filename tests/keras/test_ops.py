"""Functions of `keras.ops` against real Keras (tests/golden/make_ops.py): values, dtypes, gradients, and how models with them
are written. A case is an expression, computed for arrays and for KerasTensors.
"""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from golden_numbers import golden
from in_one_test import in_one_test
from slow import mostly_slow

import minikeras as tf
from minikeras import nest
from minikeras.errors import DTypeError, InvalidArgumentError, ShapeError
from minikeras.keras.symbolic.operation import CLASSES

K = tf.keras
GOLDEN = golden("ops")
CASES = GOLDEN["cases"]
NAMESPACE = {name: getattr(K.ops, name) for name in K.ops.__all__} | {"np": np, "slice_": slice}
TOLERANCE = {"float32": 2e-6, "float64": 1e-10, "float16": 1e-3, "bfloat16": 1e-2, "complex64": 2e-6, "complex128": 1e-10}

UNIQUE_BUT_FOR_SIGN = ("eig(", "eigh(", "qr(", "svd(")
"""Columns of orthogonal factors may be turned."""


def array(facts: Any) -> Any:
    values = facts["values"]
    if facts["dtype"].startswith("complex"):
        values = np.array(values[0]) + 1j * np.array(values[1])
    return np.array(values, "float32" if facts["dtype"] == "bfloat16" else facts["dtype"]).reshape(facts["shape"])


ARRAYS = {name: array(facts) for name, facts in GOLDEN["arrays"].items()}


def computed(expression: str, arrays: Any) -> list[Any]:
    result = eval(expression, {**NAMESPACE, **arrays})
    return [leaf for leaf in nest.flatten(result) if leaf is not None]


def tensors(names: Any) -> dict[str, tf.Tensor]:
    return {name: tf.constant(ARRAYS[name]) for name in names}


def assert_close(actual: Any, expected: Any, dtype: str, expression: str = "") -> None:
    tolerance = TOLERANCE.get(dtype, 0.0)
    actual, expected = np.asarray(actual), np.asarray(expected)
    if expression.startswith(UNIQUE_BUT_FOR_SIGN):
        actual, expected = abs(actual), abs(expected)
    finite = expected[np.isfinite(expected)] if expected.dtype.kind in "fc" else expected
    scale = max(1.0, float(abs(finite).max(initial=0.0))) if dtype in TOLERANCE else 1.0
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


def assert_results(results: list[Any], expression: str) -> None:
    expected = CASES[expression]["results"]
    assert [one.dtype.name for one in results] == [one["dtype"] for one in expected]
    assert [tuple(one.shape) for one in results] == [tuple(one["shape"]) for one in expected]
    for one, facts in zip(results, expected, strict=True):
        if "empty" not in expression:
            assert_close(one.numpy(), array(facts), facts["dtype"], expression)


@in_one_test(expression=CASES)
def test_values_and_dtypes_are_those_of_keras(expression: str) -> None:
    results = computed(expression, tensors(CASES[expression]["arrays"]))
    assert_results([tf.convert_to_tensor(one) for one in results], expression)


def total(results: list[Any]) -> Any:
    """What was differentiated: the sum of all floats times cos(0), cos(1) and so on."""
    floats = [one for one in map(tf.convert_to_tensor, results) if one.dtype.is_floating]
    return sum(
        tf.reduce_sum(one * np.cos(np.arange(one.numpy().size)).reshape(one.shape).astype(one.numpy().dtype)) for one in floats
    )


@in_one_test(expression=[one for one in CASES if CASES[one]["gradients"]])
def test_gradients_are_those_of_jax(expression: str) -> None:
    facts = CASES[expression]
    arrays = tensors(facts["arrays"])
    wanted = {name: arrays[name] for name in facts["gradients"]}
    with tf.GradientTape() as tape:
        tape.watch(list(wanted.values()))
        value = total(computed(expression, arrays))
    found = tape.gradient(value, wanted, unconnected_gradients="zero") if isinstance(value, tf.Tensor) else {}
    for name, gradient in found.items():
        expected = np.array(facts["gradients"][name]).reshape(gradient.shape)
        assert_close(gradient.numpy(), expected, gradient.dtype.name)


def test_bools_are_padded_and_numbers_of_repetitions_may_be_arrays() -> None:
    truths = tf.constant([True, True])
    assert K.ops.diag(truths).numpy().tolist() == [[True, False], [False, True]]
    assert K.ops.pad(truths, 1).numpy().tolist() == [False, True, True, False]
    assert all(K.ops.tile([1, 2], times).shape == (4,) for times in (2, [2], np.array([2]), tf.constant([2])))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("module", ["image", "linalg", "math"])
def test_gradients_of_16_bit_floats_have_their_dtype(module: str, dtype: str) -> None:
    for expression, facts in CASES.items():
        if facts["module"] != module or not facts["gradients"] or expression.startswith("stft"):
            continue
        arrays = {name: tf.cast(one, dtype) if one.dtype.is_floating else one for name, one in tensors(facts["arrays"]).items()}
        wanted = {name: arrays[name] for name in facts["gradients"] if arrays[name].dtype == dtype}
        with tf.GradientTape() as tape:
            tape.watch(list(wanted.values()))
            value = total(computed(expression, arrays))
        found = tape.gradient(value, wanted) if isinstance(value, tf.Tensor) else {}
        assert {one.dtype.name for one in found.values() if one is not None} <= {dtype}, expression


SYMBOLIC = [one for one in CASES if CASES[one]["layers"]]


def one_of_each(expressions: list[str]) -> list[str]:
    """The first expression of each function."""
    return list({one.partition("(")[0]: one for one in reversed(expressions)}.values())


def model_of(expression: str) -> Any:
    """The model of the expression, with inputs as Keras had them."""
    K.utils.clear_session()
    facts = CASES[expression]
    shapes = {
        one["config"]["name"]: one["config"]["batch_shape"] for one in facts["layers"] if one["class_name"] == "InputLayer"
    }
    inputs = {name: K.Input(batch_shape=shapes[name], dtype=ARRAYS[name].dtype.name, name=name) for name in facts["arrays"]}
    return K.Model(list(inputs.values()), computed(expression, inputs))


@pytest.mark.parametrize("expression", mostly_slow(SYMBOLIC, *one_of_each(SYMBOLIC)))
def test_a_model_of_it_is_written_as_by_keras_and_read(expression: str) -> None:
    model = model_of(expression)
    mine = json.loads(model.to_json())["config"]["layers"]
    theirs = CASES[expression]["layers"]
    assert [essence(one) for one in mine] == [essence(one) for one in theirs]
    arrays = [tensors([name])[name] for name in CASES[expression]["arrays"]]
    whole = json.loads(model.to_json())
    whole["config"]["layers"] = theirs
    for one in (model, K.models.model_from_json(model.to_json()), K.models.model_from_json(json.dumps(whole))):
        results = one(arrays if len(arrays) > 1 else arrays[0])
        assert_results(nest.flatten(results), expression)


def essence(layer: dict[str, Any]) -> Any:
    """What Keras needs to make the step again."""
    if layer["class_name"] == "InputLayer":
        return "InputLayer", layer["config"]["batch_shape"], layer["config"]["dtype"]
    config = {key: value for key, value in layer["config"].items() if key != "name"}
    return layer["module"], layer["class_name"], layer["name"], config, nodes(layer["inbound_nodes"])


def nodes(value: Any) -> Any:
    """The calls without the shapes that their operands are noted to have."""
    if isinstance(value, list):
        return [nodes(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("class_name") == "__keras_tensor__":
        return value["config"]["keras_history"]
    return {key: nodes(one) for key, one in value.items()}


MODULES = sorted({case["module"] for case in CASES.values()})
UNCOMPILED = (
    *("unique(", "nonzero(", "where(b)", "empty", "while_loop(lambda x: sum"),
    *("lu_factor(", "beam_search", "bincount(", "histogram("),
)
"""Functions that look at values, or whose results have none."""


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("module", MODULES)
def test_compiled_functions_give_what_eager_ones_give(module: str, whole: bool) -> None:
    chosen = [one for one in CASES if CASES[one]["module"] == module and not any(name in one for name in UNCOMPILED)]
    chosen = chosen if whole else one_of_each(chosen)
    arrays = tensors(sorted({name for one in chosen for name in CASES[one]["arrays"]}))
    # A function that evaluates text may read all of this module; and one that names hundreds of functions reads too much, too.
    steps = {one: eval(f"lambda {', '.join(arrays)}: {one}", dict(NAMESPACE)) for one in chosen}
    for start in range(0, len(chosen), 100):
        check_compiled({one: steps[one] for one in chosen[start : start + 100]}, arrays)


def check_compiled(steps: dict[str, Any], arrays: dict[str, tf.Tensor]) -> None:
    def program(given: Any) -> Any:
        found = {one: nest.flatten(step(**given)) for one, step in steps.items()}
        return {one: [leaf for leaf in leaves if leaf is not None] for one, leaves in found.items()}

    eager = program(arrays)
    for jit_compile in (False, True):
        compiled = tf.function(program, jit_compile=jit_compile)
        compiled(arrays)
        for expression, results in compiled(arrays).items():
            for one, expected in zip(results, eager[expression], strict=True):
                expected = tf.convert_to_tensor(expected)
                assert_close(tf.convert_to_tensor(one).numpy(), expected.numpy(), expected.dtype.name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_real_keras_loads_models_of_functions_and_agrees(module: str, tmp_path: Any, real_keras: Any) -> None:
    finite = [one for one in SYMBOLIC if "np.inf" not in one and "np.nan" not in one]  # files hold finite numbers only
    expressions, refused = [one for one in finite if CASES[one]["module"] == module], []
    for number, expression in enumerate(expressions):
        path = tmp_path / f"{number}.keras"
        model_of(expression).save(path)
        try:
            model = real_keras.models.load_model(path)
            results = model([ARRAYS[name] for name in CASES[expression]["arrays"]])
        except Exception:  # Keras writes the same file, and wants tuples where it reads lists
            refused.append(expression)
            continue
        if "method=" in expression:  # Keras's steps of quantiles leave it out
            continue
        for one, facts in zip(real_keras.tree.flatten(results), CASES[expression]["results"], strict=True):
            assert_close(real_keras.ops.convert_to_numpy(one), array(facts), "float32", expression)
    assert len(refused) < 0.3 * len(expressions), refused


def test_vectors_beside_stacks_of_matrices_are_solved_one_for_each():
    a, b = np.stack([np.eye(2) * 2.0, np.eye(2) * 4.0]), np.array([[2.0, 4.0], [4.0, 8.0]])
    assert K.ops.solve(a, b).numpy().tolist() == K.ops.solve_triangular(a, b, lower=True).numpy().tolist() == [[1.0, 2.0]] * 2


def test_softmax_over_all_axes():
    x = np.array([[0.0, 1.0], [2.0, 3.0]], "float32")
    expected = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(K.ops.softmax(x, axis=None).numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(K.ops.log_softmax(x, axis=None).numpy(), np.log(expected), rtol=1e-6)


def test_norms_of_axes_that_are_not_there_or_of_the_other_kind_are_refused():
    for options in ({"axis": (0, 1), "ord": 1}, {"axis": 0, "ord": "fro"}, {"axis": 0, "ord": "nuc"}):
        with pytest.raises(ValueError, match="norm: "):
            K.ops.norm(np.ones(3, "float32"), **options)


def test_moments_of_float16_stay_finite():
    mean, variance = K.ops.moments(np.array([-2000.0, 2000.0], "float16"), axes=[0])
    assert mean.numpy() == 0.0 and variance.numpy() == np.finfo("float16").max


def test_an_operand_that_goes_by_name_may_go_by_position():
    step = CLASSES["nn"]["RMSNorm"]()
    assert step(tf.ones([1, 2]), 10.0).numpy().max() > 9.0


def test_a_step_refuses_more_arguments_than_it_has_operands_or_options():
    kind = CLASSES["numpy"]["ExpandDims"]
    with pytest.raises(TypeError, match=r"ExpandDims takes \['x'\] in this order, found 2 arguments"):
        kind(0)(tf.ones([2]), 1)
    with pytest.raises(TypeError, match=r"ExpandDims takes \['axis'\] in this order, found 2 arguments"):
        kind(0, 1)
    with pytest.raises(TypeError, match="multiple values for keyword argument 'axis'"):
        kind(0, axis=1)


def test_arguments_that_numpy_takes_are_taken():
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(K.ops.roll(x, (1, 2), axis=(1,)), np.roll(x, (1, 2), axis=(1,)))
    assert np.array_equal(K.ops.average(x, axis=(0,), weights=[1.0, 3.0]), np.average(x, axis=0, weights=[1.0, 3.0]))
    assert K.ops.linspace(0, 10, tf.constant(5)).numpy().tolist() == [0.0, 2.5, 5.0, 7.5, 10.0]
    for refused in (lambda: K.ops.where(x > 1, x), lambda: K.ops.rot90(x, axes=(1, -1))):
        with pytest.raises(ValueError, match="where: needs both|rot90: axes must be two different"):
            refused()


BY_SIZES = (
    *("unstack(", "cross(f, g)", "squeeze(f[:, :1])", "istft((waves, waves), 4, 2, 6, window='hamming', length=7)"),
    *("while_loop(lambda x, y: True", "conv(row, K1, dilation_rate=2)"),
)
"""Where sizes decide on the number of results or axes, or short data on the shape."""


def shapes_for(expression: str, names: Any, longer: dict[str, Any]) -> list[Any]:
    """The shapes of the results for symbols or for arrays in place of those of a name."""
    given = tensors(names) | longer
    return [
        tuple(tf.convert_to_tensor(one).shape if isinstance(one, (int, float)) else one.shape)
        for one in computed(expression, given)
    ]


SIZED = [one for one in SYMBOLIC if not one.startswith(BY_SIZES)]


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("expression", mostly_slow(SIZED, *one_of_each(SIZED)))
def test_what_is_known_beside_axes_of_any_size_holds_for_data(expression: str, count: int) -> None:
    names = CASES[expression]["arrays"]
    for symbols in {tuple(names), *((name,) for name in names)}:
        axes = [(name, axis) for name in symbols for axis in range(ARRAYS[name].ndim)]
        for unknown in itertools.combinations(axes, count):
            given = {}
            for name in symbols:
                shape = [None if (name, axis) in unknown else size for axis, size in enumerate(ARRAYS[name].shape)]
                given[name] = K.Input(batch_shape=shape, dtype=ARRAYS[name].dtype.name)
            claimed = shapes_for(expression, names, given)
            for resize in (lambda x, axis: x, lambda x, axis: x.take([0], axis), lambda x, axis: np.concatenate([x, x], axis)):
                data = {name: ARRAYS[name] for name in symbols}
                for name, axis in unknown:
                    data[name] = resize(data[name], axis)
                try:
                    found = shapes_for(expression, names, {name: tf.constant(one) for name, one in data.items()})
                except Exception:  # not every length fits
                    continue
                assert [len(one) for one in claimed] == [len(one) for one in found]
                pairs = [pair for one, other in zip(claimed, found, strict=True) for pair in zip(one, other, strict=True)]
                assert all(size in (None, true) for size, true in pairs), f"{unknown}: claimed {claimed}, found {found}"


# At the edges ---------------------------------------------------------------------------------------------------------


def test_sums_of_products_of_int8_are_counted_in_int32() -> None:
    many = np.full(300, 100, "int8")
    for found in (
        K.ops.einsum("i,i->", many, many),
        K.ops.matmul(many[None], many[:, None])[0, 0],
        K.ops.matmul(many, many),
        K.ops.einsum("i->", many) * 100,
    ):
        assert found.dtype == tf.int32 and int(found) == 3_000_000
    assert K.ops.einsum("i,i->", many, many.astype("int16")).dtype == tf.int16


def test_a_matrix_that_is_not_positive_definite_has_no_factor() -> None:
    for wrong in (-np.eye(2, dtype="float32"), np.stack([np.eye(2), -np.eye(2)])):
        with pytest.raises(tf.errors.InvalidArgumentError, match="cholesky: .* positive definite"):
            K.ops.cholesky(wrong)
    model = K.Model(x := K.Input((2, 2)), K.ops.cholesky(x))
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive definite"):
        model(-np.eye(2, dtype="float32")[None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive definite"):
        tf.function(K.ops.cholesky)(tf.constant(-np.eye(2, dtype="float32")))


def test_a_view_has_more_or_fewer_elements_along_its_last_axis() -> None:
    numbers = np.arange(12, dtype="int32").reshape(2, 6)
    for dtype in ("int16", "int64", "uint8", "float32", "int32"):
        viewed = K.ops.view(numbers, dtype)
        assert np.array_equal(viewed, numbers.view(dtype)) and viewed.dtype == dtype
        assert K.ops.view(K.Input((6,), dtype="int32"), dtype).shape[1:] == viewed.shape[1:]
    assert K.ops.view(numbers).dtype == tf.int32
    for wrong in (np.int32(3), np.zeros((2, 3), "int16")):
        with pytest.raises(tf.errors.InvalidArgumentError, match="view: the last axis"):
            K.ops.view(wrong, "int64")


def test_a_tall_matrix_has_a_pivot_for_each_column() -> None:
    for rows, columns in ((4, 3), (3, 4), (3, 3)):
        matrix = np.random.default_rng(0).normal(size=(2, rows, columns)).astype("float32")
        factors, pivots = K.ops.lu_factor(matrix)
        assert factors.shape == matrix.shape and pivots.shape == (2, min(rows, columns))
        least = min(rows, columns)
        lower = np.tril(factors, -1)[..., :least] + np.eye(rows, least)
        product = lower @ np.triu(factors)[..., :least, :]
        for one, swaps in zip(product, pivots.numpy(), strict=True):
            for row, other in reversed(list(enumerate(swaps))):
                one[[row, other]] = one[[other, row]]
        np.testing.assert_allclose(product, matrix, atol=1e-5)


def test_a_scan_needs_a_length() -> None:
    step = lambda carry, x: (carry + 1.0, carry)
    with pytest.raises(ValueError, match="scan: needs xs or length=.*neither"):
        K.ops.scan(step, tf.constant(0.0), xs=None, length=None)
    with pytest.raises(ValueError, match=r"one length of both; found \[3, 4\]"):
        K.ops.scan(step, tf.constant(0.0), xs=tf.zeros(3), length=4)
    assert K.ops.scan(step, tf.constant(0.0), length=2)[1].numpy().tolist() == [0.0, 1.0]
    assert float(K.ops.scan(step, tf.constant(2.0), length=0)[0]) == 2.0


def test_signs_and_logarithms_of_determinants_of_symbols_have_the_shape_of_the_stack() -> None:
    x = K.Input((2, 3, 3))
    model = K.Model(x, K.ops.slogdet(x))
    data = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype("float32")
    assert [one.shape for one in model.outputs] == [(None, 2)] * 2
    for found, expected in zip(model(data), np.linalg.slogdet(data), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_branches_on_a_symbol_give_one_kind() -> None:
    flag = K.Input((), batch_size=1, dtype="bool")[0]
    for other in (lambda: tf.ones(3), lambda: {"a": tf.ones(2)}, lambda: tf.ones(2, "int32")):
        with pytest.raises(ValueError, match="cond: true_fn and false_fn should give the same structure, shapes and dtypes"):
            K.ops.cond(flag, lambda: tf.ones(2), other)
    assert K.ops.cond(flag, lambda: tf.ones(2), lambda: tf.zeros(2)).shape == (2,)


def test_sizes_that_values_decide_on_are_unknown() -> None:
    x = K.Input((3,), batch_size=2, dtype="int32")
    found = [*K.ops.nonzero(x), *K.ops.where(x > 0), K.ops.unique(x), K.ops.bincount(x[0])]
    assert [one.shape for one in found] == [(None,)] * 6
    model = K.Model(x, found)
    assert [len(one) for one in model(np.array([[0, 1, 5], [2, 0, 0]]))] == [3, 3, 3, 3, 4, 6]


def test_the_inverse_short_time_transform_gives_the_signal_back_up_to_its_ends() -> None:
    signal = np.random.default_rng(0).normal(size=64).astype("float32")
    for window in ("hann", "hamming", None):
        again = K.ops.istft(K.ops.stft(signal, 8, 4, 8, window), 8, 4, 8, window=window)
        np.testing.assert_allclose(again, signal, atol=1e-5)


def test_numbers_of_python_keep_their_digits_in_float64():
    x, kind = np.array([np.nan, np.inf, 1 / 3]), {"dtype": "float64"}
    for found, expected in [
        (K.ops.full((2,), 0.1, **kind), [0.1, 0.1]),
        (K.ops.full_like(x[:1], 0.1), [0.1]),
        (K.ops.arange(0, 0.3, 0.1, **kind), np.arange(0, 0.3, 0.1)),
        (K.ops.linspace(0, 0.1, 3, **kind), np.linspace(0, 0.1, 3)),
        (K.ops.logspace(0, 0.1, 3, base=2.7, **kind), np.logspace(0, 0.1, 3, base=2.7)),
        (K.ops.geomspace(0.1, 0.2, 3, **kind), np.geomspace(0.1, 0.2, 3)),
        (K.ops.pad(x[2:], 1, constant_values=0.1), [0.1, 1 / 3, 0.1]),
        (K.ops.nan_to_num(x, 0.1), [0.1, np.finfo(float).max, 1 / 3]),
        (K.ops.percentile(np.array([0.0, 1.0]), 33.3), 0.333),
        (K.ops.trapezoid(x[2:].repeat(2), dx=0.1), 0.1 / 3),
    ]:
        assert found.dtype == "float64"
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    for first in (2**40, 2**31 - 1):  # the second number is none of int32
        assert K.ops.arange(first, first + 2).numpy().tolist() == [first, first + 1]
    assert K.ops.arange(0, 0.3, 0.1).shape == (3,)  # 4
    assert K.ops.arange(0, 0.3, 0.1, dtype="complex128").numpy().tolist() == np.arange(0, 0.3, 0.1).tolist()
    with pytest.raises(ValueError, match="None"):
        K.ops.full((2,), None, **kind)  # [nan, nan]


def test_numbers_of_python_keep_their_digits_if_floatx_is_float64(float64):
    for found, expected in [
        (K.ops.full((1,), 0.1), [0.1]),
        (K.ops.arange(0, 0.3, 0.1), np.arange(0, 0.3, 0.1)),
        (K.ops.logspace(0, 0.1, 2, base=2.7), [1, 2.7**0.1]),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: K.ops.median(x, axis=9), "median: axis 9 is out of range for a tensor with 2 axes"),
        (lambda x: K.ops.quantile(x, 0.5, axis=(0, -3)), "quantile: axis -3 is out of range"),
        (lambda x: K.ops.nanpercentile(x, 50, axis=(0, 0)), "nanpercentile: axis .* names one axis twice"),
        (lambda x: K.ops.tril(x[0]), r"tril, triu: matrices .* are needed, found shape \(3,\)"),
        (lambda x: K.ops.arange(0, 5, 0), "arange: step must not be zero, found 0"),
        (lambda x: tf.signal.fftshift(x, 7), "fftshift: axis 7 is out of range"),
    ],
)
def test_what_an_operation_cannot_do_is_refused_by_its_name(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call(np.ones((2, 3)))


def test_probabilities_of_labels_in_16_bits_are_of_32():
    for dtype in ("float16", "bfloat16"):
        logits = tf.ones([1, 3, 3], dtype)
        assert K.ops.ctc_loss([[1, 2]], logits, [2], [3]).dtype == "float32"
        assert K.ops.ctc_decode(logits, [3])[1].dtype == "float32"


def test_attention_of_two_dtypes_is_of_the_wider_one():
    query, key = tf.ones([1, 2, 1, 4], "float16"), tf.ones([1, 2, 1, 4])
    assert K.ops.dot_product_attention(query, key, key).dtype == "float32"
    assert K.ops.dot_product_attention(query, query, query).dtype == "float16"


def test_a_number_is_sorted_and_a_block_may_be_cut_with_sizes_of_numpy():
    assert K.ops.argsort(5).numpy().tolist() == [0]
    assert K.ops.slice(np.arange(10), np.array([1]), np.array([4])).numpy().tolist() == [1, 2, 3, 4]
    assert K.ops.saturate_cast([1], None).dtype == "float32"


@pytest.mark.parametrize("make", [K.Input, lambda shape: tf.ones([1, *shape])], ids=["symbol", "tensor"])
def test_an_axis_that_is_not_there_is_named(make):
    for call in (
        lambda x: K.ops.take(x, [0], axis=5),
        lambda x: K.ops.take_along_axis(x, [[0]], axis=5),
        lambda x: K.ops.split(x, 1, axis=5),
        lambda x: K.ops.array_split(x, 1, axis=5),
    ):
        with pytest.raises(ShapeError, match="axis 5 is out of range for a tensor with 2 axes"):
            call(make((3,)))


@pytest.mark.parametrize("options", [{"bins": 0}, {"bins": -5}, {"range": (1,)}, {"range": (5, 1)}, {"range": (1, 1)}])
def test_a_histogram_needs_bins_and_two_limits(options):
    with pytest.raises(ValueError, match="histogram: "):
        K.ops.histogram([1.0, 2.0], **options)


def test_one_position_parts_a_tensor():
    with pytest.raises(DTypeError, match="must be one integer"):
        K.ops.argpartition([3, 1, 2], (0, 1))


def test_all_of_a_symbol_may_be_close_and_numbers_between_symbols_have_equal_quotients():
    x = K.Input(batch_shape=(2, 3))
    assert K.ops.allclose(x, x).shape == ()
    assert K.ops.geomspace(x, x, 10).shape == (10, 2, 3)
    model = K.Model(x, [K.ops.allclose(x, 1.0), K.ops.geomspace(x, 4.0, 3)])
    close, between = K.Model.from_config(model.get_config())(tf.ones([2, 3]))
    assert close.numpy() and between[:, 0, 0].numpy().tolist() == [1.0, 2.0, 4.0]


def test_a_symbol_has_no_values_in_errors_of_either_class():
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="has no values"):
            K.ops.convert_to_numpy(K.Input((2,)))


def test_more_differences_than_elements_leave_nothing():
    x = tf.constant([[1.0, 2.0, 4.0]])
    assert [tuple(tf.keras.ops.diff(x, n).shape) for n in (2, 3, 4, 10**12)] == [(1, 1), (1, 0), (1, 0), (1, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_number_has_no_digits_beyond_those_of_floats(dtype):
    x = tf.constant([2, -70], dtype)
    assert [tf.keras.ops.round(x, decimals).numpy().tolist() for decimals in (10**9, -(10**9))] == [[2, -70], [0, 0]]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_sizes_that_values_decide_on_are_unknown_and_no_others(dtype):
    def shapes(function, *shape, **options):
        return [one.shape for one in nest.flatten(function(K.Input(batch_shape=shape, dtype=dtype), **options))]

    unique, everything = K.ops.unique, {"return_index": True, "return_inverse": True, "return_counts": True}
    assert shapes(unique, 2, 4, **everything) == [(None,), (None,), (2, 4), (None,)]
    assert shapes(unique, None, 3, axis=0, **everything) == [(None, 3), (None,), (None,), (None,)]
    assert shapes(unique, 2, 4, axis=0, **everything) == [(None, 4), (None,), (2,), (None,)]
    assert shapes(unique, 2, 4, size=5) == [(5,)] and shapes(unique, 2, 4, size=3, axis=0) == [(3, 4)]
    assert shapes(K.ops.nonzero, 2, 4) == shapes(K.ops.where, 1, None) == [(None,), (None,)]
    assert shapes(lambda x: K.ops.bincount(K.ops.cast(x, "int32")), 4) == [(None,)]
    for count in (None, 1, 3):
        segments = shapes(
            lambda x, **given: K.ops.segment_max(np.ones((4, 2)), K.ops.cast(x, "int32"), **given), 4, num_segments=count
        )
        assert segments == [(count, 2)]


def test_quantiles_of_infinite_numbers_are_what_they_lie_between():
    infinity = float("inf")
    assert K.ops.nanmedian([infinity, float("nan")]) == K.ops.median([0.0, infinity, infinity]) == infinity
    assert K.ops.median([-infinity, 1.0]) == -infinity and np.isnan(K.ops.median([-infinity, infinity]))
    found = K.ops.quantile([-infinity, 1.0, infinity], [0.0, 0.25, 0.5, 0.75, 1.0]).numpy().tolist()
    assert found == [-infinity, -infinity, 1.0, infinity, infinity]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_numbers_at_equal_distances_between_ends_of_two_shapes(axis):
    low, high = np.arange(6, dtype="float32").reshape(2, 3), np.float32([10, 20, 30])
    for first, last in ((low, high), (high, low), (low, np.float32(7)), (np.float32(7), low)):
        np.testing.assert_allclose(K.ops.linspace(first, last, 4, axis=axis), np.linspace(first, last, 4, axis=axis), rtol=1e-6)
        first, last = first + 1, last + 1
        found = K.ops.geomspace(first, last, 4, endpoint=False, axis=axis)
        np.testing.assert_allclose(found, np.geomspace(first, last, 4, endpoint=False, axis=axis), rtol=1e-5)
    assert K.ops.logspace(K.Input((3,)), 2, 10, axis=1).shape == (None, 10, 3)
    assert K.ops.geomspace(K.Input((3, 4)), np.ones((2, 3, 4)), 10, axis=1).shape == (2, 10, 3, 4)


def test_weights_of_a_normalization_may_have_another_dtype():
    found = K.ops.layer_normalization(K.ops.ones((2, 8), "bfloat16"), K.ops.ones(8, "float16"), K.ops.ones(8))
    assert found.dtype == "bfloat16" and found.numpy().astype(int).tolist() == [[1] * 8] * 2


@pytest.mark.parametrize(
    ("mode", "found"),
    [("constant", [0, 0, 1, 1, 2, 3, 4, 0]), ("nearest", [1, 1, 1, 1, 2, 3, 4, 5]), ("wrap", [4, 5, 1, 1, 2, 3, 4, 1])],
)
def test_of_two_elements_equally_near_the_one_farther_from_0_is_read(mode, found):
    """As in Keras on JAX, which these numbers are from; also in a compiled function."""
    x, places = [1.0, 2.0, 3.0, 4.0, 5.0], np.array([[-1.5, -0.5, -0.4999, 0.49999997, 0.5, 1.5, 2.5, 4.5]], "float32")

    def read(places):
        return tf.keras.ops.image.map_coordinates(x, places, order=0, fill_mode=mode)

    for call in (read, tf.function(read)):
        np.testing.assert_array_equal(call(tf.constant(places)).numpy(), found)
