"""The table of `summary()` and the drawings of `plot_model`."""

import importlib.util

import numpy as np
import pytest

import minikeras as tf

layers, Input, Model = tf.keras.layers, tf.keras.Input, tf.keras.Model
Dense = layers.Dense


def lines_of(model, **options):
    lines = []
    model.summary(print_fn=lines.append, **options)
    return lines


def rows_of(model, **options):
    """The cells of the rows, wrapped ones joined."""
    rows = []
    for line in lines_of(model, line_length=200, **options):
        if line.startswith("│"):
            rows.append([cell.strip() for cell in line.strip("│").split("│")])
    return rows


def branching():
    a, b = Input((4,), name="a"), Input((4,), name="b")
    shared = Dense(3, name="shared")
    return Model([a, b], layers.Concatenate(name="joined")([shared(a), shared(b)]), name="pair")


def test_a_chain_is_shown_with_shapes_parameters_and_what_is_trained():
    model = tf.keras.Sequential(
        [Input((4,)), Dense(3, name="a"), layers.BatchNormalization(name="n"), layers.Dropout(0.5, name="d")], name="net"
    )
    model.get_layer("a").trainable = False
    assert lines_of(model) == [
        'Model: "net"',
        "┌────────────────────────┬──────────────┬─────────┬───────────┐",
        "│ Layer (type)           │ Output Shape │ Param # │ Trainable │",
        "├────────────────────────┼──────────────┼─────────┼───────────┤",
        "│ a (Dense)              │ (None, 3)    │      15 │ N         │",
        "│ n (BatchNormalization) │ (None, 3)    │      12 │ Y         │",
        "│ d (Dropout)            │ (None, 3)    │       0 │ -         │",
        "└────────────────────────┴──────────────┴─────────┴───────────┘",
        " Total params: 27 (108 B)",
        " Trainable params: 6 (24 B)",
        " Non-trainable params: 21 (84 B)",
    ]


def test_a_model_that_is_not_built_shows_question_marks():
    assert rows_of(tf.keras.Sequential([Dense(3, name="a")]))[1] == ["a (Dense)", "?", "0 (unbuilt)", "-"]


def test_connections_are_shown_where_the_graph_is_more_than_a_chain():
    assert rows_of(branching()) == [
        ["Layer (type)", "Output Shape", "Param #", "Connected to", "Trainable"],
        ["a (InputLayer)", "(None, 4)", "0", "-", "-"],
        ["b (InputLayer)", "(None, 4)", "0", "-", "-"],
        ["shared (Dense)", "(None, 3)", "15", "a, b", "Y"],
        ["joined (Concatenate)", "(None, 6)", "0", "shared[0][0], shared[1][0]", "-"],
    ]
    chain = Model(x := Input((2,), name="x"), Dense(1, name="d")(x))
    assert rows_of(chain)[0] == ["Layer (type)", "Output Shape", "Param #", "Trainable"]


def test_the_mode_of_a_frozen_normalization_and_a_mode_in_the_graph_are_shown():
    norm = layers.BatchNormalization(name="norm")
    x = Input((2,), name="x")
    model = Model(x, layers.Dropout(0.5, name="noise")(norm(x), training=True))
    assert [row[-1] for row in rows_of(model)[1:]] == ["-", "Y", "-, training"]
    norm.trainable = False
    assert rows_of(model)[2][-1] == "N, inference"
    inner = tf.keras.Sequential([Input((2,)), layers.BatchNormalization()], name="inner")
    outer = Model(x, inner(x, training=False))
    assert rows_of(outer)[2][-1] == "Y, inference"
    assert rows_of(outer, show_trainable=False)[0] == ["Layer (type)", "Output Shape", "Param #"]


