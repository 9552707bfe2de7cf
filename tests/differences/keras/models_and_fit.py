"""Models, training and callbacks."""

from .. import Row

TITLE = "Models, training and callbacks"

_MODEL = """m = K.Sequential([K.Input((3,)), L.Dense(1)])
m.compile("sgd", "mse")
"""

_COUNTED = (
    _MODEL
    + """class Count(K.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
count = Count()
"""
)

_PARTS = """class Parts(L.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.dense = L.Dense(2)
    def call(self, x):
        return self.dense(x)
"""

ROWS = [
    Row(
        what="`steps_per_epoch` above the number of batches",
        code=_COUNTED
        + 'h = m.fit(ones(8, 3), ones(8, 1), batch_size=2, epochs=2, steps_per_epoch=6, callbacks=[count], verbose=0)\n"'
        '%d steps" % count.steps',
        ours="12 steps",
        theirs="8 steps",
        why="an epoch has the length that was asked for; it goes on with another pass over data that can be passed again",
    ),
    Row(
        what="`steps_per_epoch` that does not divide the number of batches",
        code=_COUNTED
        + 'h = m.fit(ones(8, 3), ones(8, 1), batch_size=2, epochs=2, steps_per_epoch=3, callbacks=[count], verbose=0)\n"'
        '%d steps" % count.steps',
        ours="6 steps",
        theirs="4 steps",
        why="likewise: every epoch has three steps, and each batch is used as often as every other",
    ),
    Row(
        what="a generator of three batches and three epochs",
        code=_COUNTED
        + "import warnings\n"
        + 'with warnings.catch_warnings(action="ignore"):\n'
        + "    h = m.fit(((ones(2, 3), ones(2, 1)) for _ in range(3)), epochs=3, callbacks=[count], verbose=0)\n"
        + "h.epoch, count.steps",
        ours="([0], 3)",
        theirs="([0, 1, 2], 7)",
        why="training ends with a warning when its data ends; Keras goes on with the batches that it had looked at beforehand",
    ),
    Row(
        what="a layer that is frozen by its constructor, within another model",
        code=_PARTS + "len(K.Sequential([K.Input((3,)), Parts(trainable=False)]).trainable_variables)",
        ours="0",
        theirs="2",
        why="what is frozen stays frozen in every model",
    ),
    Row(
        what="a call on a symbol of a layer with `compute_output_shape`",
        code="""class Wrong(L.Layer):
    def call(self, x):
        return x
    def compute_output_shape(self, input_shape):
        return (None, 99)
Wrong()(K.Input((3,))).shape""",
        ours="(None, 3)",
        theirs="(None, 99)",
        why="shape and dtype are those that `call` gives for zeros, so a model cannot be made of a layer that does otherwise",
    ),
    Row(
        what="`compute_output_shape` of a layer that does not define it",
        code="""class Half(L.Layer):
    def call(self, x):
        return x[:, ::2]
Half().compute_output_shape((None, 6))""",
        ours="(None, 3)",
        theirs="NotImplementedError: Should implement `def compute_output_shape",
        why="a trial on zeros tells it",
    ),
    Row(
        what="a symbol compared with a number",
        code="""x = K.Input((3,))
(x == 1.0) is False""",
        ours="False",
        theirs="True",
        why="`x == 1.0` is part of the model like `x > 1.0`; with another symbol it is whether both are the same, as in Keras",
    ),
    Row(
        what="a misspelt hook",
        code="type(K.callbacks.LambdaCallback(on_epoch_ends=print)).__name__",
        ours="ValueError: there is no hook 'on_epoch_ends'. Did you mean on_epoch_end?",
        theirs="LambdaCallback",
        why="it would never be called",
    ),
    Row(
        what="a hook of batches whose last argument has another name than `logs`",
        code=_MODEL
        + """seen = []
hook = K.callbacks.LambdaCallback(on_train_batch_end=lambda batch, found: seen.append(sorted(found)))
h = m.fit(ones(2, 3), ones(2, 1), callbacks=[hook], verbose=0)
seen""",
        ours="[[loss]]",
        theirs="TypeError: unexpected keyword argument 'logs'",
        why="hooks are called by position, so that their arguments may have any name",
    ),
    Row(
        what="a schedule of `LearningRateScheduler` that gives a scalar tensor",
        code=_MODEL
        + """rate = K.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
halve = K.callbacks.LearningRateScheduler(rate)
m.fit(ones(2, 3), ones(2, 1), epochs=2, callbacks=[halve], verbose=0).history["learning_rate"]""",
        ours="[0.5, 0.25]",
        theirs="ValueError: should be a float",
        why="a learning rate computed with tensors is a float all the same",
    ),
    Row(
        what="`batch_size` beside data that comes in batches",
        code=_MODEL
        + "warned(lambda: m.evaluate(((ones(2, 3), ones(2, 1)) for _ in range(2)), batch_size=7, steps=2, verbose=0))",
        ours="UserWarning: evaluate: batch_size=7 is left out: a generator gives batches already.",
        theirs="no warning",
        why="the batches keep their size in every framework",
    ),
    Row(
        what="a generator of bare inputs in `fit`",
        code="""class Auto(K.Model):
    def train_step(self, data):
        return {"width": data.shape[-1] * 1.0}
m = Auto()
m.compile("sgd", run_eagerly=True)
m.fit((ones(2, 3) for _ in range(2)), shuffle=False, verbose=0).history""",
        ours="{width: [3]}",
        theirs="ValueError: the generator must return a tuple",
        why="x alone is a batch for `fit(x)`, and here",
    ),
    Row(
        what="the weights after `TerminateOnNaN` stopped a training",
        code=_MODEL
        + """h = m.fit(np.nan * ones(2, 3), ones(2, 1), callbacks=[K.callbacks.TerminateOnNaN()], verbose=0)
bool(np.isfinite(m.get_weights()[0]).all())""",
        ours="True",
        theirs="False",
        why="the step that gave NaN is taken back, so there is something to go on with",
    ),
    Row(
        what="a list of inputs for a model with a dict of them",
        code="""a, b = K.Input((2,), name="a"), K.Input((2,), name="b")
K.Model({"a": a, "b": b}, L.Subtract()([a, b]))([ones(1, 2), ones(1, 2)]).shape""",
        ours="ValueError: The structure of `inputs` doesn't match",
        theirs="(1, 2)",
        why="which input is meant is said by name; a list says nothing of it",
    ),
    Row(
        what="an unknown `mode` of a callback that watches a value",
        code="K.callbacks.EarlyStopping(mode='smaller').mode",
        ours="ValueError: mode must be 'auto', 'min' or 'max', found 'smaller'",
        theirs="auto",
        why="a training of hours should not hang on a guess at what was meant",
    ),
    Row(
        what="`steps_per_execution` if `compile` is given none",
        code="""m = K.Sequential([K.Input((3,)), L.Dense(1)])
m.compile("sgd", "mse")
m.steps_per_execution""",
        ours="auto",
        theirs="1",
        why="steps are taken in a row where no callback listens to batches, results are the same; files for Keras leave it out",
    ),
    Row(
        what="hooks of the last batches, fewer than `steps_per_execution`",
        code="""m = K.Sequential([K.Input((3,)), L.Dense(1)])
m.compile("sgd", "mse", steps_per_execution=3)
seen = []
hook = K.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
h = m.fit(ones(8, 3), ones(8, 1), batch_size=2, callbacks=[hook], verbose=0)
seen""",
        ours="[2, 3]",
        theirs="[2, 5]",
        why="the number is that of the last batch that there was",
    ),
    Row(
        what="`training=True` in the call of a layer, and `predict`",
        code="""x = K.Input((20,))
m = K.Model(x, L.Dropout(0.5)(x, training=True))
bool((m.predict(ones(4, 20), verbose=0) == 0).any())""",
        ours="True",
        theirs="False",
        why="dropout that was asked for at every call drops at every call, as in TensorFlow 2; Keras 3 lets `predict` undo it",
    ),
    Row(
        what="a call on a symbol of a layer with `compute_output_spec`",
        code="""class Counted(L.Layer):
    runs = 0
    def call(self, x):
        Counted.runs += 1
        return x
    def compute_output_spec(self, x):
        return K.KerasTensor(x.shape, x.dtype)
y = Counted()(K.Input((3,)))
Counted.runs > 0""",
        ours="True",
        theirs="False",
        why="what the model holds is what `call` does, so `call` is run, on zeros",
    ),
    Row(
        what="`ops.shape` of a symbol with an axis of any size",
        code="x = K.Input((None, 4))\nn = K.ops.shape(x)[1]\n(n == None, n is None)",
        ours="(True, False)",
        theirs="(True, True)",
        why="an unknown size is a number to compute with, as in `ops.reshape(x, (-1, n // 2, 8))`; `x.shape` has None",
    ),
    Row(
        what="two losses of one output in the logs",
        code="""x = K.Input((3,))
m = K.Model(x, [L.Dense(1, name="a")(x), L.Dense(1, name="b")(x)])
m.compile("sgd", ["mse", ["mse", "mae"]])
h = m.fit(ones(2, 3), [ones(2, 1), ones(2, 1)], verbose=0)
sorted(h.history)""",
        ours="[a_loss, loss, mae_loss, mse_loss]",
        theirs="[a_loss, b_loss, loss]",
        why="each has a curve of its own; Keras shows the last one alone, under the name of the output",
    ),
    Row(
        what="a loss for an output that the model has not, of outputs in a dict",
        code="""x = K.Input((3,))
y = L.Dense(1)(x)
m = K.Model(x, {"a": y, "b": y})
m.compile("sgd", {"c": "mse"})
m.fit(ones(2, 3), {"a": ones(2, 1), "b": ones(2, 1)}, verbose=0)""",
        ours="ValueError: does not fit the outputs ['a', 'b']",
        theirs="KeyError: can't be found in either the model's output",
        why="it is the same mistake as with outputs in a list, for which both raise ValueError",
    ),
    Row(
        what="a loss of several outputs at once",
        code="""x = K.Input((3,))
m = K.Model(x, {"pair": (L.Dense(1)(x), L.Dense(1)(x))})
def together(y, found):
    return (found[0] - found[1]) ** 2 + 0.0 * y[0]
m.compile("sgd", {"pair": together})
h = m.fit(ones(2, 3), {"pair": (ones(2, 1), ones(2, 1))}, verbose=0)
sorted(h.history)""",
        ours="ValueError: Invalid `loss`",
        theirs="[loss]",
        why="labels, weights and logs go by output; what joins several is computed in `compute_loss` or `add_loss`",
    ),
    Row(
        what="`PyDataset(use_multiprocessing=True)`",
        code="warned(lambda: K.utils.PyDataset(workers=2, use_multiprocessing=True))",
        ours="UserWarning: PyDataset: use_multiprocessing is left out; workers=n makes batches in n threads of this process.",
        theirs="no warning",
        why="threads make the same batches, and need no copy of them from process to process",
    ),
    Row(
        what="a layer of a `Sequential` whose `call` gives `training` no default",
        code="""class Told(L.Layer):
    def call(self, x, training):
        return x
m = K.Sequential([Told()])
m.build((None, 2))
m(ones(1, 2)).shape""",
        ours="(1, 2)",
        theirs="ValueError: can only have a single required positional argument",
        why="the model says whether it trains, so nothing is missing",
    ),
    Row(
        what="the columns of `CSVLogger` where the first epoch is not validated",
        code="""
import pathlib, tempfile
path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
m = K.Sequential([K.Input((3,)), L.Dense(1)])
m.compile("sgd", "mse")
h = m.fit(ones(2, 3), ones(2, 1), verbose=0, callbacks=[K.callbacks.CSVLogger(path)])
path.read_text().splitlines()[0]
""",
        ours="epoch,loss",
        theirs="epoch,loss,val_loss",
        why="columns of validation come with the first validation, the file is then written anew; Keras fills them with NA",
    ),
    Row(
        what="setting `dtype_policy` of a layer that has weights",
        code="""
layer = L.Dense(1)
layer.build((None, 2))
layer.dtype_policy = "mixed_float16"
layer.compute_dtype
""",
        ours="ValueError: has weights already. Set dtype_policy before it is built",
        theirs="float16",
        why="whether a weight is cast where it is read is settled when it is made",
    ),
    Row(
        what="calls of `make_train_function` by programs",
        code="hasattr(K.Sequential(), 'make_train_function')",
        ours="False",
        theirs="True",
        why="steps are recorded programs, looked up for each shape of a batch; override `train_step`",
    ),
]
