"""Each reason why a gradient is None: found by its cause, with the operation and the line."""

import concurrent.futures
import inspect
import pathlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import minikeras as tf
from minikeras.diagnostics import REASONS


def traced(**options):
    return tf.GradientTape(trace=True, **options)


def line_with(text):
    """'file:line' of the line of the calling test that holds a text."""
    frame = inspect.currentframe().f_back
    lines, first = inspect.getsourcelines(frame.f_code)
    (found,) = [first + i for i, line in enumerate(lines) if text in line and "line_with" not in line]
    return f"{pathlib.Path(__file__)}:{found}"


def reasons(explanation):
    return [explanation.reason, *(other.reason for other in explanation.others)]


# Connected -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", [False, True])
def test_an_explanation_of_a_connected_source_is_true(trace):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(trace=trace) as tape:
        y = x * x
    found = tape.explain(y, x)
    assert found and found.connected and found.reason is None and found.others == ()
    assert str(found) == "The target depends on the source, and a gradient flows."


@pytest.mark.parametrize("trace", [False, True])
def test_explaining_does_not_use_up_the_tape_and_works_afterwards(trace):
    x, w = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape(trace=trace) as tape:
        y = x * x
    before = tape.explain(y, {"x": x, "w": w})
    gradient = tape.gradient(y, x)
    after = tape.explain(y, {"x": x, "w": w})
    assert gradient.numpy() == 6.0
    assert [before["x"].connected, before["w"].connected, before["w"].reason] == [True, False, "no_dependence"]
    assert after["x"].connected and after["w"].reason == "no_dependence"


def test_the_answer_has_the_structure_of_the_sources():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    found = tape.explain([y, x], {"a": [x, x], "b": (y,)})
    assert [type(found["a"]), type(found["b"])] == [list, tuple]
    assert all([*found["a"], *found["b"]])


def test_a_used_up_tape_without_trace_refuses_to_guess_about_another_target():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
        z = tf.round(x) + y
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match=r"used up by another target.*trace=True"):
        tape.explain(z, x)


def test_explaining_leaves_no_mark_on_outer_tapes():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = x * x
        count = outer.summary().records
        tape.explain(y, x)
        assert outer.summary().records == count
        first = tape.gradient(y, x)
    assert outer.gradient(first, x).numpy() == 2.0


# One reason after the other ----------------------------------------------------------------------------------------------


VARIABLE, CONSTANT, VECTOR = (lambda: tf.Variable(3.5)), (lambda: tf.constant(3.5)), (lambda: tf.Variable([3.5, -1.0]))
IMAGE, INTEGER = (lambda: tf.Variable(tf.ones([1, 2, 2, 3]))), (lambda: tf.constant(3))
LEFT, WHOLE, ROUGH, UNWATCHED = ["left_through_numpy"], ["integer_dtype"], ["non_differentiable_op"], ["not_watched"]
CASES = {
    "T15, T16: never watched": (CONSTANT, lambda x: x * x, UNWATCHED, None, "was never watched", "tape.watch(x)"),
    "T18: the tape was told": (VARIABLE, lambda x: x * x, UNWATCHED, None, "watch_accessed_variables=False"),
    "T22: an integer": (INTEGER, lambda x: tf.cast(x, tf.float32), WHOLE, None, "a source of dtype int32"),
    "T47: an integer target": (VARIABLE, lambda x: tf.cast(x, tf.int32), WHOLE, None),
    "T106: the cast that made it": (VARIABLE, lambda x: tf.cast(tf.cast(x, tf.int32) * 2, tf.float32), WHOLE, "cast", "int32"),
    "T41: numpy()": (VARIABLE, lambda x: tf.sin(tf.constant(tf.exp(x).numpy() ** 2)), LEFT, ".numpy()", "Possible cause"),
    "T102: NumPy": (VARIABLE, lambda x: tf.sin(tf.constant(np.square(tf.exp(x)))), LEFT, "a NumPy function", "Possible cause"),
    "float()": (VARIABLE, lambda x: tf.sin(tf.constant(float(tf.exp(x)) * 2)), LEFT, "float()", "Possible cause"),
    "int()": (VARIABLE, lambda x: tf.sin(tf.constant(int(tf.exp(x)) * 2.0)), LEFT, "int()", "Possible cause"),
    "a target made of an array itself": (VECTOR, lambda x: tf.constant(x.numpy()), LEFT, ".numpy()"),
    "T24: an initial value": (VARIABLE, lambda x: tf.Variable(x * 2.0) * 3.0, ["through_assignment"], None),
    "T67: stopped": (VARIABLE, lambda x: tf.exp(tf.stop_gradient(x * x)), ["stopped"], "stop_gradient"),
    "stopped beside a path": (CONSTANT, lambda x: x * tf.stop_gradient(x), UNWATCHED, None),
    "T77: round": (VARIABLE, lambda x: 2.0 * tf.math.round(x), ROUGH, "round"),
    "floor": (VARIABLE, lambda x: 2.0 * tf.math.floor(x), ROUGH, "floor"),
    "ceil": (VARIABLE, lambda x: 2.0 * tf.math.ceil(x), ROUGH, "ceil"),
    "T117: a condition": (VECTOR, lambda x: tf.where(x > 0.0, 1.0, 2.0), ROUGH, "greater"),
    "T75: none is registered": (IMAGE, lambda x: tf.image.adjust_contrast(x, 2.0), ROUGH, "AdjustContrastv2"),
    "several": (
        CONSTANT,
        lambda x: tf.cast(tf.cast(tf.stop_gradient(tf.round(x) * 2.0) * 2.0, tf.int32), tf.float32),
        [*WHOLE, "stopped", *ROUGH, *UNWATCHED],
        *("cast", "Also: "),
    ),
    "two paths": (VARIABLE, lambda x: tf.stop_gradient(x) + tf.round(x), [*ROUGH, "stopped"], None),
}
"""Source, target, reasons from the target to the source, the operation that is named with its line, and words."""