def test_models_within_can_be_expanded():
    block = tf.keras.Sequential([Input((4,)), Dense(2, name="deep")], name="block")
    model = tf.keras.Sequential([block, Dense(1, name="head")])
    model.build((None, 4))
    assert [row[0] for row in rows_of(model, expand_nested=True)[1:]] == [
        "block (Sequential)",
        "└ deep (Dense)",
        "head (Dense)",
    ]
    block.layers[0].trainable = False
    assert rows_of(model)[1][-1] == "N" and len(rows_of(model)) == 3


def test_part_of_the_layers_can_be_shown():
    model = tf.keras.Sequential([Input((4,)), *(Dense(4, name=name) for name in ("one", "two", "three", "four"))])
    assert [row[0] for row in rows_of(model, layer_range=["two", "th.*"])[1:]] == ["two (Dense)", "three (Dense)"]
    with pytest.raises(ValueError, match="no layer matches 'five'. There are: one, two, three, four"):
        rows_of(model, layer_range=["two", "five"])
    with pytest.raises(ValueError, match="layer_range holds the names of two layers"):
        rows_of(model, layer_range=["two"])


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_tables_keep_to_the_width(width):
    x = Input((4,), name="a_rather_long_name_of_an_input")
    y = layers.BatchNormalization(name="and_a_long_name_of_a_layer")(Dense(3)(x))
    model = Model(x, [layers.Concatenate()([y, y]), layers.Flatten()(x)])
    table = [line for line in lines_of(model, line_length=width) if line[0] in "┌│├└"]
    assert {len(line) for line in table} == {len(table[0])} and len(table[0]) <= width
    text = "".join(line.strip("│").split("│")[0].strip() for line in table)
    assert "and_a_long_name_of_a_layer" in text and "Normalization)" in text, "nothing is cut off"


def test_columns_may_be_placed_by_hand():
    model = tf.keras.Sequential([Input((4,)), Dense(2, name="d")])
    top = lines_of(model, line_length=100, positions=[0.3, 0.6, 0.8, 1.0])[1]
    assert [len(part) for part in top.strip("┌┐").split("┬")] == [29, 29, 19, 19]
    with pytest.raises(ValueError, match="positions must be 4 increasing numbers"):
        lines_of(model, positions=[0.5, 1.0])


