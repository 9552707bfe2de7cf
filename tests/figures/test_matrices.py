"""What the pictures of derivatives show: the right numbers, zero in the middle of the colours, lines and names in place."""

import sys

import numpy as np
import pytest

import minikeras as tf

plt = pytest.importorskip("matplotlib.pyplot")
ad = tf.autodiff
RANDOM = np.random.default_rng(0)


def shown(ax):
    """The matrix in the picture."""
    return np.asarray(ax.images[0].get_array())


def limits(ax):
    return ax.images[0].norm.vmin, ax.images[0].norm.vmax


def names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def lines(ax):
    """Where horizontal and vertical lines are drawn."""
    across = [float(line.get_ydata()[0]) for line in ax.lines if line.get_ydata()[0] == line.get_ydata()[1]]
    down = [float(line.get_xdata()[0]) for line in ax.lines if line.get_xdata()[0] == line.get_xdata()[1]]
    return across, down


@pytest.fixture
def kernel_and_bias():
    """A recorded layer, and the Jacobians of its output (7, 10) with respect to kernel (5, 10) and bias (10,)."""
    layer = tf.keras.layers.Dense(10, "relu")
    x = tf.constant(RANDOM.normal(size=(7, 5)).astype("float32"))
    with tf.GradientTape() as tape:
        y = layer(x)
    return layer, x, tape.jacobian(y, [layer.kernel, layer.bias])


# All pictures of matrices ------------------------------------------------------------------------------------------------


PLOTS = [
    pytest.param(ad.plot_jacobian, np.array([[1.0, -3.0], [0.5, 2.0]]), id="jacobian"),
    pytest.param(ad.plot_hessian, np.array([[1.0, -3.0], [-3.0, 2.0]]), id="hessian"),
    pytest.param(ad.plot_batch_jacobian, np.array([[[1.0, -3.0], [0.5, 2.0]]]), id="batch_jacobian"),
]


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_colours_are_centred_at_zero_and_reach_to_the_largest_magnitude(plot, given):
    ax = plot(given)
    assert limits(ax) == (-3.0, 3.0)
    red, green, blue, _ = ax.images[0].cmap(ax.images[0].norm(0.0))
    assert max(red, green, blue) - min(red, green, blue) < 0.02 and red > 0.9, "zero is white"
    ax.figure.canvas.draw()


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_a_picture_is_drawn_into_the_axes_that_are_given(plot, given):
    _, (left, right) = plt.subplots(1, 2)
    assert plot(given, ax=right, title="this one") is right
    assert right.get_title() == "this one" and len(right.images) == 1 and not left.images


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_a_limit_below_the_largest_value_shows_as_arrows_at_the_colour_bar(plot, given):
    whole, cut = plot(given), plot(given, limit=1.5, cmap="seismic")
    assert limits(cut) == (-1.5, 1.5) and cut.images[0].cmap.name == "seismic"
    assert [ax.images[0].colorbar.extend for ax in (whole, cut)] == ["neither", "both"]


@pytest.mark.parametrize(("plot", "given"), PLOTS)
@pytest.mark.parametrize("limit", [0.0, -1.0, float("inf"), float("nan")])
def test_a_limit_must_be_a_positive_number(plot, given, limit):
    with pytest.raises(ValueError, match="limit: expected a positive number"):
        plot(given, limit=limit)
    assert not plt.get_fignums(), "no empty figure is left behind"


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_a_derivative_of_zeros_has_a_picture(plot, given):
    assert limits(plot(given * 0)) == (-1.0, 1.0)


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_nan_and_infinity_do_not_move_the_colours_and_are_seen(plot, given):
    given = given.copy()
    given.flat[1:3] = np.nan, np.inf
    ax = plot(given)
    assert limits(ax) == (-2.0, 2.0) and ax.images[0].colorbar.extend == "both"
    assert tuple(ax.images[0].cmap.get_bad()) == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(("plot", "given"), PLOTS)
@pytest.mark.parametrize("convert", [tf.constant, np.ndarray.tolist, tf.Variable, lambda a: a.astype("float16")])
def test_tensors_variables_lists_and_other_dtypes_are_drawn(plot, given, convert):
    assert np.array_equal(np.abs(shown(plot(convert(given)))).max(), 3.0)


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_complex_numbers_are_refused_with_what_to_draw_instead(plot, given):
    with pytest.raises(TypeError, match="complex128 has no sign"):
        plot(given * 1j)


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_nothing_to_draw_is_an_error(plot, given):
    with pytest.raises(tf.errors.ShapeError, match="nothing to draw"):
        plot(given[..., :0, :0])


