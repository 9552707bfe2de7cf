"""Names of Keras and TensorFlow that are not here say what to do instead."""

import importlib
import importlib.util
import subprocess
import sys

import pytest

import minikeras as tf
from minikeras.absent import ABSENT

keras = tf.keras
MODULES = {name: importlib.import_module(f"minikeras.{name}".rstrip(".")) for name in ABSENT}
UNEXPLAINED = {
    "keras": set(),
    "keras.layers": set(),
}
"""Names that no user is expected to look for: parts of Keras's own machinery, and classes that are under another name."""


def explained(module):
    """Names in the table, each with its advice; an example for each pattern."""
    for names, advice in ABSENT[module]:
        assert advice.endswith(".")
        for name in names.split():
            yield name.replace("*", "New").replace("?", "3"), advice


@pytest.mark.parametrize("module", ABSENT)
def test_every_row_of_the_table_is_about_names_that_are_absent(module):
    for name, advice in explained(module):
        with pytest.raises(AttributeError) as caught:
            getattr(MODULES[module], name)
        assert str(caught.value).endswith(advice)
        assert not hasattr(MODULES[module], name)


@pytest.mark.parametrize("module", ABSENT)
def test_whichever_way_it_is_imported_what_is_absent_is_explained(module):
    whole = MODULES[module].__name__
    for name, advice in explained(module):
        for statement in (f"from {whole} import {name}", f"import {whole}.{name}", f"from {whole}.{name} import nothing"):
            with pytest.raises(ImportError) as caught:
                exec(statement)
            assert str(caught.value) == f"cannot import {name!r} from {whole!r}. {advice}", statement


def test_what_layers_and_models_cannot_do_is_explained():
    for owner in (keras.layers.Dense(1), keras.Sequential()):
        with pytest.raises(AttributeError, match=r"has no attribute 'enable_lora'\. There is no LoRA; freeze"):
            owner.enable_lora(4)
        with pytest.raises(AttributeError, match=r"has no attribute 'quantize'\. There is no quantization; keras\."):
            owner.quantize("int8")
        assert not hasattr(owner, "quantize")


def test_a_name_that_nobody_knows_is_only_missing():
    with pytest.raises(AttributeError, match=r"module 'minikeras.keras.layers' has no attribute 'Denze'\.$"):
        _ = keras.layers.Denze
    for module in MODULES.values():
        whole = module.__name__
        with pytest.raises(ModuleNotFoundError, match=f"^No module named '{whole}.denze'$"):
            importlib.import_module(f"{whole}.denze")
        with pytest.raises(ImportError, match=f"^cannot import name 'denze' from '{whole}'"):
            exec(f"from {whole} import denze")
        assert importlib.util.find_spec(f"{whole}.denze") is None


def test_modules_of_others_are_not_explained():
    for name in ("numpy.ops", "keras_of_nobody.ops", "minikeras_more.ops"):
        with pytest.raises(ModuleNotFoundError, match="^No module named"):
            importlib.import_module(name)


def test_python_suggests_names_that_are_alike():
    with pytest.raises(AttributeError) as caught:
        _ = keras.layers.Dens
    assert caught.value.name == "Dens" and caught.value.obj is keras.layers


def test_imports_are_explained_once_however_often_the_package_is_imported():
    again = "import sys, importlib, minikeras; importlib.reload(minikeras)"
    count = "print(sum(getattr(one, '__module__', '') == 'minikeras' for one in sys.meta_path))"
    done = subprocess.run([sys.executable, "-c", f"{again}; {count}"], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.split() == ["1"]


@pytest.mark.slow
@pytest.mark.parametrize("module", UNEXPLAINED)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("real_keras")
def test_what_keras_has_is_here_or_explained(module):
    real = importlib.import_module(module)
    missing = {name for name in dir(real) if not name.startswith("_") and not hasattr(MODULES[module], name)}
    for name in missing - UNEXPLAINED[module]:
        with pytest.raises(AttributeError, match=r"has no attribute '\w+'\. [A-Z].*\.$"):
            getattr(MODULES[module], name)
