"""How a compiled step of this project is made to run on one of its executors: the one place that knows.

NumPy carries out a recorded step wherever this project runs; native code needs llvmlite and scipy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from .environments import OWN
from .settings import Settings


class Executor(NamedTuple):
    """What carries out a recorded step.

    Attributes:
        name: for `use`.
        title: of its rows in tables.
        needs: the modules it runs on.
    """

    name: str
    title: str
    needs: tuple[str, ...]


NUMPY = Executor("numpy", f"{OWN}, tf.function", (OWN,))
NATIVE = Executor("native", f"{OWN}, native", (OWN, "llvmlite", "scipy"))


def installed(settings: Settings) -> list[Executor]:
    """The executors that take part."""
    return [one for one in (NUMPY, NATIVE) if settings.has(*one.needs)]


def use(name: str) -> bool | None:
    """What `tf.function` is told as `jit_compile` for an executor."""
    return {"numpy": None, "native": True}[name]


def compiled(step: Callable[[], Any], executor: Executor) -> Callable[[], Any]:
    """A step, recorded at its first call and carried out by that executor from then on."""
    import minikeras as tf

    return tf.function(step, jit_compile=use(executor.name))  # type: ignore[no-any-return]


def fit_options(executor: Executor) -> dict[str, Any]:
    """What `Model.compile` is told, where None would mean a step by Python."""
    return {"jit_compile": use(executor.name) or "auto"}