@pytest.mark.parametrize(("plot", "given"), PLOTS)
def test_without_matplotlib_the_error_says_how_to_get_it(plot, given, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(tf.errors.MissingExtraError, match=r"pip install 'minikeras\[plot\]'"):
        plot(given)


def test_a_derivative_on_a_device_is_brought_to_the_host(device):
    given = tf.constant([[1.0, 2.0], [2.0, 0.0]])
    assert np.array_equal(shown(ad.plot_hessian(given)), [[1, 2], [2, 0]])


# Jacobians ---------------------------------------------------------------------------------------------------------------


def test_a_jacobian_of_any_rank_is_a_matrix_of_target_and_source_elements(kernel_and_bias):
    layer, _, (kernel, _) = kernel_and_bias
    ax = ad.plot_jacobian(kernel, layer.kernel)
    assert np.array_equal(shown(ax), kernel.numpy().reshape(70, 50))
    assert ax.get_ylabel() == "target (7, 10)" and ax.get_xlabel().endswith("kernel (5, 10)")
    assert not ax.lines and not names(ax.xaxis)[0].isalpha()
    assert np.array_equal(shown(ad.plot_jacobian(kernel)), shown(ax)), "half of the axes are the target's"


def test_jacobians_of_several_sources_stand_side_by_side(kernel_and_bias):
    layer, _, found = kernel_and_bias
    ax = ad.plot_jacobian(found, layer)
    expected = np.concatenate([found[0].numpy().reshape(70, 50), found[1].numpy().reshape(70, 10)], axis=1)
    assert np.array_equal(shown(ax), expected)
    assert names(ax.xaxis) == ["kernel", "bias"] and lines(ax) == ([], [49.5])
    for other in (ad.plot_jacobian(found, target_rank=2), ad.plot_jacobian({"W": found[0], "b": found[1]}, target_rank=2)):
        assert np.array_equal(shown(other), expected) and lines(other) == ([], [49.5])
    assert names(other.xaxis) == ["W", "b"]


def test_a_flat_jacobian_is_divided_by_its_sources(kernel_and_bias):
    layer, x, found = kernel_and_bias
    flat = ad.jacobian(lambda: layer(x), layer)
    ax = ad.plot_jacobian(flat, layer.trainable_variables)
    assert np.array_equal(shown(ax), flat.numpy().reshape(70, 60))
    assert names(ax.xaxis) == ["kernel", "bias"] and lines(ax) == ([], [49.5]) and ax.get_ylabel() == "target (7, 10)"
    alone = ad.plot_jacobian(ad.jacobian(lambda: layer(x), [layer.kernel]), layer.kernel)
    assert np.array_equal(shown(alone), found[0].numpy().reshape(70, 50))


def test_a_source_without_gradient_is_drawn_as_zeros():
    used, unused = tf.Variable([1.0, 2.0], name="used"), tf.Variable([1.0, 2.0, 3.0], name="unused")
    with tf.GradientTape() as tape:
        y = used * used
    ax = ad.plot_jacobian(tape.jacobian(y, [used, unused]), [used, unused])
    assert np.array_equal(shown(ax), [[2, 0, 0, 0, 0], [0, 4, 0, 0, 0]])
    assert names(ax.xaxis) == ["used", "unused"]


def test_scalar_targets_and_sources_make_one_row_or_one_column():
    assert shown(ad.plot_jacobian(np.ones(4), tf.Variable(0.0))).shape == (4, 1)
    assert shown(ad.plot_jacobian(np.ones(4), target_rank=0)).shape == (1, 4)
    assert shown(ad.plot_jacobian(np.float64(2.0))).shape == (1, 1)


def test_a_long_strip_fills_the_picture():
    assert ad.plot_jacobian(np.ones((201, 1))).get_aspect() == "auto"
    assert ad.plot_jacobian(np.ones((20, 10))).get_aspect() == 1.0


@pytest.mark.parametrize(
    ("jacobian", "options", "words"),
    [
        (np.ones((2, 3, 4)), {}, r"\(2, 3, 4\)\] do not tell which axes"),
        ([np.ones((2, 3)), np.ones((2, 4))], {}, "give the sources, or target_rank"),
        ([np.ones((2, 3)), np.ones((3, 4))], {"target_rank": 1}, "have no 1 first axes in common"),
        (np.ones((2, 3)), {"target_rank": 3}, "have no 3 first axes in common"),
        (np.ones((2, 3)), {"sources": tf.Variable([1.0, 2.0])}, r"expected one shape followed by .*\(2,\)"),
        (np.ones((2, 3)), {"sources": [tf.Variable([1.0]), tf.Variable([1.0])]}, r"found \[\(2, 3\)\]"),
        ([np.ones((2, 1))], {"sources": [tf.Variable([1.0]), tf.Variable([1.0])]}, r"found \[\(2, 1\)\]"),
        ([np.ones((2, 1)), np.ones((3, 1))], {"sources": [tf.Variable([1.0])] * 2}, "expected one shape followed by"),
        ([None], {"sources": [tf.Variable([1.0])]}, r"found \[None\]"),
        ([None], {}, "do not tell"),
    ],
)
def test_shapes_that_contradict_the_sources_are_named(jacobian, options, words):
    with pytest.raises(tf.errors.ShapeError, match=words):
        ad.plot_jacobian(jacobian, **options)


# Hessians ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def network():
    """A model with three inputs and its loss; 12 + 4 + 4 + 1 parameters."""
    model = tf.keras.Sequential(
        [tf.keras.Input((3,)), tf.keras.layers.Dense(4, "tanh", name="hidden"), tf.keras.layers.Dense(1, name="out")],
        name="net",
    )
    x = tf.constant(RANDOM.normal(size=(6, 3)).astype("float32"))
    return model, lambda: tf.reduce_mean((model(x) - 1.0) ** 2)


def test_a_hessian_has_lines_between_the_variables_and_their_names(network):
    model, loss = network
    hessian = ad.hessian(loss, model)
    ax = ad.plot_hessian(hessian, model, title="second derivatives")
    assert np.array_equal(shown(ax), hessian.numpy())
    assert lines(ax) == ([11.5, 15.5, 19.5], [11.5, 15.5, 19.5])
    expected = ["hidden/kernel", "hidden/bias", "out/kernel", "out/bias"]
    assert names(ax.xaxis) == names(ax.yaxis) == expected
    assert np.array_equal(shown(ad.plot_hessian(hessian)), shown(ax)) and not ad.plot_hessian(hessian).lines


def test_blocks_are_joined_to_the_same_picture(network):
    model, loss = network
    hessian, blocks = ad.hessian(loss, model), ad.hessian(loss, model, flat=False)
    named, unnamed = ad.plot_hessian(blocks, model), ad.plot_hessian(blocks)
    for ax in (named, unnamed):
        assert np.array_equal(shown(ax), hessian.numpy()) and len(ax.lines) == 6
    assert names(unnamed.xaxis) == ["variable 0", "variable 1", "variable 2", "variable 3"]


def test_the_hessian_of_one_kernel_is_reshaped_to_a_matrix(network):
    model, loss = network
    kernel = model.layers[0].kernel
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            value = loss()
        gradient = inner.gradient(value, kernel)
    hessian = outer.jacobian(gradient, kernel)
    ax = ad.plot_hessian(hessian, kernel)
    assert np.array_equal(shown(ax), hessian.numpy().reshape(12, 12))
    assert ax.get_xlabel() == ax.get_ylabel() and ax.get_xlabel().endswith("hidden/kernel (3, 4)")
    assert ad.plot_hessian(hessian).get_xlabel() == "parameter (12,)"


def test_the_names_of_small_variables_stand_apart():
    variables = [tf.Variable(tf.zeros(size), name=f"v{i}") for i, size in enumerate([90, 1, 1, 1, 60, 1, 1])]
    ax = ad.plot_hessian(np.eye(155), variables)
    for places in (ax.get_xticks(), ax.get_yticks()):
        assert np.diff(places).min() > 0.049 * 155 and places[0] > 0 and places[-1] < 155
    assert lines(ax)[0] == [89.5, 90.5, 91.5, 92.5, 152.5, 153.5], "lines stay where the variables end"


@pytest.mark.parametrize(
    ("hessian", "variables", "words"),
    [
        (np.ones((2, 3)), None, r"expected a shape twice in a row, .* found \(2, 3\)"),
        (np.ones((2, 2, 2)), None, r"found \(2, 2, 2\)"),
        (np.ones((2, 2)), [tf.Variable([1.0])], "have 1 elements, the Hessian is 2 x 2"),
        ([[np.ones((1, 1)), np.ones((1, 2))]], None, "as many rows of blocks as columns"),
        ([[np.ones((1, 1)), np.ones((1, 2))], [np.ones((2, 1)), np.ones((2, 3))]], None, "of fitting sizes"),
        (
            [[np.ones((1, 1)), np.ones((1, 2))], [np.ones((2, 1)), np.ones((2, 2))]],
            [tf.Variable([1.0, 2.0]), tf.Variable([1.0])],
            r"of blocks \[1, 2\]",
        ),
    ],
)
def test_what_is_no_hessian_of_the_variables_is_refused(hessian, variables, words):
    with pytest.raises(tf.errors.ShapeError, match=words):
        ad.plot_hessian(hessian, variables)


# Batches -----------------------------------------------------------------------------------------------------------------


def test_a_whole_jacobian_of_a_batch_has_a_patch_for_each_output_and_input():
    whole = RANDOM.normal(size=(7, 6, 7, 5))
    ax = ad.plot_batch_jacobian(tf.constant(whole))
    picture = shown(ax)
    assert picture.shape == (42, 35)
    for output in range(6):
        for given in range(5):
            patch = picture[7 * output : 7 * output + 7, 7 * given : 7 * given + 7]
            assert np.array_equal(patch, whole[:, output, :, given])
    assert lines(ax) == ([6.5, 13.5, 20.5, 27.5, 34.5], [6.5, 13.5, 20.5, 27.5])
    assert names(ax.yaxis) == list("012345") and names(ax.xaxis) == list("01234")


def test_a_batch_jacobian_has_a_patch_for_each_row():
    rows = RANDOM.normal(size=(7, 6, 5))
    ax = ad.plot_batch_jacobian(rows)
    assert np.array_equal(shown(ax), np.concatenate(list(rows), axis=1))
    assert names(ax.xaxis) == list("0123456") and lines(ax)[1] == [4.5, 9.5, 14.5, 19.5, 24.5, 29.5]


def test_more_axes_are_counted_through():
    whole = RANDOM.normal(size=(2, 3, 2, 2, 3, 4))
    assert np.array_equal(shown(ad.plot_batch_jacobian(whole)), shown(ad.plot_batch_jacobian(whole.reshape(2, 6, 2, 12))))
    rows = RANDOM.normal(size=(2, 3, 2, 4, 3))
    assert np.array_equal(shown(ad.plot_batch_jacobian(rows)), shown(ad.plot_batch_jacobian(rows.reshape(2, 6, 12))))


def test_many_patches_are_not_all_numbered():
    ax = ad.plot_batch_jacobian(np.ones((2, 64, 2, 3)))
    assert [name for name in names(ax.yaxis) if name] == [str(i) for i in range(0, 64, 6)]
    assert len(lines(ax)[0]) == 63


@pytest.mark.parametrize("shape", [(), (3,), (3, 3), (3, 2, 4, 2)])
def test_what_is_no_jacobian_of_a_batch_is_refused(shape):
    with pytest.raises(tf.errors.ShapeError, match=r"expected \(batch, \*outputs, batch, \*inputs\)"):
        ad.plot_batch_jacobian(np.ones(shape))


def cut_off(figure):
    """The texts that reach beyond the picture."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    texts = [text for ax in figure.axes for text in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    texts += [child.yaxis.label for ax in figure.axes for child in ax.child_axes]
    texts += [label for ax in figure.axes for label in ax.get_xticklabels() + ax.get_yticklabels() if inside(ax, label)]
    boxes = {text.get_text(): text.get_window_extent() for text in texts if text.get_text()}
    return [text for text, box in boxes.items() if min(box.x0, box.y0) < -1 or box.x1 > width + 1 or box.y1 > height + 1]


def inside(ax, label):
    """Whether a label belongs to a place within the axes; others are not drawn."""
    low, high = sorted(ax.get_xlim() if label in ax.get_xticklabels() else ax.get_ylim())
    return low <= label.get_position()[0 if label in ax.get_xticklabels() else 1] <= high


@pytest.mark.parametrize("place", ["a new figure", "given axes", "two axes", "small axes"])
def test_no_label_is_cut_off(place):
    model = tf.keras.Sequential([tf.keras.Input((4,)), *(tf.keras.layers.Dense(units) for units in (8, 8, 3))])
    x = tf.constant(RANDOM.normal(size=(2, 4)).astype("float32"))
    with tf.GradientTape() as tape:
        y = model(x)
    jacobian = tape.jacobian(y, model.trainable_variables)
    title = "a title that is longer than the picture below it is wide, as titles that tell everything are wont to be"
    if place == "a new figure":
        figure = ad.plot_jacobian(jacobian, model, title=title).figure
    else:
        size = (4, 4) if place == "small axes" else (6.4, 4.8)
        figure, axes = plt.subplots(1, 2 if place == "two axes" else 1, figsize=size, squeeze=False)
        for ax in axes[0]:
            ad.plot_jacobian(jacobian, model, ax=ax)
    assert cut_off(figure) == []


def test_a_figure_with_a_layout_of_its_own_keeps_it():
    figure, ax = plt.subplots(layout="tight")
    engine = figure.get_layout_engine()
    ad.plot_jacobian(np.eye(3), ax=ax)
    assert figure.get_layout_engine() is engine
