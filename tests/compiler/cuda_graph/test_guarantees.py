"""What holds on a device as elsewhere: steps are whole or not at all, Tensors never change, Python's assignments count."""

import ctypes
import functools
import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from graph_double import Refused
from graph_steps import LOSSES, MODELS, OPTIMIZERS, Trained, graphs_of
from in_threads import in_threads

import minikeras as tf
from minikeras.compiler.executors.cuda_graph.memory_plan import HomeVariables
from minikeras.compiler.executors.cuda_graph.schedule import Home
from minikeras.core import Tensor
from minikeras.layout import Layout


def trained(double, model="dense", loss="labels", optimizer="Adam", steps=4, place="STRICT:0"):
    """A model after some steps."""
    found = Trained(MODELS[model], LOSSES[loss], OPTIMIZERS[optimizer], place)
    for _ in range(steps):
        found.step()
    return found


def assert_state(found, expected):
    for own, other in zip(found.state(), expected, strict=True):
        np.testing.assert_array_equal(own, other)


def assert_close(found, expected):
    for own, other in zip(found.state(), expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("steps", [2, 5], ids=["before the capture", "after the capture"])
@pytest.mark.parametrize("optimizer", ["momentum", "Adam", "clipped"])
def test_a_device_that_breaks_before_a_step_is_enqueued_leaves_everything_as_it_was(double, optimizer, steps):
    ours, theirs = trained(double, optimizer=optimizer, steps=steps), trained(double, optimizer=optimizer, steps=steps)
    before = ours.state()
    double.breaks = 8 if steps == 2 else 1  # a graph runs as a whole: only its launch, or what comes before it, may fail
    with pytest.raises(RuntimeError, match="broke"):
        ours.step()
    double.breaks = None
    assert_state(ours, before)
    np.testing.assert_array_equal(ours.step(), theirs.step())
    assert_state(ours, theirs.state())


@pytest.mark.parametrize("steps", [2, 5], ids=["before the capture", "after the capture"])
def test_a_step_for_whose_results_there_is_no_memory_leaves_everything_as_it_was(double, monkeypatch, steps):
    def fail(size):
        raise MemoryError("Out of memory allocating 512 bytes")

    ours, theirs = trained(double, steps=steps), trained(double, steps=steps)
    before = ours.state()
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(double, "empty", fail)
        ours.step()
    assert_state(ours, before)
    np.testing.assert_array_equal(ours.step(), theirs.step())
    assert_state(ours, theirs.state())


def test_a_label_that_is_refused_leaves_everything_as_it_was(double):
    found = trained(double)
    before = found.state()
    with tf.device("STRICT:0"):
        wrong = tf.constant(np.full(8, 7))
    with pytest.raises(tf.errors.InvalidArgumentError, match="label"):
        found.step(y=wrong)
    assert_state(found, before)


def test_what_python_assigns_is_what_the_next_step_reads(double):
    ours, theirs = trained(double), trained(double, place="CPU:0")
    for found in (ours, theirs):
        with tf.device(found.place):
            for variable in found.model.trainable_variables:
                variable.assign(variable * 0.5)
    captured = len(double.nodes)
    for _ in range(3):
        np.testing.assert_allclose(ours.step(), theirs.step(), rtol=1e-5)
    assert len(double.nodes) == captured, "an assignment is copied, nothing is captured anew"


def test_a_tensor_of_a_variables_value_never_changes(double):
    found = trained(double)
    (kernel, *_) = found.model.trainable_variables
    kept, values = kernel.read_value(), kernel.numpy()
    view = kernel.read_value()[1:, 2:]
    found.step()
    np.testing.assert_array_equal(kept.numpy(), values)
    np.testing.assert_array_equal(view.numpy(), values[1:, 2:])
    assert not np.array_equal(kernel.numpy(), values)


def test_two_variables_that_were_given_one_value_part(double):
    found = trained(double, model="deep")
    first = found.model.trainable_variables[0]
    with tf.device("STRICT:0"):
        other = tf.Variable(first)
        other.assign(first.read_value())
    values = first.numpy()
    found.step()
    np.testing.assert_array_equal(other.numpy(), values)


def test_programs_of_one_model_share_its_memory(double):
    found = trained(double)
    half = found.x[:4], found.y[:4]
    for _ in range(3):
        found.step(*half)
    captured = len(double.nodes)
    for _ in range(3):
        found.step()
        found.step(*half)
    assert len(double.nodes) == captured
    train, partial = graphs_of(found.function)
    assert {home.memory for home in train._homes} == {home.memory for home in partial._homes}


def test_a_read_only_program_goes_where_training_has_put_the_weights(double):
    model = trained(double)
    predict = tf.function(lambda x: model.model(x))
    with tf.device("STRICT:0"):
        for _ in range(4):
            model.step()
            expected = model.model(model.x).numpy()
            np.testing.assert_allclose(predict(model.x).numpy(), expected, rtol=1e-6)
    (graph,) = graphs_of(predict)
    assert len(graph._known) == 1, "it has not moved"


def test_a_program_may_assign_one_weight_where_training_has_put_it_and_what_is_seen_of_it_stays(double):
    ours, theirs = trained(double), trained(double, place="CPU:0")
    kept = []
    for _ in range(4):
        for found in (ours, theirs):
            weight = found.model.trainable_variables[0]
            halved = found.__dict__.setdefault("halved", tf.function(lambda w=weight: w.assign(w * 0.5)))
            with tf.device(found.place):
                halved()
                kept += [(value := weight.read_value(), value.numpy())]
                halved()
            found.step()
            kept += [(value := weight.read_value(), value.numpy())]
        assert_close(ours, theirs.state())
    for tensor, values in kept:
        np.testing.assert_array_equal(tensor.numpy(), values)
    assert graphs_of(ours.halved)


def test_memory_is_freed_with_the_program(double):
    found = trained(double)
    (graph,) = graphs_of(found.function)
    graph, block = weakref.ref(graph), weakref.ref(graph._homes[0].memory)
    before = double.bytes_alive()
    found.function.forget()
    gc.collect()
    assert graph() is None and block() is None
    after = double.bytes_alive()
    assert after < before
    del found
    gc.collect()
    assert double.bytes_alive() < after


def test_a_thousand_replays_take_no_more_memory(double):
    found = trained(double)
    before = double.bytes_alive()
    for _ in range(1000):
        found.step()
    assert double.bytes_alive() == before
    assert len(double.nodes) == 1


@pytest.mark.parametrize(
    "what",
    [
        lambda double, memory: double.memory(8),
        lambda double, memory: double.empty(8),
        lambda double, memory: double.send(memory.address, np.zeros(2)),
        lambda double, memory: double.load(None, []),
        lambda double, memory: double.capture(lambda: None),
    ],
    ids=["memory", "the user's memory", "a copy from the host", "a module", "another capture"],
)
def test_the_double_refuses_what_a_capture_refuses(double, what):
    memory = double.memory(64)
    with double.joined(), pytest.raises(Refused, match="while a stream is captured"):
        double.capture(lambda: what(double, memory))


def test_a_step_that_cannot_be_captured_is_enqueued_node_by_node(double, monkeypatch, caplog):
    def refuse(enqueue):
        raise RuntimeError("cudaErrorStreamCaptureUnsupported")

    monkeypatch.setattr(double, "capture", refuse)
    ours, theirs = trained(double), trained(double, place="CPU:0")
    np.testing.assert_allclose(ours.step(), theirs.step(), rtol=1e-5)
    assert "could not be captured" in caplog.text


def test_an_effect_in_the_middle_stands_between_two_graphs(double, capsys):
    with tf.device("STRICT:0"):
        x, total = tf.constant([1.0, 2.0, 3.0]), tf.Variable(0.0)

        @tf.function
        def step(x):
            y = tf.exp(x)
            tf.print(y)
            total.assign_add(tf.reduce_sum(y))
            return tf.reduce_sum(y * 2.0)

        for number in range(5):
            np.testing.assert_allclose(step(x).numpy(), 2 * np.exp([1, 2, 3]).sum(), rtol=1e-6)
            np.testing.assert_allclose(total.numpy(), (number + 1) * np.exp([1, 2, 3]).sum(), rtol=1e-6)
    (graph,) = graphs_of(step)
    assert len(graph.schedule.segments) == 2
    assert capsys.readouterr().err.count("2.718") == 5


def test_kernels_that_cannot_be_compiled_leave_a_function_as_it_was_and_say_so(double, monkeypatch, caplog):
    def fail(module, kernels):
        raise OSError("libnvrtc.so.13: cannot open shared object file")

    monkeypatch.setattr(double, "load", fail)
    ours, theirs = trained(double), trained(double, place="CPU:0")
    np.testing.assert_allclose(ours.step(), theirs.step(), rtol=1e-5)
    assert not graphs_of(ours.function)
    assert "operation by operation, not as a CUDA graph: OSError: libnvrtc" in caplog.text


def test_what_code_of_the_user_may_change_runs_operation_by_operation_and_says_so(double, caplog):
    class Own(tf.keras.optimizers.SGD):
        def apply(self, grads, trainable_variables=None):
            super().apply(grads, trainable_variables)

    found = Trained(MODELS["dense"], LOSSES["labels"], lambda: Own(lambda: 0.1))
    theirs = Trained(MODELS["dense"], LOSSES["labels"], lambda: Own(lambda: 0.1), "CPU:0")
    for _ in range(4):
        np.testing.assert_allclose(found.step(), theirs.step(), rtol=1e-5)


def test_results_are_arrays_of_their_own(double):
    with tf.device("STRICT:0"):
        x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])

        @tf.function
        def step(x):
            before = w.read_value()
            w.assign(before + x)
            return before, x, w.read_value(), tf.reshape(x, [2, 1])

        kept = [step(x) for _ in range(5)]
    for number, (before, same, after, turned) in enumerate(kept):
        np.testing.assert_array_equal(before.numpy(), np.array([3.0, 4.0]) + number * np.array([1.0, 2.0]))
        np.testing.assert_array_equal(same.numpy(), [1.0, 2.0])
        np.testing.assert_array_equal(after.numpy(), np.array([3.0, 4.0]) + (number + 1) * np.array([1.0, 2.0]))
        np.testing.assert_array_equal(turned.numpy(), [[1.0], [2.0]])
    assert graphs_of(step)


