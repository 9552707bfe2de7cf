"""Steps of a model that are recorded once and replayed from then on.

Key idea: a step is a function like any other, so `tf.function`'s machinery records it. What it depends on beside its batch are
facts of the model: they are compared before each step, and if somebody froze a layer, set an attribute or chose another
optimizer since the last one, the next step is recorded anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...program import Function, executors
from ..layers.contents import structure_version

Step = Callable[[Any], Any]


class CompiledSteps:
    """The compiled steps of one model, by name.

    Attributes:
        planned: the steps of the present run of `fit`: whether it is long enough to have them carried out by the machine.
    """

    __slots__ = ("_steps", "planned")

    def __init__(self) -> None:
        self._steps: dict[str, CompiledStep] = {}
        self.planned = 0

    def of(self, model: Any, name: str) -> Step:
        """The step of that name, compiled if the model was told so and it can be of use."""
        step: Step = getattr(model, name)
        wanted = False if model.run_eagerly else model.jit_compile
        decides = name == "train_step" and getattr(model.optimizer, "needs_loss", False)
        if not wanted or (wanted == "auto" and decides and getattr(model.optimizer, "sweeps", None) is None):
            return step
        if name not in self._steps:
            self._steps[name] = CompiledStep(model, name, wanted is True)
        if wanted == "auto":
            self._steps[name].planned = self.planned
        return self._steps[name]

    def __getitem__(self, name: str) -> Function:
        """The function of a step, for its counters and programs."""
        return self._steps[name].function

    def __deepcopy__(self, memo: Any) -> CompiledSteps:
        """None yet: a copied model has other Variables."""
        return CompiledSteps()

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledSteps, ()


class CompiledStep:
    """A step of a model, called with a batch."""

    __slots__ = ("_facts", "_model", "function", "planned")

    def __init__(self, model: Any, name: str, strict: bool) -> None:
        self._model = reference = weakref.ref(model)  # the model holds this, and is to go when nobody else holds it
        self._facts: Any = None
        self.planned = 0
        self.function = Function(lambda data: getattr(reference(), name)(data), name=f"{model.name}.{name}", jit_compile=strict)

    def __call__(self, data: Any) -> Any:
        model = self._model()
        if self._facts != _facts(model):
            self.function.forget()
        if self.planned and self.function.recordings:
            if executors.earns(self.planned * self.function.seconds):
                self.function.accelerate()
            self.planned = 0
        replays = self.function.replays
        try:
            return self.function(data)
        finally:
            if self.function.replays == replays:  # Python ran, which may have built layers
                self._facts = _facts(model)


def _facts(model: Any) -> Any:
    """What a step depends on beside Variables and its batch."""
    return structure_version(), [variable._trainable for variable in model._collect().variables]
