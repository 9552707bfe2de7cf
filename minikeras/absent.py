"""Answers of a module for names that it does not hold: it loads what is loaded late, and explains what is not there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

_ROWS = """
[]
tpu: One process uses one device: with tf.device('GPU:0').
saved_model lite mlir: Use model.save('m.keras') to go on here or in Keras, tf.train.Checkpoint to resume training, and
  model.export('m.onnx') for other programs.
Session placeholder compat estimator global_variables_initializer graph_util Graph: Everything runs at once, as in TensorFlow
  2.
autograph: Use Python's own functions and loops.
get_static_value: Every tensor has its values: use x.numpy().
broadcast_static_shape broadcast_dynamic_shape: Use np.broadcast_shapes.
profiler: Use Python's own cProfile.
sparse ragged Sparse* Ragged*: Tensors are dense: use tf.gather and tf.scatter_nd, or pad to one length and mask.
io audio: Prepare data with Python, NumPy or pandas, and give the arrays to fit or tf.data.Dataset.
lookup feature_column: Use keras.layers.StringLookup and its kin, or keras.utils.FeatureSpace for whole tables.
layers: They are in tf.keras.
python contrib: It is TensorFlow's own; use the public names of tf and tf.keras.
app flags logging gfile: Use Python's own argparse, logging and pathlib.
raw_ops quantization xla: It is not there; operations of your own are made with tf.custom_gradient or tf.autodiff.
[config.experimental]
get_memory_* *irtual* *_stats *_policy *_details *_execution* *_determinism: There is nothing to choose: memory of GPUs grows
  as it is needed, and each is one device.
[config]
experimental* *_logical_device* LogicalDevice*: tf.config.list_physical_devices says what there is; memory of GPUs grows as it
  is needed.
optimizer: tf.function and fit record programs and improve them by themselves.
[debugging]
*_log_device_placement: x.device says where a tensor is.
[experimental]
numpy: Use keras.ops, which has NumPy's names and lets dtypes meet.
dtensor: Each process holds the whole model; tf.distribute trains it in several.
*ExtensionType DynamicRaggedShape RowPartition StructuredTensor: Use tuples, dicts or classes of Python.
[image]
decode_* encode_*: Use keras.utils.load_img, or pillow.
random_jpeg_* stateless_random_jpeg_* *sample_* *_boxes *non_max_* sobel_edges rgb_* *_to_rgb ssim*: Put it together from what
  is in tf.image and keras.ops.image, or prepare images with pillow.
[random]
set_global_generator: Use a tf.random.Generator by its own methods.
*_sampler: Use tf.random.log_uniform_candidate_sampler or uniform_candidate_sampler.
[signal]
*mel_* mfccs_*: Multiply tf.abs(tf.signal.stft(...)) by a matrix that you compute with NumPy.
*fft3d *fftnd *dct: Use tf.signal.fft and fft2d along the last axes, or scipy.fft for values.
*_window: Give the values of scipy.signal.windows to stft: window_fn=lambda *_, dtype: values.
[strings]
as_string *_join *_split substr ngrams unicode_* *_bucket*: Use what Python's str has, in the function of tf.data.Dataset.map.
[summary]
audio graph trace_off write *record* experimental: There are scalars, histograms, images and text; keras.callbacks.TensorBoard
  writes those of fit.
[train]
*Example Feature* *List: There are no TFRecord files: keep arrays with NumPy, and give them to tf.data.Dataset.
*Optimizer: Use keras.optimizers.
Saver: Use tf.train.Checkpoint.
ClusterSpec Server Coordinator: MPI starts the processes of tf.distribute.
[distribute]
*AllReduce: tf.distribute.all_reduce takes 'sum', 'mean', 'max' or 'min'.
Server cluster_resolver coordinator: MPI starts the processes.
allreduce broadcast_global_variables Compression LearningRateScheduleCallback: There are tf.distribute.all_reduce and
  broadcast_variables, DistributedOptimizer(compression='fp16') and keras.callbacks.LearningRateScheduler.
*Strategy experimental: Processes train together with tf.distribute.MultiWorkerMirroredStrategy; there are no parameter
  servers.