def test_a_result_has_the_shape_that_it_was_given_and_one_that_is_given_twice_too(double):
    with tf.device("STRICT:0"):
        x = tf.constant(np.arange(6.0).reshape(2, 3))
        step = tf.function(lambda x: (tf.reshape(x + 1.0, [3, 2]), tf.reshape(x + 1.0, [6]), x + 1.0))
        for _ in range(4):
            found = step(x)
    assert [tuple(one.shape) for one in found] == [(3, 2), (6,), (2, 3)]
    for one in found:
        np.testing.assert_array_equal(one.numpy().reshape(-1), np.arange(6.0) + 1.0)
    assert graphs_of(step)


def test_threads_that_run_one_program_each_get_their_own_results(double):
    run, found = tf.function(lambda x: x * 2.0 + 1.0), []

    def work(number):
        with tf.device("STRICT:0"):
            found.extend((number, run(tf.constant([number] * 4)).numpy()) for _ in range(10))

    in_threads(*[functools.partial(work, float(number)) for number in range(4)])
    assert len(found) == 40
    for number, result in found:
        np.testing.assert_array_equal(result, [2.0 * number + 1.0] * 4)
    assert graphs_of(run)


def test_variables_that_change_places(double):
    with tf.device("STRICT:0"):
        a, b = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])

        @tf.function
        def swap(x):
            first, second = a.read_value(), b.read_value()
            a.assign(second)
            b.assign(first)
            return x + 1.0

        for number in range(1, 6):
            swap(tf.constant(0.0))
            expected = [[3.0, 4.0], [1.0, 2.0]] if number % 2 else [[1.0, 2.0], [3.0, 4.0]]
            np.testing.assert_array_equal([a.numpy(), b.numpy()], expected)
    assert graphs_of(swap)


