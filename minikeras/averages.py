"""Moving averages of Variables, as `tf.train.ExponentialMovingAverage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .core import Tensor, Variable, convert_to_tensor
from .functions import cast, minimum, zeros_like
from .module import Module


class ExponentialMovingAverage(Module):
    """Averages of Variables in which what lies k updates back counts decay**k (1 - decay).

    Args:
        decay: close to 1; a larger one forgets more slowly.
        num_updates: a number or Variable n for which the decay is min(decay, (1 + n) / (10 + n)): early averages forget faster.
        zero_debias: begin with 0 and divide by 1 - decay**k, in place of beginning with the first value.
        name: shown.

    >>> v = tf.Variable(0.0)
    >>> average = tf.train.ExponentialMovingAverage(0.9)
    >>> average.apply([v])
    >>> _ = v.assign(1.0)
    >>> average.apply([v])
    >>> print(average.average(v).numpy().round(4))
    0.1
    """

    def __init__(
        self, decay: float, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        super().__init__(name)
        self.decay = decay
        self.num_updates = num_updates
        self.zero_debias = bool(zero_debias)
        self._averages: list[Variable] = []
        self._corrections: list[Variable] = []
        self._places: dict[Any, int] = {}

    def apply(self, var_list: Sequence[Variable] | None = None) -> None:
        """Take the values that the Variables have now into their averages, which are made at the first call.

        Raises:
            ValueError: without a list of Variables.
            TypeError: for what is no Variable of floats.
        """
        if var_list is None:
            raise ValueError("ExponentialMovingAverage.apply: give the list of Variables, such as model.trainable_variables.")
        decay = convert_to_tensor(self.decay)
        if self.num_updates is not None:
            n = convert_to_tensor(self.num_updates, decay.dtype)
            decay = minimum(decay, (1.0 + n) / (10.0 + n))
        for variable in var_list:
            self._update(variable, decay)

    def _update(self, variable: Variable, decay: Tensor) -> None:
        if not isinstance(variable, Variable) or not variable.dtype.is_differentiable:
            raise TypeError(f"ExponentialMovingAverage: needs Variables of floats, found {variable!r:.80}.")
        place = self._places.get(variable.ref())
        if place is None:
            place = self._places[variable.ref()] = len(self._averages)
            name = self.average_name(variable)
            start = zeros_like(variable) if self.zero_debias else variable.read_value()
            self._averages.append(Variable(start, trainable=False, name=name))
            self._corrections.append(Variable(1.0, trainable=False, name=f"{name}/decayed"))
        average, correction = self._averages[place], self._corrections[place]
        kept = decay if decay.dtype == variable.dtype else cast(decay, variable.dtype)
        average.assign_sub((1.0 - kept) * (average - variable))
        correction.assign(correction * cast(decay, "float32"))

    def average(self, var: Variable) -> Any:
        """The average of a Variable: a Variable, with `zero_debias` a Tensor; None if it was never given to `apply`."""
        place = self._places.get(var.ref())
        if place is None:
            return None
        average = self._averages[place]
        return average / cast(1.0 - self._corrections[place], average.dtype) if self.zero_debias else average

    def average_name(self, var: Variable) -> str:
        """The name of the Variable's average."""
        return f"{var.name.removesuffix(':0')}/{self.name}"
