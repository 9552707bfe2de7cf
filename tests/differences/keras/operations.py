"""Functions of `keras.ops`, and arguments."""

from __future__ import annotations

from .. import Row

TITLE = "Functions and arguments"

ROWS = [
    Row(
        what="symbols that no tensors of their shapes and dtypes could stand for",
        code="K.ops.psnr(K.Input((2,)), K.Input((7,)), 1.0).shape",
        ours="ShapeError: both must have one shape",
        theirs="()",
        why="a call on symbols checks what the call on tensors checks, so that the mistake shows where the model is made",
    ),
    Row(
        what="integers that are asked for, and a symbol of floats",
        code="K.ops.gcd(K.Input((3,)), K.Input((3,))).shape",
        ours="InvalidArgumentError: gcd",
        theirs="(None, 3)",
        why="likewise",
    ),
    Row(
        what="the number of axes of a symbol",
        code="K.ops.ndim(K.Input((3,))).shape",
        ours="()",
        theirs="(2,)",
        why="the shape and the dtype of a result are those that tensors give; `ndim` is a number",
    ),
    Row(
        what="places in a symbol of any length",
        code="K.ops.searchsorted(K.Input(batch_shape=(None,)), K.Input(batch_shape=(2,))).dtype",
        ours="int32",
        theirs="int64",
        why="likewise: int32 in both for arrays",
    ),
    Row(
        what="transforms and factors of symbols with axes of any length",
        code="K.ops.fft((K.Input(batch_shape=(None,)), K.Input(batch_shape=(None,))))[0].shape",
        ours="(None,)",
        theirs="ValueError: fully-defined",
        why="the length is that of the data; so with `qr`, `solve`, `inv` and `det`",
    ),
    Row(
        what="flattened symbols, joined",
        code="K.ops.concatenate([K.Input(batch_shape=(2, 3)), K.Input(batch_shape=(4, 3))], axis=None).shape",
        ours="(18,)",
        theirs="ValueError: cannot be None",
        why="as with arrays",
    ),
    Row(
        what="a histogram of several axes",
        code="K.ops.histogram(ones(2, 3), bins=1)[0]",
        ours="[6]",
        theirs="ValueError: must be 1-dimensional",
        why="all elements are counted, as by NumPy",
    ),
    Row(
        what="complex numbers made of float64",
        code="K.ops.view_as_complex(np.ones((1, 2))).dtype",
        ours="complex128",
        theirs="complex64",
        why="who computes in float64 wants its digits",
    ),
    Row(
        what="integers of 4 bits",
        code="K.ops.ones((2,), dtype='int4').dtype",
        ours="TypeError: 'int4' is no dtype",
        theirs="int4",
        why="they belong to quantization, which is not here; int8 holds them",
    ),
    Row(
        what="an argument that does not exist",
        code="K.random.SeedGenerator(1, sead=2)",
        ours="TypeError: unexpected keyword argument 'sead'",
        theirs="ValueError: Unrecognized keyword arguments",
        why="it is Python's own error for it; so with `save_model`, and with `add_weight('name', shape=...)`",
    ),
    Row(
        what="what is no policy",
        code="K.dtype_policies.get(123)",
        ours="TypeError: Cannot convert 123",
        theirs="ValueError: Cannot interpret",
        why="something of a wrong type is a TypeError; so with `Hashing(num_bins=None)`",
    ),
    Row(
        what="sizes that are no integers",
        code="L.UpSampling1D(2.5)",
        ours="ValueError: must be a positive integer",
        theirs="TypeError: Expected an integer",
        why="`size`, `pool_size`, `strides` and their like are checked by one function, which says what they must be",
    ),
    Row(
        what="the policy in the configuration of a layer",
        code="L.Dense(2, dtype='mixed_float16').get_config()['dtype']",
        ours="mixed_float16",
        theirs="{module: keras, class_name: DTypePolicy, config: {name: mixed_float16}, registered_name: None}",
        why="its name says all; files with either form are read",
    ),
    Row(
        what="an input made of a symbol that is there",
        code="L.InputLayer(input_tensor=K.Input((3,))).output.shape",
        ours="ValueError: Unrecognized keyword arguments",
        theirs="(None, 3)",
        why="a symbol may be used as it is: `keras.Model(symbol, outputs)`",
    ),
    Row(
        what="the operations of a model",
        code="""
x = K.Input((3,))
m = K.Model(x, L.Dense(1)(x))
len(m.operations)
""",
        ours="AttributeError: operations",
        theirs="2",
        why="`keras.Function(model.inputs, model.outputs).operations` lists them",
    ),
    Row(
        what="windows of scipy by name in the initializer `STFT`",
        code="type(K.initializers.STFT(window='tukey')).__name__",
        ours="ValueError: unknown window 'tukey'",
        theirs="STFT",
        why="the common ones are here by name; any other can be given as an array: `scipy.signal.get_window('tukey', n)`",
    ),
    Row(
        what="one optimizer in the place of a map in `MultiOptimizer`",
        code="type(optimizers.MultiOptimizer(optimizers.SGD())).__name__",
        ours="TypeError: expected an OptimizerMap",
        theirs="MultiOptimizer",
        why="one optimizer for all variables is that optimizer",
    ),
    Row(
        what="models as folders, and weights in several files",
        code="""
import tempfile
K.Sequential([K.Input((3,)), L.Dense(1)]).save(tempfile.mkdtemp(), zipped=False)
""",
        ours="ValueError: a model is one file here",
        theirs="None",
        why="a file is there as a whole or not at all; `max_shard_size=` and `objects_to_skip=` are missing as well",
    ),
    Row(
        what="a folder of `get_file` outside of its cache",
        code="""
import tempfile
K.utils.get_file('x', 'file:///x', cache_subdir=tempfile.mkdtemp())
""",
        ours="LoadError: could leave its directory",
        theirs="Exception",
        why="what is downloaded stays below `cache_dir`, which can be any folder",
    ),
    Row(
        what="shapes of `slogdet` and `corrcoef` of symbols",
        code="""
x = K.Input(batch_shape=(2, 4, 3, 3))
[K.ops.slogdet(x)[0].shape, K.ops.corrcoef(K.Input(batch_shape=(3, None))).shape]
""",
        ours="[(2, 4), (3, 3)]",
        theirs="[(), (3, None)]",
        why="the shape of a result is the one that tensors give: a sign for each matrix, a row and a column for each variable",
    ),
    Row(
        what="an axis of any size of a symbol, cut at places",
        code="[part.shape for part in K.ops.split(K.Input(batch_shape=(3, None)), [1, 3], axis=1)]",
        ours="[(3, None), (3, None), (3, None)]",
        theirs="[(3, 1), (3, 2), (3, None)]",
        why="an axis that is shorter gives shorter parts; so with `hsplit`, `vsplit` and `dsplit`",
    ),
    Row(
        what="an axis of any size of a symbol, squeezed",
        code="K.ops.squeeze(K.Input(batch_shape=(None, 1)), axis=0).shape",
        ours="(1,)",
        theirs="ValueError: Cannot squeeze axis 0",
        why="its size may be 1; a call on data with another size is an error",
    ),
    Row(
        what="a symbol as the new shape",
        code="K.ops.reshape(K.Input(batch_shape=(None, 6)), K.Input(batch_shape=(2,), dtype='int32')).shape",
        ours="ShapeError: reshape",
        theirs="(None, None)",
        why="shapes follow from shapes: sizes that `ops.shape` gives, and -1, may stand there, values of data may not",
    ),
    Row(
        what="the one-hot shape of a number without axes, and what comes out",
        code="""
layer = L.Discretization(bin_boundaries=[0.0, 1.0], output_mode="one_hot")
[layer.compute_output_shape(()), tuple(layer(np.float32(0.5)).shape)]
""",
        ours="[(1, 3), (1, 3)]",
        theirs="[(3,), (1, 3)]",
        why="`compute_output_shape` gives the shape that the call gives",
    ),
    Row(
        what="a product of int8 and bool",
        code="K.ops.matmul(np.full((1, 200), 1, 'int8'), np.ones((200, 1), bool))",
        ours="[[200]]",
        theirs="[[-56]]",
        why="int8 is summed up as int32, as it is in a product of two matrices of int8",
    ),
    Row(
        what="the positions of what is true in a symbol",
        code="type(K.ops.where(K.Input(batch_shape=(2, 3)))).__name__",
        ours="tuple",
        theirs="KerasTensor",
        why="a tensor for each axis, as for data",
    ),
    Row(
        what="a condition on a Variable of one element",
        code="'yes' if K.Variable(True) else 'no'",
        ours="yes",
        theirs="TypeError: cannot be used as a boolean",
        why="it has one truth value, as a tensor of one element has; several elements are refused",
    ),
    Row(
        what="an index of more axes than a symbol has",
        code="K.Input((3, 4))[0, 0, 0, 0]",
        ours="InvalidArgumentError: Index out of range: 4 indices for a tensor with 3 axes",
        theirs="ValueError: slice has to many indices",
        why="the error of TensorFlow, as for a tensor",
    ),
    Row(
        what="`image.scale_and_translate` of a symbol: the number of images in `output_shape`",
        code="""
scale, shift = np.ones(2), np.zeros(2)
K.ops.image.scale_and_translate(K.Input((5, 5, 3)), (7, 8, 8, 3), scale, shift, (1, 2), "linear").shape[0]
""",
        ours="None",
        theirs="7",
        why="there are as many images as the model is given",
    ),
    Row(
        what="`LayerNormalization(rms_scaling=True)`: warnings",
        code="""
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    _ = K.layers.LayerNormalization(rms_scaling=True)
len(caught) > 0
""",
        ours="False",
        theirs="True",
        why="the argument does what its docstring says; `RMSNormalization` is there too",
    ),
]