[keras]
visualization: There is no drawing of images and boxes; use matplotlib.
applications: There are no pretrained models; weights of Keras's models of the same layers can be read with load_weights.
quantizers Quantizer distillation: There is no quantization; keras.mixed_precision computes in float16 or bfloat16.
engine experimental legacy src: It is Keras's own; use the public names of tf.keras.
estimator: Use keras.Sequential or keras.Model and fit, or keras.wrappers with scikit-learn.
StatelessScope SymbolicScope: Models keep their own state.
RematScope: Use keras.remat on the function or layer whose results are to be computed again.
[keras.distribution]
DeviceMesh Distribution LayoutMap ModelParallel TensorLayout distribute_tensor: Each process holds the whole model;
  DataParallel has several train it together.
[keras.backend]
function Function gradients learning_phase set_learning_phase in_t*_phase placeholder rnn: It is of Keras 1 and 2: use
  keras.Model(inputs, outputs), tf.GradientTape, and the argument `training`.
batch_normalization conv* ctc_* *_conv2d fold* hard_sigmoid in_top_k l2_normalize map_fn *focal_crossentropy
  moving_average_update pool* random_bernoulli random_*_variable repeat resize_* *_padding switch: Use keras.ops, or the
  functions of tf.
[keras.config]
set_backend is_nnx_enabled: There is one backend.
*flash_attention*: There is one way in which attention is computed.
enable_traceback_filtering: Tracebacks are shown whole.
[keras.dtype_policies]
*DTypePolicy: There is no quantization; DTypePolicy knows floats and mixed precision.
[keras.layers]
CuDNN*: LSTM and GRU are here; there is one way in which they are computed.
Random* Aug* Auto* Equalization Contrast* Solarization RandAugment MaxNumBoundingBoxes MelSpectrogram STFTSpectrogram: Flips,
  rotations, translations, zooms, crops, contrast, brightness, erasing, MixUp and CutMix are here; prepare other data before
  it is batched, with NumPy, pandas, pillow or scikit-learn, or in tf.data.Dataset.map.
*Layer TorchModuleWrapper: Code of other frameworks cannot run in a model here; exchange arrays with from_dlpack.
experimental: Layers are in keras.layers itself.
DenseFeatures: Use keras.utils.FeatureSpace.
[keras.optimizers]
experimental: Use the optimizers of keras.optimizers itself.
[keras.utils]
audio_dataset_from_directory: Read files in the function of tf.data.Dataset.map, or write a PyDataset.
np_utils generic_utils numerical_utils: to_categorical is in keras.utils itself.
Config: Use a dict, or Python's types.SimpleNamespace.
bounding_boxes: There are no functions of boxes in images; NumPy has what they are made of.
[keras.export]
ExportArchive: Use model.export('m.onnx'), or keras.export.export_model.
[keras.preprocessing]
text: Use keras.layers.TextVectorization, or split texts in Python.
timeseries TimeseriesGenerator: Use keras.utils.timeseries_dataset_from_array.
[keras.preprocessing.image]
ImageDataGenerator DirectoryIterator: Use keras.utils.image_dataset_from_directory, and map for changes of images.
[keras.preprocessing.sequence]
TimeseriesGenerator: Use keras.utils.timeseries_dataset_from_array.
[keras.callbacks]
RemoteMonitor: Send what LambdaCallback(on_epoch_end=...) is given with Python's urllib.request.
OrbaxCheckpoint: Use ModelCheckpoint, BackupAndRestore or tf.train.CheckpointManager.
[keras.saving]
KerasFileEditor: Use load_weights(skip_mismatch=True), or h5py with the file of weights.
[keras.wrappers]
scikit_learn KerasClassifier KerasRegressor: Use keras.wrappers.SKLearnClassifier or SKLearnRegressor.
[data]
TFRecordDataset FixedLengthRecordDataset: Read files with Python, NumPy or pandas, and use tf.data.Dataset.from_tensor_slices
  or from_generator.
[data.experimental]
AutoShardPolicy: Ranks share each batch; keras.distribution.DataParallel(auto_shard_dataset=False) leaves each its own.
OptimizationOptions SqlDataset TFRecordWriter copy_to_device dense_to_* from_variant to_variant get_next_as_optional
  ignore_errors load save snapshot map_and_batch parallel_interleave parse_example_dataset prefetch_to_device service
  shuffle_and_repeat make_batched_features_dataset pad_to_cardinality *_from_dataset: What is there of it is mostly in tf.data
  itself, such as Dataset.group_by_window.