def normalized_then_trained(w, others, optimizer, x):
    w.assign(w / tf.norm(w))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((x @ w) ** 2) + sum(tf.reduce_sum(other * other) for other in others)
    optimizer.apply_gradients(zip(tape.gradient(loss, [w, *others]), [w, *others], strict=True))
    return loss


def trained_then_clipped(w, others, optimizer, x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((x @ w) ** 2) + sum(tf.reduce_sum(other * other) for other in others)
    optimizer.apply_gradients(zip(tape.gradient(loss, [w, *others]), [w, *others], strict=True))
    w.assign(tf.clip_by_value(w, -0.5, 0.5))
    others[0].assign_add(tf.ones([3]))
    return loss + tf.reduce_sum(w)


def trained_then_swapped(w, others, optimizer, x):
    loss = trained_then_clipped(w, others, optimizer, x)
    first, second = others[0].read_value(), others[1].read_value()
    others[0].assign(second)
    others[1].assign(first)
    return loss


def normalized_before_and_after(w, others, optimizer, x):
    others[1].assign(others[0])
    loss = normalized_then_trained(w, others, optimizer, x)
    others[1].assign_sub(others[0])
    w.assign(w / tf.norm(w))
    return loss


@pytest.mark.parametrize(
    "step", [normalized_then_trained, trained_then_clipped, trained_then_swapped, normalized_before_and_after]
)
def test_weights_of_an_optimizer_that_a_step_assigns_itself(step, double):
    def found(place):
        with tf.device(place):
            w = tf.Variable(np.arange(1.0, 7.0).reshape(3, 2), dtype="float32")
            others = [tf.Variable(tf.ones([3]) * k) for k in (2.0, 3.0)]
            optimizer, x = tf.keras.optimizers.Adam(0.1), tf.constant(np.arange(12.0).reshape(4, 3), "float32")
            function = tf.function(lambda x: step(w, others, optimizer, x))
            results = [function(x).numpy() for _ in range(5)]
            return results, [one.numpy() for one in (w, *others, *optimizer.variables)], function

    results, state, function = found("STRICT:0")
    expected, expected_state, _ = found("CPU:0")
    np.testing.assert_allclose(results, expected, rtol=1e-5)
    for own, other in zip(state, expected_state, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)
    (graph,) = graphs_of(function)
    assert not graph.schedule.calls


def test_a_function_without_arguments_and_without_state(double):
    with tf.device("STRICT:0"):
        w = tf.Variable([1.0, 2.0])
        total = tf.function(lambda: tf.reduce_sum(w * w))
        for _ in range(5):
            assert isinstance(total(), Tensor)
            assert total().numpy() == 5.0
    assert graphs_of(total)


def test_values_that_are_kept_from_step_to_step_capture_two_graphs_and_no_more(double):
    found = trained(double)
    (kernel, *_) = found.model.trainable_variables
    kept, values = kernel.read_value(), kernel.numpy()
    for _ in range(6):
        found.step()
        np.testing.assert_array_equal(kept.numpy(), values)
        kept, values = kernel.read_value(), kernel.numpy()
    assert len(double.nodes) == 2


LOOKUPS = {
    "gather": (lambda x, at: tf.gather(x, at), 5),
    "gather_nd": (lambda x, at: tf.gather_nd(x, at[:, None]), 5),
    "take_along_axis": (lambda x, at: tf.keras.ops.take_along_axis(x, at[:, None], 0), 5),
    "scatter_nd": (lambda x, at: tf.scatter_nd(at[:, None], x[:2], [5, 3]), 5),
    "tensor_scatter_nd_update": (lambda x, at: tf.tensor_scatter_nd_update(x, at[:, None], x[:2]), 5),
    "embedding_lookup": (lambda x, at: tf.nn.embedding_lookup(x, at), 5),
    "labels": (lambda x, at: tf.nn.sparse_softmax_cross_entropy_with_logits(at, x[:2]), 3),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_an_index_outside_its_axis_is_refused_in_a_graph_with_the_message_of_the_cpu(double, name):
    look_up, size = LOOKUPS[name]
    table, right, wrong = np.arange(15.0).reshape(5, 3), np.array([1, 0]), np.array([size, 0])
    with pytest.raises(tf.errors.InvalidArgumentError) as on_the_cpu:
        look_up(tf.constant(table), tf.constant(wrong))
    with tf.device("STRICT:0"):
        x, step = tf.constant(table), tf.function(look_up)
        for _ in range(4):
            expected = step(x, tf.constant(right)).numpy()
        assert graphs_of(step)
        with pytest.raises(tf.errors.InvalidArgumentError) as there:
            step(x, tf.constant(wrong))
        assert str(there.value) == str(on_the_cpu.value)
        np.testing.assert_array_equal(step(x, tf.constant(right)), expected)


def test_draws_of_one_generator_follow_one_another_in_a_graph(double):
    """What a step reads after it has assigned it is what was assigned, also if it lies on the host."""
    found = []
    for place in ("STRICT:0", "CPU:0"):
        with tf.device(place):
            generator = tf.keras.random.SeedGenerator(3)

            @tf.function
            def step(x):
                return tf.stack([x, *(tf.keras.random.uniform((4,), seed=generator) for _ in range(3))])  # noqa: B023

            found.append([step(tf.ones([4])).numpy() for _ in range(4)] + [generator.state.numpy()])
    for own, expected in zip(*found, strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-6)


def _two(place):
    with tf.device(place):
        a, b = tf.Variable(np.ones(3, "f")), tf.Variable(np.full(3, 2.0, "f"))
        return a, b, tf.ones([3])


def _moved_while_seen(place):
    """Two Variables in one buffer, of which a Tensor sees one while the other is assigned."""
    a, b, x = _two(place)
    with tf.device(place):
        optimizer = tf.keras.optimizers.SGD(0.5)
        optimizer.build([a, b])
        step = tf.function(lambda x: optimizer.apply([x * 1.0, x * 1.0], [a, b]))
        predict = tf.function(lambda x: a * x + b)
        for _ in range(3):
            step(x), predict(x)
        found, seen = [predict(x).numpy()], tf.convert_to_tensor(b)
        a.assign(tf.fill([3], 7.0))
        found.append(predict(x).numpy())
        del seen
        b.assign(tf.fill([3], 5.0))
        return [*found, predict(x).numpy()]


def _assigned_the_other(place):
    """A Variable that has held the array of another one."""
    a, b, x = _two(place)
    with tf.device(place):
        of_a, of_b = tf.function(lambda x: a * x), tf.function(lambda x: b * x)
        of_b(x), of_b(x)
        a.assign(b)
        of_a(x), of_a(x)
        a.assign(tf.fill([3], 5.0))
        return [of_a(x).numpy(), of_b(x).numpy(), a.numpy(), b.numpy()]


@pytest.mark.parametrize("values", [_moved_while_seen, _assigned_the_other])
def test_variables_that_move_to_other_memory_keep_their_values(double, values):
    for own, other in zip(values("STRICT:0"), values("CPU:0"), strict=True):
        np.testing.assert_array_equal(own, other)


class _HostDevice:
    """Memory of the host in place of a device's."""

    def memory(self, size):
        root = np.zeros(max(size, 1), np.uint8)
        return SimpleNamespace(root=root, address=root.ctypes.data)

    def array(self, memory, start, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return np.frombuffer(memoryview(memory.root)[start : start + size], dtype).reshape(shape)

    def contiguous(self, array):
        return np.ascontiguousarray(array)

    def address(self, array):
        return array.ctypes.data

    def copy(self, to, source, size):
        ctypes.memmove(to, source, size)


def test_programs_that_lay_the_same_variables_out_in_two_ways_each_find_them_where_they_look():
    a, b = tf.Variable(np.ones(3, "f")), tf.Variable(np.full(2, 2.0, "f"))
    layouts = [Layout([(3,), (2,)], np.dtype("float32"), alignment) for alignment in (64, 1)]
    homes = [Home((a, b), one, None) for one in layouts]
    programs = [(home, HomeVariables(_HostDevice(), home, True)) for home in homes]
    for home, held in (*programs, *programs):
        address = held.settle()
        assert [address + start for _, start in home.places] == [x.array.ctypes.data for x in (a, b)]
        assert (a.numpy().tolist(), b.numpy().tolist()) == ([1, 1, 1], [2, 2])
