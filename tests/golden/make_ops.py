"""Writes tests/golden/ops.json: what functions of real `keras.ops` give, their gradients, and how models with them are written.

    KERAS_BACKEND=jax python tests/golden/make_ops.py [module or part of an expression ...]

A case is an expression over the names of `keras.ops` and of the arrays of the file. It is computed for the arrays,
differentiated in each array of floats, and built of KerasTensors in place of the arrays; what Keras cannot do is left out.
A new one is written into the file as `"expression": {"module": "nn"}`. Only those, and those that are named, are computed.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import keras  # noqa: E402
from keras import ops  # noqa: E402

PATH = Path(__file__).with_name("ops.json")
KNOWN = json.loads(PATH.read_text())


def array(dtype, shape, values):
    """What `plain` wrote."""
    values = np.array(values[0]) + 1j * np.array(values[1]) if dtype.startswith("complex") else np.array(values)
    return values.astype(dtype).reshape(shape)


ARRAYS = {name: array(**one) for name, one in KNOWN["arrays"].items()}


def names_in(expression):
    found = dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*\b(?!\()", re.sub(r"'[^']*'|\b\w+=(?!=)|lambda[^:]*:", " ", expression)))
    return [name for name in found if name in ARRAYS]


NAMESPACE = {**vars(ops), "np": np, "slice_": slice, "sum": ops.sum}


def computed(expression, arrays):
    return eval(expression, {**NAMESPACE, **arrays})


def plain(array):
    array = np.asarray(array)
    if array.dtype.kind == "c":
        return [array.real.ravel().tolist(), array.imag.ravel().tolist()]
    return array.ravel().tolist() if array.dtype.kind != "V" else array.astype("float32").ravel().tolist()


def results_of(expression, arrays):
    """Compiled as one, which is faster than function by function, where shapes do not depend on values."""
    try:
        return leaves(jax.jit(lambda given: computed(expression, given))(arrays))
    except Exception:
        return leaves(computed(expression, arrays))


def described(value):
    value = ops.convert_to_tensor(value)
    return {"dtype": keras.backend.standardize_dtype(value.dtype), "shape": list(value.shape), "values": plain(value)}


def leaves(result):
    return [leaf for leaf in jax.tree_util.tree_leaves(result) if leaf is not None]


def gradients(expression, arrays):
    """For the cotangents cos(0), cos(1), ... of all results of floats."""
    wanted = [name for name in arrays if arrays[name].dtype.kind == "f" and name != "affine"]  # Keras's two last move channels
    if not wanted or "jvp(" in expression:
        return None

    def total(values):
        results = [ops.convert_to_tensor(one) for one in leaves(computed(expression, {**arrays, **values}))]
        floats = [one for one in results if one.dtype.kind == "f"]
        return sum((one * np.cos(np.arange(one.size)).reshape(one.shape).astype(one.dtype)).sum() for one in floats)

    try:
        found = jax.jit(jax.grad(total))({name: arrays[name] for name in wanted})
    except Exception:
        return None
    if any(np.isnan(one).any() for one in found.values()):
        return None
    return {name: plain(value) for name, value in found.items()}


NO_BATCHES = ("v", "w", "start")


def shape(name, array, unknown):
    return (len(array) if name in NO_BATCHES or not unknown else None, *array.shape[1:])


def layers(expression, arrays):
    """What the functional model is written as: with a batch of any size, or of the arrays' size where that fails."""
    for unknown in (True, False):
        keras.utils.clear_session()
        try:
            inputs = {
                name: keras.Input(batch_shape=shape(name, one, unknown), dtype=str(one.dtype), name=name)
                for name, one in arrays.items()
            }
            outputs = [one for one in keras.tree.flatten(computed(expression, inputs)) if one is not None]
            config = json.loads(keras.Model(list(inputs.values()), outputs).to_json())["config"]
            return config["layers"]
        except Exception:
            continue
    return None


NARROW = {"uint64": "uint32", "int64": "int32", "float64": "float32", "complex128": "complex64"}
"""What JAX gives by default, without dtypes of 64 bits. Here it has them, for the arrays that are float64."""


def main(anew):
    modules = {case["module"] for case in KNOWN["cases"].values()}
    cases = {}
    for expression, known in KNOWN["cases"].items():
        if "results" in known and not any(one == known["module"] or (one not in modules and one in expression) for one in anew):
            cases[expression] = known
            continue
        begun = time.perf_counter()
        arrays = {name: ops.convert_to_tensor(ARRAYS[name]) for name in names_in(expression)}
        try:
            results = [described(one) for one in results_of(expression, arrays)]
        except Exception as error:
            print(f"{expression}: {type(error).__name__}: {error!s:.200}")
            continue
        case = {"module": known["module"], "arrays": list(arrays), "results": results}
        symbolic = layers(expression, arrays) if arrays else None
        cases[expression] = case | {"gradients": gradients(expression, arrays), "layers": symbolic}
        if time.perf_counter() - begun > 3:
            print(f"{expression}: {time.perf_counter() - begun:.0f} s")
    missing = set(dir(keras.ops)) - {re.match(r"[\w.]+", one)[0].rpartition(".")[2] for one in cases}
    print("without a case:", sorted(name for name in missing if not name.startswith("_")))
    for expression, case in cases.items():
        wide = "64" in expression or any(ARRAYS[name].dtype.name in ("float64", "int64") for name in case["arrays"])
        for result in case["results"]:
            result["dtype"] = result["dtype"] if wide else NARROW.get(result["dtype"], result["dtype"])
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    text = f'{{"arrays": {json.dumps(KNOWN["arrays"])},\n"cases": {{\n' + ",\n".join(lines) + "\n}}\n"
    PATH.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