def explained(name, trace):
    """What a tape says of a case."""
    made, function, *_ = CASES[name]
    x = made()
    with tf.GradientTape(watch_accessed_variables="told" not in name, trace=trace) as tape:
        if x.dtype.is_integer:
            tape.watch(x)
        y = function(x)
    return tape.explain(y, x)


@pytest.mark.parametrize("name", CASES)
def test_a_cut_has_its_reasons_in_order_and_names_its_operation_and_line(name):
    found, (_, function, expected, operation, *words) = explained(name, True), CASES[name]
    assert reasons(found) == expected
    assert all(word in f"{found} {found.hint}" for word in words), str(found)
    if operation is not None:
        lines = {f"{pathlib.Path(__file__)}:{line}" for *_, line in function.__code__.co_lines()}
        assert found.op == operation and found.where in lines


@pytest.mark.parametrize("name", [*list(CASES)[:4], "T75: none is registered"])
def test_an_ordinary_tape_knows_about_sources_and_targets(name):
    assert explained(name, False).reason == CASES[name][2][0]


def test_an_ordinary_tape_says_where_its_knowledge_ends():
    found = explained("T77: round", False)
    assert found.reason == "no_dependence" and "GradientTape(trace=True)" in found.hint and found.where is None


@pytest.mark.parametrize("trace", [False, True])
def test_a_tensor_that_was_watched_after_its_use(trace):
    """T20."""
    x = tf.constant(3.0)
    with tf.GradientTape(trace=trace) as tape:
        y = x * x  # used here
        tape.watch(x)
    found = tape.explain(y, x)
    assert reasons(found)[0] == "not_watched" and "only after" in str(found)
    assert found.where == (line_with("# used here") if trace else None)


@pytest.mark.parametrize("trace", [False, True])
def test_a_variable_that_is_not_trainable(trace):
    """T17: named by its layer."""
    layer = tf.keras.layers.Dense(1, name="head")
    layer.build((None, 2))
    layer.trainable = False
    with tf.GradientTape(trace=trace) as tape:
        y = layer(tf.ones([1, 2]))
    found = tape.explain(y, layer.kernel)
    assert reasons(found) == ["not_trainable"] if trace else reasons(found)[0] == "not_trainable"
    assert "head/kernel" in str(found)


def test_the_line_of_a_conversion_is_that_of_the_user():
    x = tf.Variable([3.0])
    with traced() as tape:
        array = np.square(x)  # out
        y = tf.reduce_sum(array)
    assert tape.explain(y, x).where == line_with("# out")


def test_a_number_that_left_and_came_back():
    x, w = tf.Variable(3.0), tf.Variable(5.0)
    with traced() as tape:
        y = w * float(x)
    assert reasons(tape.explain(y, x)) == ["left_through_numpy"]
    assert tape.explain(y, w)


def test_printing_a_value_is_not_blamed():
    """A conversion is a cause only if something came back in after it."""
    x, w = tf.Variable(3.0), tf.Variable(5.0)
    with traced() as tape:
        float(x)
        y = w * w
    assert reasons(tape.explain(y, x)) == ["no_dependence"]