def test_the_memory_of_the_optimizer_is_counted_when_it_has_some():
    model = tf.keras.Sequential([Input((4,)), Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.ones((2, 4)), np.ones((2, 2)), verbose=0)
    assert any(line.startswith(" Optimizer params: ") for line in lines_of(model))


def test_the_optimizer_of_each_layer_is_shown_where_there_are_several():
    class Several(tf.keras.optimizers.SGD):
        def optimizer_for(self, weight):
            return {"a": tf.keras.optimizers.Adam(name="adam"), "b": None}.get(weight.path.split("/")[-2], self)

    model = tf.keras.Sequential([Input((4,)), *(Dense(4, name=name) for name in "abc"), layers.Dropout(0.5, name="d")])
    assert "Optimizer" not in rows_of(model)[0]
    model.compile(Several(name="rest"), "mse")
    assert [row[-1] for row in rows_of(model)] == ["Optimizer", "adam", "none", "rest", "-"]


def test_a_subclass_shows_its_layers():
    class Net(Model):
        def __init__(self):
            super().__init__()
            self.head = Dense(2, name="head")

        def call(self, x):
            return self.head(x)

    model = Net()
    assert rows_of(model)[1] == ["head (Dense)", "?", "0 (unbuilt)", "-"]
    model(np.ones((1, 3)))
    assert rows_of(model)[1] == ["head (Dense)", "(None, 2)", "8", "Y"]


# Drawings -------------------------------------------------------------------------------------------------------------


def test_a_drawing_in_characters_shows_who_depends_on_whom():
    x = Input((2,), name="x")
    left, right, skip = Dense(2, name="left")(x), Dense(2, name="right")(x), x
    model = Model(x, layers.Add(name="sum")([left, right, skip]))
    assert tf.keras.utils.model_drawing(model).splitlines() == [
        "●      x (InputLayer)",
        "├─┬─╮",
        "● │ │  left (Dense)",
        "│ ● │  right (Dense)",
        "├─┴─╯",
        "●      sum (Add)",
    ]


def test_models_within_are_drawn_in_place():
    inner = tf.keras.Sequential([Input((2,), name="i"), Dense(2, name="d")], name="inner")
    model = Model(x := Input((2,), name="x"), inner(x) + 1.0)
    drawing = tf.keras.utils.model_drawing(model, show_shapes=True, show_trainable=True, expand_nested=True)
    assert drawing.splitlines() == [
        "●  x (InputLayer) (None, 2) trainable: -",
        "●  inner (Sequential) (None, 2) trainable: Y",
        "│      ●  i (InputLayer) (None, 2) trainable: -",
        "│      ●  d (Dense) (None, 2) trainable: Y",
        "●  add (Add) (None, 2) trainable: -",
    ]


def test_a_text_file_gets_the_drawing(tmp_path, capsys):
    model = Model(x := Input((2,), name="x"), Dense(1, name="d", activation="relu")(x))
    text = tf.keras.utils.plot_model(model, tmp_path / "model.txt", show_layer_activations=True, show_dtype=True)
    assert (tmp_path / "model.txt").read_text() == text + "\n" == "●  InputLayer float32\n●  Dense relu float32\n"
    assert capsys.readouterr().out == ""


def test_without_graphviz_the_drawing_is_printed(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    model = Model(x := Input((2,)), Dense(1)(x))
    assert tf.keras.utils.plot_model(model, "never.png") is None, "a notebook would show a result once more"
    text = capsys.readouterr().out
    assert "●  Dense" in text and "For an image install graphviz" in text


def test_bad_requests_for_pictures_are_refused():
    model = Model(x := Input((2,)), Dense(1)(x))
    with pytest.raises(ValueError, match="rankdir must be one of"):
        tf.keras.utils.plot_model(model, rankdir="up")
    with pytest.raises(ValueError, match="is not built, so its connections are not known"):
        tf.keras.utils.plot_model(tf.keras.Sequential([Dense(1)]))


@pytest.mark.skipif(importlib.util.find_spec("pydot") is None, reason="needs pydot")
def test_pydot_gets_boxes_arrows_and_frames():
    inner = tf.keras.Sequential([Input((2,), name="i"), Dense(2, name="d")], name="inner")
    model = Model(x := Input((2,), name="x"), layers.Add(name="sum")([inner(x), x]))
    graph = tf.keras.utils.model_to_dot(model, show_shapes=True, rankdir="LR", expand_nested=True)
    edges = {(edge.get_source().strip('"'), edge.get_destination().strip('"')) for edge in graph.get_edges()}
    assert {("x", "inner/i"), ("inner/d", "sum"), ("x", "sum"), ("inner/i", "inner/d")} == edges
    assert graph.get_rankdir() == "LR" and len(graph.get_subgraphs()) == 1


def test_a_long_name_among_the_sources_is_broken_too_so_that_no_column_is_squeezed():
    x = Input((8,))
    y = Dense(4, name="a_rather_long_layer_name_for_this")(x)
    lines = lines_of(Model(x, layers.Add()([y, Dense(4, name="beside")(x)])), line_length=76)
    assert max(map(len, lines)) <= 76 and any("beside (Dense)" in line for line in lines)
    assert any("a_rather" in line.split("│")[4] and "for_this" not in line.split("│")[4] for line in lines[4:-4])


def test_a_model_within_a_subclass_shows_its_shape():
    class Outer(Model):
        def __init__(self):
            super().__init__()
            self.inner = tf.keras.Sequential([Input((8,)), Dense(4)], name="inner")

    assert "│ inner (Sequential) │ (None, 4)    │      36 │" in "\n".join(lines_of(Outer()))
