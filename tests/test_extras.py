"""Extras: each has its place in the report, and who lacks one is told the one command."""

import contextlib
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest
from test_documents import DOCUMENTS, GALLERY, blocks, needed

from minikeras import __main__ as report
from minikeras import examples
from minikeras.extras import EXTRAS, extra_with, found, missing

ROOT = pathlib.Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOR_DEVELOPERS = {"browser", "docs", "lint", "slow", "test"}

USES = {
    "cuda13": "tf.device('GPU:0').__enter__()",
    "cuda12": "tf.device('GPU:0').__enter__()",
    "datasets": "tf.keras.datasets.mnist.load_data()",
    "experiments": """
        tf.experiments.Sweep(lambda width: model(), {"width": [1, 2]}).fit(tf.ones([2, 1]), tf.ones([2, 1]), n_jobs=2)""",
    "files": "tf.train.Checkpoint(v=tf.Variable(1.0)).save('here')",
    "images": "tf.keras.utils.load_img('picture.png')",
    "images, of a folder": "tf.keras.utils.image_dataset_from_directory('.')",
    "jit": "tf.function(lambda x: x + 1.0, jit_compile=True)(tf.ones([2]))",
    "mpi": "os.environ['OMPI_COMM_WORLD_SIZE'] = '2'; tf.distribute.initialize()",
    "mpi, for a strategy": "os.environ['OMPI_COMM_WORLD_SIZE'] = '2'; tf.distribute.MultiWorkerMirroredStrategy()",
    "onnx": "model().export('model.onnx', format='onnx')",
    "optuna": "tf.keras.callbacks.OptunaPruning(None, 'loss')",
    "pandas": "tf.data.experimental.make_csv_dataset('table.csv', 1)",
    "pandas, for a table": "tf.experiments.Table([{'a': 1}]).to_pandas()",
    "plot": "tf.autodiff.plot_hessian(tf.ones([2, 2]))",
    "plot, of a comparison": """
import types
from minikeras import figures
figures.plot_comparison({'a': types.SimpleNamespace(logs={'loss': [1.0]})}, 'loss')
""",
    "sklearn": "tf.keras.wrappers.SKLearnClassifier",
    "tensorboard": "model().fit(tf.ones([2, 1]), tf.ones([2, 1]), callbacks=[tf.keras.callbacks.TensorBoard('logs')])",
    "tensorboard, for summaries": "tf.summary.create_file_writer('logs').write(0, [])",
    "threads": """
from minikeras import parallel
parallel._of_wheel = lambda package: []  # as where NumPy is not from a wheel with OpenBLAS, which is told without the extra
tf.config.threading.set_intra_op_parallelism_threads(1)
""",
}
"""What each extra is needed for."""

START = """
import os, sys
sys.modules.update(dict.fromkeys({blocked!r}))
import minikeras as tf

def model():
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

"""


def test_the_report_knows_the_extras_and_packages_of_the_project():
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(extras) - FOR_DEVELOPERS == set(EXTRAS)
    for name, extra in EXTRAS.items():
        wanted = {re.match(r"[\w-]+", requirement)[0] for requirement in extras[name]}
        assert set(extra.packages.values()) == wanted - {"openmpi"}, name  # an MPI of the system will do


def test_modules_bring_the_packages_that_the_report_looks_for():
    for name in EXTRAS:
        for module, package in EXTRAS[name].packages.items():
            if package in found(name):
                assert find_spec(module) is not None, module


