"""What `import minikeras` loads, and what it does not: a start in a fresh interpreter."""

import subprocess
import sys

import pytest


def loaded_after(statement: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a statement."""
    script = f"{statement}\nimport sys\nprint(chr(10).join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


@pytest.fixture(scope="module")
def added() -> set[str]:
    """What minikeras loads beyond NumPy and the interpreter's own."""
    return loaded_after("import minikeras") - loaded_after("import numpy")


@pytest.mark.parametrize(
    "name",
    [
        *("cupy", "ml_dtypes", "matplotlib", "tqdm", "scipy", "pytest", "numpy.testing", "numpy.random"),
        *(
            "urllib.request",
            "urllib.parse",
            "http.client",
            "ssl",
            "socket",
            "json",
            "zipfile",
            "tempfile",
            "subprocess",
        ),
        *("asyncio", "concurrent.futures", "multiprocessing", "unittest", "doctest", "minikeras.keras"),
    ],
)
def test_the_import_does_not_load_what_only_some_need(added: set[str], name: str) -> None:
    assert name not in added


def test_the_core_is_loaded_at_once(added: set[str]) -> None:
    assert {"minikeras.core.dispatch", "minikeras.core.tape", "minikeras.functions.elementwise"} <= added


def test_keras_is_loaded_at_its_first_use() -> None:
    assert "minikeras.keras" in loaded_after("import minikeras; minikeras.keras")


def test_an_unknown_name_is_an_attribute_error() -> None:
    import minikeras

    with pytest.raises(AttributeError, match="module 'minikeras' has no attribute 'nonsense'"):
        _ = minikeras.nonsense