ASSIGNMENTS = {
    "assign": lambda v, x: v.assign(x),
    "assign_add": lambda v, x: v.assign_add(x),
    "assign_sub": lambda v, x: v.assign_sub(x),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_a_value_that_went_through_an_assignment(name):
    """T86."""
    x, v = tf.Variable(3.0), tf.Variable(1.0, name="state")
    with traced() as tape:
        ASSIGNMENTS[name](v, x * 2.0)  # assigned
        y = v * v
    found = tape.explain(y, x)
    assert reasons(found) == ["through_assignment"]
    assert found.op == name and "'state:0'" in str(found) and found.where.startswith(__file__)
    assert tape.explain(y, v)


def test_a_scatter_and_an_assigned_part_are_assignments():
    x, v = tf.Variable([3.0]), tf.Variable([1.0, 2.0])
    with traced() as tape:
        v.scatter_nd_update([[0]], x * 2.0)
        y = v * v
        v[1].assign(x[0] * 2.0)
        z = v * v
    assert tape.explain(y, x).op == "scatter"
    assert reasons(tape.explain(z, x)) == ["through_assignment", "through_assignment"]


def test_an_assignment_that_was_overwritten_is_not_blamed():
    x, v = tf.Variable(3.0), tf.Variable(1.0)
    with traced() as tape:
        v.assign(x * 2.0)
        v.assign(7.0)
        y = v * v
    assert reasons(tape.explain(y, x)) == ["no_dependence"]


@pytest.mark.parametrize("trace", [False, True])
def test_a_variable_whose_name_was_bound_to_a_tensor_after_its_use(trace):
    """T15, T16."""
    x = tf.Variable(3.0, name="weight")
    with tf.GradientTape(trace=trace) as tape:
        y = x * x
        x = x + 1.0  # re-bound
    found = tape.explain(y, x)
    assert reasons(found)[0] == "assigned_after_use"
    assert "made after the target" in str(found) and "'weight:0'" in str(found) and "assign_add" in found.hint
    assert found.where == (line_with("# re-bound") if trace else None)


@pytest.mark.parametrize("trace", [False, True])
def test_a_tensor_that_replaced_a_variable_before_the_target_was_finished(trace):
    x = tf.Variable(3.0)
    with tf.GradientTape(trace=trace) as tape:
        y = x * x
        x = x + 1.0
        z = y * 2.0
    assert reasons(tape.explain(z, x))[0] == "assigned_after_use"


OUTSIDE = {
    "before the block": lambda x, tape: _before(x, tape),
    "after the block": lambda x, tape: _after(x, tape),
    "while recording was stopped": lambda x, tape: _stopped(x, tape),
    "before tape.reset()": lambda x, tape: _before_reset(x, tape),
}


def _before(x, tape):
    y = x * x
    with tape:
        x * 2.0
    return y


def _after(x, tape):
    with tape:
        x * 2.0
    return x * x


def _stopped(x, tape):
    with tape:
        x * 2.0
        with tape.stop_recording():
            y = x * x
        x * 2.0
    return y


def _before_reset(x, tape):
    with tape:
        y = x * x
        tape.reset()
        x * 2.0
    return y


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("when", OUTSIDE)
def test_a_target_that_was_computed_elsewhere(when, trace):
    """T25, T28, T32, T41, T62."""
    x = tf.Variable(3.0)
    tape = tf.GradientTape(trace=trace)
    found = tape.explain(OUTSIDE[when](x, tape), x)
    assert reasons(found)[0] == "computed_outside" and when in str(found)


def test_what_was_computed_while_recording_was_stopped_is_found_on_the_way():
    """T28: the line of the operation that was not recorded."""
    x = tf.Variable(3.0)
    with traced() as tape:
        with tape.stop_recording():
            y = x * x  # unrecorded
        z = y * 2.0
    found = tape.explain(z, x)
    assert reasons(found)[0] == "computed_outside" and found.where == line_with("# unrecorded")


def test_another_thread_is_not_recorded():
    """T120."""
    x = tf.Variable(3.0)
    with traced() as tape, concurrent.futures.ThreadPoolExecutor(1) as pool:
        y = pool.submit(lambda: x * x).result()
    found = tape.explain(y, x)
    assert reasons(found)[0] == "computed_outside" and "another thread" in str(found)


@pytest.mark.parametrize("trace", [False, True])
def test_a_source_that_another_tape_watches(trace):
    """T21, T52."""
    x = tf.constant(3.0)
    with tf.GradientTape(trace=trace) as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x
        first = inner.gradient(y, x)
    found = outer.explain(first, x)
    assert reasons(found)[0] == "other_tape" and "inside or after this one" in str(found)
    with tf.GradientTape() as around, tf.GradientTape(trace=trace) as within:
        around.watch(x)
        y = x * x
    assert "around this one" in str(within.explain(y, x))


def test_the_error_about_it_names_the_line_in_a_note():
    """T75: the message itself stays as it is."""
    x = tf.Variable(tf.ones([1, 2, 2, 3]))
    with traced() as tape:
        y = tf.image.adjust_contrast(x, 2.0)  # contrast
    with pytest.raises(LookupError) as caught:
        tape.gradient(y, x)
    assert str(caught.value) == "gradient registry has no entry for: AdjustContrastv2"
    assert caught.value.__notes__ == [f"The operation was called at {line_with('# contrast')}."]


@pytest.mark.parametrize("trace", [False, True])
def test_a_custom_gradient_that_returned_none(trace):
    """T69."""

    @tf.custom_gradient
    def halved(a, b):
        return a * b, lambda upstream: (upstream, None)

    a, b = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True, trace=trace) as tape:
        y = halved(a, b) * 2.0
    found = tape.explain(y, [a, b])
    assert tape.gradient(y, [a, b])[1] is None
    assert found[0] and reasons(found[1]) == ["custom_rule_returned_none"]
    assert found[1].op == "halved" and "for argument 1" in str(found[1])