IN_EACH_FORK = """
import traceback
for name, (packages, program) in {uses!r}.items():
    with open(name, "w") as told:
        if os.fork() == 0:
            assert not set(packages) & set(sys.modules), "loaded without being asked for"
            sys.modules.update(dict.fromkeys(packages))
            os.dup2(told.fileno(), 2)
            try:
                exec(program)
            except Exception:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.wait()
"""
"""A process that has loaded the package and Keras's part of it; what each use tells is in a file of its name."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_who_lacks_an_extra_is_told_the_one_command(tmp_path):
    uses = {use: (tuple(EXTRAS[use.split(",")[0]].packages), program.strip()) for use, program in USES.items()}
    program = START.format(blocked=()) + "tf.keras.Model, tf.experiments.Sweep\n" + IN_EACH_FORK.format(uses=uses)
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""}
    line = [sys.executable, "-c", program]
    subprocess.run(line, cwd=tmp_path, env=environment, check=True, timeout=120)
    for use in USES:
        told = (tmp_path / use).read_text(encoding="utf-8")
        assert "pip install 'minikeras[" in told and f"'minikeras[{use.split(',')[0]}]'" in told, f"{use}: {told}"


def test_the_extra_for_the_site_is_enough_to_import_every_public_name(tmp_path):
    """The reference asks each name for its docstring. What other extras alone bring is missing in a fresh environment."""
    brought = all_that_comes_with(re.match(r"[\w-]+", one)[0] for one in PROJECT["project"]["optional-dependencies"]["docs"])
    packages = {module: package for extra in EXTRAS.values() for module, package in extra.packages.items()}
    blocked = tuple(module for module, package in packages.items() if package not in brought)
    assert {"onnx", "llvmlite"} <= set(blocked)
    program = (
        START.format(blocked=blocked) + "import operator\nfor name in sys.stdin: operator.attrgetter(name[10:].strip())(tf)"
    )
    names = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8")
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""}
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, input=names, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d) and GALLERY not in d.parents], ids=lambda d: d.name)
def test_a_page_names_what_its_blocks_need(document, tmp_path):
    """One who follows a page has the package and what the page says to install."""
    said = re.findall(r"pip install (?:-e )?'?(?:(?:minikeras|\.)\[([\w,]+)\]|(\w+))", document.read_text(encoding="utf-8"))
    packages = {module: package for extra in EXTRAS.values() for module, package in extra.packages.items()}
    extras = [EXTRAS[name] for names, _ in said for name in names.split(",") if name in EXTRAS]
    brought = all_that_comes_with(
        [*(name for _, name in said if name), *(p for extra in extras for p in extra.packages.values())]
    )
    blocked = tuple(module for module, package in packages.items() if package not in brought)
    missing = {name for code, _ in blocks(document) for name in needed(code) if name in blocked or find_spec(name) is None}
    shown = (code for code, _ in blocks(document) if missing.isdisjoint(needed(code)))
    program = "\n".join([START.format(blocked=blocked), *shown])
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": "", "MPLBACKEND": "Agg"}
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def all_that_comes_with(packages):
    """The distributions and what they require, as far as they are installed here."""
    seen, left = set(), list(packages)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                required = importlib.metadata.requires(name) or []
                left += [re.match(r"[\w-]+", one)[0] for one in required if "extra ==" not in one]
    return seen


def test_only_who_asks_for_bfloat16_needs_its_package(tmp_path):
    asked = "print(tf.float32 == 'bfloat16', tf.saturate_cast([300.0], 'uint8').numpy()); tf.constant(1.0, 'bfloat16')"
    environment = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": ""}
    line = [sys.executable, "-c", START.format(blocked=("ml_dtypes",)) + asked]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "False [255]\n" and "pip install ml_dtypes" in done.stderr, done.stderr


def test_every_extra_has_a_use():
    assert set(EXTRAS) - set(USES) == {"cupy", "notebooks"}  # cuda13 without the libraries; nothing here asks for JupyterLab


def test_what_is_missing_is_listed_with_the_command(monkeypatch, capsys):
    monkeypatch.setattr("minikeras.extras.found", lambda name: {"matplotlib": "3.9"} if name == "plot" else {})
    assert missing("plot") == ["pydot"]
    report.main([])
    shown = capsys.readouterr().out
    assert (
        "missing pydot: pip install 'minikeras[plot]'" in shown
        and "LLVM         for jit_compile=True: missing llvmlite" in shown
    )
    assert all(f"\n  {name} " in shown for name in [*EXTRAS, "CPU:0", "GPU", "NumPy", "CUDA graphs"])


def test_a_report_fits_a_terminal(capsys):
    report.main([])
    shown = capsys.readouterr().out
    assert shown.startswith("minikeras ") and max(map(len, shown.partition("\nExtras\n")[2].splitlines())) <= 120


def test_a_report_takes_no_arguments(capsys):
    with pytest.raises(SystemExit):
        report.main(["plot"])
    assert "unrecognized arguments: plot" in capsys.readouterr().err


def test_examples_are_listed_and_one_runs(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["examples"])
    assert examples.main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown for name in examples.names()) and len(examples.names()) > 20
    assert examples.main(["gradient_tape_tour"]) == 0
    assert "at 3: 27.0 18.0" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["minikeras", "minikeras.examples"])
def test_a_reader_that_has_seen_enough_ends_a_program_without_a_traceback(module):
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as gone:
        done = subprocess.run([sys.executable, "-m", module], stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "")


def test_an_example_that_is_not_there_is_refused_with_the_names(capsys):
    with pytest.raises(SystemExit):
        examples.main(["nothing"])
    assert "there is no example 'nothing'; choose from augment_images," in capsys.readouterr().err


def test_an_example_without_its_package_names_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["examples"])
    monkeypatch.setattr(examples, "folder", lambda: tmp_path)
    monkeypatch.setitem(sys.modules, "optuna", None)
    (tmp_path / "search.py").write_text("import optuna\n")
    (tmp_path / "other.py").write_text("import no_such_package\n")
    assert examples.main(["search"]) == 1
    assert "the example search needs the package optuna, which was not found: pip install 'minikeras[optuna]'" in (
        capsys.readouterr().err
    )
    with pytest.raises(ModuleNotFoundError):
        examples.main(["other"])


def test_wheels_hold_the_examples(tmp_path, monkeypatch):
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert wheel["examples"] == "minikeras/example_scripts"
    (tmp_path / "example_scripts").mkdir()
    monkeypatch.setattr(examples, "__file__", str(tmp_path / "examples.py"))
    assert examples.folder() == tmp_path / "example_scripts"


def test_an_extra_is_found_by_its_module():
    assert extra_with("PIL") == "images" and extra_with("numpy") is None