"""
"""Rows of names, or patterns of them, and what to do, below the name of a module; a row may go on in indented lines."""


def read_rows(rows: str) -> dict[str, list[tuple[str, str]]]:
    """The rows of a table as pairs of texts, by the names in brackets above them; a row may go on in indented lines."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in rows.strip().replace("\n  ", " ").splitlines():
        if line.startswith("["):
            of_module = found[line.strip("[]")] = []
        else:
            names, _, advice = line.partition(": ")
            of_module.append((names, advice))
    return found


ABSENT = read_rows(_ROWS)

OF_LAYERS = {
    "quantize": "There is no quantization; keras.mixed_precision computes in float16 or bfloat16.",
    "enable_lora": "There is no LoRA; freeze the layer, and add the product of two narrow Dense layers to its result.",
}
"""Methods that layers and models do not have, and what to do."""


def late(module: str, names: Mapping[str, str | None]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module for names that are loaded at their first use, and kept by the module then.

    A file of the module's folder is no name of the module, unless `names` has it. For any other name there is `error`.

    Args:
        module: the dotted name of the module.
        names: each with the submodule that defines it, and behind a colon its name there if it is another one; None for a
            submodule itself.

    >>> asked, listed = late("minikeras.keras.saving", {"load_model": "model_files"})
    >>> asked("load_model").__name__, "load_model" in listed(), "registry" in listed()
    ('load_model', True, False)
    """
    if not hasattr(sys.modules[module], "__path__"):  # Python asks finders for names that it lacks, and one explains them
        sys.modules[module].__path__ = []  # type: ignore[attr-defined]

    def asked(name: str) -> Any:
        if name not in names:
            raise error(module, name)
        place, _, own = (names[name] or "").partition(":")
        source = importlib.import_module(f".{place or name}", module)
        value = getattr(source, own or name) if place else source
        setattr(sys.modules[module], name, value)
        return value

    def listed() -> list[str]:
        held = vars(sys.modules[module])
        return sorted({*names, *(name for name, value in held.items() if sys.modules.get(f"{module}.{name}") is not value)})

    return asked, listed


def facade(
    module: str, names: Mapping[str, str | None], files: Iterable[ModuleType] = (), helpers: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`late`, and `__all__`: the names that the module holds by now or loads late, without those that begin with '_'.

    Args:
        module, names: as in `late`.
        files: what they define, or list in `__all__`, becomes the module's, without their `helpers` for other files.
    """
    for file in files:
        vars(sys.modules[module]).update({name: getattr(file, name) for name in own_names(vars(file), *helpers.split())})
    asked, listed = late(module, names)
    return asked, listed, [name for name in listed() if not name.startswith("_")]


def own_names(namespace: Mapping[str, Any], *helpers: str) -> list[str]:
    """The public names that a file lists in `__all__`, or else defines itself, without helpers that it has for other files.

    >>> own_names({"__name__": "tools", "List": list, "made": type("made", (), {"__module__": "tools"})})
    ['made']
    """
    public = [name for name in namespace if name[0] != "_" and name not in helpers]
    return namespace.get("__all__") or sorted(
        [name for name in public if getattr(namespace[name], "__module__", "") == namespace["__name__"]]
    )


def hide_imports(namespace: dict[str, Any], *helpers: str) -> None:
    """Let `import *` give only the `own_names` of a file.

    Its `__all__` is set by this call, because type checkers hide what an `__all__` that they cannot read leaves out.
    """
    namespace["__all__"] = own_names(namespace, *helpers)


def error(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have.

    >>> print(error("minikeras.keras", "StatelessScope"))
    module 'minikeras.keras' has no attribute 'StatelessScope'. Models keep their own state.
    """
    said = f"module {module!r} has no attribute {name!r}. {advice(module, name)}".rstrip()
    return AttributeError(said, name=name, obj=sys.modules.get(module))  # with both, Python suggests names like it


def advice(module: str, name: str) -> str:
    """Advice for a name that a module does not have; "" where there is nothing to say."""
    package, _, inside = module.partition(".")
    rows = ABSENT.get(inside, []) if package == __package__ else []
    return next((advice for names, advice in rows if any(fnmatchcase(name, one) for one in names.split())), "")


def explain_import(name: str) -> None:
    """Raise ModuleNotFoundError with advice for a module that a user of TensorFlow or Keras expects; else do nothing.

    The error has no `name`: for `from package import module` Python would replace it by one without the advice.
    """
    module, _, last = name.rpartition(".")
    if advised := advice(module, last):
        raise ModuleNotFoundError(f"cannot import {last!r} from {module!r}. {advised}")
