"""LossScaleOptimizer: another optimizer under a loss scale, which keeps float16 gradients from vanishing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from ...compiler.passes.inlining import EXPANSIONS, Writer
from ...core import Record, State, Variable, effect, namespace, perform, to_numpy, warn_caller
from ...functions.operands import tensor
from ...types import Array, DTypeLike
from ..arguments import as_call
from .optimizer import Optimizer, deserialize, serialize
from .options import COMMON
from .state import Change, OptimizerState


def next_scale(finite: bool, scale: float, count: int, growth_steps: int) -> tuple[float, int]:
    """The scale after a step, and the number of good steps since it last changed.

        scale / 2, 0            after a gradient that is not finite
        scale * 2, 0            after growth_steps good steps
        scale, count + 1        else

    Source: Micikevicius et al., Mixed precision training (2018), section 3.2, with NVIDIA's rule for a dynamic scale.
    """
    if not finite:
        return scale / 2.0, 0
    return (scale, count + 1) if count + 1 < growth_steps else (scale * 2.0, 0)


class LossScaleOptimizer(Optimizer):
    """Another optimizer, whose gradients are those of a scaled loss. Rule: `next_scale`.

    A step with gradients that are not finite changes nothing but the scale.

    Args:
        inner_optimizer: the optimizer that steps; its options and its learning rate hold.
        initial_scale: the first scale.
        dynamic_growth_steps: number of good steps after which the scale doubles.
        name: shown in messages.

    Raises:
        ValueError: for options that belong to the inner optimizer, or if that is a LossScaleOptimizer or of second order. Its
            `loss_scale_factor` is removed, with a warning.

    >>> w = tf.Variable(1.0)
    >>> optimizer = tf.keras.optimizers.LossScaleOptimizer(tf.keras.optimizers.SGD(0.5), initial_scale=8.0)
    >>> with tf.GradientTape() as tape:
    ...     loss = optimizer.scale_loss(w * w)
    >>> _ = optimizer.apply([tape.gradient(loss, w)], [w])
    >>> print(w.numpy())
    0.0
    >>> _ = optimizer.apply([tf.constant(float("inf"))], [w])
    >>> print(w.numpy(), optimizer.dynamic_scale.numpy(), int(optimizer.iterations))
    0.0 4.0 1
    """

    scales = True

    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(inner_optimizer, Optimizer):
            raise ValueError(f"LossScaleOptimizer: `inner_optimizer` must be an optimizer, found {inner_optimizer!r}.")
        self.inner_optimizer = inner_optimizer
        super().__init__(0.0, name=name)
        self.state = OptimizerState(self.name, [inner_optimizer.state])
        # Configurations that Keras wrote hold the common options at their defaults, which mean nothing; `dynamic=True` is of
        # Keras 2, where the scale could also be fixed.
        own = {"dynamic": True} | {name: getattr(self, name) for name in COMMON}
        if foreign := {key: value for key, value in options.items() if key not in own or value != own[key]}:
            raise ValueError(f"LossScaleOptimizer does not support {foreign}. Set them on the `inner_optimizer`.")
        if isinstance(inner_optimizer, LossScaleOptimizer):
            raise ValueError(
                f"LossScaleOptimizer: the inner optimizer '{inner_optimizer.name}' is one itself; gradients would be divided "
                "twice. Give it an optimizer that does not scale."
            )
        if inner_optimizer.loss_scale_factor is not None:
            warn_caller(
                f"LossScaleOptimizer: the inner optimizer '{inner_optimizer.name}' has loss_scale_factor="
                f"{inner_optimizer.loss_scale_factor}, and gradients would be divided twice. It is set to None; leave it out."
            )
            inner_optimizer.loss_scale_factor = None
        if inner_optimizer.needs_loss:
            raise ValueError(
                f"LossScaleOptimizer: the inner optimizer '{inner_optimizer.name}' is given the loss as a function, takes no "
                "scaled gradients. Use the policy 'float32' or 'mixed_bfloat16', or compile(auto_scale_loss=False)."
            )
        self.initial_scale, self.dynamic_growth_steps = float(initial_scale), int(dynamic_growth_steps)
        self.step_counter = self.state.add_number(np.int64(0), "step_counter")
        self.dynamic_scale = self.state.add_number(initial_scale, "dynamic_scale", "float32")

    # The inner optimizer's state -------------------------------------------------------------------------------------------

    @property
    def variables(self) -> list[Variable]:
        """Its own Variables, the first two only for Keras's files, then the inner optimizer's."""
        own = [self.state.iterations, self._learning_rate, self.step_counter, self.dynamic_scale]
        return own + self.inner_optimizer.variables

    @property
    def iterations(self) -> Any:
        """The number of updates of the inner optimizer; skipped steps do not count."""
        return self.inner_optimizer.iterations

    @property
    def learning_rate(self) -> Any:
        return self.inner_optimizer.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self.inner_optimizer.learning_rate = value

    @property
    def is_own(self) -> bool:
        return super().is_own and self.inner_optimizer.is_own

    @property
    def rate_is_own(self) -> bool:
        return self.inner_optimizer.rate_is_own

    def build(self, variables: Iterable[Variable]) -> None:
        self.inner_optimizer.prepare(list(variables))

    def learning(self, variables: Sequence[Variable]) -> Sequence[int] | None:
        return self.inner_optimizer.learning(variables)

    def exclude_from_weight_decay(self, *arguments: Any, **options: Any) -> None:
        self.inner_optimizer.exclude_from_weight_decay(*arguments, **options)

    def finalize_variable_values(self, var_list: Iterable[Variable]) -> None:
        self.inner_optimizer.finalize_variable_values(var_list)

    # The step --------------------------------------------------------------------------------------------------------------

    def scale_loss(self, loss: Any) -> Any:
        """The loss times the present scale, to be differentiated in its place."""
        loss = tensor(loss)
        return loss * perform(present_scale, [loss], {"optimizer": self, "dtype": loss.array.dtype})

    def present_scale(self) -> Array:
        """The scale now, on the host."""
        return to_numpy(self.dynamic_scale.array)

    def changes_of_scale(self, finite: bool) -> list[Change]:
        """The scale after a step, and the number of good steps since it last changed."""
        held = self.dynamic_scale, self.step_counter
        new = next_scale(finite, float(held[0].array), int(held[1].array), self.dynamic_growth_steps)
        return [(one, one.array.dtype.type(value)) for one, value in zip(held, new, strict=True)]

    # Configuration ---------------------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        own = {"initial_scale": self.initial_scale, "dynamic_growth_steps": self.dynamic_growth_steps}
        return {"name": self.name, "inner_optimizer": serialize(self.inner_optimizer), **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "inner_optimizer": deserialize(config["inner_optimizer"])})

    def __repr__(self) -> str:
        return as_call(self, inner_optimizer=self.inner_optimizer)


def _present_scale(*loss: Array, optimizer: Any, dtype: DTypeLike) -> Array:
    """The scale, or one for each member, read anew in each run, on the device of the loss if that is given."""
    with np.errstate(over="ignore"):  # beyond float16 the scaled loss is infinite, and the step is skipped
        return namespace(*loss).asarray(optimizer.present_scale().astype(dtype))


def _compiled_scale(writer: Writer, record: Record) -> bool:
    """Write the loss scale as a value that Python makes before all others: on the host it does not depend on the loss."""
    writer.begin(present_scale, record.params, record.outputs)
    return True


present_scale = effect("loss_scale", _present_scale, reads=(State.VARIABLES,))
EXPANSIONS[present_scale] = _compiled_scale