@pytest.mark.parametrize("trace", [False, True])
def test_no_dependence_lists_what_the_target_depends_on(trace):
    x, w, b = (tf.Variable(3.0, name=name) for name in "xwb")
    with tf.GradientTape(trace=trace) as tape:
        y = w * 2.0 + b
        x * 2.0
    found = tape.explain(y, x)
    assert reasons(found) == ["no_dependence"]
    assert "it depends on 'w:0', 'b:0'" in str(found)
    assert ("trace=True" in found.hint) is not trace


@pytest.mark.parametrize("trace", [False, True])
def test_a_variable_as_target_depends_on_no_other_one(trace):
    """T37."""
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape(persistent=True, trace=trace) as tape:
        v * w
    found = tape.explain(v, [v, w])
    assert found[0] and reasons(found[1]) == ["no_dependence"]


def test_a_used_up_tape_remembers_its_answer_for_several_targets():
    v, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y, z = v * v, tf.cast(w, tf.int32)
    tape.gradient([y, z], [v, w])
    assert [bool(found) for found in tape.explain([y, z], [v, w])] == [True, False]


def test_a_name_that_holds_a_tensor_from_the_second_step_on():
    """T16: the guide's example of a Variable that a Tensor replaced."""
    x, found = tf.Variable(2.0), []
    for _ in range(2):
        with tf.GradientTape() as tape:
            y = x + 1.0
        found.append(tape.explain(y, x))
        x = x + 1.0
    assert found[0] and found[1].reason == "not_watched" and "assign_add" in found[1].hint


def test_a_tape_explains_within_a_vectorized_map():
    found = []

    def slope(v):
        with traced() as tape:
            tape.watch(v)
            y, z = tf.sin(v), tf.round(v)
        found.extend([tape.explain(y, v), tape.explain(z, v)])
        return tape.gradient(y, v)

    tf.vectorized_map(slope, tf.constant([1.0, 2.0]))
    assert [one.reason for one in found] == [None, "non_differentiable_op"]


# Several at once ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", [False, True])
def test_a_path_that_ends_at_a_step_begins_again_with_its_result(trace):
    x = tf.Variable(3.5)
    with tf.GradientTape(trace=trace) as tape:
        step = tf.round(x)
        y = step * step
    assert tape.explain(y, step).connected
    found = tape.explain(y, x)
    assert found.reason == ("non_differentiable_op" if trace else "no_dependence") and not found.connected


def test_every_reason_has_a_sentence_and_a_hint():
    assert len(REASONS) == 12
    assert all(sentence and hint.endswith(".") for sentence, hint in REASONS.values())


def test_a_line_of_a_notebook_is_named_as_its_tracebacks_name_it(monkeypatch):
    names = {"/tmp/ipykernel_1/2.py": ("Cell", "In[5]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=names.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    program = "with tf.GradientTape(trace=True) as tape:\n    y = tf.cast(x, tf.int32)\nfound = tape.explain(y, x)"
    for file, place in (("/tmp/ipykernel_1/2.py", "In[5]:2"), ("train.py", "train.py:2")):
        cell = {"__name__": "__main__", "tf": tf, "x": tf.Variable(2.0)}
        exec(compile(program, file, "exec"), cell)
        assert cell["found"].where == place
